"""Overlay: what is different for one replica from what holds for all who ask alike.

Its rules about where others are, where it failed, what else of its bundle is where. A rule about
domains is asked once for each cell of the ranking, and once for each node that is named; so what a
decision costs does not follow the number of nodes.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable
from typing import Final

import numpy as np

from hostler.base.ids import NodeId
from hostler.core.limits import CANDIDATES_KEPT_MAX, TRACE_NODES_MAX
from hostler.core.placement.cells import Counts, shift
from hostler.core.placement.columns import CODES, FITS, GONE, Codes, Ints
from hostler.core.placement.demand import Demand
from hostler.core.placement.ranking import BROKEN_SHIFT, Ranking, filtered, first_refused
from hostler.core.placement.resilience import NODE, DomainRule
from hostler.core.placement.score import COUNT_BITS
from hostler.core.placement.sweep import NEVER, Key, lowest
from hostler.model.constraint import SpreadOver
from hostler.model.reason import Reason
from hostler.model.trace import FilteredNode

_Own = tuple[int, int]
"""What rules say of a place: the code of the first required one that refuses, or FITS; and how many
preferred ones it breaks."""

_NOTHING: Final[_Own] = (FITS, 0)


class Overlay:
    """One replica's view of one tier."""

    def __init__(self, demand: Demand, ranking: Ranking) -> None:
        self._demand = demand
        self._ranking = ranking
        self._everywhere = _NOTHING
        """What rules say of every row that is not in a cell or named."""
        self._by_cell: dict[int, _Own] = {}
        """The same of a cell, where they say something."""
        if demand.rules:
            self._sort_out_rules()
        self._codes: dict[int, int] = {}
        """The code of each row that is named."""
        self._moves: dict[int, tuple[int, int]] = {}
        """What is added to the two integers of the score of a row that is named and fits."""
        for row, own in self._named_rows().items():
            self._name(row, own)
        self.is_empty = not self._codes and not self._by_cell and self._everywhere is _NOTHING
        """True: nothing is different for this replica."""

    # -- what the rules say ------------------------------------------------------------------------

    def _sort_out_rules(self) -> None:
        rules = self._demand.rules
        own = _NOTHING
        for rule in rules:
            if rule.domain == NODE:
                is_broken = rule.is_hopeless or rule.allowed is not None
            elif rule.domain == SpreadOver.TIER:
                is_broken = rule.is_broken_in(self._ranking.columns.tier)
            else:
                continue
            own = _with(own, rule) if is_broken else own
        self._everywhere = own
        apart = [r for r in rules if r.domain not in (NODE, SpreadOver.TIER)]
        if not apart:
            return
        kinds = tuple(sorted({rule.domain for rule in apart}))
        cells = self._cells = self._ranking.cells(kinds)
        asked = [(kinds.index(rule.domain), rule) for rule in apart]
        for cell in self._cells_to_ask(asked):
            values, found = cells.values[cell], own
            for kind, rule in asked:
                if rule.is_broken_in(values[kind]):
                    found = _with(found, rule)
            if found is not own:
                self._by_cell[cell] = found

    def _cells_to_ask(self, asked: list[tuple[int, DomainRule]]) -> Iterable[int]:
        """Return the cells about which the rules may say something."""
        cells = self._cells
        if len(cells.kinds) > 1 or any(r.is_hopeless or r.allowed is not None for _, r in asked):
            return range(len(cells.values))
        names = dict.fromkeys(name for _, rule in asked for name in ("", *sorted(rule.refused)))
        return [cells.numbers[(name,)] for name in names if (name,) in cells.numbers]

    def _of_row(self, row: int) -> _Own:
        """Return what the rules say of a row that is not named."""
        if not self._by_cell:
            return self._everywhere
        return self._by_cell.get(int(self._cells.of_row[row]), self._everywhere)

    # -- the rows that are named -------------------------------------------------------------------

    def _named_rows(self) -> dict[int, _Own]:
        """Return what the rules say of each row of which anything is said by name."""
        demand, row_of = self._demand, self._ranking.columns.row_of
        named: dict[int, _Own] = {}
        by_name = [rule for rule in demand.rules if rule.domain == NODE and not rule.is_hopeless]
        is_near = any(rule.allowed is not None for rule in by_name)
        for rule in by_name:
            for name in sorted(rule.refused if rule.allowed is None else rule.allowed):
                row = row_of(name)
                if row is not None and is_near:
                    named[row] = self._own_of(row)
                elif row is not None:
                    named[row] = _with(named.get(row) or self._of_row(row), rule)
        for name in (*demand.bundle_count_by_node, *sorted(demand.avoided | demand.rejected)):
            row = row_of(name)
            if row is not None and row not in named:
                named[row] = self._of_row(row)
        return named

    def _own_of(self, row: int) -> _Own:
        """Ask every rule about one row."""
        place, own = self._ranking.columns.places[row], _NOTHING
        for rule in self._demand.rules:
            if place is not None and rule.is_broken_by(place.domains):
                own = _with(own, rule)
        return own

    def _name(self, row: int, own: _Own) -> None:
        demand = self._demand
        node_id, (code, broken_count) = NodeId(self._ranking.columns.ids[row]), own
        if node_id in demand.avoided or node_id in demand.rejected:
            code = _first(CODES[Reason.EXCLUDED_RECENT_FAILURE], code)
        self._codes[row] = _first(int(self._ranking.codes[row]), code)
        crowd = min(demand.bundle_count_by_node.get(node_id, 0), (1 << COUNT_BITS) - 1)
        self._moves[row] = (broken_count << BROKEN_SHIFT, crowd)

    # -- what comes of it --------------------------------------------------------------------------

    def counts(self) -> Counts:
        """Return how many rows have which code."""
        ranking = self._ranking
        counts = ranking.counts
        if self.is_empty:
            return counts
        counts = counts.copy()
        if self._everywhere[0] != FITS:
            parts = self._cells.counts if self._by_cell else [ranking.counts]
            for cell, part in enumerate(parts):
                _refuse(counts, part, self._by_cell.get(cell, self._everywhere)[0])
        else:
            for cell, (code, _) in self._by_cell.items():
                _refuse(counts, self._cells.counts[cell], code)
        for row, code in self._codes.items():
            shift(counts, _first(int(ranking.codes[row]), self._of_row(row)[0]), code)
        return counts

    def best(self) -> list[int]:
        """Return the best rows that fit, best first, up to a bound.

        No row gets better by what is its own. So one that is not among those that are kept stays
        behind the last of them, and the kept ones are looked at until enough stand before the next.
        """
        ranking = self._ranking
        if self.is_empty:
            return [row for _, _, row in ranking.best[:CANDIDATES_KEPT_MAX]]
        found: list[Key] = []
        for key in ranking.best:
            if len(found) >= CANDIDATES_KEPT_MAX and found[CANDIDATES_KEPT_MAX - 1] <= key:
                break
            moved = self._moved(key)
            if moved is not None:
                insort(found, moved)
        else:
            if ranking.bound is not None and (
                len(found) < CANDIDATES_KEPT_MAX or found[CANDIDATES_KEPT_MAX - 1] > ranking.bound
            ):
                found = self._best_of_all()
        return [row for _, _, row in found[:CANDIDATES_KEPT_MAX]]

    def _moved(self, key: Key) -> Key | None:
        """Return what a row that fits all who ask alike is compared by now, if it still fits."""
        high, low, row = key
        move = self._moves.get(row)
        if move is not None:
            return (high + move[0], low + move[1], row) if self._codes[row] == FITS else None
        code, broken_count = self._of_row(row)
        if code != FITS:
            return None
        return (high + (broken_count << BROKEN_SHIFT), low, row) if broken_count else key

    def _best_of_all(self) -> list[Key]:
        ranking, size = self._ranking, self._ranking.size
        codes, low = self.codes(), ranking.low[:size].copy()
        high = np.where(codes == FITS, ranking.high[:size], NEVER)
        broken = self._table(1)
        if broken.any():
            # As many as there are bits for would still sort before what never fits.
            high += np.where(high == NEVER, 0, self._spread_out(broken) << BROKEN_SHIFT)
        for row, (more_high, more_low) in self._moves.items():
            if codes[row] == FITS:
                high[row] = int(ranking.high[row]) + more_high
                low[row] += more_low
        return lowest(high, low, CANDIDATES_KEPT_MAX)

    def codes(self) -> Codes:
        """Return the code of each row."""
        return self._codes_between(0, self._ranking.size)

    def _codes_between(self, start: int, end: int) -> Codes:
        codes = self._ranking.codes[start:end].copy()
        own = self._table(0)
        if own.any():
            over = self._spread_out(own, start, end).astype(np.int8)
            refuses = (over != FITS) & ((codes == FITS) | ((codes > over) & (codes != GONE)))
            codes[refuses] = over[refuses]
        for row, code in self._codes.items():
            if start <= row < end:
                codes[row - start] = code
        return codes

    def _table(self, part: int) -> Ints:
        """Return one part of what the rules say, by cell."""
        cell_count = len(self._cells.values) if self._by_cell else 1
        table = np.full(cell_count, self._everywhere[part], np.int64)
        for cell, own in self._by_cell.items():
            table[cell] = own[part]
        return table

    def _spread_out(self, table: Ints, start: int = 0, end: int | None = None) -> Ints:
        """Return by row what a table says by cell."""
        size = self._ranking.size if end is None else end
        if not self._by_cell:
            return np.full(size - start, table[0])
        rows: Ints = table[self._cells.of_row[start:size]]
        return rows

    def shown(self, counts: Counts) -> tuple[FilteredNode, ...]:
        """Return the first nodes that are refused, by id, up to a bound."""
        ranking = self._ranking
        known = ranking.shown()
        if self.is_empty:
            return tuple(known.values())
        if self._by_cell or self._everywhere[0] != FITS:
            return self._shown_anew(counts, known)
        changed = {
            row: code
            for row, code in self._codes.items()
            if row <= ranking.shown_to and code != ranking.codes[row]
        }
        if not changed:
            return tuple(known.values())
        rows = sorted({**known, **changed})[:TRACE_NODES_MAX]
        return tuple(
            [self._filtered(row, changed.get(row, int(ranking.codes[row])), known) for row in rows]
        )

    def _shown_anew(
        self, counts: Counts, known: dict[int, FilteredNode]
    ) -> tuple[FilteredNode, ...]:
        wanted = min(sum(counts.values()) - counts.get(FITS, 0), TRACE_NODES_MAX)
        shown: list[FilteredNode] = []
        cells = self._cells.of_row[:_SHOWN_AMONG].tolist() if self._by_cell else ()
        for row, before in enumerate(self._ranking.codes[:_SHOWN_AMONG].tolist()):
            code = self._codes.get(row)
            if code is None:
                own = self._by_cell.get(cells[row]) if cells else None
                over = (own or self._everywhere)[0]
                code = before if over == FITS else _first(before, over)
            if code not in (FITS, GONE):
                shown.append(self._filtered(row, code, known))
                if len(shown) == wanted:
                    break
        if len(shown) < wanted:
            codes = self.codes()
            rows = first_refused(codes, wanted)
            shown = [self._filtered(row, int(codes[row]), known) for row in rows]
        return tuple(shown)

    def _filtered(self, row: int, code: int, known: dict[int, FilteredNode]) -> FilteredNode:
        if row in known and code == self._ranking.codes[row]:
            return known[row]
        return filtered(self._demand, self._ranking.columns, row, code)


_SHOWN_AMONG: Final = 128
"""Rows among which those that are shown are looked for one by one."""


def _with(own: _Own, rule: DomainRule) -> _Own:
    code, broken_count = own
    if not rule.is_required:
        return code, broken_count + 1
    return _first(CODES[rule.reason], code), broken_count


def _first(one: int, other: int) -> int:
    """Return the code that counts of two: the one that is tried first."""
    if not one or not other:  # FITS
        return one or other
    return one if one == GONE else min(one, other)


def _refuse(counts: Counts, part: Counts, code: int) -> None:
    """Refuse rows for one reason more."""
    if code == FITS:
        return
    for before, count in part.items():
        shift(counts, before, _first(before, code), count)
