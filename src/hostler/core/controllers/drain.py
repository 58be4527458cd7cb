"""Drain: empties the nodes that an operator, or their retirement, wants empty.

Reads:    nodes, allocations, replicas, bundles.
Writes:   allocations (asked to stop), leases (how long they may stay), nodes (how far it is).
Sends:    StopAllocation (through holds).
Keeps:    INV-DRAIN-1 (a finished drain is of a node that was empty).
Waits on: Reason.IN_USE, Reason.DISRUPTION_BUDGET, Reason.SIBLINGS_UNSETTLED.

Leases are waited for: each is told until when it may stay, and ended then by leasing. Whose node
goes because it can no longer be trusted, or was held for the last time, may stay for as long as it
likes (L-127). Allocations are asked to stop, and recovery places them elsewhere, as far as
`core.disruption` lets them be disturbed: a pair is not taken down by draining both of its nodes. At
the deadline, where there is one, nothing is waited for any more.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from hostler.core import holds
from hostler.core.disruption import hindrance
from hostler.core.events import EventKind
from hostler.core.txn import Txn
from hostler.model import Allocation, Bundle, Node, Pool, Replica
from hostler.model.allocation import AllocationPhase
from hostler.model.node import Drain, Health, NodePhase, RetireReason
from hostler.model.reason import Reason
from hostler.model.replica import MigrationCause

READS: Final = (Node, Allocation, Replica, Bundle)

_LAST_MAY_FINISH: Final = (RetireReason.POISONED, RetireReason.USED_UP)

_DRAIN: Final = MigrationCause.DRAIN


def reconcile(txn: Txn) -> None:
    """Go on with every drain that something has changed for."""
    fleet = txn.fleet
    draining = fleet.index.nodes_draining.keys("all")
    if not draining:
        return
    changed = set(txn.changed_keys(Node))
    may_any_move = any(txn.changed_keys(kind) for kind in (Allocation, Replica, Bundle))
    for key in draining:
        node = fleet.nodes[key]
        if key in changed or (may_any_move and node.allocation_count):
            _drain(txn, node)


def _drain(txn: Txn, node: Node) -> None:
    if node.is_held and node.health is not Health.LOST:  # fencing has ended what may be ended
        node = _empty(txn, node)
    if not node.is_held:
        txn.clear_note(node.node_id)
        if node.drain is not None:
            _finish(txn, node, node.drain)


def _empty(txn: Txn, node: Node) -> Node:
    """Ask what may leave to leave, or at the deadline everything; return the node after that."""
    fleet = txn.fleet
    txn.note(
        node.node_id,
        Reason.IN_USE,
        f"{node.lease_count} leases and {node.allocation_count} allocations are left",
    )
    is_forced = node.drain is not None and node.drain.deadline_at_ms <= txn.now_ms
    if node.drain is not None and is_forced:
        _say_overdue(txn, node, node.drain)
    wake_at_ms: int | None = None
    for key in fleet.index.allocations_by_node.keys(node.node_id):
        allocation = fleet.allocations[key]
        if allocation.phase is AllocationPhase.STOPPING:
            continue
        hindered = None if is_forced else hindrance(txn, allocation, _DRAIN, has_gap=True)
        if hindered is None:
            holds.request_stop(txn, allocation, "drain")
            continue
        txn.note(key, hindered.reason, hindered.detail)
        if hindered.until_at_ms is not None:
            wake_at_ms = min(wake_at_ms or hindered.until_at_ms, hindered.until_at_ms)
    if wake_at_ms is not None:
        txn.wake(node, wake_at_ms)
    _tell_holders(txn, node)
    return fleet.nodes[node.node_id]


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
    if node.phase is NodePhase.READY:
        txn.emit(
            EventKind.NODE_DRAINED,
            {"node": node.node_id, "pool": node.pool},
            then_retire=drain.then_retire,
        )
