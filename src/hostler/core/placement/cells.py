"""Cells: the rows of a ranking by the domains that they are in, counted by why they are refused.

A rule about domains says the same of all rows of a cell, so what it comes to for ten thousand nodes
in seven zones is found by a look at seven cells.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hostler.core.placement.columns import GONE, Codes, Columns
from hostler.core.placement.feasible import Place

Counts = dict[int, int]
"""Rows by code; rows that have left are not counted."""


class Cells:
    """The rows by what they are of some kinds of domain, such as zone and provider."""

    def __init__(self, kinds: tuple[str, ...], columns: Columns, codes: Codes) -> None:
        self.kinds = kinds
        size = len(columns.ids)
        number = np.zeros(size, np.int64)
        for kind in kinds:
            number = number * len(columns.codes) + columns.domains(kind)[:size]
            number = np.unique(number, return_inverse=True)[1]  # small again before the next kind
        _, first = np.unique(number, return_index=True)
        names = list(columns.codes)
        self.values = [
            tuple(names[columns.domains(kind)[row]] for kind in kinds) for row in first.tolist()
        ]
        """The domains of each cell, one of each kind."""
        self.numbers = {values: cell for cell, values in enumerate(self.values)}
        self.of_row: NDArray[np.int32] = np.zeros(len(codes), np.int32)
        """The cell of each row."""
        self.of_row[:size] = number
        self.counts = [counted(codes[:size][number == cell]) for cell in range(len(self.values))]

    def move(self, row: int, before: int, place: Place | None, after: int) -> None:
        """Follow one row that was filled again."""
        if before != GONE:
            shift(self.counts[self.of_row[row]], before, GONE)
        if place is None:
            return
        values = tuple([place.domains.value(kind) or "" for kind in self.kinds])
        cell = self.numbers.get(values)
        if cell is None:
            cell = self.numbers[values] = len(self.values)
            self.values.append(values)
            self.counts.append({})
        self.of_row[row] = cell
        shift(self.counts[cell], GONE, after)


def counted(codes: Codes) -> Counts:
    """Count rows by code."""
    counts = np.bincount(codes, minlength=GONE)[:GONE]
    return {code: int(counts[code]) for code in np.flatnonzero(counts).tolist()}


def shift(counts: Counts, before: int, after: int, count: int = 1) -> None:
    """Let so many rows have another code; those that have left are outside."""
    if before == after:
        return
    if before != GONE:
        left = counts[before] - count
        if left:
            counts[before] = left
        else:
            del counts[before]
    if after != GONE:
        counts[after] = counts.get(after, 0) + count
