"""Timetables: when the jobs of a bundle are to run, and the one coming of it that is armed."""

from __future__ import annotations

from enum import StrEnum
from typing import ClassVar

from hostler.base.ids import BundleId
from hostler.model.calendar import Window
from hostler.model.record import Record, Value


class Missed(StrEnum):
    """What becomes of a shift whose beginning nobody was there to act upon."""

    RUN = "run"
    """It begins late, for what is left of it."""
    SKIP = "skip"
    """It does not come."""


class Timetable(Value, frozen=True, kw_only=True):
    """When the jobs of a bundle run: in these windows, and not before or after these instants."""

    time_zone: str
    """In which it was written, and is shown."""
    windows: tuple[Window, ...] = ()
    """None: all the time between the two instants."""
    from_at_ms: int | None = None
    to_at_ms: int | None = None
    missed: Missed = Missed.RUN
    grace_ms: int = 300_000
    """How late a beginning may be acted upon before it counts as missed."""
    is_deleted_after: bool = False
    """True: the bundle is deleted when nothing of its timetable is to come any more."""


class Shift(Record, frozen=True, kw_only=True):
    """One coming of a bundle's timetable: the one that holds, or else the next."""

    KIND: ClassVar[str] = "shift"

    bundle_id: BundleId
    timetable: Timetable
    """By which it was computed."""
    since_at_ms: int
    """When that became the bundle's timetable; what began before that was not missed."""
    apart_from_at_ms: int = 0
    """When the shift before this one ended: however small the gap, what ran is stopped first."""
    place_at_ms: int | None = None
    """When places are taken and machines are launched, so that all is ready at the beginning."""
    run_at_ms: int | None = None
    """When what has a place is started."""
    from_at_ms: int | None = None
    """`None`: nothing is to come any more."""
    to_at_ms: int | None = None
    """`None`: it does not end."""
    is_on: bool = False
    """The bundle's jobs are to have their places."""
    is_skipped: bool = False
    """It was missed, and does not come."""

    @property
    def key(self) -> str:
        """The bundle's id."""
        return self.bundle_id
