"""Wall clocks as data: what a named time zone's offset is when, and windows that recur in it.

The core reads no files, so the shell reads the zone database and hands in the offsets. They are
kept as a record and journalled: a decision that was made by one edition of the database can be
replayed after the machine has got another.
"""

from __future__ import annotations

from enum import IntEnum
from typing import ClassVar

from hostler.model.record import Record, Value


class Weekday(IntEnum):
    """A day of the week, numbered as ISO 8601 does but from zero."""

    MONDAY = 0
    TUESDAY = 1
    WEDNESDAY = 2
    THURSDAY = 3
    FRIDAY = 4
    SATURDAY = 5
    SUNDAY = 6


class Offset(Value, frozen=True, kw_only=True):
    """From an instant on, local time is UTC plus this much."""

    from_at_ms: int
    offset_ms: int


class TimeZone(Record, frozen=True, kw_only=True):
    """One named time zone in use, as the zone database had it when it was last read."""

    KIND: ClassVar[str] = "time_zone"

    name: str
    """As the zone database spells it: `Europe/Berlin`."""
    offsets: tuple[Offset, ...]
    """Earliest first; the first one holds before its instant too, the last one for ever."""
    known_until_at_ms: int
    """Clock changes after this instant were not looked for. Every start of a server reads on."""

    @property
    def key(self) -> str:
        """The zone's name."""
        return self.name


class Window(Value, frozen=True, kw_only=True):
    """A stretch of local time that comes again on some days of the week."""

    time_zone: str
    days: tuple[Weekday, ...]
    """On which it begins, in order; none twice."""
    from_ms: int
    """Since local midnight."""
    to_ms: int
    """Since local midnight. At or before `from_ms`: it ends on the day after; so equal to it means
    a whole day."""
