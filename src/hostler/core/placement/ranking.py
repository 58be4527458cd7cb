"""Ranking: the nodes of a tier in the light of one demand, kept until the nodes change.

For each row of the columns: the first filter that refuses it, or what it costs to choose it, as two
integers that compare like the score's parts. A ranking holds for all replicas that ask alike; what
holds for one replica alone (its siblings, where it failed) is laid over it by `survey`.

It is computed over the columns at once, and then row by row for the nodes that have changed, by the
functions that explain a single node. Both give the same (a property test holds them together).
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable
from typing import Final

import numpy as np

from hostler.base.errors import Defect
from hostler.core.limits import CANDIDATES_KEPT_MAX
from hostler.core.placement.columns import (
    CODES,
    FITS,
    GONE,
    UNKNOWN,
    Codes,
    Columns,
    Flags,
    Ints,
)
from hostler.core.placement.demand import Demand, SpareAccess
from hostler.core.placement.feasible import refusal
from hostler.core.placement.mix import Company
from hostler.core.placement.resilience import node_rule_reason
from hostler.core.placement.score import (
    AMOUNT_BITS,
    CORES_GRAIN_MILLI,
    COUNT_BITS,
    DEVICE_BITS,
    MEMORY_GRAIN_BYTES,
    Market,
    Scored,
    packed,
    scored,
)
from hostler.model.constraint import NodeRule
from hostler.model.reason import Reason
from hostler.model.shape import WHOLE_MILLI, CapabilityRequest, MatchRule
from hostler.model.trace import FilteredNode

_Refuse = Callable[[Reason, Flags], None]

NEVER: Final = 2**62
"""Sorts behind every cost: of a node that is refused."""

KEPT: Final = 64
"""Best rows that are kept in order. They last for about as many decisions as fill a node each."""

_ROWS_FEW: Final = 256
"""So few rows are never worth computing all at once."""

Key = tuple[int, int, int]
"""What rows are compared by: the two integers of the score, then the row."""

BROKEN_SHIFT: Final = 2 * DEVICE_BITS + 2
"""Where the number of broken rules stands in the first integer."""

GONE_FAR: Final = 2**62
"""Behind every row."""

REBUILD_SHARE: Final = 16
"""From one changed row in so many on, computing all rows at once is cheaper than each."""


class Ranking:
    """One demand's view of one tier."""

    def __init__(self, demand: Demand, columns: Columns, market: Market) -> None:
        self.demand = demand
        """What it asks whoever asks it."""
        self.columns = columns
        self.market = market
        self.size = 0
        self.build()

    def build(self) -> None:
        """Compute every row."""
        columns = self.columns
        self.size = len(columns.ids)
        self.generation, self.position = columns.generation, len(columns.log)
        roomy = len(columns.standing)
        self.codes: Codes = np.full(roomy, GONE, np.int8)
        self.high: Ints = np.full(roomy, NEVER, np.int64)
        self.low: Ints = np.full(roomy, NEVER, np.int64)
        codes, is_exact = _first_refusals(self.demand, columns, self.size)
        self.codes[: self.size] = codes
        rows = np.flatnonzero((codes == FITS) & is_exact)
        if len(rows):
            self.high[rows], self.low[rows] = _costs(self.demand, columns, rows, self.market)
        self.counts = np.bincount(self.codes, minlength=GONE + 1).tolist()
        self.best: list[Key] = []
        """The best rows in order: all that are not behind `bound`."""
        self.bound: Key | None = (-1, -1, -1)
        self.known: dict[int, Scored] = {}
        """Scores that somebody asked for."""
        self.shown: tuple[FilteredNode, ...] | None = None
        """The first nodes that are refused, once somebody asked."""
        self.shown_to = GONE_FAR
        """The last row that can change what is shown."""
        for row in np.flatnonzero(~is_exact).tolist():
            self._set(row)
        self._find_best()

    def refresh(self, market: Market) -> None:
        """Follow the columns."""
        columns = self.columns
        changed = len(columns.log) - self.position
        if (
            market is not self.market
            or self.generation != columns.generation
            or len(columns.ids) > len(self.codes)
            or changed * REBUILD_SHARE > len(columns.ids) + _ROWS_FEW
        ):
            self.market = market
            self.build()
        elif changed:
            self.size = len(columns.ids)
            rows = dict.fromkeys(columns.log[self.position :])
            self.position = len(columns.log)
            for row in rows:
                self._set(row)
            if len(self.best) < CANDIDATES_KEPT_MAX and self.bound is not None:
                self._find_best()

    def score(self, row: int) -> Scored:
        """Return the score of a row that fits, for who has nothing of its own to say about it."""
        found = self.known.get(row)
        if found is None:
            place = self.columns.places[row]
            if place is None:
                raise Defect("row_gone", "a row that has left is scored")
            found = self.known[row] = scored(self.demand, place, self.market)
        return found

    def _set(self, row: int) -> None:
        place = self.columns.places[row]
        code = GONE
        high = low = NEVER
        self.known.pop(row, None)
        if place is not None:
            reason = refusal(self.demand, place)
            code = FITS if reason is None else CODES[reason]
            if reason is None:
                self.known[row] = found = scored(self.demand, place, self.market)
                high, low = packed(found.parts)
        before = int(self.codes[row])
        if (before != FITS or code != FITS) and row <= self.shown_to:
            self.shown = None
        self._move((int(self.high[row]), int(self.low[row]), row), (high, low, row))
        self.counts[before] -= 1
        self.counts[code] += 1
        self.codes[row] = code
        self.high[row] = high
        self.low[row] = low

    def _move(self, old: Key, new: Key) -> None:
        best, bound = self.best, self.bound
        if old[0] != NEVER and (bound is None or old <= bound):
            del best[bisect_left(best, old)]
        if new[0] != NEVER and (bound is None or new <= bound):
            insort(best, new)

    def _find_best(self) -> None:
        self.best = lowest(self.high, self.low, KEPT)
        is_all = self.counts[FITS] <= len(self.best)
        self.bound = None if is_all else self.best[-1]


def lowest(high: Ints, low: Ints, count: int) -> list[Key]:
    """Return the best rows that fit, best first, without sorting all."""
    rows = _least(high, np.arange(len(high)), count)
    rows = rows[high[rows] != NEVER]
    if len(rows) > count:
        # The last ones are alike in the first integer: the second decides between them.
        is_last = high[rows] == high[rows].max()
        first, last = rows[~is_last], rows[is_last]
        wanted = count - len(first)
        last = _least(low[last], last, wanted)
        last = last[np.argsort(low[last], kind="stable")][:wanted]
        rows = np.concatenate([first, last])
    return sorted(zip(high[rows].tolist(), low[rows].tolist(), rows.tolist(), strict=True))


def _least(values: Ints, rows: Ints, count: int) -> Ints:
    """Return the rows with the least values, with all that are like the last of them, in order."""
    if len(values) <= count:
        return rows
    least: Ints = rows[values <= np.partition(values, count - 1)[count - 1]]
    return least


# -- all rows at once --------------------------------------------------------------------------


def _first_refusals(demand: Demand, columns: Columns, size: int) -> tuple[Codes, Flags]:
    """Return the first refusal of each row, and for which rows that can be said from columns."""
    need = demand.requirement
    codes = np.where(columns.standing[:size] == FITS, GONE, columns.standing[:size])
    is_exact: Flags = np.ones(size, np.bool_)

    def refuse(reason: Reason, rows: Flags) -> None:
        np.minimum(codes, np.where(rows, np.int8(CODES[reason]), np.int8(GONE)), out=codes)

    unreported: Flags = columns.is_unreported[:size]
    short = unreported.copy()
    for column, asked, reason in (
        (columns.capacity[:size], need.capacity, Reason.CAPACITY),
        (columns.cores[:size], need.cores_milli, Reason.CORES),
        (columns.memory[:size], need.memory_bytes, Reason.MEMORY),
    ):
        if asked > 0:
            short |= column == UNKNOWN
            refuse(reason, ~unreported & (column != UNKNOWN) & (column < asked))
    if need.capabilities:
        unit_unreported = columns.is_unit_unreported[:size]
        short |= unit_unreported
        is_exact = _units_short(need.capabilities, columns, ~unreported & ~unit_unreported, refuse)
    refuse(Reason.NOT_REPORTED, short)
    for rule in demand.node_rules:
        if rule.is_required:
            refuse(node_rule_reason(rule), _breaks(rule, columns, size))
    if demand.is_reliable_required:
        refuse(Reason.RELIABILITY, columns.is_interruptible[:size])
    reserved = columns.is_spare[:size]
    if demand.spares is not SpareAccess.NEVER:
        band = columns.spare_band[:size]
        reserved = reserved & (band != 0) & (band != columns.code_of(demand.band))
    refuse(Reason.SPARE_RESERVED, reserved)
    refuse(Reason.LEASED, columns.is_leased[:size])
    codes[codes == GONE] = FITS
    gone = columns.standing[:size] == GONE
    codes[gone] = GONE
    return codes, is_exact | gone


def _breaks(rule: NodeRule, columns: Columns, size: int) -> Flags:
    """Return the rows that break a rule about the node itself."""
    attribute, match = rule.match.attribute, rule.match
    if attribute == "node":
        if match.rule is not MatchRule.IN:
            is_so = match.rule is MatchRule.EXISTS  # an id is there, and is no number
            return np.full(size, is_so is rule.is_apart)
        found: Flags = np.full(size, not rule.is_apart)
        rows = [row for name in match.values if (row := columns.row_of(name)) is not None]
        found[rows] = rule.is_apart
        return found
    if attribute == "tier":
        return np.full(size, match.holds(columns.tier) is rule.is_apart)
    domains = columns.domains(attribute)[:size]
    breaking = np.zeros(len(columns.codes), np.bool_)
    for name, code in columns.codes.items():
        breaking[code] = match.holds(name or None) is rule.is_apart
    broken: Flags = breaking[domains]
    return broken


def _units_short(
    requests: tuple[CapabilityRequest, ...], columns: Columns, told: Flags, refuse: _Refuse
) -> Flags:
    """Refuse rows whose units do not serve; return the rows of which columns tell enough."""
    is_exact: Flags = np.full(len(told), len({r.name for r in requests}) == len(requests))
    for request in requests:
        devices = columns.devices.get(request.name)
        if devices is None:
            refuse(Reason.CAPABILITY_MISSING, told)
            continue
        has = devices.has[: len(told)]
        refuse(Reason.CAPABILITY_MISSING, told & ~has)
        enough = (devices.milli[: len(told)] >= request.milli).sum(axis=1) >= request.count
        refuse(Reason.CAPABILITY_COUNT, told & has & ~enough)
        profile = devices.profile[: len(told)]
        if request.attributes or request.matches:
            accepted = [n for n, p in enumerate(devices.profiles) if request.accepts(dict(p))]
            serves = np.isin(profile, accepted)
            refuse(Reason.CAPABILITY_ATTRIBUTE, told & has & enough & ~serves)
            # Only the one who looks at each unit can say what units that differ have.
            is_exact &= ~has | (profile != UNKNOWN)
    return is_exact


def _costs(demand: Demand, columns: Columns, rows: Ints, market: Market) -> tuple[Ints, Ints]:
    """Return the packed score of rows that fit."""
    need = demand.requirement
    device_max, amount_max = (1 << DEVICE_BITS) - 1, (1 << AMOUNT_BITS) - 1
    is_spare = columns.is_spare[rows]
    wants_spare = demand.spares is SpareAccess.FIRST
    broken = np.zeros(len(rows), np.int64)
    for rule in demand.node_rules:
        if not rule.is_required:
            broken += _breaks(rule, columns, len(columns.ids))[rows]
    high = (broken << 1 | (is_spare != wants_spare)) << 1 | columns.is_booting[rows]
    cost = np.minimum(_device_costs(demand, columns, rows, market), device_max)
    left = columns.device_milli[rows] - sum(r.total_milli for r in need.capabilities)
    high = (high << DEVICE_BITS | cost) << DEVICE_BITS | np.minimum(left, device_max)

    def amount(column: Ints, asked: int, grain: int) -> Ints:
        has = np.maximum(column[rows], 0) - asked
        steps: Ints = np.minimum(has // grain, amount_max)
        return steps

    low = amount(columns.capacity, need.capacity, 1) << AMOUNT_BITS
    low = (low | amount(columns.cores, need.cores_milli, CORES_GRAIN_MILLI)) << AMOUNT_BITS
    low = low | amount(columns.memory, need.memory_bytes, MEMORY_GRAIN_BYTES)
    return high, low << COUNT_BITS


def _device_costs(demand: Demand, columns: Columns, rows: Ints, market: Market) -> Ints:
    need = demand.requirement
    cost: Ints = np.zeros(len(rows), np.int64)
    taken: dict[str, int] = {}
    for request in need.capabilities:
        taken[request.name] = taken.get(request.name, 0) + request.total_milli
    for kind, used in taken.items():
        devices = columns.devices[kind]
        prices = market.price_milli.get(kind, {})
        by_code = [used * prices.get(profile, 0) // WHOLE_MILLI for profile in devices.profiles]
        # The last one is what units that differ among themselves cost.
        cost += used + np.array([*by_code, 0], np.int64)[devices.profile[rows]]
    for kind, company in market.company.items():
        free = columns.devices[kind].milli[rows].sum(axis=1, dtype=np.int64)
        used = taken.get(kind, 0)
        cost += _stranded(columns, rows, demand, company, free - used, is_after=True)
        cost -= _stranded(columns, rows, demand, company, free, is_after=False)
    return cost


def _stranded(
    columns: Columns, rows: Ints, demand: Demand, company: Company, free: Ints, *, is_after: bool
) -> Ints:
    need = demand.requirement
    usable = free
    for column, asked, each, grain in (
        (columns.capacity, need.capacity, company.capacity_milli, WHOLE_MILLI * WHOLE_MILLI),
        (columns.cores, need.cores_milli, company.cores_milli, WHOLE_MILLI),
        (columns.memory, need.memory_bytes, company.memory_bytes, WHOLE_MILLI),
    ):
        if each:
            has = column[rows]
            served = (has - (asked if is_after else 0)) * grain // each
            usable = np.where(has == UNKNOWN, usable, np.minimum(usable, served))
    return free - usable
