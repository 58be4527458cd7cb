"""Enrollment: a node is ready once its agent has said hello and what it has.

Reads:    nodes, pools (slots per node), leases (with whom a node may be shared).
Writes:   nodes (REQUESTED or STARTING to READY; the slots that its pool gives it).
Sends:    CheckReady.
Keeps:    INV-NODE-4 (idle exactly while ready and holding nothing), INV-LEASE-8 (whoever shares a
          node consents).
Waits on: Reason.BOOTING, Reason.NOT_REPORTED, Reason.READY_CHECK.

The agent may be quicker than the provider's answer to the launch; the machine's id then follows.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import replace

from hostler.core.events import EventKind
from hostler.core.readiness import send_ready_check
from hostler.core.txn import Txn
from hostler.model import Node, Pool
from hostler.model.lease import Share
from hostler.model.node import NodePhase, NodeTrigger
from hostler.model.ready import Readiness
from hostler.model.reason import Reason

READS: Final = (Node, Pool)

_BOOTING: Final = (NodePhase.REQUESTED, NodePhase.STARTING)


def reconcile(txn: Txn) -> None:
    """Make nodes ready that have reported, and cut them into as many slots as their pools want."""
    nodes = txn.fleet.nodes
    for name in txn.changed_keys(Pool):
        for key in txn.fleet.index.nodes_by_pool.keys(name):
            if nodes[key].phase in _BOOTING:
                _enrol(txn, nodes[key])  # its ready check may be another, or none, from now on
            _cut(txn, nodes[key])
    for node in txn.changed(Node):
        if node.phase in _BOOTING:
            _enrol(txn, node)
        else:
            _cut(txn, node)


def _enrol(txn: Txn, node: Node) -> None:
    if node.retire_reason is not None:
        return
    if node.incarnation == 0:
        is_asked = node.phase is NodePhase.REQUESTED
        why = "its launch is not answered" if is_asked else "its agent has not said hello"
        txn.note(node.node_id, Reason.BOOTING, why)
        return
    if not node.is_inventory_reported:
        txn.note(node.node_id, Reason.NOT_REPORTED, "its agent has not said what it has")
        return
    if not _is_proven(txn, node):
        return
    node = txn.fleet.nodes[node.node_id]
    txn.clear_note(node.node_id)
    txn.move(
        node,
        NodeTrigger.REGISTERED,
        idle_since_at_ms=None if node.is_held else txn.now_ms,
        health_since_at_ms=txn.now_ms,
        readiness=None,
    )
    txn.emit(
        EventKind.NODE_READY,
        {"node": node.node_id, "pool": node.pool},
        hostname=node.hostname,
        boot_ms=txn.now_ms - node.created_at_ms,
    )


def _is_proven(txn: Txn, node: Node) -> bool:
    """Say whether a node has passed its pool's ready check; have it tried as long as it has not."""
    pool = txn.fleet.pools.get(node.pool)
    check = None if pool is None else pool.ready
    if check is None:
        return True
    state = node.readiness
    if state is None:
        now_ms = txn.now_ms
        state = Readiness(since_at_ms=now_ms, next_at_ms=now_ms, answered_at_ms=now_ms)
        node = txn.change(node, readiness=state)
    if state.success_count >= check.success_count:
        return True
    passed = f"passed {state.success_count} of {check.success_count} times in a row"
    told = f"its ready check ({check.told}) has {passed}"
    last = f"; the last that failed: {state.detail}" if state.detail else ""
    txn.note(node.node_id, Reason.READY_CHECK, told + last)
    # Before its launch is answered the machine has no record of its own to give up.
    is_due = state.next_at_ms is not None and state.next_at_ms <= txn.now_ms
    if node.phase is NodePhase.STARTING and is_due:
        send_ready_check(txn, node, check)
        txn.change(node, readiness=replace(state, next_at_ms=None))
    return False


def _cut(txn: Txn, node: Node) -> None:
    """Follow the pool's slot count, as far as the leases that are held allow it."""
    pool = txn.fleet.pools.get(node.pool)
    if pool is None or node.slot_count == pool.slot_count:
        return
    slot_count = max(pool.slot_count, node.lease_count)
    if slot_count != node.slot_count:
        txn.change(node, slot_count=slot_count, **_sharing(txn, node, slot_count))


def _sharing(txn: Txn, node: Node, slot_count: int) -> dict[str, Any]:
    """Return with whom the node may be shared: one of a single slot does not keep that."""
    if slot_count == 1:
        return {"share": Share.ANY, "tenant_key": None}
    if node.slot_count > 1 or not node.lease_count:
        return {}
    (lease_id,) = txn.fleet.index.leases_by_node.keys(node.node_id)
    lease = txn.fleet.leases[lease_id]
    return {"share": lease.share, "tenant_key": lease.fairness_key}
