"""Sweep: all rows of a tier at once in the light of one demand, over its columns.

It says of each row what `feasible` and `score` say of a single node, a few instructions a row.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

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
from hostler.core.placement.mix import Company
from hostler.core.placement.resilience import node_rule_reason
from hostler.core.placement.score import (
    AMOUNT_BITS,
    CORES_GRAIN_MILLI,
    COUNT_BITS,
    DEVICE_BITS,
    MEMORY_GRAIN_BYTES,
    Market,
)
from hostler.model.constraint import NodeRule
from hostler.model.reason import Reason
from hostler.model.shape import WHOLE_MILLI, CapabilityRequest, MatchRule

_Refuse = Callable[[Reason, Flags], None]

NEVER: Final = 2**62
"""Sorts behind every cost: of a node that is refused."""

Key = tuple[int, int, int]
"""What rows are compared by: the two integers of the score, then the row."""


def first_refusals(demand: Demand, columns: Columns, size: int) -> tuple[Codes, Flags]:
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


def costs(demand: Demand, columns: Columns, rows: Ints, market: Market) -> tuple[Ints, Ints]:
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
