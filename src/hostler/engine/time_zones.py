"""Reads the zone database, so that the core need not.

The platform's own database comes first and the `tzdata` package after it, so a slim image has one
too. Which edition a decision was made by stands in the journal, with the offsets themselves.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from hostler.model.calendar import Offset, TimeZone

YEARS_BACK: Final = 1
YEARS_AHEAD: Final = 10

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_SECOND: Final = timedelta(seconds=1)
_STRIDE: Final = timedelta(days=1)
"""No zone has ever changed its clock twice within a day and been back where it was."""


def read_time_zones(names: Iterable[str], now_ms: int) -> tuple[TimeZone, ...]:
    """Read each zone of these names that there is, in the order of names, none twice.

    One that the database does not have is left out: `time_zone_problem` says so where the name was
    written, and a record of it that is already there stays as it is.
    """
    year = datetime.fromtimestamp(now_ms / 1000, UTC).year
    return tuple(
        _read(name, year) for name in sorted(set(names)) if time_zone_problem(name) is None
    )


def time_zone_problem(name: str) -> str | None:
    """Return what is wrong with a zone's name, in a sentence; `None` if nothing is."""
    try:
        ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        near = difflib.get_close_matches(name, _names(), n=1, cutoff=0.6)
        hint = f"; did you mean {near[0]}?" if near else "; write it like Europe/Berlin, or UTC"
        return f"the zone database has no {name!r}{hint}"
    return None


@lru_cache(maxsize=1)
def _names() -> list[str]:
    return sorted(available_timezones())


@lru_cache(maxsize=64)
def _read(name: str, year: int) -> TimeZone:
    """Read the offsets of a zone from the beginning of last year on."""
    zone = ZoneInfo(name)
    at = datetime(year - YEARS_BACK, 1, 1, tzinfo=UTC)
    end = datetime(year + YEARS_AHEAD, 1, 1, tzinfo=UTC)
    offset = at.astimezone(zone).utcoffset()
    offsets = [_offset(at, offset)]
    while at < end:
        following = at + _STRIDE
        if following.astimezone(zone).utcoffset() != offset:
            change = _change_between(zone, at, following)
            offset = change.astimezone(zone).utcoffset()
            offsets.append(_offset(change, offset))
        at = following
    return TimeZone(name=name, offsets=tuple(offsets), known_until_at_ms=_ms(end - _EPOCH))


def _change_between(zone: ZoneInfo, low: datetime, high: datetime) -> datetime:
    """Return the first second that has the offset of `high`."""
    before = low.astimezone(zone).utcoffset()
    while high - low > _SECOND:
        middle = low + (high - low) // 2
        middle -= timedelta(microseconds=middle.microsecond)
        if middle.astimezone(zone).utcoffset() == before:
            low = middle
        else:
            high = middle
    return high


def _offset(at: datetime, offset: timedelta | None) -> Offset:
    return Offset(from_at_ms=_ms(at - _EPOCH), offset_ms=_ms(offset or timedelta(0)))


def _ms(span: timedelta) -> int:
    return span // timedelta(milliseconds=1)
