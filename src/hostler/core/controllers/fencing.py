"""Fencing: what was held on a lost node is over, and its old word counts no more.

Reads:    nodes.
Writes:   leases (held to settled), allocations (ended), nodes (why they retire), commands (to the
          node's new epoch).
Sends:    nothing (retirement stops the machine).
Keeps:    INV-FENCE-2 (no lease is held on a lost node), INV-FENCE-3 (nor anything else, unless its
          job keeps running when cut off).
Waits on: Reason.FENCE_PENDING.

Liveness waits until a cut-off agent has certainly stopped its own work, so what it ran may be
placed elsewhere from here on. A job that keeps running when cut off stays where it is, and nothing
else starts for it, until its node is back or its machine is confirmed gone.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from hostler.core import holds
from hostler.core.txn import Txn
from hostler.model import Allocation, Node
from hostler.model.allocation import AllocationPhase, EndCause, Ended
from hostler.model.command import AnyAgentCommand
from hostler.model.launch import Disconnect
from hostler.model.lease import LeaseOutcome
from hostler.model.node import Health, NodePhase, Origin, RetireReason
from hostler.model.reason import Reason

READS: Final = (Node,)


def reconcile(txn: Txn) -> None:
    """End what lost nodes hold."""
    for node in txn.changed(Node):
        if node.health is Health.LOST and node.phase is not NodePhase.RETIRED:
            _fence(txn, node)


def _fence(txn: Txn, node: Node) -> None:
    fleet = txn.fleet
    if node.origin is Origin.LAUNCHED and node.retire_reason is None:
        txn.change(node, retire_reason=RetireReason.LOST)
    for key in fleet.index.leases_by_node.keys(node.node_id):
        holds.settle_lease(txn, fleet.leases[key], LeaseOutcome.NODE_LOST, _why(node))
    for key in fleet.index.allocations_by_node.keys(node.node_id):
        _end(txn, node, fleet.allocations[key])
    _renew_commands(txn, node)


def _end(txn: Txn, node: Node, allocation: Allocation) -> None:
    is_started = allocation.phase is not AllocationPhase.RESERVED
    if is_started and not node.is_machine_gone and _is_kept(allocation):
        txn.note(
            allocation.allocation_id,
            Reason.FENCE_PENDING,
            f"{node.node_id} is cut off and may still run it",
        )
        return
    cause = EndCause.NODE_LOST if is_started else EndCause.CANCELLED
    holds.end_allocation(txn, allocation, Ended(cause=cause, message=_why(node)))


def _is_kept(allocation: Allocation) -> bool:
    return allocation.launch.disconnect is Disconnect.KEEP


def _why(node: Node) -> str:
    what = "its machine is gone" if node.is_machine_gone else "its agent is silent"
    return f"{node.node_id} was lost: {what}"


def _renew_commands(txn: Txn, node: Node) -> None:
    """Carry what is still wanted of the agent over to the epoch that it will be welcomed with."""
    for key in txn.fleet.index.commands_by_target.keys(f"node:{node.node_id}"):
        entry = txn.fleet.commands[key]
        if isinstance(entry.command, AnyAgentCommand):
            command = replace(entry.command, node_epoch=node.epoch)
            txn.put(replace(entry, command=command))
