"""Windows: stretches of the week on the wall clock of a named time zone."""

from __future__ import annotations

from typing import Final, Literal

from hostler.wire.documents.text import Count, CountFromOne, Name, TimeOfDay
from hostler.wire.documents.work import Document

Day = Literal[
    "monday",
    "tuesday",
    "wednesday",
    "thursday",
    "friday",
    "saturday",
    "sunday",
    "weekdays",
    "weekend",
    "daily",
]

DAYS: Final[tuple[Day, ...]] = (
    "monday",
    "tuesday",
    "wednesday",
    "thursday",
    "friday",
    "saturday",
    "sunday",
)


def days_of(written: list[Day]) -> tuple[int, ...]:
    """Return the days of the week that are meant, Monday as 0, each once and in order."""
    groups: dict[str, tuple[Day, ...]] = {
        "weekdays": DAYS[:5],
        "weekend": DAYS[5:],
        "daily": DAYS,
    }
    meant = {day for each in written for day in groups.get(each, (each,))}
    return tuple(number for number, day in enumerate(DAYS) if day in meant)


class WindowDocument(Document, frozen=True, kw_only=True):
    """A stretch of the week in which a pool has other sizes. What is left out stays as it is."""

    name: Name
    time_zone: str
    """As the zone database spells it: Europe/Berlin."""
    days: list[Day]
    """On which it begins."""
    start: TimeOfDay
    end: TimeOfDay
    """At or before `start`: on the day after."""
    warm: Count | None = None
    min: Count | None = None
    node_count_max: CountFromOne | None = None
