"""Boots that failed: counted in a row for each tier, with the evidence, until one succeeds."""

from __future__ import annotations

from hostler.core import limits
from hostler.core.events import EventKind
from hostler.core.keys import tier_key
from hostler.core.txn import Txn
from hostler.model import Breaker, Node
from hostler.model.sizes import BootFailure


def failed(txn: Txn, node: Node, code: str, message: str) -> None:
    """Count a machine that never became ready; stop growth there when it is one too many."""
    key = tier_key(node.pool, node.tier)
    before = txn.fleet.breakers.get(key) or Breaker(breaker_id=key, failure_count=0)
    failure = BootFailure(
        node_id=node.node_id,
        offer=node.offer,
        at_ms=txn.now_ms,
        code=code,
        message=message[:500],
    )
    breaker = txn.change(
        txn.put(before),
        failure_count=before.failure_count + 1,
        failures=(*before.failures, failure)[-limits.BOOT_FAILURES_KEPT_MAX :],
    )
    pool = txn.fleet.pools.get(node.pool)
    if pool is None or breaker.failure_count < pool.boot_failure_count_max:
        return
    if breaker.stopped_at_ms is not None:
        return
    txn.change(breaker, stopped_at_ms=txn.now_ms, trial_at_ms=txn.now_ms + limits.BOOT_TRIAL_MS)
    txn.emit(
        EventKind.GROWTH_STOPPED,
        {"pool": node.pool},
        tier=node.tier,
        failure_count=breaker.failure_count,
        code=code,
        message=message,
    )


def came(txn: Txn, node: Node) -> None:
    """Forget the failures of a tier in which a machine has become ready since the last of them."""
    breaker = txn.fleet.breakers.get(tier_key(node.pool, node.tier))
    if breaker is None or node.phase_since_at_ms <= breaker.failures[-1].at_ms:
        return
    txn.remove(breaker)
    if breaker.stopped_at_ms is not None:
        txn.emit(EventKind.GROWTH_RESUMED, {"pool": node.pool}, tier=node.tier, node=node.node_id)
