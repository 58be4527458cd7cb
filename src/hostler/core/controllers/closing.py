"""Closing: empties a pool that is disabled, by a deadline, until it is enabled again.

Reads:    pools, nodes.
Writes:   pools (how far the closing is), nodes (drained with their pool, and no longer), leases
          (how long they may stay, when that is called off).
Sends:    nothing.
Keeps:    INV-POOL-4 (a pool is closing exactly while it is disabled).
Waits on: nothing of its own; the drain of each node tells.

A pool that is disabled gives what it holds the time that its settings give leases on any node that
is to retire. Drain and leasing do the rest, and sizing lets machines go that are empty. Enabled
again, it keeps what is still there: what had been said to go stays, but for what is empty already.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from hostler.core.events import EventKind
from hostler.core.sizing_targets import elastic_count
from hostler.core.txn import Txn
from hostler.model import Node, Pool
from hostler.model.node import Drain, NodePhase, Origin
from hostler.model.pool import Closing

READS: Final = (Pool, Node)

_EMPTIED: Final = (NodePhase.READY, NodePhase.DRAINING)


def reconcile(txn: Txn) -> None:
    """Begin, call off or finish what a change of a pool or of its nodes calls for."""
    pools = txn.fleet.pools.rows
    closing: dict[str, None] = {}
    for name in txn.changed_keys(Pool):
        pool = pools.get(name)
        if pool is None:
            continue
        if pool.is_enabled:
            if pool.closing is not None:
                _call_off(txn, pool, pool.closing)
            continue
        closing[name] = None
        if pool.closing is None:
            _begin(txn, pool)
    for node in txn.changed(Node):
        pool = pools.get(node.pool)
        if pool is None or pool.is_enabled:
            continue
        closing[pool.name] = None
        if pool.closing is not None:
            _empty(txn, node, pool.closing)
    for name in closing:
        _finish(txn, pools[name])


def _begin(txn: Txn, pool: Pool) -> None:
    closing = Closing(begun_at_ms=txn.now_ms, deadline_at_ms=txn.now_ms + pool.retire_notice_ms)
    txn.change(pool, closing=closing)
    txn.emit(EventKind.POOL_CLOSING, {"pool": pool.name}, deadline_at_ms=closing.deadline_at_ms)
    for key in txn.fleet.index.nodes_by_pool.keys(pool.name):
        _empty(txn, txn.fleet.nodes[key], closing)


def _empty(txn: Txn, node: Node, closing: Closing) -> None:
    """Have a node that holds something emptied with its pool, unless it is being emptied anyway."""
    if node.phase in _EMPTIED and node.is_held and node.drain is None:
        drain = Drain(by="hostler", deadline_at_ms=closing.deadline_at_ms, is_of_pool=True)
        txn.change(node, drain=drain)


def _call_off(txn: Txn, pool: Pool, closing: Closing) -> None:
    """Keep what is still there of a pool that is enabled again."""
    fleet = txn.fleet
    for key in fleet.index.nodes_by_pool.keys(pool.name):
        node = fleet.nodes[key]
        if node.drain is None or not node.drain.is_of_pool:
            continue
        txn.change(node, drain=None)
        if node.retire_reason is None:
            for lease_id in fleet.index.leases_by_node.keys(key):
                lease = fleet.leases[lease_id]
                txn.change(lease, retiring_at_ms=None, retiring_at_ms_max=None)
    txn.change(pool, closing=None)
    txn.emit(EventKind.POOL_REOPENED, {"pool": pool.name}, is_superseded=not closing.is_done)


def _finish(txn: Txn, pool: Pool) -> None:
    """Say once that nothing is held and no machine of ours is left."""
    closing = pool.closing
    if closing is None or closing.is_done or elastic_count(txn.fleet, pool):
        return
    for key in txn.fleet.index.nodes_by_pool.keys(pool.name):
        node = txn.fleet.nodes[key]
        if node.is_held or node.origin is not Origin.JOINED:
            return
    txn.change(pool, closing=replace(closing, is_done=True))
    txn.emit(EventKind.POOL_CLOSED, {"pool": pool.name}, took_ms=txn.now_ms - closing.begun_at_ms)
