"""Room given and taken: the one place where authority over a node's room begins and ends.

A lease and an allocation are two holds on the same room. Whatever grants or ends one does it here,
so that counts, epochs and idleness on the node cannot drift from the holds themselves.
"""

from __future__ import annotations

from typing import Any

from hostler.core import outbox
from hostler.core.events import EventKind
from hostler.core.txn import Txn
from hostler.model import Allocation, Lease, Node
from hostler.model.allocation import AllocationPhase, AllocationTrigger, EndCause, Ended
from hostler.model.command import StartAllocation, StopAllocation
from hostler.model.launch import Disconnect
from hostler.model.lease import LeaseOutcome, LeaseTrigger
from hostler.model.node import NodePhase


def grant_lease(txn: Txn, lease: Lease, node: Node, *, ends_at_ms: int | None) -> Lease:
    """Give a waiting lease a slot on a node that has one free."""
    epoch = node.lease_epoch + 1
    txn.change(
        node,
        lease_count=node.lease_count + 1,
        lease_epoch=epoch,
        use_count=node.use_count + 1,
        idle_since_at_ms=None,
    )
    return txn.move(
        lease,
        LeaseTrigger.GRANTED,
        reason=None,
        reason_detail="",
        node_id=node.node_id,
        epoch=epoch,
        granted_at_ms=txn.now_ms,
        heartbeat_at_ms=txn.now_ms,
        expires_at_ms=txn.now_ms + lease.lease_ms,
        ends_at_ms=ends_at_ms,
    )


def settle_lease(txn: Txn, lease: Lease, outcome: LeaseOutcome, detail: str = "") -> Lease:
    """End a held lease and give its slot back. Whether the node may be held again is not said."""
    settled = txn.move(lease, LeaseTrigger.SETTLED, outcome=outcome, outcome_detail=detail)
    node = txn.fleet.nodes.get(lease.node_id)
    if node is not None:
        _release(txn, node, lease_count=node.lease_count - 1)
    return settled


def reserve(txn: Txn, allocation: Allocation, node: Node) -> Allocation:
    """Hold room on a node for a new allocation. A spare that is used is a spare no more."""
    launch = allocation.launch
    grace_ms = launch.stop_grace_ms if launch.disconnect is Disconnect.STOP else 0
    txn.change(
        node,
        allocation_count=node.allocation_count + 1,
        idle_since_at_ms=None,
        is_spare=False,
        spare_band=None,
        fence_grace_ms=max(node.fence_grace_ms, grace_ms),
    )
    return txn.put(allocation)


def start(txn: Txn, allocation: Allocation, node: Node, **changes: Any) -> Allocation:
    """Send a reserved allocation to its node's agent, with what was settled only now."""
    txn.send(
        start_command_id(allocation),
        StartAllocation(
            node_id=node.node_id,
            node_epoch=node.epoch,
            allocation_id=allocation.allocation_id,
            epoch=allocation.epoch,
        ),
    )
    return txn.move(allocation, AllocationTrigger.START_SENT, **changes)


def request_stop(txn: Txn, allocation: Allocation, reason: str) -> Allocation:
    """Ask for the end of an allocation, once. One whose start never left ends here and now."""
    match allocation.phase:
        case AllocationPhase.STOPPING | AllocationPhase.ENDED:
            return allocation
        case AllocationPhase.RESERVED:
            cancelled = Ended(cause=EndCause.CANCELLED, message=reason)
            return end_allocation(txn, txn.change(allocation, stop_reason=reason), cancelled)
        case _:
            outbox.withdraw(txn, start_command_id(allocation))
            txn.send(
                stop_command_id(allocation),
                StopAllocation(
                    node_id=allocation.node_id,
                    node_epoch=txn.fleet.nodes[allocation.node_id].epoch,
                    allocation_id=allocation.allocation_id,
                    epoch=allocation.epoch,
                    grace_ms=allocation.launch.stop_grace_ms,
                    reason=reason,
                ),
            )
            return txn.move(allocation, AllocationTrigger.STOP_REQUESTED, stop_reason=reason)


def start_command_id(allocation: Allocation) -> str:
    """Return the id of the command that starts an allocation."""
    return f"{allocation.allocation_id}/start/{allocation.epoch}"


def stop_command_id(allocation: Allocation) -> str:
    """Return the id of the command that stops an allocation."""
    return f"{allocation.allocation_id}/stop/{allocation.epoch}"


def end_allocation(txn: Txn, allocation: Allocation, ended: Ended) -> Allocation:
    """Record that an allocation has ended, give its room back, and ask no more of its agent."""
    outbox.withdraw(txn, start_command_id(allocation))
    outbox.withdraw(txn, stop_command_id(allocation))
    txn.emit(
        EventKind.ALLOCATION_ENDED,
        {
            "allocation": allocation.allocation_id,
            "replica": allocation.replica_id,
            "bundle": allocation.bundle_id,
            "node": allocation.node_id,
        },
        cause=ended.cause.value,
        exit_code=ended.exit_code,
        signal=ended.signal,
        message=ended.message,
    )
    done = txn.move(allocation, AllocationTrigger.ENDED, ended=ended)
    node = txn.fleet.nodes.get(allocation.node_id)
    if node is not None:
        _release(txn, node, allocation_count=node.allocation_count - 1)
    return done


def _release(txn: Txn, node: Node, **counts: Any) -> None:
    lease_count = counts.get("lease_count", node.lease_count)
    allocation_count = counts.get("allocation_count", node.allocation_count)
    is_idle = lease_count == 0 and allocation_count == 0 and node.phase is NodePhase.READY
    txn.change(
        node,
        **counts,
        idle_since_at_ms=txn.now_ms if is_idle else node.idle_since_at_ms,
        fence_grace_ms=node.fence_grace_ms if allocation_count else 0,
    )
