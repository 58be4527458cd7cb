"""A lifecycle as a table: which phase follows which, and on what trigger."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

from hostler.base.errors import Defect

P = TypeVar("P", bound=StrEnum)
T = TypeVar("T", bound=StrEnum)


class IllegalTransition(Defect):
    """An arrow that is not in the table was asked for; nothing has changed."""


@dataclass(frozen=True)
class Lifecycle(Generic[P, T]):
    """The phases of one kind of record and the arrows between them.

    Attributes:
        name: The record's kind, as shown in diagrams.
        initial: The phase of a new record.
        terminal: Phases with no way out.
        table: The next phase by current phase and trigger; what is not in it cannot happen.
    """

    name: str
    initial: P
    terminal: frozenset[P]
    table: Mapping[tuple[P, T], P]

    def next(self, phase: P, trigger: T) -> P:
        """Return the phase that follows.

        Raises:
            IllegalTransition: The arrow is not in the table; the caller's reading of the record
                was wrong.
        """
        found = self.table.get((phase, trigger))
        if found is None:
            raise IllegalTransition(
                "illegal_transition",
                "this arrow is not in the lifecycle",
                lifecycle=self.name,
                phase=str(phase),
                trigger=str(trigger),
            )
        return found

    def allows(self, phase: P, trigger: T) -> bool:
        """Say whether the arrow exists."""
        return (phase, trigger) in self.table

    def is_terminal(self, phase: P) -> bool:
        """Say whether nothing can follow this phase."""
        return phase in self.terminal
