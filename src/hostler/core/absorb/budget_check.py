"""What can be wrong with budgets: who they are about, and caps under which nothing could begin."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hostler.core.budgets import hold_ms_of, reserve_ms_of
from hostler.core.replies import Problem
from hostler.core.spend_index import scope_of
from hostler.model import Budget, Pool
from hostler.model.pool import TierKind
from hostler.model.spend import UNITS_PER_MICRO


def problems_of_budgets(budgets: Iterable[Budget], pools: Iterable[Pool]) -> Iterator[Problem]:
    """Yield every problem, in the order of the document."""
    by_name = {pool.name: pool for pool in pools}
    names: set[str] = set()
    scopes: dict[tuple[str, ...], str] = {}
    for budget in budgets:
        at = f"budgets.{budget.name}"
        if budget.name in names:
            yield Problem(path=at, code="duplicate_name", message="this name is taken")
        names.add(budget.name)
        scope = scope_of(budget)
        if scope in scopes:
            told = f"budget {scopes[scope]} is about the same; put both into one"
            yield Problem(path=at, code="duplicate", message=told)
        scopes.setdefault(scope, budget.name)
        yield from _budget(at, budget, by_name)


def _budget(at: str, budget: Budget, pools: dict[str, Pool]) -> Iterator[Problem]:
    pool = pools.get(budget.pool)
    if budget.pool and pool is None:
        told = f"there is no pool {budget.pool!r}"
        yield Problem(path=f"{at}.pool", code="unknown_pool", message=told)
    if budget.tier and (pool is None or pool.tier(budget.tier) is None):
        told = f"pool {budget.pool!r} has no tier {budget.tier!r}"
        yield Problem(path=f"{at}.tier", code="unknown_tier", message=told)
    if list(budget.warn_percents) != sorted(set(budget.warn_percents)):
        told = "percentages rise, and none comes twice"
        yield Problem(path=f"{at}.warn_at", code="bad_order", message=told)
    if pool is not None and not budget.fairness_key:
        yield from _admits_nothing(at, budget, pool)


def _admits_nothing(at: str, budget: Budget, pool: Pool) -> Iterator[Problem]:
    """Tell of a cap that is below the worst case of the least that a pool could begin."""
    tiers = [tier for tier in pool.tiers if budget.tier in ("", tier.name)]
    if not tiers or any(tier.kind is TierKind.FIXED for tier in tiers):
        return
    hold_ms = hold_ms_of(pool, pool.lease_ms)
    units, reserve_ms, rate = (
        min(found)
        for found in zip(
            *(
                (
                    offer.price_microusd_per_hour * reserve_ms_of(pool, tier),
                    reserve_ms_of(pool, tier),
                    offer.price_microusd_per_hour,
                )
                for tier in tiers
                for offer in tier.offers
            ),
            strict=True,
        )
    )
    least = f"one machine for its boot and a lease ({reserve_ms} ms)"
    for cap in budget.caps:
        path = f"{at}.{cap.period.value}"
        if cap.cost_micros is not None and cap.cost_micros * UNITS_PER_MICRO < units:
            told = f"is less than {least} costs, {-(-units // UNITS_PER_MICRO)} millionths"
            yield Problem(path=f"{path}.cost", code="admits_nothing", message=told)
        if cap.node_ms is not None and cap.node_ms < reserve_ms:
            told = f"is less than {least}"
            yield Problem(path=f"{path}.node_time", code="admits_nothing", message=told)
        if cap.held_ms is not None and cap.held_ms < hold_ms:
            told = f"is less than one lease may take ({hold_ms} ms)"
            yield Problem(path=f"{path}.lease_time", code="admits_nothing", message=told)
    if budget.micros_per_hour_max is not None and budget.micros_per_hour_max < rate:
        told = f"is less than the cheapest machine costs, {rate} millionths an hour"
        path = f"{at}.concurrent.cost_per_hour"
        yield Problem(path=path, code="admits_nothing", message=told)
