"""What an agent says of allocations, compared with what we have.

The agent's word on what runs there is final. What it has and we do not is told to stop: it was
placed elsewhere, or its bundle is gone, while the agent could not be reached.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from hostler.core import holds
from hostler.core.allocation_fact import AllocationFact
from hostler.core.events import EventKind
from hostler.core.txn import Txn
from hostler.model import Allocation, Node
from hostler.model.allocation import AllocationPhase, AllocationTrigger, EndCause, Ended
from hostler.model.command import StopAllocation

STRANGER_GRACE_MS: Final = 10_000
"""Grace of a stop of something of which we have no record: the default of a job's own."""

_ACKNOWLEDGED: Final = (AllocationPhase.STARTING, AllocationPhase.RUNNING, AllocationPhase.READY)


def absorb_fact(txn: Txn, node: Node, fact: AllocationFact) -> None:
    """Write down what became of one allocation, or have it stopped if it is not ours any more."""
    allocation = txn.fleet.allocations.get(fact.allocation_id)
    if (
        allocation is None
        or not allocation.is_live
        or allocation.node_id != node.node_id
        or allocation.epoch != fact.epoch
    ):
        if fact.phase != "ended":
            _stop_stranger(txn, node, fact, allocation)
        return
    if allocation.phase is AllocationPhase.RESERVED:
        return  # its start never left, so this is the word of an earlier grant
    if fact.phase == "ended":
        ended = fact.ended or Ended(cause=EndCause.SUPERVISOR_LOST, message="it did not say how")
        holds.end_allocation(txn, allocation, ended)
        return
    if allocation.started_at_ms is None:
        started_at_ms = txn.now_ms if fact.started_at_ms is None else fact.started_at_ms
        allocation = txn.change(allocation, started_at_ms=started_at_ms)
    allocation = _configured(txn, allocation, fact)
    _follow(txn, allocation, fact.phase)


def _configured(txn: Txn, allocation: Allocation, fact: AllocationFact) -> Allocation:
    """Write down which configuration a copy has, and which it says that it works by."""
    written = max(fact.config_written, allocation.config_written)
    applied = max(fact.config_applied, allocation.config_applied)
    if (written, applied) == (allocation.config_written, allocation.config_applied):
        return allocation
    if applied > allocation.config_applied:
        txn.emit(
            EventKind.REPLICA_CONFIGURED,
            {
                "replica": allocation.replica_id,
                "bundle": allocation.bundle_id,
                "allocation": allocation.allocation_id,
                "node": allocation.node_id,
            },
            config=applied,
        )
    return txn.change(allocation, config_written=written, config_applied=applied)


def _follow(txn: Txn, allocation: Allocation, phase: str) -> None:
    """Move an allocation that runs to where its agent says that it is."""
    if allocation.phase is AllocationPhase.STOPPING or phase == "starting":
        return
    if phase == "stopping":
        txn.move(allocation, AllocationTrigger.STOP_REQUESTED)
        return
    if allocation.phase is AllocationPhase.STARTING:
        allocation = txn.move(allocation, AllocationTrigger.RAN)
    is_ready = allocation.phase is AllocationPhase.READY
    if phase == "ready" and not is_ready:
        txn.move(allocation, AllocationTrigger.BECAME_READY, ready_at_ms=txn.now_ms)
        txn.emit(
            EventKind.REPLICA_READY,
            {
                "replica": allocation.replica_id,
                "bundle": allocation.bundle_id,
                "allocation": allocation.allocation_id,
                "node": allocation.node_id,
            },
            role=allocation.role,
        )
    elif phase != "ready" and is_ready:
        txn.move(allocation, AllocationTrigger.BECAME_UNREADY, ready_at_ms=None)


def _stop_stranger(txn: Txn, node: Node, fact: AllocationFact, known: Allocation | None) -> None:
    grace_ms = STRANGER_GRACE_MS if known is None else known.launch.stop_grace_ms
    txn.send(
        f"{fact.allocation_id}/stop/{fact.epoch}",
        StopAllocation(
            node_id=node.node_id,
            node_epoch=node.epoch,
            allocation_id=fact.allocation_id,
            epoch=fact.epoch,
            grace_ms=grace_ms,
            reason="not placed here any more",
        ),
    )


def end_unmentioned(txn: Txn, node: Node, facts: Iterable[AllocationFact]) -> None:
    """End what the agent once had and does not name among everything that it has."""
    named = {fact.allocation_id for fact in facts}
    for key in txn.fleet.index.allocations_by_node.keys(node.node_id):
        allocation = txn.fleet.allocations[key]
        if key in named or allocation.started_at_ms is None:
            continue
        if allocation.phase in _ACKNOWLEDGED:
            cause, message = EndCause.SUPERVISOR_LOST, "its agent came back without it"
        else:
            cause, message = EndCause.STOPPED, allocation.stop_reason
        holds.end_allocation(txn, allocation, Ended(cause=cause, message=message))
