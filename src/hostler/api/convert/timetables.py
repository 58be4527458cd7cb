"""Starts and stops to come, in UTC and on the wall clock that they were written for."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from hostler.core.calendar import Reading
from hostler.core.timetable import Upcoming
from hostler.wire.http import UpcomingView

_NOTES = {Reading.ONCE: "", Reading.SKIPPED: "skipped hour", Reading.TWICE: "doubled hour"}


def upcoming(one: Upcoming) -> UpcomingView:
    """Show a start or a stop."""
    return UpcomingView(
        bundle_id=one.bundle_id,
        what="start" if one.is_start else "stop",
        at_ms=one.at_ms,
        local=local_text(one.at_ms, one.time_zone),
        time_zone=one.time_zone,
        note="missed" if one.is_skipped else _NOTES[one.reading],
    )


def local_text(at_ms: int, time_zone: str) -> str:
    """Write an instant as a wall clock shows it; of a zone that is unknown here, as UTC does."""
    try:
        zone = ZoneInfo(time_zone)
    except (ZoneInfoNotFoundError, ValueError):
        return datetime.fromtimestamp(at_ms / 1_000, UTC).strftime("%Y-%m-%d %H:%M UTC")
    return datetime.fromtimestamp(at_ms / 1_000, zone).strftime("%Y-%m-%d %H:%M %Z")
