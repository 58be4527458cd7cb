"""What every record has: a kind, a key, and being frozen."""

from __future__ import annotations

from typing import ClassVar, Final

import msgspec


class Value(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    """A frozen part of records, without an identity of its own.

    Values and records are trees: nothing in them can refer back, so the garbage collector need not
    walk through a large fleet to look for circles.
    """


class Record(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, gc=False):
    """One durable fact, found by kind and key."""

    KIND: ClassVar[str] = ""

    @property
    def key(self) -> str:
        """The record's id within its kind."""
        raise NotImplementedError


NODE_PREFIX: Final = "n"
"""Of the ids of nodes."""
COPIED: Final = "copied"
"""Name of the counter that a backup carries and no store that goes on: what was made after it is
not in it."""
FLOOR: Final = "floor"
"""Name of the counter whose number those begin from that a copy did not have yet."""


class Counter(Record, frozen=True, kw_only=True):
    """The last number given out under one prefix; ids made of it are never used twice."""

    KIND: ClassVar[str] = "counter"

    name: str
    value: int
    gaps: tuple[tuple[int, int], ...] = ()
    """Numbers above the first and up to the second of each pair were never given out by this store:
    it was restored from a backup then, and the server that had made it may have given them out."""

    @property
    def key(self) -> str:
        """The prefix."""
        return self.name
