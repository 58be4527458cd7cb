"""Days of the books: which one an instant is in, and where each begins and ends.

A day begins at the first midnight that the wall clock shows and ends at the next day's. On the two
nights when clocks change a day is an hour shorter or longer, and nothing is counted twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from typing import TYPE_CHECKING, Final

import msgspec

from hostler.core.calendar import DAY_MS, day_of, instant_of
from hostler.model.calendar import Offset, TimeZone

if TYPE_CHECKING:
    from hostler.core.fleet import Fleet

UTC: Final = TimeZone(
    name="UTC", offsets=(Offset(from_at_ms=0, offset_ms=0),), known_until_at_ms=2**62
)

_EPOCH: Final = date(1970, 1, 1).toordinal()


class Day(msgspec.Struct, frozen=True):
    """One local day."""

    number: int
    from_at_ms: int
    to_at_ms: int


class Days:
    """Finds days; the last one found is the one that is asked for next."""

    def __init__(self) -> None:
        self._zone = UTC
        self._last = Day(0, 0, 0)

    def at(self, zone: TimeZone, at_ms: int) -> Day:
        """Return the day that an instant is in."""
        if zone is not self._zone:
            self._zone, self._last = zone, Day(0, 0, 0)
        if not self._last.from_at_ms <= at_ms < self._last.to_at_ms:
            self._last = _find(zone, at_ms)
        return self._last


def _find(zone: TimeZone, at_ms: int) -> Day:
    number = day_of(zone, at_ms)
    if at_ms >= _begin(zone, number + 1):
        number += 1  # midnight comes twice this night, and this is after the first one
    return Day(number, _begin(zone, number), _begin(zone, number + 1))


def _begin(zone: TimeZone, number: int) -> int:
    return instant_of(zone, number * DAY_MS).first_at_ms


def zone_of(fleet: Fleet) -> TimeZone:
    """Return the time zone of the books; UTC until it is known."""
    settings = fleet.settings
    if settings is None:
        return UTC
    return fleet.time_zones.get(settings.spend.time_zone) or UTC


def day_at(fleet: Fleet, at_ms: int) -> Day:
    """Return the day of the books that an instant is in."""
    return fleet.index.spend.days.at(zone_of(fleet), at_ms)


def split(fleet: Fleet, from_at_ms: int, to_at_ms: int) -> Iterator[tuple[int, int]]:
    """Yield (day, milliseconds) for each day that a stretch of time touches."""
    while from_at_ms < to_at_ms:
        day = day_at(fleet, from_at_ms)
        end_ms = min(day.to_at_ms, to_at_ms)
        yield day.number, end_ms - from_at_ms
        from_at_ms = end_ms


def month_of(day: int) -> int:
    """Return the first day of the month that a day is in."""
    return date.fromordinal(day + _EPOCH).replace(day=1).toordinal() - _EPOCH


def months_before(day: int, count: int) -> int:
    """Return the first day of the month that lies so many months back."""
    here = date.fromordinal(day + _EPOCH)
    months = here.year * 12 + here.month - 1 - count
    if months < 12:
        return -(2**40)
    return date(months // 12, months % 12 + 1, 1).toordinal() - _EPOCH


def month_begin_at_ms(fleet: Fleet, at_ms: int) -> int:
    """Return the instant at which the month of an instant began."""
    return _begin(zone_of(fleet), month_of(day_at(fleet, at_ms).number))


def month_end_at_ms(fleet: Fleet, at_ms: int) -> int:
    """Return the instant at which the next month begins."""
    first = month_of(day_at(fleet, at_ms).number)
    return _begin(zone_of(fleet), month_of(first + 31))


def day_text(day: int) -> str:
    """Write a day as `2026-11-30`."""
    return date.fromordinal(day + _EPOCH).isoformat()


def day_number(text: str) -> int:
    """Read `2026-11-30`.

    Raises:
        ValueError: It is no date.
    """
    return date.fromisoformat(text).toordinal() - _EPOCH
