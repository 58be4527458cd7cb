"""Sums of the books and of what runs up now, by scope, so that a cap is checked without a search.

A scope is what a budget may be about: the fleet, a pool, a tier, a fairness key. Every sum follows
from single records, as in any index; what has run up until now is computed from when each part of
it began, so nothing needs to be written while time passes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from hostler.core.spend_days import Days, month_of
from hostler.core.tables import Buckets
from hostler.model import Budget, Lease, Meter, Node, Pool, SpendRow
from hostler.model.lease import LeasePhase
from hostler.model.node import NodePhase
from hostler.model.spend import SpendBy, Stretch

Scope = tuple[str, ...]
"""`()` the fleet; `("pool", p)`; `("tier", p, t)`; `("key", k)` in all pools; `("key", k, p)`."""

FLEET: Final[Scope] = ()

QUARTER_MS: Final = 900_000
"""Leases are summed by the quarter of an hour in which they began: every midnight of every time
zone lies between two of them."""

_TOTAL: Final = (Stretch.TOTAL, 0)


def machine_scopes(pool: str, tier: str) -> tuple[Scope, ...]:
    """Return the scopes that machines of a tier count in."""
    return FLEET, ("pool", pool), ("tier", pool, tier)


def lease_scopes(pool: str, tier: str, key: str) -> tuple[Scope, ...]:
    """Return the scopes that a lease counts in."""
    return FLEET, ("pool", pool), ("tier", pool, tier), ("key", key), ("key", key, pool)


def scope_of(budget: Budget) -> Scope:
    """Return what a budget is about."""
    if budget.fairness_key:
        pool = (budget.pool,) if budget.pool else ()
        return ("key", budget.fairness_key, *pool)
    if budget.tier:
        return "tier", budget.pool, budget.tier
    return ("pool", budget.pool) if budget.pool else FLEET


class Used:
    """What the books say of one scope in one stretch of time."""

    __slots__ = ("cost_units", "held_ms", "node_ms")

    def __init__(self) -> None:
        self.node_ms = 0
        self.held_ms = 0
        self.cost_units = 0


NOTHING_USED: Final = Used()


class Running:
    """Machines that run up cost in one scope."""

    __slots__ = ("count", "count_from", "rate", "rate_from")

    def __init__(self) -> None:
        self.count = 0
        self.rate = 0
        self.count_from = 0
        """Sum of each one's instant since which it is not in the books."""
        self.rate_from = 0
        """The same, each times its price."""

    def node_ms(self, now_ms: int) -> int:
        """Return their time that is not in the books."""
        return self.count * now_ms - self.count_from

    def cost_units(self, now_ms: int) -> int:
        """Return their cost that is not in the books."""
        return self.rate * now_ms - self.rate_from


class Present:
    """Machines that are asked for or there, in one scope."""

    __slots__ = ("count", "rate", "reserved_ms", "reserved_units")

    def __init__(self) -> None:
        self.count = 0
        self.rate = 0
        self.reserved_ms = 0
        """Of those that boot."""
        self.reserved_units = 0


class Held:
    """Held leases of one scope: since when, until when at the latest, and at what price."""

    __slots__ = ("count", "ends", "rate", "rate_ends", "starts")

    def __init__(self) -> None:
        self.count = 0
        self.rate = 0
        self.ends = 0
        self.rate_ends = 0
        self.starts: dict[int, tuple[int, int, int, int]] = {}
        """By quarter of an hour: count, price, sum of starts, sum of price times start."""

    def reserved_ms(self, now_ms: int) -> int:
        """Return the time that they may still take."""
        return max(0, self.ends - self.count * now_ms)

    def reserved_units(self, now_ms: int) -> int:
        """Return what they may still cost."""
        return max(0, self.rate_ends - self.rate * now_ms)

    def held_ms(self, now_ms: int, since_at_ms: int) -> int:
        """Return the time that they have taken since an instant on a quarter of an hour."""
        return sum(
            count * now_ms - starts if at_ms >= since_at_ms else count * (now_ms - since_at_ms)
            for at_ms, (count, _, starts, _) in self.starts.items()
        )

    def cost_units(self, now_ms: int, since_at_ms: int) -> int:
        """Return what they have cost since an instant on a quarter of an hour."""
        return sum(
            rate * now_ms - rate_starts if at_ms >= since_at_ms else rate * (now_ms - since_at_ms)
            for at_ms, (_, rate, _, rate_starts) in self.starts.items()
        )


NOTHING_RUNS: Final = Running()
NOTHING_PRESENT: Final = Present()
NOTHING_HELD: Final = Held()


class SpendIndex:
    """Every sum, fed by every write."""

    def __init__(self) -> None:
        self.days = Days()
        self.rows = Buckets()
        """Rows by stretch: `day/N`, `month/N`, `total/0`."""
        self.key_rows = Buckets()
        """Of them those of fairness keys."""
        self.running: dict[Scope, Running] = {}
        self.present: dict[Scope, Present] = {}
        self.held: dict[Scope, Held] = {}
        self._used: dict[tuple[Scope, SpendBy, Stretch, int], Used] = {}
        self._budgets = Buckets()
        self._priced: dict[str, None] = {}

    # -- asking ------------------------------------------------------------------------------

    def used(self, scope: Scope, by: SpendBy, stretch: Stretch, day: int) -> Used:
        """Return what the books say."""
        return self._used.get((scope, by, stretch, day), NOTHING_USED)

    def budgets_of(self, scopes: Iterable[Scope]) -> Iterator[str]:
        """Yield the names of the budgets about any of these scopes."""
        for scope in scopes:
            yield from self._budgets.keys("\x00".join(scope))

    def is_metered(self, pool: str) -> bool:
        """Say whether leases of a pool are in the books: it has a price, or a budget looks."""
        return bool(self._budgets.count("any")) or pool in self._priced

    # -- following writes --------------------------------------------------------------------

    def update_row(self, key: str, old: SpendRow | None, new: SpendRow | None) -> None:
        """Follow one write of a row."""
        one = new or old
        if one is None:
            return
        if old is None or new is None:
            bucket = f"{one.stretch.value}/{one.day}"
            left, entered = (None, bucket) if old is None else (bucket, None)
            self.rows.move(key, left, entered)
            if one.by is SpendBy.KEY:
                self.key_rows.move(key, left, entered)
        node_ms = (new.node_ms if new else 0) - (old.node_ms if old else 0)
        held_ms = (new.held_ms if new else 0) - (old.held_ms if old else 0)
        cost_units = (new.cost_units if new else 0) - (old.cost_units if old else 0)
        for scope in _row_scopes(one):
            for stretch, day in _stretches(one):
                used = self._used.setdefault((scope, one.by, stretch, day), Used())
                used.node_ms += node_ms
                used.held_ms += held_ms
                used.cost_units += cost_units
                if not (used.node_ms or used.held_ms or used.cost_units):
                    del self._used[scope, one.by, stretch, day]

    def update_meter(self, _key: str, old: Meter | None, new: Meter | None) -> None:
        """Follow one write of a meter."""
        for meter, sign in ((old, -1), (new, 1)):
            if meter is None:
                continue
            for scope in machine_scopes(meter.pool, meter.tier):
                running = self.running.setdefault(scope, Running())
                running.count += sign * meter.node_count
                running.rate += sign * meter.micros_per_hour
                running.count_from += sign * meter.node_count * meter.as_of_ms
                running.rate_from += sign * meter.micros_per_hour * meter.as_of_ms
                if not running.count:
                    del self.running[scope]

    def update_node(self, _key: str, old: Node | None, new: Node | None) -> None:
        """Follow one write of a node that changes more than what is held on it."""
        was, now = _presence(old), _presence(new)
        if was == now:
            return
        for node, parts, sign in ((old, was, -1), (new, now, 1)):
            if node is None or parts is None:
                continue
            price, reserve_ms = parts
            for scope in machine_scopes(node.pool, node.tier):
                present = self.present.setdefault(scope, Present())
                present.count += sign
                present.rate += sign * price
                present.reserved_ms += sign * reserve_ms
                present.reserved_units += sign * reserve_ms * price
                if not present.count:
                    del self.present[scope]

    def update_lease(self, _key: str, old: Lease | None, new: Lease | None) -> None:
        """Follow one write of a lease."""
        was = old is not None and old.meter is not None and old.phase is LeasePhase.HELD
        now = new is not None and new.meter is not None and new.phase is LeasePhase.HELD
        if not was and not now:
            return
        if was and now and old is not None and new is not None and _ends(old) == _ends(new):
            return
        if was and old is not None:
            self._hold(old, -1)
        if now and new is not None:
            self._hold(new, 1)

    def _hold(self, lease: Lease, sign: int) -> None:
        meter = lease.meter
        if meter is None:
            return
        rate, start, end = meter.micros_per_hour, lease.granted_at_ms or 0, _ends(lease)
        quarter = start - start % QUARTER_MS
        for scope in lease_scopes(lease.pool, meter.tier, lease.fairness_key):
            held = self.held.get(scope)
            if held is None:
                held = self.held[scope] = Held()
            held.count += sign
            held.rate += sign * rate
            held.ends += sign * end
            held.rate_ends += sign * rate * end
            count, price, starts, price_starts = held.starts.get(quarter, (0, 0, 0, 0))
            count += sign
            if count:
                held.starts[quarter] = (
                    count,
                    price + sign * rate,
                    starts + sign * start,
                    price_starts + sign * rate * start,
                )
            else:
                del held.starts[quarter]
            if not held.count:
                del self.held[scope]

    def update_budget(self, key: str, old: Budget | None, new: Budget | None) -> None:
        """Follow one write of a budget."""
        self._budgets.move(key, _bucket(old), _bucket(new))
        self._any(key, old, new)

    def _any(self, key: str, old: Budget | None, new: Budget | None) -> None:
        if (old is None) != (new is None):
            left, entered = (None, "any") if old is None else ("any", None)
            self._budgets.move(f"\x00{key}", left, entered)

    def update_pool(self, key: str, _old: Pool | None, new: Pool | None) -> None:
        """Follow one write of a pool."""
        self._priced.pop(key, None)
        if new is not None and any(
            tier.price_microusd_per_hour
            or any(offer.price_microusd_per_hour for offer in tier.offers)
            for tier in new.tiers
        ):
            self._priced[key] = None


def _bucket(budget: Budget | None) -> str | None:
    return None if budget is None else "\x00".join(scope_of(budget))


def _presence(node: Node | None) -> tuple[int, int] | None:
    """Return the price and the reserved time of a node that is asked for or there."""
    if node is None or node.phase is NodePhase.RETIRED:
        return None
    is_booting = node.phase in (NodePhase.REQUESTED, NodePhase.STARTING)
    return node.price_microusd_per_hour, node.reserve_ms if is_booting else 0


def _ends(lease: Lease) -> int:
    """Return until when a lease may be held at the latest, as far as it is renewed."""
    if lease.ends_at_ms is not None:
        return lease.ends_at_ms
    # One that is not acknowledged yet has its whole time from then on.
    return max(lease.expires_at_ms or 0, (lease.granted_at_ms or 0) + lease.lease_ms)


def _row_scopes(row: SpendRow) -> tuple[Scope, ...]:
    match row.by:
        case SpendBy.OFFER:
            return machine_scopes(row.pool, row.tier)
        case SpendBy.KEY:
            return FLEET, ("pool", row.pool), ("key", row.name), ("key", row.name, row.pool)
        case SpendBy.BUNDLE:
            return FLEET, ("pool", row.pool)


def _stretches(row: SpendRow) -> tuple[tuple[Stretch, int], ...]:
    match row.stretch:
        case Stretch.DAY:
            month = (Stretch.MONTH, month_of(row.day))
            return (Stretch.DAY, row.day), month, _TOTAL
        case Stretch.MONTH:
            return (Stretch.MONTH, row.day), _TOTAL
        case Stretch.TOTAL:
            return (_TOTAL,)
