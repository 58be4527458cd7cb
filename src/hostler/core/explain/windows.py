"""Windows as people read them: what comes when, and what a clock change does to it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date
from typing import Final

import msgspec

from hostler.core import calendar
from hostler.core.calendar import DAY_MS, Reading, Span
from hostler.core.fleet import Fleet
from hostler.model import Pool, TimeZone
from hostler.model.pool import SizeWindow

LOOK_AHEAD_MS: Final = 14 * DAY_MS
_CLOCK_CHANGES_SHOWN: Final = 2
_YEAR_MS: Final = 366 * DAY_MS
_EPOCH_DAY: Final = date(1970, 1, 1).toordinal()
_NOTES: Final = {
    Reading.ONCE: "",
    Reading.SKIPPED: "the clock skips one of its ends: the instant of the change counts",
    Reading.TWICE: "the clock shows one of its ends twice: it covers both",
}


class Coming(msgspec.Struct, frozen=True, kw_only=True):
    """One stretch of time of one pool."""

    pool: str
    window: str
    """Empty where no window holds: a gap, in which the pool has its own sizes."""
    time_zone: str
    from_at_ms: int
    to_at_ms: int
    local: str
    sizes: SizeWindow | None
    note: str


def comings(fleet: Fleet, pool: Pool, from_at_ms: int) -> list[Coming]:
    """Return what comes in the next two weeks, and on the days of the next two clock changes."""
    until_at_ms = from_at_ms + LOOK_AHEAD_MS
    spans = [
        (each, zone, span)
        for each in pool.windows
        if (zone := fleet.time_zones.get(each.window.time_zone)) is not None
        for span in _spans(each, zone, from_at_ms, until_at_ms)
    ]
    found = [_coming(pool, each, zone, span, spans) for each, zone, span in spans]
    if spans:
        zone = spans[0][1]
        near = [span for _, _, span in spans if span.from_at_ms < until_at_ms]
        found += [
            _gap(pool, zone, gap)
            for gap in calendar.gaps(near, from_at_ms, until_at_ms)
            if gap.from_at_ms < gap.to_at_ms
        ]
    return sorted(found, key=lambda each: (each.from_at_ms, each.window))


def _spans(each: SizeWindow, zone: TimeZone, from_at_ms: int, until_at_ms: int) -> list[Span]:
    """Return the comings within a stretch, and those that the next clock changes touch."""
    found = set(calendar.spans(each.window, zone, from_at_ms, until_at_ms))
    changes = list(calendar.clock_changes(zone, from_at_ms, from_at_ms + _YEAR_MS))
    for at_ms, _ in changes[:_CLOCK_CHANGES_SHOWN]:
        found.update(calendar.spans(each.window, zone, at_ms - DAY_MS // 2, at_ms + DAY_MS // 2))
    return sorted(found)


def _coming(
    pool: Pool,
    each: SizeWindow,
    zone: TimeZone,
    span: Span,
    all_spans: Sequence[tuple[SizeWindow, TimeZone, Span]],
) -> Coming:
    notes = [
        _NOTES[span.reading],
        *_clock_notes(zone, span),
        *_before_it(pool, each, span, all_spans),
    ]
    return Coming(
        pool=pool.name,
        window=each.name,
        time_zone=zone.name,
        from_at_ms=span.from_at_ms,
        to_at_ms=span.to_at_ms,
        local=_local(zone, span),
        sizes=each,
        note="; ".join(note for note in notes if note),
    )


def _gap(pool: Pool, zone: TimeZone, gap: Span) -> Coming:
    return Coming(
        pool=pool.name,
        window="",
        time_zone=zone.name,
        from_at_ms=gap.from_at_ms,
        to_at_ms=gap.to_at_ms,
        local=_local(zone, gap),
        sizes=None,
        note="no window: the pool's own sizes",
    )


def _clock_notes(zone: TimeZone, span: Span) -> Iterator[str]:
    for _, by_ms in calendar.clock_changes(zone, span.from_at_ms, span.to_at_ms):
        minutes = abs(by_ms) // 60_000
        yield f"{minutes} minutes {'shorter' if by_ms > 0 else 'longer'}: the clock changes"


def _before_it(
    pool: Pool,
    each: SizeWindow,
    span: Span,
    all_spans: Sequence[tuple[SizeWindow, TimeZone, Span]],
) -> Iterator[str]:
    """Name the windows that hold at the same time and have their way before this one."""
    order = [window.name for window in pool.windows]
    for other, _, there in all_spans:
        is_before = order.index(other.name) < order.index(each.name)
        if is_before and there.from_at_ms < span.to_at_ms and span.from_at_ms < there.to_at_ms:
            yield f"overlaps {other.name}, which goes first"


def _local(zone: TimeZone, span: Span) -> str:
    """Write a stretch as the wall clock there shows it."""
    begin_day, begin_ms = divmod(calendar.local_ms(zone, span.from_at_ms), DAY_MS)
    end_day, end_ms = divmod(calendar.local_ms(zone, span.to_at_ms), DAY_MS)
    begin, end = _clock(begin_ms), _clock(end_ms)
    return (
        f"{_day(begin_day)} {begin} to {'' if end_day == begin_day else _day(end_day) + ' '}{end}"
    )


def _clock(ms: int) -> str:
    return f"{ms // 3_600_000:02}:{ms // 60_000 % 60:02}"


def _day(day: int) -> str:
    name = calendar.weekday_of(day).name.capitalize()[:3]
    return f"{name} {date.fromordinal(_EPOCH_DAY + day).isoformat()}"
