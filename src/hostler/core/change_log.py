"""The log of what a step has changed, by which controllers see what is news to them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from hostler.core.tables import Table


class ChangeLog:
    """Keys of one kind in the order of their changes, each with its place among those of all kinds.

    Attributes:
        keys: One for each change, so a key may be there more than once.
        places: Of each change, rising; whoever has seen so many changes goes on behind them.
        last: The last of them; whoever has seen so many has nothing to look at.
    """

    __slots__ = ("_found", "_found_between", "keys", "last", "places")

    def __init__(self) -> None:
        self.keys: list[str] = []
        self.places: list[int] = []
        self.last = 0
        self._found: list[Any] = []
        self._found_between = (0, 0)

    def after(self, place: int) -> Sequence[str]:
        """Return the keys that changed after a place, each once."""
        return list(dict.fromkeys(self.keys[bisect_right(self.places, place) :]))

    def records_after(self, place: int, table: Table[Any]) -> Sequence[Any]:
        """Return the records of which `after` gives the keys, as far as they are there."""
        between = (bisect_right(self.places, place), len(self.places))
        if self._found_between != between:
            # Controllers that look from one place to another see the same: nothing was written
            # between them, or the log would be longer.
            rows = table.rows
            keys = dict.fromkeys(self.keys[between[0] :])
            self._found = [rows[key] for key in keys if key in rows]
            self._found_between = between
        return self._found

    def cut(self, place: int) -> None:
        """Forget what came after a place."""
        start = bisect_right(self.places, place)
        del self.keys[start:], self.places[start:]
        self.last = self.places[-1] if start else 0
        self._found_between = (0, 0)
