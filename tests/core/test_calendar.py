"""The calendar against the zone database itself, and what clock changes do to windows."""

import itertools
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from hypothesis import given
from hypothesis import strategies as st

from hostler.core import calendar
from hostler.core.calendar import DAY_MS, Reading, Span
from hostler.engine.time_zones import read_time_zones, time_zone_problem
from hostler.model.calendar import TimeZone, Weekday, Window

HOUR_MS = 3_600_000
MINUTE_MS = 60_000
ALL_DAYS = tuple(Weekday)
NAMES = ("Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Africa/Casablanca", "UTC")

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def ms(at: datetime) -> int:
    return (at - _EPOCH) // timedelta(milliseconds=1)


def utc(*parts: int) -> int:
    return ms(datetime(*parts, tzinfo=UTC))  # type: ignore[misc,arg-type]  # parts are year to minute


def zone(name: str = "Europe/Berlin") -> TimeZone:
    return read_time_zones([name], utc(2026, 6, 1))[0]


def window(
    from_hour: float,
    to_hour: float,
    days: tuple[Weekday, ...] = ALL_DAYS,
    name: str = "Europe/Berlin",
) -> Window:
    return Window(
        time_zone=name,
        days=days,
        from_ms=int(from_hour * HOUR_MS),
        to_ms=int(to_hour * HOUR_MS),
    )


INSTANTS = st.integers(utc(2025, 2, 1), utc(2035, 12, 1))


@given(st.sampled_from(NAMES), INSTANTS)
def test_offsets_are_those_of_the_zone_database(name: str, at_ms: int) -> None:
    at = (_EPOCH + timedelta(milliseconds=at_ms)).astimezone(ZoneInfo(name))
    offset = at.utcoffset()
    assert offset is not None
    assert calendar.offset_at(zone(name), at_ms) == offset // timedelta(milliseconds=1)
    assert calendar.weekday_of(calendar.day_of(zone(name), at_ms)) == at.weekday()


@given(st.sampled_from(NAMES), INSTANTS)
def test_every_instant_is_one_of_those_at_which_its_wall_clock_shows_it(
    name: str, at_ms: int
) -> None:
    found = calendar.instant_of(zone(name), calendar.local_ms(zone(name), at_ms))
    assert at_ms in (found.first_at_ms, found.last_at_ms)
    assert found.reading is not Reading.SKIPPED
    assert (found.reading is Reading.TWICE) == (found.first_at_ms < found.last_at_ms)


@given(
    st.sampled_from(NAMES),
    INSTANTS,
    st.integers(0, DAY_MS - 1),
    st.integers(0, DAY_MS - 1),
    st.sets(st.sampled_from(ALL_DAYS), min_size=1),
)
def test_spans_come_in_order_apart_and_hold_what_the_wall_clock_shows(
    name: str, at_ms: int, from_ms: int, to_ms: int, days: set[Weekday]
) -> None:
    one = Window(time_zone=name, days=tuple(sorted(days)), from_ms=from_ms, to_ms=to_ms)
    there = zone(name)
    found = list(calendar.spans(one, there, at_ms, at_ms + 9 * DAY_MS))
    for before, after in itertools.pairwise(found):
        assert before.to_at_ms < after.from_at_ms
    assert all(span.from_at_ms < span.to_at_ms for span in found)
    local = calendar.local_ms(there, at_ms)
    day, time_ms = divmod(local, DAY_MS)
    begins_today = calendar.weekday_of(day) in days
    began_yesterday = calendar.weekday_of(day - 1) in days
    reads_inside = (
        from_ms <= time_ms < to_ms and begins_today
        if from_ms < to_ms
        else (time_ms >= from_ms and begins_today) or (time_ms < to_ms and began_yesterday)
    )
    if reads_inside:
        held = calendar.span_at(one, there, at_ms)
        assert held is not None
        assert held.holds_at(at_ms)


@given(
    st.sampled_from(NAMES),
    INSTANTS,
    st.integers(0, DAY_MS - 1),
    st.integers(0, DAY_MS - 1),
    st.sets(st.sampled_from(ALL_DAYS), min_size=1),
)
def test_nothing_changes_before_the_next_edge(
    name: str, at_ms: int, from_ms: int, to_ms: int, days: set[Weekday]
) -> None:
    one = Window(time_zone=name, days=tuple(sorted(days)), from_ms=from_ms, to_ms=to_ms)
    edge = calendar.next_edge_at_ms(one, zone(name), at_ms)
    if edge is None:
        assert days == set(ALL_DAYS)
        assert from_ms == to_ms
        return
    assert edge > at_ms
    holds = [
        calendar.span_at(one, zone(name), instant) is not None
        for instant in (at_ms, (at_ms + edge) // 2, edge - 1, edge)
    ]
    assert holds[0] == holds[1] == holds[2] != holds[3]


def test_a_skipped_time_is_the_instant_of_the_change() -> None:
    """02:30 on the night when 02:00 is followed by 03:00."""
    day = calendar.day_of(zone(), utc(2026, 3, 29, 12))
    found = calendar.instant_of(zone(), day * DAY_MS + 150 * MINUTE_MS)
    assert found == calendar.Instant(utc(2026, 3, 29, 1), utc(2026, 3, 29, 1), Reading.SKIPPED)


def test_a_doubled_time_has_two_instants() -> None:
    """02:30 on the night when 03:00 is followed by 02:00."""
    day = calendar.day_of(zone(), utc(2026, 10, 25, 12))
    found = calendar.instant_of(zone(), day * DAY_MS + 150 * MINUTE_MS)
    assert found == calendar.Instant(
        utc(2026, 10, 25, 0, 30), utc(2026, 10, 25, 1, 30), Reading.TWICE
    )


def test_z_01_nine_to_five_in_berlin_is_nine_to_five_on_both_sides_of_both_changes() -> None:
    """Trial Z01: local 09-17 every day, whatever zone the host has."""
    one = window(9, 17)
    winter = list(calendar.spans(one, zone(), utc(2026, 3, 28), utc(2026, 3, 30)))
    assert winter == [
        Span(utc(2026, 3, 28, 8), utc(2026, 3, 28, 16)),
        Span(utc(2026, 3, 29, 7), utc(2026, 3, 29, 15)),
    ]
    autumn = list(calendar.spans(one, zone(), utc(2026, 10, 24), utc(2026, 10, 26)))
    assert autumn == [
        Span(utc(2026, 10, 24, 7), utc(2026, 10, 24, 15)),
        Span(utc(2026, 10, 25, 8), utc(2026, 10, 25, 16)),
    ]


def test_a_window_inside_the_skipped_hour_does_not_come_that_night() -> None:
    one = window(2.25, 2.75)
    found = list(calendar.spans(one, zone(), utc(2026, 3, 28), utc(2026, 3, 30, 12)))
    assert [span.from_at_ms for span in found] == [utc(2026, 3, 28, 1, 15), utc(2026, 3, 30, 0, 15)]


def test_a_window_that_begins_in_the_skipped_hour_begins_with_the_change() -> None:
    found = calendar.span_at(window(2.5, 6), zone(), utc(2026, 3, 29, 2))
    assert found == Span(utc(2026, 3, 29, 1), utc(2026, 3, 29, 4), Reading.SKIPPED)


def test_a_window_in_the_doubled_hour_covers_it_both_times() -> None:
    found = calendar.span_at(window(2.25, 2.75), zone(), utc(2026, 10, 25, 1))
    assert found == Span(utc(2026, 10, 25, 0, 15), utc(2026, 10, 25, 1, 45), Reading.TWICE)


def test_a_window_over_midnight_belongs_to_the_day_on_which_it_begins() -> None:
    friday_night = window(22, 4, (Weekday.FRIDAY,))
    found = list(calendar.spans(friday_night, zone(), utc(2026, 6, 1), utc(2026, 6, 8)))
    assert found == [Span(utc(2026, 6, 5, 20), utc(2026, 6, 6, 2))]


def test_whole_days_in_a_row_are_one_span() -> None:
    weekend = window(0, 0, (Weekday.SATURDAY, Weekday.SUNDAY))
    found = list(calendar.spans(weekend, zone(), utc(2026, 6, 1), utc(2026, 6, 9)))
    assert found == [Span(utc(2026, 6, 5, 22), utc(2026, 6, 7, 22))]
    assert calendar.next_edge_at_ms(window(0, 0), zone(), utc(2026, 6, 1)) is None


def test_z_04_a_window_closes_when_it_says() -> None:
    """Trial Z04: daily 14:00 for an hour, three days in steps of 30 s: active exactly then."""
    one = window(14, 15, name="UTC")
    for step in range(3 * DAY_MS // 30_000):
        at_ms = utc(2026, 6, 1) + step * 30_000
        assert (calendar.span_at(one, zone("UTC"), at_ms) is not None) == (
            14 * HOUR_MS <= at_ms % DAY_MS < 15 * HOUR_MS
        )


def test_clock_changes_say_how_far_the_clock_is_put() -> None:
    found = list(calendar.clock_changes(zone(), utc(2026, 1, 1), utc(2027, 1, 1)))
    assert found == [(utc(2026, 3, 29, 1), HOUR_MS), (utc(2026, 10, 25, 1), -HOUR_MS)]


def test_gaps_and_overlaps() -> None:
    covered = [Span(10, 20), Span(15, 30), Span(40, 50)]
    assert list(calendar.gaps(covered, 0, 60)) == [Span(0, 10), Span(30, 40), Span(50, 60)]
    assert list(calendar.overlaps(covered)) == [Span(15, 20)]


def test_z_03_a_misspelt_zone_is_refused_by_name_and_never_read_as_utc() -> None:
    """Trial Z03."""
    assert time_zone_problem("Europe/Berln") == (
        "the zone database has no 'Europe/Berln'; did you mean Europe/Berlin?"
    )
    assert read_time_zones(["Europe/Berln"], 0) == ()
