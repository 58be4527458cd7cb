"""Room given and taken: the one place where authority over a node's room begins and ends.

A lease and an allocation are two holds on the same room. Whatever grants or ends one does it here,
so that counts, epochs and idleness on the node cannot drift from the holds themselves.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from hostler.core import books, outbox
from hostler.core.events import EventKind
from hostler.core.txn import Txn
from hostler.model import Allocation, Lease, Node
from hostler.model.allocation import AllocationPhase, AllocationTrigger, EndCause, Ended
from hostler.model.command import EndLease, StartAllocation, StopAllocation
from hostler.model.launch import Disconnect
from hostler.model.lease import LeaseOutcome, LeaseTrigger, Share
from hostler.model.node import CleanUp, Cordon, NodePhase, Origin, Quarantine, RetireReason, Tenant

_UNFIT: dict[LeaseOutcome, RetireReason] = {
    LeaseOutcome.POISON: RetireReason.POISONED,
    LeaseOutcome.EXPIRED: RetireReason.POISONED,
    LeaseOutcome.REVOKED: RetireReason.POISONED,
}
"""Outcomes after which nobody knows what is left on the node. A lost node is fencing's."""

_USED_UP_CORDON = ("hostler", RetireReason.USED_UP.value)

_LINKED = (NodePhase.READY, NodePhase.DRAINING)
"""Phases in which a node has an agent to speak to, now or later. A lost node's agent has ended all
leases by itself."""


def grant_lease(
    txn: Txn, lease: Lease, node: Node, *, ends_at_ms: int | None, is_last_use: bool = False
) -> Lease:
    """Give a waiting lease a slot on a node that has one free.

    Args:
        txn: The step.
        lease: Waiting.
        node: Has a free slot.
        ends_at_ms: When the lease ends whatever its heartbeats; `None` for never.
        is_last_use: The node is to be held no more after this.

    Returns:
        The lease, held.
    """
    epoch = node.lease_epoch + 1
    is_acknowledged = lease.ack_ms is None
    shared = _shared(node, lease) if node.slot_count > 1 else {}
    unfit = _unfit(txn, node, RetireReason.USED_UP) if is_last_use else {}
    txn.change(
        node,
        lease_count=node.lease_count + 1,
        lease_epoch=epoch,
        use_count=node.use_count + 1,
        idle_since_at_ms=None,
        **shared,
        **unfit,
    )
    txn.emit(
        EventKind.LEASE_GRANTED,
        {"lease": lease.lease_id, "pool": lease.pool, "node": node.node_id},
        waited_ms=txn.now_ms - lease.requested_at_ms,
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
        is_acknowledged=is_acknowledged,
        expires_at_ms=txn.now_ms + (lease.lease_ms if is_acknowledged else lease.ack_ms or 0),
        ends_at_ms=ends_at_ms,
        meter=books.lease_meter(txn, lease, node),
    )


def _shared(node: Node, lease: Lease) -> dict[str, Any]:
    """Return how a node of several slots may be shared once this lease is on it, too."""
    if not node.lease_count:
        return {"share": lease.share, "tenant_key": lease.fairness_key}
    is_same = node.tenant_key == lease.fairness_key
    return {
        "share": min(node.share, lease.share, key=lambda each: each.rank),
        "tenant_key": node.tenant_key if is_same else None,
    }


def settle_lease(txn: Txn, lease: Lease, outcome: LeaseOutcome, detail: str = "") -> Lease:
    """End a held lease, give its slot back, and have its agent clear away what is left of it.

    The slot is free at once: the next lease has a higher epoch, and its commands reach the agent
    after the order to end this one. After an outcome that may leave something behind, nobody
    holds the node again.
    """
    books.close_lease(txn, lease)
    settled = txn.move(lease, LeaseTrigger.SETTLED, outcome=outcome, outcome_detail=detail)
    txn.emit(
        EventKind.LEASE_SETTLED,
        {"lease": lease.lease_id, "pool": lease.pool, "node": lease.node_id or ""},
        outcome=outcome,
        detail=detail,
        epoch=lease.epoch,
    )
    node = txn.fleet.nodes.get(lease.node_id)
    if node is None:
        return settled
    reason = _UNFIT.get(outcome)
    changes = {} if reason is None else _unfit(txn, node, reason)
    if outcome is LeaseOutcome.UNACKNOWLEDGED:
        changes = _unused(node)
    left_count = node.lease_count - 1
    if node.slot_count > 1 and not left_count:
        changes |= {"share": Share.ANY, "tenant_key": None}
    tenant = Tenant(
        lease_id=lease.lease_id,
        fairness_key=lease.fairness_key,
        outcome=outcome,
        ended_at_ms=txn.now_ms,
    )
    is_linked = outcome is not LeaseOutcome.NODE_LOST and node.phase in _LINKED
    pool = txn.fleet.pools.get(lease.pool)
    clean_up = pool.clean_up if pool is not None and is_linked else ()
    if outcome is not LeaseOutcome.HEALTHY or node.retire_reason is not None:
        clean_up = ()  # nothing ran, or nobody comes after it
    if clean_up:
        changes["cleaning_count"] = node.cleaning_count + 1
    _release(txn, node, lease_count=left_count, last_tenant=tenant, **changes)
    if is_linked:
        txn.send(
            f"{lease.lease_id}/end/{lease.epoch}",
            EndLease(
                node_id=node.node_id,
                node_epoch=node.epoch,
                lease_id=lease.lease_id,
                epoch=lease.epoch,
                clean_up=clean_up,
                clean_up_ms=pool.clean_up_ms if pool is not None and clean_up else 0,
            ),
        )
    return settled


def cleaned(txn: Txn, command: EndLease, failure: str | None) -> None:
    """Record how a slot was cleaned up, and give it back; after a failure nobody holds the node."""
    node = txn.fleet.nodes.get(command.node_id)
    if node is None or not command.clean_up or node.phase is NodePhase.RETIRED:
        return
    unfit = {} if failure is None else _unfit(txn, node, RetireReason.POISONED)
    if failure is not None:
        txn.emit(
            EventKind.NODE_CLEAN_UP_FAILED,
            {"node": node.node_id, "pool": node.pool, "lease": command.lease_id},
            detail=failure,
        )
    txn.change(
        node,
        cleaning_count=node.cleaning_count - 1,
        last_clean_up=CleanUp(
            lease_id=command.lease_id,
            argv=command.clean_up,
            is_success=failure is None,
            detail=failure or "",
            ended_at_ms=txn.now_ms,
        ),
        **unfit,
    )


def _unfit(txn: Txn, node: Node, reason: RetireReason) -> dict[str, Any]:
    """Return what makes a node take no more leases: ours goes, a joined one waits for a person."""
    if node.origin is Origin.LAUNCHED:
        return {} if node.retire_reason is not None else {"retire_reason": reason}
    if node.lasting_cordon is not None:
        return {}
    txn.emit(
        EventKind.NODE_CORDONED, {"node": node.node_id, "pool": node.pool}, reason=reason.value
    )
    return {"cordon": Cordon(by="hostler", reason=reason.value, at_ms=txn.now_ms)}


def _unused(node: Node) -> dict[str, Any]:
    """Return what undoes the use of a node by a lease that was never taken up."""
    changes: dict[str, Any] = {"use_count": node.use_count - 1}
    if node.retire_reason is RetireReason.USED_UP:
        changes["retire_reason"] = None
    cordon = node.cordon
    if cordon is not None and (cordon.by, cordon.reason) == _USED_UP_CORDON:
        changes["cordon"] = None
    return changes


def reserve(
    txn: Txn, allocation: Allocation, node: Node, *, is_started: bool = False
) -> Allocation:
    """Hold room on a node for a new allocation, and start it where it can start at once.

    A spare that is used is a spare no more.
    """
    launch = allocation.launch
    grace_ms = launch.stop_grace_ms if launch.disconnect is Disconnect.STOP else 0
    held: dict[str, Any] = {
        "allocation_count": node.allocation_count + 1,
        "idle_since_at_ms": None,
        "is_spare": False,
        "spare_band": None,
        "quarantine": _on_trial(node.quarantine, allocation),
    }
    grace_ms = max(node.fence_grace_ms, grace_ms)
    node = txn.change(node, fence_grace_ms=grace_ms, **({} if allocation.is_service else held))
    return start(txn, allocation, node) if is_started else txn.put(allocation)


def _on_trial(quarantine: Quarantine | None, allocation: Allocation) -> Quarantine | None:
    """Remember whom a node on probation is tried with."""
    if quarantine is None or quarantine.is_over:
        return quarantine
    return replace(quarantine, trial_id=allocation.allocation_id)


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
            _tell_no_more(txn, allocation)
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


def configure_command_id(allocation: Allocation) -> str:
    """Return the id of the command that gives an allocation the configuration last sent to it."""
    return f"{allocation.allocation_id}/configure/{allocation.config_sent}"


def role_command_id(allocation: Allocation) -> str:
    """Return the id of the command that tells an allocation its present role."""
    return f"{allocation.allocation_id}/role/{allocation.role_term}"


def _tell_no_more(txn: Txn, allocation: Allocation) -> None:
    if allocation.config_sent:
        outbox.withdraw(txn, configure_command_id(allocation))
    if allocation.role_term:
        outbox.withdraw(txn, role_command_id(allocation))


def end_allocation(txn: Txn, allocation: Allocation, ended: Ended) -> Allocation:
    """Record that an allocation has ended, give its room back, and ask no more of its agent."""
    outbox.withdraw(txn, start_command_id(allocation))
    _tell_no_more(txn, allocation)
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
    if node is None:
        return done
    books.close_allocation(txn, allocation, node)
    if allocation.is_service:
        txn.touch(Node.KIND, node.node_id)  # no hold has ended, and yet there is room
    else:
        _release(txn, node, allocation_count=node.allocation_count - 1)
    return done


def _release(txn: Txn, node: Node, **changes: Any) -> None:
    lease_count = changes.get("lease_count", node.lease_count)
    allocation_count = changes.get("allocation_count", node.allocation_count)
    if lease_count == 0 and allocation_count == 0 and node.phase is NodePhase.READY:
        changes["idle_since_at_ms"] = txn.now_ms
    txn.change(node, **changes)
