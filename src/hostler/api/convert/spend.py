"""Spend: the books and what runs, grouped as asked; and what budgets have left."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from hostler.core.books import billed_from_ms, part_price
from hostler.core.budgets import (
    concurrent,
    currency_of,
    quantities,
    resets_at_ms,
    usage,
)
from hostler.core.fleet import Fleet
from hostler.core.spend_days import day_text, split
from hostler.model import Budget
from hostler.model.spend import UNITS_PER_MICRO, SpendBy, Stretch
from hostler.wire.http import BudgetLineView, SpendView

GROUPS: Final = ("pool", "tier", "offer", "key", "bundle", "day", "month", "fleet")
"""By what spend may be grouped."""

Group = tuple[str, str, str, str, str, str, str]
"""Day, month, pool, tier, offer, key, bundle."""


class Sums:
    """What has been added up of one group."""

    __slots__ = ("cost_units", "held_ms", "node_ms")

    def __init__(self) -> None:
        self.node_ms = 0
        self.held_ms = 0
        self.cost_units = 0


class _Reading:
    """One pass over the books and over what runs."""

    def __init__(self, fleet: Fleet, by: Sequence[str], since: int, until: int, pool: str) -> None:
        self.fleet = fleet
        self.by = by
        self.since = since
        self.until = until
        self.pool = pool
        self.sums: dict[Group, Sums] = {}

    def add(
        self,
        day: int,
        stretch: Stretch,
        about: tuple[SpendBy, str, str, str],
        amounts: tuple[int, int, int],
    ) -> None:
        """Add to the group of a row, if it is asked for."""
        by, pool, tier, name = about
        if self.pool not in ("", pool) or not self._is_within(day, stretch):
            return
        text = "" if stretch is Stretch.TOTAL else day_text(day)
        given = {
            "day": text if stretch is Stretch.DAY else "",
            "month": text[:7],
            "pool": pool,
            "tier": tier,
            "offer": name if by is SpendBy.OFFER else "",
            "key": name if by is SpendBy.KEY else "",
            "bundle": name if by is SpendBy.BUNDLE else "",
        }
        wanted = {*self.by, "pool"} if "tier" in self.by or "offer" in self.by else {*self.by}
        if "offer" in self.by:
            wanted.add("tier")
        group = tuple(value if field in wanted else "" for field, value in given.items())
        sums = self.sums.setdefault(group, Sums())  # type: ignore[arg-type]  # seven texts
        sums.node_ms += amounts[0]
        sums.held_ms += amounts[1]
        sums.cost_units += amounts[2]

    def _is_within(self, day: int, stretch: Stretch) -> bool:
        if stretch is Stretch.TOTAL:
            return self.since < -(2**30)  # only who asks for everything gets what has no date
        return self.since <= day <= self.until


def rows(
    fleet: Fleet, by: Sequence[str], *, since: int, until: int, pool: str, now_ms: int
) -> list[SpendView]:
    """Add up the books and what runs, by group, in the order of groups."""
    reading = _Reading(fleet, by, since, until, pool)
    kind = SpendBy.OFFER
    if "key" in by:
        kind = SpendBy.KEY
    elif "bundle" in by:
        kind = SpendBy.BUNDLE
    for row in fleet.spend.rows.values():
        if row.by is kind:
            about = (row.by, row.pool, row.tier, row.name)
            reading.add(row.day, row.stretch, about, (row.node_ms, row.held_ms, row.cost_units))
    for about, span, (nodes, held, rate) in _running(fleet, kind, now_ms):
        for day, ms in split(fleet, *span):
            reading.add(day, Stretch.DAY, about, (nodes * ms, held * ms, rate * ms))
    currency = currency_of(fleet)
    return [_view(group, sums, currency) for group, sums in sorted(reading.sums.items())]


_Running = tuple[tuple[SpendBy, str, str, str], tuple[int, int], tuple[int, int, int]]


def _running(fleet: Fleet, kind: SpendBy, now_ms: int) -> Iterator[_Running]:
    """Yield what runs up now: whose it is, since when it is not in the books, and how fast."""
    match kind:
        case SpendBy.OFFER:
            for meter in fleet.meters.rows.values():
                rates = (meter.node_count, 0, meter.micros_per_hour)
                span = (meter.as_of_ms, now_ms)
                yield (kind, meter.pool, meter.tier, meter.offer), span, rates
        case SpendBy.KEY:
            yield from _held(fleet, now_ms)
        case SpendBy.BUNDLE:
            yield from _placed(fleet, now_ms)


def _held(fleet: Fleet, now_ms: int) -> Iterator[_Running]:
    for pool in fleet.index.leases_held.buckets():
        for lease_id in fleet.index.leases_held.keys(pool):
            lease = fleet.leases[lease_id]
            if lease.meter is not None:
                span = (lease.granted_at_ms or now_ms, now_ms)
                rates = (0, 1, lease.meter.micros_per_hour)
                yield (SpendBy.KEY, lease.pool, "", lease.fairness_key), span, rates


def _placed(fleet: Fleet, now_ms: int) -> Iterator[_Running]:
    for allocation in fleet.allocations.rows.values():
        node = fleet.nodes.get(allocation.node_id)
        if not allocation.is_live or node is None or not fleet.index.spend.is_metered(node.pool):
            continue
        from_ms = billed_from_ms(allocation, node)
        if from_ms is not None:
            rates = (0, 1, part_price(allocation.requirement, node))
            about = (SpendBy.BUNDLE, node.pool, "", str(allocation.bundle_id))
            yield about, (from_ms, now_ms), rates


def _view(group: Group, sums: Sums, currency: str) -> SpendView:
    day, month, pool, tier, offer, key, bundle = group
    return SpendView(
        day=day,
        month=month,
        pool=pool,
        tier=tier,
        offer=offer,
        key=key,
        bundle=bundle,
        node_ms=sums.node_ms,
        held_ms=sums.held_ms,
        cost_micros=sums.cost_units // UNITS_PER_MICRO,
        currency=currency,
    )


def budget_lines(fleet: Fleet, budget: Budget, now_ms: int) -> Iterator[BudgetLineView]:
    """Yield each quantity that a budget bounds, with what is left of it."""

    def line(
        period: str, quantity: str, amounts: tuple[int, int, int], resets_ms: int | None
    ) -> BudgetLineView:
        used, reserved, limit = amounts
        return BudgetLineView(
            budget=budget.name,
            pool=budget.pool,
            tier=budget.tier,
            key=budget.fairness_key,
            period=period,
            quantity=quantity,
            used=used,
            reserved=reserved,
            left=limit - used - reserved,
            limit=limit,
            resets_at_ms=resets_ms,
            is_holding_back=budget.held_back_at_ms is not None,
            currency=currency_of(fleet),
        )

    for cap in budget.caps:
        used = usage(fleet, budget, cap.period, now_ms)
        resets_ms = resets_at_ms(fleet, cap.period, now_ms)
        for each in quantities(cap, used):
            unit = UNITS_PER_MICRO if each.name == "cost" else 1
            amounts = (each.used // unit, -(-each.reserved // unit), each.limit // unit)
            yield line(cap.period.value, each.name, amounts, resets_ms)
    for name, have, limit in concurrent(fleet, budget):
        yield line("concurrent", name, (have, 0, limit), None)
