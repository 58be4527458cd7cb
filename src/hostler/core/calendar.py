"""The calendar: from wall clocks to instants, and windows that recur.

Twice a year most wall clocks skip an hour or show one twice. What Hostler does then is fixed here,
once, for everything that has a wall clock in it:

- A time that is *skipped* means the instant of the change: 02:30, on a night when 02:00 is followed
  by 03:00, is 03:00. A window that lies whole inside the skipped hour does not come that night.
- A time that comes *twice* means the first one where something begins and the last one where it
  ends. A window therefore covers every instant at which the clock on the wall reads inside it, and
  something that has only one instant happens once, at the first.

Local days are numbered from 1970-01-01 like UTC days, so no date is needed to find a weekday.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from typing import Final

import msgspec

from hostler.model.calendar import Offset, TimeZone, Weekday, Window

DAY_MS: Final = 86_400_000

_WEEKDAY_OF_DAY_ZERO: Final = Weekday.THURSDAY
"""1970-01-01."""

_SEARCH_DAY_COUNT: Final = 16
"""A window comes at least every second week: weekly, and skipped at most once."""


class Reading(StrEnum):
    """How often a wall clock shows a time."""

    ONCE = "once"
    SKIPPED = "skipped"
    TWICE = "twice"


class Instant(msgspec.Struct, frozen=True):
    """The instants at which a wall clock shows a time; the same one twice if there is one."""

    first_at_ms: int
    last_at_ms: int
    reading: Reading = Reading.ONCE


class Span(msgspec.Struct, frozen=True, order=True):
    """One coming of a window: it holds from its first instant until just before its end."""

    from_at_ms: int
    to_at_ms: int
    reading: Reading = Reading.ONCE
    """Skipped or twice: a clock change touched one of its ends."""

    def holds_at(self, at_ms: int) -> bool:
        """Say whether the instant is inside."""
        return self.from_at_ms <= at_ms < self.to_at_ms


# -- wall clocks -----------------------------------------------------------------------------


def offset_at(zone: TimeZone, at_ms: int) -> int:
    """Return what local time is ahead of UTC at an instant."""
    place = bisect_right(zone.offsets, at_ms, key=_from_at_ms)
    return zone.offsets[max(0, place - 1)].offset_ms


def _from_at_ms(offset: Offset) -> int:
    return offset.from_at_ms


def local_ms(zone: TimeZone, at_ms: int) -> int:
    """Return what the wall clock shows, as milliseconds since its own 1970-01-01."""
    return at_ms + offset_at(zone, at_ms)


def day_of(zone: TimeZone, at_ms: int) -> int:
    """Return the number of the local day that an instant is in."""
    return local_ms(zone, at_ms) // DAY_MS


def weekday_of(day: int) -> Weekday:
    """Return which day of the week a local day is."""
    return Weekday((day + _WEEKDAY_OF_DAY_ZERO) % 7)


def instant_of(zone: TimeZone, local_at_ms: int) -> Instant:
    """Return when the wall clock shows a time; for a skipped one, the instant of the change."""
    around = _offsets_around(zone, local_at_ms)
    shown = sorted(
        {
            local_at_ms - each.offset_ms
            for each in around
            if offset_at(zone, local_at_ms - each.offset_ms) == each.offset_ms
        }
    )
    if not shown:
        change_at_ms = next(
            each.from_at_ms for each in around if each.from_at_ms + each.offset_ms > local_at_ms
        )
        return Instant(change_at_ms, change_at_ms, Reading.SKIPPED)
    reading = Reading.ONCE if len(shown) == 1 else Reading.TWICE
    return Instant(shown[0], shown[-1], reading)


def _offsets_around(zone: TimeZone, local_at_ms: int) -> Sequence[Offset]:
    """Return the offsets in force within a day of a local time: no clock is further from UTC."""
    low = bisect_right(zone.offsets, local_at_ms - DAY_MS, key=_from_at_ms) - 1
    high = bisect_right(zone.offsets, local_at_ms + DAY_MS, key=_from_at_ms)
    return zone.offsets[max(0, low) : max(1, high)]


def clock_changes(zone: TimeZone, from_at_ms: int, until_at_ms: int) -> Iterator[tuple[int, int]]:
    """Yield (instant, by how much the clock is put forward) of each change in a stretch of time.

    Negative: it is put back, and an hour comes twice.
    """
    for before, after in zip(zone.offsets, zone.offsets[1:], strict=False):
        if from_at_ms <= after.from_at_ms < until_at_ms and before.offset_ms != after.offset_ms:
            yield after.from_at_ms, after.offset_ms - before.offset_ms


# -- windows ---------------------------------------------------------------------------------


def spans(window: Window, zone: TimeZone, from_at_ms: int, until_at_ms: int) -> Iterator[Span]:
    """Yield each coming of a window that touches a stretch of time, in order.

    What follows without a break is one: every day from 00:00 to 00:00 is one span. It is then cut
    at the ends of the stretch only as far as a day beyond them, so ask for more than is shown.
    """
    open_span: Span | None = None
    for day in range(day_of(zone, from_at_ms) - 2, day_of(zone, until_at_ms) + 2):
        if weekday_of(day) not in window.days:
            continue
        span = _on_day(window, zone, day)
        if span is None:
            continue
        if open_span is not None and span.from_at_ms <= open_span.to_at_ms:
            open_span = msgspec.structs.replace(open_span, to_at_ms=span.to_at_ms)
            continue
        if open_span is not None and _touches(open_span, from_at_ms, until_at_ms):
            yield open_span
        open_span = span
    if open_span is not None and _touches(open_span, from_at_ms, until_at_ms):
        yield open_span


def _touches(span: Span, from_at_ms: int, until_at_ms: int) -> bool:
    return span.from_at_ms < until_at_ms and span.to_at_ms > from_at_ms


def _on_day(window: Window, zone: TimeZone, day: int) -> Span | None:
    """Return the coming that begins on a local day; `None` if the clock skips it whole."""
    last_day = day if window.to_ms > window.from_ms else day + 1
    begin = instant_of(zone, day * DAY_MS + window.from_ms)
    end = instant_of(zone, last_day * DAY_MS + window.to_ms)
    if end.last_at_ms <= begin.first_at_ms:
        return None
    readings = {begin.reading, end.reading} - {Reading.ONCE}
    reading = min(readings) if readings else Reading.ONCE
    return Span(begin.first_at_ms, end.last_at_ms, reading)


def span_at(window: Window, zone: TimeZone, at_ms: int) -> Span | None:
    """Return the coming of a window that holds at an instant, if one does."""
    return next((each for each in spans(window, zone, at_ms, at_ms + 1)), None)


def next_edge_at_ms(window: Window, zone: TimeZone, after_at_ms: int) -> int | None:
    """Return the next instant after this one at which the window begins or ends.

    `None` if there is none: it holds always, or has no day.
    """
    until_at_ms = after_at_ms + _SEARCH_DAY_COUNT * DAY_MS
    for span in spans(window, zone, after_at_ms, until_at_ms):
        if span.from_at_ms > after_at_ms:
            return span.from_at_ms
        if span.to_at_ms > until_at_ms:
            return None
        if span.to_at_ms > after_at_ms:
            return span.to_at_ms
    return None


# -- gaps and overlaps -----------------------------------------------------------------------


def gaps(covered: Iterable[Span], from_at_ms: int, until_at_ms: int) -> Iterator[Span]:
    """Yield the stretches that no span covers."""
    at_ms = from_at_ms
    for span in sorted(covered):
        if span.from_at_ms > at_ms:
            yield Span(at_ms, min(span.from_at_ms, until_at_ms))
        at_ms = max(at_ms, span.to_at_ms)
        if at_ms >= until_at_ms:
            return
    yield Span(at_ms, until_at_ms)


def overlaps(covered: Iterable[Span]) -> Iterator[Span]:
    """Yield the stretches that two spans or more cover; of three, twice."""
    reached_ms: int | None = None
    for span in sorted(covered):
        if reached_ms is not None and span.from_at_ms < reached_ms:
            yield Span(span.from_at_ms, min(span.to_at_ms, reached_ms))
        reached_ms = span.to_at_ms if reached_ms is None else max(reached_ms, span.to_at_ms)
