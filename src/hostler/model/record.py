"""What every record has: a kind, a key, and being frozen."""

from __future__ import annotations

from typing import ClassVar

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


class Counter(Record, frozen=True, kw_only=True):
    """The last number given out under one prefix; ids made of it are never used twice."""

    KIND: ClassVar[str] = "counter"

    name: str
    value: int

    @property
    def key(self) -> str:
        """The prefix."""
        return self.name
