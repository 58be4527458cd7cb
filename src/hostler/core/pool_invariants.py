"""What must hold of pools, their sizes and their growth after every step; `invariants` runs it."""

from __future__ import annotations

from collections.abc import Iterator

from hostler.core import limits, sizing_targets
from hostler.core.fleet import Fleet
from hostler.core.keys import tier_key
from hostler.model import Breaker, Node, Pool, Sizes
from hostler.model.node import NodePhase, RetireReason

Broken = tuple[str, str]
"""An invariant's name, and what was found."""


def of_pool(fleet: Fleet, pool: Pool) -> Iterator[Broken]:
    """A pool with windows has its sizes written down."""
    if bool(pool.windows) != (pool.name in fleet.sizes):
        yield "INV-SIZES-1", "a pool has windows exactly while its sizes are written down"
    if pool.is_enabled is not (pool.closing is None):
        yield "INV-POOL-4", "a pool is closing exactly while it is disabled"


def of_sizes(fleet: Fleet, sizes: Sizes) -> Iterator[Broken]:
    """Sizes belong to a pool. That they are the calendar's, a second look at every step shows."""
    if sizes.pool not in fleet.pools:
        yield "INV-SIZES-2", "sizes of a pool that is no more"


def of_breaker(_fleet: Fleet, breaker: Breaker) -> Iterator[Broken]:
    """Growth is stopped with evidence, and a trial is set."""
    if not 0 < len(breaker.failures) <= min(breaker.failure_count, limits.BOOT_FAILURES_KEPT_MAX):
        yield "INV-GROWTH-1", "boots are said to have failed without evidence"
    if (breaker.stopped_at_ms is None) != (breaker.trial_at_ms is None):
        yield "INV-GROWTH-2", "stopped growth has no instant at which it is tried again"


def of_new_node(fleet: Fleet, node: Node) -> Iterator[Broken]:
    """A node is asked for only where there is room and growth has not been stopped."""
    pool = fleet.pools.get(node.pool)
    if node.phase is not NodePhase.REQUESTED or pool is None:
        return
    count_max = sizing_targets.sizes_of(fleet, pool).node_count_max
    if count_max is not None and sizing_targets.elastic_count(fleet, pool) > count_max:
        yield "INV-POOL-1", "a pool has grown above its maximum"
    breaker = fleet.breakers.get(tier_key(node.pool, node.tier))
    if breaker is not None and breaker.stopped_at_ms is not None:
        is_trial = breaker.trial_at_ms == fleet.now_ms + limits.BOOT_TRIAL_MS
        if not is_trial and breaker.stopped_at_ms < fleet.now_ms:
            yield "INV-GROWTH-3", "a machine was asked for where growth has been stopped"


def of_retirement(before: Node, node: Node) -> Iterator[Broken]:
    """What is well and young enough is not replaced, and what is in use is not let go."""
    if (
        before.retire_reason is None
        and node.retire_reason in (RetireReason.IDLE, RetireReason.SURPLUS)
        and node.is_held
    ):
        yield "INV-NODE-11", "a node on which something is held was let go as not needed"
    reasons = (RetireReason.OUTDATED, RetireReason.AGED)
    if (
        before.retire_reason is None
        and node.retire_reason in reasons
        and node.replace_reason is not node.retire_reason
    ):
        yield "INV-ROLL-1", "a node is replaced that need not be"
    if before.is_aging and node.is_aging and node.lease_epoch > before.lease_epoch:
        yield "INV-ROLL-2", "a lease was granted that its node's age may cut short"
