"""Scratch: what was written since a mark within a step, so that it can be taken back.

A plan for several replicas is tried by carrying it out, since every decision then sees what the
ones before it took. Taking it back is what dropping a step is, for a part of the step.
"""

from __future__ import annotations

from dataclasses import dataclass

from hostler.core.delta import Delta
from hostler.core.fleet import Fleet
from hostler.model.record import Record


@dataclass(frozen=True, slots=True)
class Mark:
    """How far a step was."""

    write_count: int
    place: int
    """How many changes there had been."""
    minted: dict[str, int]
    event_count: int
    dispatch_count: int


@dataclass(frozen=True, slots=True)
class _Write:
    name: tuple[str, str]
    old: Record | None
    was_changed: bool
    """The step had changed the record before."""
    change: Record | None
    """To what, if so."""


class Scratch:
    """The writes since the first mark, in order."""

    def __init__(self, delta: Delta) -> None:
        self._delta = delta
        self._writes: list[_Write] = []

    def __len__(self) -> int:
        return len(self._writes)

    def note(self, name: tuple[str, str], old: Record | None) -> None:
        """Remember what is about to be overwritten."""
        changes = self._delta.changes
        self._writes.append(_Write(name, old, name in changes, changes.get(name)))

    def undo(self, fleet: Fleet, count: int) -> None:
        """Take back all but the first so many writes, the last one first."""
        delta = self._delta
        while len(self._writes) > count:
            write = self._writes.pop()
            fleet.write(*write.name, write.old)
            if write.was_changed:
                delta.changes[write.name] = write.change
            else:
                delta.changes.pop(write.name, None)
                delta.before.pop(write.name, None)
