"""What agents say of the ready checks that they were asked to try."""

from __future__ import annotations

from msgspec.structs import replace

from hostler.core.txn import Txn
from hostler.model.command import CheckReady
from hostler.model.node import NodePhase


def answered(txn: Txn, command: CheckReady, failure: str | None) -> None:
    """Write down how one try went, and when the next one is due."""
    node = txn.fleet.nodes.get(command.node_id)
    if node is None or node.phase is not NodePhase.STARTING or node.readiness is None:
        return
    state = node.readiness
    pool = txn.fleet.pools.get(node.pool)
    interval_ms = 0 if pool is None or pool.ready is None else pool.ready.interval_ms
    txn.change(
        node,
        readiness=replace(
            state,
            try_count=state.try_count + 1,
            success_count=state.success_count + 1 if failure is None else 0,
            detail=state.detail if failure is None else failure,
            answered_at_ms=txn.now_ms,
            next_at_ms=txn.now_ms + interval_ms,
        ),
    )
