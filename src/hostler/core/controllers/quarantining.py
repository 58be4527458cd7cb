"""Quarantining: leaves nodes alone that refuse work or come and go, and tries them again with care.

Reads:    allocations, nodes, settings.
Writes:   nodes (their quarantine).
Sends:    nothing.
Keeps:    INV-QUARANTINE-1 (on probation a node has one allocation on trial at most).
Waits on: Reason.QUARANTINE_BRAKE.

It escalates: one refusal keeps its replica off the node (recovery); several within the window, of
whatever replicas, keep all new allocations off it for a pause, and each time in a row the pause is
twice as long. Then the node gets one allocation on trial: if that becomes ready, the node is
trusted; if it is refused, the next pause begins. A node that was lost and is back pauses, too, from
its loss on, and needs a trial if that happened before. When half of a pool is in quarantine,
refusals put no more nodes there: then the fault is likelier in what is placed.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from hostler.core.events import EventKind
from hostler.core.txn import Txn
from hostler.model import Allocation, Node, Settings
from hostler.model.allocation import AllocationPhase, EndCause
from hostler.model.node import Health, NodePhase, Origin, Quarantine, QuarantineCause
from hostler.model.reason import Reason
from hostler.model.settings import QuarantineLimits

READS: Final = (Allocation, Node, Settings)

_DEFAULTS: Final = QuarantineLimits()


def reconcile(txn: Txn) -> None:
    """Judge the nodes that refused something, were lost, or are in quarantine."""
    refusing: dict[str, None] = {}
    for allocation in txn.changed(Allocation):
        if allocation.ended is not None and allocation.ended.cause is EndCause.REJECTED:
            refusing[allocation.node_id] = None
        elif allocation.phase is AllocationPhase.READY or allocation.ended is not None:
            _follow_trial(txn, allocation)
    for node_id in refusing:
        node = txn.fleet.nodes.get(node_id)
        if node is not None and node.phase in (NodePhase.READY, NodePhase.DRAINING):
            _refused(txn, node)
    for node in txn.changed(Node):
        if node.health is Health.LOST and node.origin is Origin.JOINED:
            _lost(txn, txn.fleet.nodes[node.node_id])
        elif node.quarantine is not None:
            _go_on(txn, txn.fleet.nodes[node.node_id])


def _limits(txn: Txn) -> QuarantineLimits:
    settings = txn.fleet.settings
    return _DEFAULTS if settings is None else settings.quarantine


def _refused(txn: Txn, node: Node) -> None:
    """Put a node into quarantine whose refusals are too many."""
    limits, quarantine = _limits(txn), node.quarantine
    from_ms = txn.now_ms - limits.rejection_window_ms
    count_needed = limits.rejection_count_max
    if quarantine is not None:
        known_ms = quarantine.since_at_ms
        if quarantine.over_at_ms is not None:
            known_ms = quarantine.over_at_ms
        elif quarantine.is_on_probation:
            count_needed = 1
        else:
            return  # it is left alone already; these were on their way
        from_ms = max(from_ms, known_ms)
    count = 0
    for key in txn.fleet.index.allocations_rejected.keys(node.node_id):
        allocation = txn.fleet.allocations[key]
        is_trial = quarantine is not None and quarantine.trial_id == key
        if allocation.phase_since_at_ms > from_ms or is_trial:
            count += 1
    if count < count_needed:
        return
    if _is_brake_on(txn, node):
        txn.note(node.node_id, Reason.QUARANTINE_BRAKE, f"{count} refusals")
        if quarantine is not None and quarantine.trial_id is not None:
            txn.change(node, quarantine=replace(quarantine, trial_id=None))
        return
    _begin(txn, node, QuarantineCause.REJECTIONS, txn.now_ms)


def _is_brake_on(txn: Txn, node: Node) -> bool:
    """Say whether with this node more than half of its pool (but one in any case) would be out."""
    index = txn.fleet.index
    others = index.nodes_quarantined.count(node.pool)
    if node.quarantine is not None and not node.quarantine.is_over:
        others -= 1
    return others >= max(1, index.nodes_by_pool.count(node.pool) // 2)


def _lost(txn: Txn, node: Node) -> None:
    """Let a pause begin with the loss of a node that may come back."""
    quarantine = node.quarantine
    if quarantine is None or quarantine.since_at_ms < node.health_since_at_ms:
        _begin(txn, node, QuarantineCause.LOSSES, node.health_since_at_ms)


def _begin(txn: Txn, node: Node, cause: QuarantineCause, since_at_ms: int) -> None:
    limits, before = _limits(txn), node.quarantine
    count = 1
    if before is not None:
        over_at_ms = before.over_at_ms
        is_in_row = over_at_ms is None or since_at_ms < over_at_ms + limits.forget_ms
        count += before.count if is_in_row else 0
    pause_ms = min(limits.pause_ms << min(count - 1, 20), limits.pause_ms_max)
    quarantine = Quarantine(
        cause=cause, since_at_ms=since_at_ms, until_at_ms=since_at_ms + pause_ms, count=count
    )
    txn.clear_note(node.node_id)
    txn.emit(
        EventKind.NODE_QUARANTINED,
        {"node": node.node_id, "pool": node.pool},
        cause=cause.value,
        until_at_ms=quarantine.until_at_ms,
        count=count,
    )
    _go_on(txn, txn.change(node, quarantine=quarantine))


def _go_on(txn: Txn, node: Node) -> None:
    """Let probation begin when the pause has passed; forget what was over long ago."""
    quarantine = node.quarantine
    if quarantine is None or node.phase not in (NodePhase.READY, NodePhase.DRAINING):
        return
    if quarantine.over_at_ms is not None:
        if quarantine.over_at_ms + _limits(txn).forget_ms <= txn.now_ms:
            txn.change(node, quarantine=None)
        return
    if quarantine.is_on_probation or quarantine.until_at_ms > txn.now_ms:
        return
    if quarantine.cause is QuarantineCause.LOSSES and quarantine.count == 1:
        _trust(txn, node, quarantine)
        return
    txn.change(node, quarantine=replace(quarantine, is_on_probation=True))
    txn.emit(EventKind.NODE_ON_PROBATION, {"node": node.node_id, "pool": node.pool})


def _follow_trial(txn: Txn, allocation: Allocation) -> None:
    """Trust a node whose trial is ready; try another when it has ended for another reason."""
    node = txn.fleet.nodes.get(allocation.node_id)
    quarantine = None if node is None else node.quarantine
    if node is None or quarantine is None or quarantine.trial_id != allocation.allocation_id:
        return
    if allocation.phase is not AllocationPhase.READY:
        txn.change(node, quarantine=replace(quarantine, trial_id=None))
    elif not quarantine.is_over:
        _trust(txn, node, quarantine)


def _trust(txn: Txn, node: Node, quarantine: Quarantine) -> None:
    over = replace(quarantine, trial_id=None, over_at_ms=txn.now_ms)
    txn.change(node, quarantine=over)
    txn.emit(
        EventKind.NODE_TRUSTED, {"node": node.node_id, "pool": node.pool}, count=quarantine.count
    )
