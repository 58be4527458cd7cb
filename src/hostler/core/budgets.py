"""Budgets: whether something that could be begun fits into what is left, and what is left.

What is used is in the books or runs up now; what is reserved is what is held or boots and may still
cost until it must have ended. Something new is begun only if its own worst case fits too, so what
is used passes a cap only where work without an end goes on. Nothing that runs is ended.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from hostler.base.units import format_duration, format_money
from hostler.core.spend_days import (
    day_at,
    day_text,
    month_begin_at_ms,
    month_end_at_ms,
    month_of,
)
from hostler.core.spend_index import (
    NOTHING_HELD,
    NOTHING_PRESENT,
    NOTHING_RUNS,
    Scope,
    lease_scopes,
    machine_scopes,
    scope_of,
)
from hostler.model import Budget, Lease, Node, Pool
from hostler.model.lease import Share
from hostler.model.pool import Offer, Tier
from hostler.model.reason import Reason
from hostler.model.spend import UNITS_PER_MICRO, Period, SpendBy, SpendCap, Stretch

if TYPE_CHECKING:
    from hostler.core.fleet import Fleet
    from hostler.core.txn import Txn


class Need(NamedTuple):
    """The worst case of something that could be begun."""

    cost_units: int = 0
    node_ms: int = 0
    held_ms: int = 0
    micros_per_hour: int = 0
    node_count: int = 0
    lease_count: int = 0


class Refusal(NamedTuple):
    """Why something does not fit into a budget."""

    budget: str
    reason: Reason
    detail: str


class Usage(NamedTuple):
    """What of a budget is gone in one of its periods, by the books and by what runs."""

    cost_units: int
    node_ms: int
    held_ms: int
    reserved_units: int
    reserved_node_ms: int
    reserved_held_ms: int


class Quantity(NamedTuple):
    """One bounded quantity of a cap."""

    name: str
    used: int
    reserved: int
    limit: int


# -- what is left ------------------------------------------------------------------------------


def window_of(fleet: Fleet, period: Period, now_ms: int) -> tuple[Stretch, int, int]:
    """Return under which stretch and first day the books have a period, and its first instant."""
    day = day_at(fleet, now_ms)
    match period:
        case Period.DAILY:
            return Stretch.DAY, day.number, day.from_at_ms
        case Period.MONTHLY:
            return Stretch.MONTH, month_of(day.number), month_begin_at_ms(fleet, now_ms)
        case Period.LIFETIME:
            return Stretch.TOTAL, 0, 0


def resets_at_ms(fleet: Fleet, period: Period, now_ms: int) -> int | None:
    """Return when a period begins anew; `None` for never."""
    match period:
        case Period.DAILY:
            return day_at(fleet, now_ms).to_at_ms
        case Period.MONTHLY:
            return month_end_at_ms(fleet, now_ms)
        case Period.LIFETIME:
            return None


def usage(fleet: Fleet, budget: Budget, period: Period, now_ms: int) -> Usage:
    """Add up what is used and reserved of a budget at an instant."""
    index, scope = fleet.index.spend, scope_of(budget)
    stretch, first, since_at_ms = window_of(fleet, period, now_ms)
    held = index.held.get(scope, NOTHING_HELD)
    held_ms = held.held_ms(now_ms, since_at_ms)
    by_key = index.used(scope, SpendBy.KEY, stretch, first)
    if budget.fairness_key:
        return Usage(
            cost_units=by_key.cost_units + held.cost_units(now_ms, since_at_ms),
            node_ms=0,
            held_ms=by_key.held_ms + held_ms,
            reserved_units=held.reserved_units(now_ms),
            reserved_node_ms=0,
            reserved_held_ms=held.reserved_ms(now_ms),
        )
    booked = index.used(scope, SpendBy.OFFER, stretch, first)
    running = index.running.get(scope, NOTHING_RUNS)
    present = index.present.get(scope, NOTHING_PRESENT)
    return Usage(
        cost_units=booked.cost_units + running.cost_units(now_ms),
        node_ms=booked.node_ms + running.node_ms(now_ms),
        held_ms=by_key.held_ms + held_ms,
        reserved_units=held.reserved_units(now_ms) + present.reserved_units,
        reserved_node_ms=held.reserved_ms(now_ms) + present.reserved_ms,
        reserved_held_ms=held.reserved_ms(now_ms),
    )


def quantities(cap: SpendCap, used: Usage) -> Iterator[Quantity]:
    """Yield what a cap bounds, with how far it is used."""
    if cap.cost_micros is not None:
        limit = cap.cost_micros * UNITS_PER_MICRO
        yield Quantity("cost", used.cost_units, used.reserved_units, limit)
    if cap.node_ms is not None:
        yield Quantity("node_time", used.node_ms, used.reserved_node_ms, cap.node_ms)
    if cap.held_ms is not None:
        yield Quantity("lease_time", used.held_ms, used.reserved_held_ms, cap.held_ms)


def concurrent(fleet: Fleet, budget: Budget) -> Iterator[tuple[str, int, int]]:
    """Yield what a budget bounds at once: its name, how much is there, and how much may be."""
    index, scope = fleet.index.spend, scope_of(budget)
    held = index.held.get(scope, NOTHING_HELD)
    present = index.present.get(scope, NOTHING_PRESENT)
    if budget.micros_per_hour_max is not None:
        rate = held.rate if budget.fairness_key else present.rate
        yield "cost_per_hour", rate, budget.micros_per_hour_max
    if budget.node_count_max is not None:
        yield "nodes", present.count, budget.node_count_max
    if budget.lease_count_max is not None:
        yield "leases", held.count, budget.lease_count_max


# -- whether it fits ---------------------------------------------------------------------------


def lease_refusal(fleet: Fleet, pool: Pool, lease: Lease, node: Node) -> Refusal | None:
    """Return why a lease on a node would not fit, or `None`."""
    if not fleet.budgets.rows:
        return None
    hold_ms = hold_ms_of(pool, lease.lease_ms)
    price = lease_price(lease, node)
    need = Need(
        cost_units=price * hold_ms,
        node_ms=hold_ms,
        held_ms=hold_ms,
        micros_per_hour=price,
        lease_count=1,
    )
    return _refusal(fleet, lease_scopes(pool.name, node.tier, lease.fairness_key), need)


def lease_price(lease: Lease, node: Node) -> int:
    """Return a lease's part of its node's price: a slot's, or all if it shares with nobody."""
    if lease.share is Share.NONE:
        return node.price_microusd_per_hour
    return node.price_microusd_per_hour // node.slot_count


def node_refusal(fleet: Fleet, pool: Pool, tier: Tier, offer: Offer) -> Refusal | None:
    """Return why one more machine of an offer would not fit, or `None`."""
    if not fleet.budgets.rows:
        return None
    reserve_ms = reserve_ms_of(pool, tier)
    need = Need(
        cost_units=offer.price_microusd_per_hour * reserve_ms,
        node_ms=reserve_ms,
        micros_per_hour=offer.price_microusd_per_hour,
        node_count=1,
    )
    return _refusal(fleet, machine_scopes(pool.name, tier.name), need)


def hold_back(txn: Txn, refusal: Refusal) -> bool:
    """Remember that a budget holds something back, until some is freed; say whether it is news."""
    budget = txn.fleet.budgets[refusal.budget]
    if budget.held_back_at_ms is not None:
        return False
    txn.change(budget, held_back_at_ms=txn.now_ms)
    return True


def pools_about(fleet: Fleet, names: Sequence[str]) -> list[str]:
    """Return the pools that budgets of these names may have held back, also removed ones."""
    if not names:
        return []
    budgets = [fleet.budgets.get(name) for name in names]
    if any(budget is None or not budget.pool for budget in budgets):
        return sorted(fleet.pools.rows)
    return sorted({budget.pool for budget in budgets if budget is not None})


def hold_ms_of(pool: Pool, lease_ms: int) -> int:
    """Return how long a lease may be held at the latest, unless it is renewed."""
    return lease_ms if pool.lease_ms_max is None else pool.lease_ms_max


def reserve_ms_of(pool: Pool, tier: Tier) -> int:
    """Return the time for which money is kept when a machine is asked for: boot and first use."""
    return tier.boot_ms + hold_ms_of(pool, pool.lease_ms)


def _refusal(fleet: Fleet, scopes: Iterable[Scope], need: Need) -> Refusal | None:
    for name in fleet.index.spend.budgets_of(scopes):
        found = _check(fleet, fleet.budgets[name], need)
        if found is not None:
            return found
    return None


def _check(fleet: Fleet, budget: Budget, need: Need) -> Refusal | None:
    for cap in budget.caps:
        used = usage(fleet, budget, cap.period, fleet.now_ms)
        for each in quantities(cap, used):
            wanted = _wanted(each.name, need)
            if wanted and each.used + each.reserved + wanted > each.limit:
                detail = _spent(fleet, budget, cap, each, wanted)
                return Refusal(budget.name, Reason.BUDGET_SPENT, detail)
    for name, have, limit in concurrent(fleet, budget):
        wanted = _wanted(name, need)
        if name == "cost_per_hour" and need.lease_count and not budget.fairness_key:
            continue  # its machine is there, and counted
        if wanted and have + wanted > limit:
            detail = _in_use(fleet, budget, name, have, wanted, limit)
            return Refusal(budget.name, Reason.BUDGET_IN_USE, detail)
    return None


def _wanted(name: str, need: Need) -> int:
    match name:
        case "cost":
            return need.cost_units
        case "node_time":
            return need.node_ms
        case "lease_time":
            return need.held_ms
        case "cost_per_hour":
            return need.micros_per_hour
        case "nodes":
            return need.node_count
        case _:
            return need.lease_count


# -- in words ----------------------------------------------------------------------------------


def currency_of(fleet: Fleet) -> str:
    """Return the currency of every amount."""
    return "USD" if fleet.settings is None else fleet.settings.spend.currency


def amount_text(fleet: Fleet, name: str, amount: int) -> str:
    """Write an amount of a bounded quantity as people read it."""
    match name:
        case "cost":
            return format_money(-(-amount // UNITS_PER_MICRO), currency_of(fleet))
        case "cost_per_hour":
            return format_money(amount, currency_of(fleet))
        case "nodes" | "leases":
            return str(amount)
        case _:
            return format_duration(amount)


def _spent(fleet: Fleet, budget: Budget, cap: SpendCap, each: Quantity, wanted: int) -> str:
    def told(amount: int) -> str:
        return amount_text(fleet, each.name, amount)

    resets_ms = resets_at_ms(fleet, cap.period, fleet.now_ms)
    anew = ""
    if resets_ms is not None:
        anew = f"; it begins anew on {day_text(day_at(fleet, resets_ms).number)}"
    return (
        f"budget {budget.name}, {cap.period.value} {each.name} {told(each.limit)}:"
        f" {told(each.used)} is used and {told(each.reserved)} reserved, this could take"
        f" {told(wanted)}, so"
        f" {told(each.used + each.reserved + wanted)} would do{anew}"
    )


def _in_use(fleet: Fleet, budget: Budget, name: str, have: int, wanted: int, limit: int) -> str:
    def told(amount: int) -> str:
        return amount_text(fleet, name, amount)

    return (
        f"budget {budget.name}, concurrent {name} {told(limit)}: {told(have)} is in use and this"
        f" takes {told(wanted)}, so {told(have + wanted)} would do"
    )
