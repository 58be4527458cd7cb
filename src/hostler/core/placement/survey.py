"""Survey: what one replica finds among the nodes of one tier.

The ranking says what holds for all who ask alike. Over it this lays what holds for this replica:
where it failed, where its siblings are, what else of its bundle is where.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from hostler.core.limits import CANDIDATES_KEPT_MAX, RANKINGS_MAX, TRACE_NODES_MAX
from hostler.core.placement.columns import CODES, FITS, GONE, Codes, Columns, Flags
from hostler.core.placement.demand import Demand
from hostler.core.placement.feasible import FILTERS, Place, detail_of
from hostler.core.placement.ranking import (
    BROKEN_SHIFT,
    GONE_FAR,
    NEVER,
    Key,
    Ranking,
    lowest,
)
from hostler.core.placement.resilience import NODE, DomainRule
from hostler.core.placement.score import COUNT_BITS, Market, Scored, scored
from hostler.model.constraint import SpreadOver
from hostler.model.reason import Reason
from hostler.model.trace import FilteredNode

if TYPE_CHECKING:
    from hostler.core.fleet import Fleet


class Survey(msgspec.Struct, frozen=True, kw_only=True):
    """The nodes of a tier, sorted out for one replica."""

    candidate_count: int
    fitting_count: int
    count_by_reason: Mapping[Reason, int]
    """How many nodes each filter was the first to refuse."""
    shown: tuple[FilteredNode, ...]
    """The first nodes that are refused, by id, up to a bound."""
    ranked: tuple[Scored, ...]
    """The best nodes that fit, best first, up to a bound."""
    columns: Columns
    codes: Codes

    def refused_for(self, reason: Reason) -> Iterator[Place]:
        """Give the nodes that a filter was the first to refuse, by id; only until the next step."""
        for row in np.flatnonzero(self.codes == CODES[reason]).tolist():
            place = self.columns.places[row]
            if place is not None:
                yield place


def survey_of(demand: Demand, fleet: Fleet, pool: str, tier: str) -> Survey:
    """Look at the nodes of one tier for one replica."""
    index = fleet.index.places
    columns = index.in_tier(fleet, pool, tier)
    market = columns.market(index.mix)
    ranking = _ranking(demand, columns, market)
    if not all(map(_closes_nodes, demand.rules)):
        return _apart(demand, ranking, market)
    return _nearly_as_ranked(demand, ranking, market)


def _ranking(demand: Demand, columns: Columns, market: Market) -> Ranking:
    kept: dict[tuple[str, ...], Ranking] = columns.rankings
    key = (demand.line, demand.band, demand.spares, str(demand.is_reliable_required))
    found = kept.get(key)
    if (
        found is not None
        and (
            found.demand.requirement is demand.requirement
            or found.demand.requirement == demand.requirement
        )
        and found.demand.node_rules == demand.node_rules
    ):
        found.refresh(market)
        return found
    if len(kept) >= RANKINGS_MAX:
        del kept[next(iter(kept))]
    plain = msgspec.structs.replace(
        demand,
        rules=(),
        bundle_count_by_node={},
        avoided=frozenset(),
        rejected=frozenset(),
    )
    found = kept[key] = Ranking(plain, columns, market)
    return found


def _nearly_as_ranked(demand: Demand, ranking: Ranking, market: Market) -> Survey:
    """Leave the few rows out, or move them, that are different for this replica."""
    columns, refused = ranking.columns, _refused_rows(demand, ranking.columns)
    crowded = _crowded_rows(demand, columns)
    counts, codes, shown = ranking.counts, ranking.codes, ranking.shown
    if refused:
        counts, codes = counts.copy(), codes.copy()
        shown = None
    for row, code in refused.items():
        _refuse(codes, counts, row, code)
    if shown is None:
        shown, last = _shown(demand, columns, codes)
        if not refused:
            ranking.shown, ranking.shown_to = shown, last
    ranked = [
        scored(demand, ranking.score(row).place, market) if row in crowded else ranking.score(row)
        for row in _best_rows(ranking, refused, crowded)
    ]
    return _survey(columns, codes, counts, ranked, shown)


def _best_rows(ranking: Ranking, refused: dict[int, int], crowded: dict[int, int]) -> list[int]:
    """Return the best rows when some are refused and some cost more.

    No other row moves, so whoever is among the best now stood as many places further back at most.
    """
    wanted = CANDIDATES_KEPT_MAX + len(refused) + len(crowded)
    best = ranking.best[:wanted]
    if len(best) < wanted and ranking.bound is not None:
        best = lowest(ranking.high, ranking.low, wanted)
    if refused or crowded:
        moved = ((high, low + crowded.get(row, 0), row) for high, low, row in best)
        best = sorted(key for key in moved if key[2] not in refused)
    return [row for _, _, row in best[:CANDIDATES_KEPT_MAX]]


def _refuse(codes: Codes, counts: list[int], row: int, code: int) -> None:
    """Refuse a row for one reason more; the first in the order of filters is what counts."""
    before = int(codes[row])
    if before in (FITS, GONE) or before > code:
        counts[before] -= 1
        counts[code] += 1
        codes[row] = code


def _apart(demand: Demand, ranking: Ranking, market: Market) -> Survey:
    """Lay the rules about more than a few nodes over all rows."""
    columns, size = ranking.columns, ranking.size
    codes, counts = ranking.codes.copy(), ranking.counts.copy()
    broken: list[Flags] = []
    for rule in demand.rules:
        if _closes_nodes(rule):
            continue
        breaking = _breaking(rule, columns, size)
        if not rule.is_required:
            broken.append(breaking)
            continue
        code = CODES[rule.reason]
        now = codes[:size]
        rows = np.flatnonzero(breaking & ((now == FITS) | ((now > code) & (now != GONE))))
        for before, count in enumerate(np.bincount(now[rows]).tolist()):
            counts[before] -= count
        counts[code] += len(rows)
        now[rows] = code
    for row, code in _refused_rows(demand, columns).items():
        _refuse(codes, counts, row, code)
    best = _best_apart(ranking, codes, broken, _crowded_rows(demand, columns))
    ranked = [scored(demand, ranking.score(row).place, market) for _, _, row in best]
    shown, _ = _shown(demand, columns, codes)
    return _survey(columns, codes, counts, ranked, shown)


def _best_apart(
    ranking: Ranking, codes: Codes, broken: list[Flags], crowded: dict[int, int]
) -> list[Key]:
    """Return the best rows that still fit: among those that are kept, if that is certain."""
    if not broken:
        wanted = CANDIDATES_KEPT_MAX + len(crowded)
        fitting = [key for key in ranking.best if codes[key[2]] == FITS][:wanted]
        if len(fitting) == wanted or ranking.bound is None:
            moved = sorted((high, low + crowded.get(row, 0), row) for high, low, row in fitting)
            return moved[:CANDIDATES_KEPT_MAX]
    high, low = np.where(codes == FITS, ranking.high, NEVER), ranking.low.copy()
    for breaking in broken:
        part = high[: ranking.size]
        part[breaking & (part != NEVER)] += 1 << BROKEN_SHIFT
    for row, count in crowded.items():
        low[row] += count
    return lowest(high, low, CANDIDATES_KEPT_MAX)


def _breaking(rule: DomainRule, columns: Columns, size: int) -> Flags:
    """Return the rows that break a rule."""
    if rule.is_hopeless:
        return np.ones(size, np.bool_)
    if rule.domain == NODE:
        names = rule.refused if rule.allowed is None else rule.allowed
        rows = [row for name in sorted(names) if (row := columns.row_of(name)) is not None]
        found: Flags = np.full(size, rule.allowed is not None)
        found[rows] = rule.allowed is None
        return found
    if rule.domain == SpreadOver.TIER:
        is_refused = columns.tier in rule.refused
        is_allowed = rule.allowed is None or columns.tier in rule.allowed
        return np.full(size, is_refused or not is_allowed)
    domains = columns.domains(rule.domain)[:size]
    # Apart must be known, not hoped: an unknown domain, which is code 0, may be any.
    broken = _is_one_of(domains, columns, {"", *rule.refused})
    if rule.allowed is not None:
        broken |= ~_is_one_of(domains, columns, rule.allowed)
    return broken


def _is_one_of(column: NDArray[np.int32], columns: Columns, names: AbstractSet[str]) -> Flags:
    codes = sorted(columns.codes[name] for name in names if name in columns.codes)
    found: Flags
    if len(codes) > _CODES_FEW:
        table = np.zeros(len(columns.codes), np.bool_)
        table[codes] = True
        found = table[column]
        return found
    found = np.zeros(len(column), np.bool_)
    for code in codes:
        found |= column == code
    return found


_CODES_FEW: Final = 4
"""So few domains are compared one by one sooner than looked up."""


def _closes_nodes(rule: DomainRule) -> bool:
    """Say whether a rule refuses a few nodes and nothing else."""
    return (
        rule.is_required and rule.domain == NODE and rule.allowed is None and not rule.is_hopeless
    )


def _refused_rows(demand: Demand, columns: Columns) -> dict[int, int]:
    """Return the rows that this replica may not have, with the code of why."""
    refused: dict[int, int] = {}
    for rule in demand.rules:
        for node_id in rule.refused if _closes_nodes(rule) else ():
            row = columns.row_of(node_id)
            if row is not None:
                refused[row] = min(refused.get(row, GONE), CODES[rule.reason])
    for node_id in (*demand.avoided, *demand.rejected):
        row = columns.row_of(node_id)
        if row is not None:
            refused[row] = CODES[Reason.EXCLUDED_RECENT_FAILURE]
    return refused


def _crowded_rows(demand: Demand, columns: Columns) -> dict[int, int]:
    """Return how many of the bundle's allocations are on each row, as far as it is told apart."""
    counts: dict[int, int] = {}
    for node_id, count in demand.bundle_count_by_node.items():
        row = columns.row_of(node_id)
        if row is not None:
            counts[row] = min(count, (1 << COUNT_BITS) - 1)
    return counts


def _shown(demand: Demand, columns: Columns, codes: Codes) -> tuple[tuple[FilteredNode, ...], int]:
    """Return the first nodes that are refused, and the last row that has a say in that."""
    shown: list[FilteredNode] = []
    for start in range(0, len(codes), _CHUNK):
        part = codes[start : start + _CHUNK]
        rows = np.flatnonzero((part != FITS) & (part != GONE))[: TRACE_NODES_MAX - len(shown)]
        for row in rows.tolist():
            place, reason = columns.places[start + row], FILTERS[int(part[row]) - 1]
            if place is not None:
                detail = detail_of(reason, demand, place)
                shown.append(FilteredNode(node_id=place.node.node_id, reason=reason, detail=detail))
        if len(shown) >= TRACE_NODES_MAX:
            return tuple(shown), start + int(rows[-1])
    return tuple(shown), GONE_FAR


_CHUNK: Final = 4_096
"""Rows that are searched at a time for the first ones that are refused."""


def _survey(
    columns: Columns,
    codes: Codes,
    counts: list[int],
    ranked: list[Scored],
    shown: tuple[FilteredNode, ...],
) -> Survey:
    return Survey(
        candidate_count=columns.count,
        fitting_count=counts[FITS],
        count_by_reason={reason: counts[code] for reason, code in CODES.items() if counts[code]},
        shown=shown,
        ranked=tuple(ranked),
        columns=columns,
        codes=codes,
    )
