"""Timetables as arithmetic: when a bundle's jobs are next to run, and how long that takes ahead."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import msgspec

from hostler.core import calendar
from hostler.core.calendar import DAY_MS, Reading, Span
from hostler.core.placement.demand import pools_of
from hostler.model import Bundle
from hostler.model.pool import Tier, TierKind
from hostler.model.timetable import Timetable

if TYPE_CHECKING:
    from hostler.core.fleet import Fleet

FOR_EVER_MS: Final = 1 << 53
"""An end that does not come: beyond every instant that a JSON number can say."""

LEAD_MS: Final = {TierKind.FIXED: 15_000, TierKind.ELASTIC: 180_000}
"""Time from wanting a place to being ready, where a tier does not say: an agent that is there needs
seconds, a machine must boot first (spec/placement.md 1.4)."""

_STRETCH_MS: Final = 16 * DAY_MS
"""A window comes at least every second week: weekly, and skipped at most once."""


def spans_of(fleet: Fleet, timetable: Timetable, from_ms: int, to_ms: int) -> list[Span]:
    """Return when a bundle's jobs are to run within a stretch of time, in order, apart.

    What touches is one span: two windows without a break between them stop nothing in between.
    """
    first_ms = max(from_ms, timetable.from_at_ms or 0)
    last_ms = min(to_ms, FOR_EVER_MS if timetable.to_at_ms is None else timetable.to_at_ms)
    if first_ms >= last_ms:
        return []
    if not timetable.windows:
        end_ms = FOR_EVER_MS if timetable.to_at_ms is None else timetable.to_at_ms
        return [Span(timetable.from_at_ms or 0, end_ms)]
    found: list[Span] = []
    for window in timetable.windows:
        zone = fleet.time_zones.get(window.time_zone)
        if zone is not None:
            found += calendar.spans(window, zone, first_ms, last_ms)
    return list(_clipped(_joined(found), timetable))


def _joined(found: list[Span]) -> Iterator[Span]:
    open_span: Span | None = None
    for span in sorted(found):
        if open_span is None:
            open_span = span
        elif span.from_at_ms <= open_span.to_at_ms:
            reading = open_span.reading if span.reading is Reading.ONCE else span.reading
            to_at_ms = max(open_span.to_at_ms, span.to_at_ms)
            open_span = msgspec.structs.replace(open_span, to_at_ms=to_at_ms, reading=reading)
        else:
            yield open_span
            open_span = span
    if open_span is not None:
        yield open_span


def _clipped(found: Iterator[Span], timetable: Timetable) -> Iterator[Span]:
    least_ms = timetable.from_at_ms or 0
    most_ms = FOR_EVER_MS if timetable.to_at_ms is None else timetable.to_at_ms
    for span in found:
        from_at_ms, to_at_ms = max(span.from_at_ms, least_ms), min(span.to_at_ms, most_ms)
        if from_at_ms < to_at_ms:
            yield msgspec.structs.replace(span, from_at_ms=from_at_ms, to_at_ms=to_at_ms)


def next_span(fleet: Fleet, timetable: Timetable, at_ms: int) -> Span | None:
    """Return the span that holds at an instant, or else the next one; `None` if none comes."""
    first_ms = max(at_ms, timetable.from_at_ms or 0)
    for span in spans_of(fleet, timetable, first_ms, first_ms + _STRETCH_MS):
        if span.to_at_ms >= first_ms + _STRETCH_MS:
            # Without a gap for that long it has none at all: windows come every week.
            end_ms = FOR_EVER_MS if timetable.to_at_ms is None else timetable.to_at_ms
            return msgspec.structs.replace(span, to_at_ms=end_ms)
        if span.to_at_ms > at_ms:
            return span
    return None


def lead_ms(fleet: Fleet, bundle: Bundle) -> int:
    """Return how long ahead of its beginning a shift takes places: as its slowest tier needs."""
    pools = [fleet.pools.get(name) for name in pools_of(bundle)]
    return max(
        (tier_lead_ms(tier) for pool in pools if pool is not None for tier in pool.tiers),
        default=0,
    )


def tier_lead_ms(tier: Tier) -> int:
    """Return how long a place in a tier takes until what is placed there is ready."""
    return LEAD_MS[tier.kind] if tier.lead_ms is None else tier.lead_ms


class Upcoming(msgspec.Struct, frozen=True, kw_only=True):
    """A start or a stop that is to come."""

    bundle_id: str
    is_start: bool
    at_ms: int
    time_zone: str
    reading: Reading = Reading.ONCE
    is_skipped: bool = False


def upcoming(fleet: Fleet, now_ms: int, until_ms: int) -> list[Upcoming]:
    """Return every start and stop of all timetables up to an instant, the soonest first."""
    found: list[Upcoming] = []
    for bundle in fleet.bundles.in_order():
        timetable = bundle.timetable
        if timetable is None:
            continue
        shift = fleet.shifts.get(bundle.bundle_id)
        skipped_ms = shift.from_at_ms if shift is not None and shift.is_skipped else None
        for span in spans_of(fleet, timetable, now_ms, until_ms):
            is_skipped = span.from_at_ms == skipped_ms
            for at_ms, is_start in ((span.from_at_ms, True), (span.to_at_ms, False)):
                if now_ms < at_ms < min(until_ms, FOR_EVER_MS):
                    found.append(
                        Upcoming(
                            bundle_id=bundle.bundle_id,
                            is_start=is_start,
                            at_ms=at_ms,
                            time_zone=timetable.time_zone,
                            reading=span.reading,
                            is_skipped=is_skipped,
                        )
                    )
    return sorted(found, key=lambda each: (each.at_ms, each.bundle_id, each.is_start))
