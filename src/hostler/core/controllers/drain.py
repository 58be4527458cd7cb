"""Drain: empties the nodes that an operator, or their retirement, wants empty.

Reads:    nodes, allocations, replicas, bundles.
Writes:   allocations (asked to stop), replicas (a second place; room that is kept), leases (how
          long they may stay), nodes (how far it is; launched for what must leave).
Sends:    StopAllocation (through holds).
Keeps:    INV-DRAIN-1 (a finished drain is of a node that was empty).
Waits on: Reason.IN_USE for the node; for each allocation whatever `core.leaving` says.

Leases are waited for: each is told until when it may stay, and ended then by leasing. Whose node
goes because it can no longer be trusted, or was held for the last time, may stay for as long as it
likes (L-127). Allocations leave one by one, gold first (`core.leaving`): what finds no place stays.
At the deadline that is said; where the drain is forced, what is left is stopped then.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from hostler.core import holds
from hostler.core.events import EventKind
from hostler.core.leaving import PATIENCE_MS, leave
from hostler.core.txn import Txn
from hostler.model import Allocation, Bundle, Node, Pool, Replica
from hostler.model.node import Drain, Health, NodePhase, NoticeKind, RetireReason
from hostler.model.reason import Reason

READS: Final = (Node, Allocation, Replica, Bundle)

_LAST_MAY_FINISH: Final = (RetireReason.POISONED, RetireReason.USED_UP)

_WHY: Final = "drain"
"""What an allocation is told to stop for."""


def reconcile(txn: Txn) -> None:
    """Go on with every drain that something has changed for."""
    fleet = txn.fleet
    draining = fleet.index.nodes_draining.keys("all")
    if not draining:
        return
    changed = set(txn.changed_keys(Node))
    for key in draining:
        node = fleet.nodes[key]
        if key in changed or node.allocation_count:  # room elsewhere may be what has changed
            _drain(txn, node)


def _drain(txn: Txn, node: Node) -> None:
    if node.is_held and node.health is not Health.LOST:  # fencing has ended what may be ended
        node = _empty(txn, node)
    if not node.is_held:
        txn.clear_note(node.node_id)
        if node.drain is not None:
            _finish(txn, node, node.drain)


def _empty(txn: Txn, node: Node) -> Node:
    """Ask what may leave to leave; return the node after that."""
    fleet = txn.fleet
    txn.note(
        node.node_id,
        Reason.IN_USE,
        f"{node.lease_count} leases and {node.allocation_count} allocations are left",
    )
    drain = node.drain
    is_over = drain is not None and drain.deadline_at_ms <= txn.now_ms
    if drain is not None and is_over:
        _say_overdue(txn, node, drain)
    wake_at_ms: int | None = None
    keys = fleet.index.allocations_by_node.keys(node.node_id)
    for allocation in sorted((fleet.allocations[key] for key in keys), key=_urgency):
        if allocation.is_service:
            continue
        if is_over and drain is not None and drain.is_forced:
            holds.request_stop(txn, allocation, _WHY)
            continue
        within_ms = _within_ms(txn, node)
        stuck = leave(
            txn, allocation, within_ms=within_ms, why=_WHY, is_chosen=not _is_ending(node)
        )
        if stuck is None:
            txn.clear_note(allocation.allocation_id)
            continue
        txn.note(allocation.allocation_id, stuck.reason, stuck.detail)
        if stuck.until_at_ms is not None:
            wake_at_ms = min(wake_at_ms or stuck.until_at_ms, stuck.until_at_ms)
    if wake_at_ms is not None:
        txn.wake(node, wake_at_ms)
    _tell_holders(txn, node)
    return fleet.nodes[node.node_id]


def _is_ending(node: Node) -> bool:
    """Say whether the node's machine ends anyway: no budget can ask for it to be spared."""
    return node.notice is not None and node.notice.kind is NoticeKind.TERMINATE


def _urgency(allocation: Allocation) -> tuple[int, str]:
    return allocation.band.rank, allocation.allocation_id


def _within_ms(txn: Txn, node: Node) -> int:
    """Return how long a second copy may take: past a deadline that forces nothing, as ever."""
    drain = node.drain
    if drain is None or drain.deadline_at_ms <= txn.now_ms:
        return PATIENCE_MS
    return min(PATIENCE_MS, drain.deadline_at_ms - txn.now_ms) if drain.is_forced else PATIENCE_MS


def _tell_holders(txn: Txn, node: Node) -> None:
    """Say to each lease on a node that is to go until when it may stay, once for each instant."""
    fleet = txn.fleet
    pool = fleet.pools.get(node.pool)
    until_ms = _stay_until_ms(node, pool)
    if until_ms is None:
        return
    extension_ms = 0 if pool is None else pool.retire_extension_ms_max
    for key in fleet.index.leases_by_node.keys(node.node_id):
        lease = fleet.leases[key]
        if lease.retiring_at_ms_max == until_ms + extension_ms:
            continue  # it knows, and may have asked for more
        txn.change(lease, retiring_at_ms=until_ms, retiring_at_ms_max=until_ms + extension_ms)
        txn.emit(
            EventKind.LEASE_RETIRING,
            {"lease": key, "pool": lease.pool, "node": node.node_id},
            retiring_at_ms=until_ms,
            retiring_at_ms_max=until_ms + extension_ms,
        )


def _stay_until_ms(node: Node, pool: Pool | None) -> int | None:
    """Return until when leases may stay on a node that is to go; `None`: as long as they like."""
    if node.drain is not None:
        return node.drain.deadline_at_ms
    if node.phase is not NodePhase.DRAINING or node.retire_reason in _LAST_MAY_FINISH:
        return None
    return node.phase_since_at_ms + (0 if pool is None else pool.retire_notice_ms)


def _say_overdue(txn: Txn, node: Node, drain: Drain) -> None:
    if drain.is_overdue:
        return
    txn.change(node, drain=replace(drain, is_overdue=True))
    txn.emit(
        EventKind.NODE_DRAIN_OVERDUE,
        {"node": node.node_id, "pool": node.pool},
        lease_count=node.lease_count,
        allocation_count=node.allocation_count,
    )


def _finish(txn: Txn, node: Node, drain: Drain) -> None:
    reason = node.retire_reason
    if drain.then_retire and reason is None:
        reason = RetireReason.OPERATOR
    txn.change(node, drain=replace(drain, is_done=True), retire_reason=reason)
    if node.phase is not NodePhase.DRAINING:
        txn.emit(
            EventKind.NODE_DRAINED,
            {"node": node.node_id, "pool": node.pool},
            then_retire=drain.then_retire,
        )
