"""Ranking: the nodes of a tier in the light of one demand, kept until the nodes change.

For each row of the columns: the first filter that refuses it, or what it costs to choose it, as two
integers that compare like the score's parts. A ranking holds for all replicas that ask alike; what
holds for one replica alone (its siblings, where it failed) is laid over it by `survey`.

It is computed over the columns at once (`sweep`), and then row by row for the nodes that have
changed, by the functions that explain a single node. Both give the same (a property test holds them
together).
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Hashable
from typing import Final

import numpy as np

from hostler.base.errors import Defect
from hostler.core.limits import CANDIDATES_KEPT_MAX, TRACE_NODES_MAX
from hostler.core.placement.cells import Cells, counted, shift
from hostler.core.placement.columns import CODES, FITS, GONE, Codes, Columns, Ints
from hostler.core.placement.demand import Demand
from hostler.core.placement.feasible import FILTERS, Place, detail_of, refusal
from hostler.core.placement.score import DEVICE_BITS, Market, Scale, Scored, packed
from hostler.core.placement.sweep import NEVER, Key, costs, first_refusals, lowest
from hostler.model.trace import FilteredNode

KEPT: Final = 256
"""Best rows that are kept in order, more than anybody is shown. They last for about as many
decisions as fill a node each."""

_ROWS_FEW: Final = 256
"""So few rows are never worth computing all at once."""

BROKEN_SHIFT: Final = 2 * DEVICE_BITS + 2
"""Where the number of broken rules stands in the first integer."""

GONE_FAR: Final = 2**62
"""Behind every row."""

REBUILD_SHARE: Final = 16
"""From one changed row in so many on, computing all rows at once is cheaper than each."""

_LOOKS_MAX: Final = 4_096
"""Looks of places that one ranking remembers."""

_Verdict = tuple[int, int, int, Scored | None]
"""The code of a row, what it costs to choose it, and the score that says so."""

_NO_CANDIDATE: Final[_Verdict] = (GONE, NEVER, NEVER, None)

_CELLS_MAX: Final = 4
"""Sets of kinds of domain by which one ranking is counted at a time."""


class Ranking:
    """One demand's view of one tier."""

    def __init__(self, demand: Demand, columns: Columns, market: Market) -> None:
        self.demand = demand
        """What it asks whoever asks it."""
        self.columns = columns
        self._market = market
        self.size = 0
        self._build()

    def _build(self) -> None:
        """Compute every row."""
        columns = self.columns
        self.size = len(columns.ids)
        self._generation, self._position = columns.generation, len(columns.log)
        self._scale = Scale(self.demand, self._market)
        roomy = len(columns.standing)
        self.codes: Codes = np.full(roomy, GONE, np.int8)
        self.high: Ints = np.full(roomy, NEVER, np.int64)
        self.low: Ints = np.full(roomy, NEVER, np.int64)
        codes, is_exact = first_refusals(self.demand, columns, self.size)
        self.codes[: self.size] = codes
        rows = np.flatnonzero((codes == FITS) & is_exact)
        if len(rows):
            self.high[rows], self.low[rows] = costs(self.demand, columns, rows, self._market)
        self.counts = counted(self.codes)
        """Rows by code."""
        self._cells: dict[tuple[str, ...], Cells] = {}
        self.best: list[Key] = []
        """The best rows in order: all that are not behind `bound`."""
        self.bound: Key | None = (-1, -1, -1)
        self._known: dict[int, Scored] = {}
        """Scores that somebody asked for."""
        self._alike: dict[Hashable, _Verdict] = {}
        """What came out for places of one look. Where fleets have few kinds of machines and of
        work, most changed rows look like one that was seen before."""
        self._shown: dict[int, FilteredNode] | None = None
        """The first rows that are refused, once somebody asked."""
        self.shown_to = GONE_FAR
        """The last row that can change what is shown."""
        for row in np.flatnonzero(~is_exact).tolist():
            self._set(row)
        self._find_best()

    def refresh(self, market: Market) -> None:
        """Follow the columns."""
        columns = self.columns
        changed = len(columns.log) - self._position
        if (
            market is not self._market
            or self._generation != columns.generation
            or len(columns.ids) > len(self.codes)
            or changed * REBUILD_SHARE > len(columns.ids) + _ROWS_FEW
        ):
            self._market = market
            self._build()
        elif changed:
            self.size = len(columns.ids)
            rows = dict.fromkeys(columns.log[self._position :])
            self._position = len(columns.log)
            for row in rows:
                self._set(row)
            if len(self.best) < CANDIDATES_KEPT_MAX and self.bound is not None:
                self._find_best()

    def score(self, row: int) -> Scored:
        """Return the score of a row that fits, for who has nothing of its own to say about it."""
        found = self._known.get(row)
        if found is None:
            place = self.columns.places[row]
            if place is None:
                raise Defect("row_gone", "a row that has left is scored")
            found = self._known[row] = self._scale.scored(place)
        return found

    def cells(self, kinds: tuple[str, ...]) -> Cells:
        """Return the rows counted by these kinds of domain."""
        found = self._cells.get(kinds)
        if found is None:
            if len(self._cells) >= _CELLS_MAX:
                del self._cells[next(iter(self._cells))]
            found = self._cells[kinds] = Cells(kinds, self.columns, self.codes)
        return found

    def shown(self) -> dict[int, FilteredNode]:
        """Return the first rows that are refused, up to a bound."""
        if self._shown is None:
            refused_count = sum(self.counts.values()) - self.counts.get(FITS, 0)
            rows = first_refused(self.codes[: self.size], refused_count)
            self._shown = {
                row: filtered(self.demand, self.columns, row, int(self.codes[row])) for row in rows
            }
            self.shown_to = GONE_FAR if len(rows) < TRACE_NODES_MAX else rows[-1]
        return self._shown

    def _set(self, row: int) -> None:
        place = self.columns.places[row]
        code, high, low, like = _NO_CANDIDATE if place is None else self._verdict(place)
        if place is None or like is None:
            self._known.pop(row, None)
        else:
            self._known[row] = Scored(place, like.broken, like.parts)
        before = int(self.codes[row])
        if (before != FITS or code != FITS) and row <= self.shown_to:
            self._shown = None
        for cells in self._cells.values():
            cells.move(row, before, place, code)
        if before != code:
            shift(self.counts, before, code)
            self.codes[row] = code
        if not before or not code:  # it fitted, or fits
            self._move((int(self.high[row]), int(self.low[row]), row), (high, low, row))
            self.high[row], self.low[row] = high, low

    def _verdict(self, place: Place) -> _Verdict:
        """Return what comes out for a place: the same as for one of the same look."""
        if place.standing:
            return CODES[place.standing[0]], NEVER, NEVER, None
        look = None if self.demand.node_rules else place.look
        found = None if look is None else self._alike.get(look)
        if found is None:
            reason = refusal(self.demand, place)
            if reason is None:
                like = self._scale.scored(place)
                found = (FITS, *packed(like.parts), like)
            else:
                found = (CODES[reason], NEVER, NEVER, None)
            if look is not None:
                if len(self._alike) >= _LOOKS_MAX:
                    self._alike.clear()
                self._alike[look] = found
        return found

    def _move(self, old: Key, new: Key) -> None:
        best, bound = self.best, self.bound
        if old[0] != NEVER and (bound is None or old <= bound):
            del best[bisect_left(best, old)]
        if new[0] != NEVER and (bound is None or new <= bound):
            insort(best, new)

    def _find_best(self) -> None:
        self.best = lowest(self.high, self.low, KEPT)
        is_all = self.counts.get(FITS, 0) <= len(self.best)
        self.bound = None if is_all else self.best[-1]


def first_refused(codes: Codes, refused_count: int) -> list[int]:
    """Return the first rows that are refused, up to a bound."""
    rows: list[int] = []
    wanted, start, width = min(refused_count, TRACE_NODES_MAX), 0, _CHUNK
    while len(rows) < wanted and start < len(codes):
        part = codes[start : start + width]
        found = np.flatnonzero((part != FITS) & (part != GONE))[: wanted - len(rows)]
        rows += (found + start).tolist()
        start, width = start + width, 16 * width
    return rows


_CHUNK: Final = 256
"""Rows that are searched at first for those that are refused, and then more at a time."""


def filtered(demand: Demand, columns: Columns, row: int, code: int) -> FilteredNode:
    """Return what is shown of a row that is refused."""
    place, reason = columns.places[row], FILTERS[code - 1]
    if place is None:
        raise Defect("row_gone", "a row that has left is shown")
    detail = detail_of(reason, demand, place)
    return FilteredNode(node_id=place.node.node_id, reason=reason, detail=detail)
