"""When jobs run: shifts that are placed ahead, begun, ended, missed, moved and skipped.

The calendar itself is tested in `tests/core/test_calendar.py`. S-044 (the engine raises at the fire
instant) has no counterpart: a step that raises is undone and the process recovers from its store.
S-046 needs no timer of 40 days here: instants are compared, not counted down.
"""

from datetime import UTC, datetime
from typing import Any

import pytest

from hostler.core.inputs import SubmitBundle
from hostler.core.planning import plan
from hostler.core.replies import Refused
from hostler.core.timetable import upcoming
from hostler.engine.time_zones import read_time_zones
from hostler.model.allocation import AllocationPhase
from hostler.model.bundle import BundlePhase
from hostler.model.calendar import Weekday, Window
from hostler.model.launch import Launch
from hostler.model.reason import Reason
from hostler.model.replica import ReplicaPhase
from hostler.model.timetable import Missed, Timetable
from hostler.testing.builders import a_fixed_tier, a_job, an_elastic_tier
from tests.core.placing.conftest import NewTheatre
from tests.core.placing.theatre import N1, Theatre, n1, n2, own_pool, pool_p

HOUR_MS, MINUTE_MS, DAY_MS = 3_600_000, 60_000, 86_400_000
DAILY = tuple(Weekday)


def at(text: str) -> int:
    """Return an instant of UTC in milliseconds."""
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1_000)


NOW_MS = at("2026-03-02T12:00")
ZONES = read_time_zones(["Europe/Berlin", "America/New_York", "UTC"], NOW_MS)


def between(from_at_ms: int | None, to_at_ms: int | None, **how: Any) -> Timetable:
    """Return a timetable of one stretch of time."""
    return Timetable(time_zone="UTC", from_at_ms=from_at_ms, to_at_ms=to_at_ms, **how)


def daily(start: int, end: int, zone: str = "UTC", **how: Any) -> Timetable:
    """Return a timetable of one window every day, by hours."""
    window = Window(time_zone=zone, days=DAILY, from_ms=start * HOUR_MS, to_ms=end * HOUR_MS)
    return Timetable(time_zone=zone, windows=(window,), **how)


def a_world(new: NewTheatre, *records: Any) -> Theatre:
    """Return a world at noon of a Monday."""
    world = new(*(records or (own_pool(), n1(), n2())))
    world.run(at_ms=NOW_MS)
    return world


def submit(world: Theatre, timetable: Timetable | None, name: str = "b1", **how: Any) -> None:
    """Submit a bundle with this timetable."""
    job = a_job(**how.pop("job", {}))
    world.submit(name, job, timetable=timetable, time_zones=ZONES, **how)


def test_s_038_it_is_placed_a_lead_before_its_start(theatre: NewTheatre) -> None:
    """Given `j1` starting at t=600 and pool leads 15 s and 180 s, when it arrives at t=0, then
    `pendingPlacements()` shows t=420 and the placement happens at exactly 420."""
    world = a_world(theatre, pool_p(), n1(), n2())
    submit(world, between(NOW_MS + 600_000, None))
    assert world.fleet.shifts["b1"].place_at_ms == NOW_MS + 420_000
    world.advance(NOW_MS + 419_999)
    waiting = world.replica()
    assert (waiting.phase, waiting.reason) == (ReplicaPhase.DORMANT, Reason.OUTSIDE_TIMETABLE)
    world.advance(NOW_MS + 420_000)
    assert world.live().created_at_ms == NOW_MS + 420_000


def test_what_has_a_machine_already_is_started_just_ahead(theatre: NewTheatre) -> None:
    """G-093: the lead of the slowest tier is too early for a node that is there."""
    world = a_world(theatre, pool_p(), n1(), n2())
    submit(world, between(NOW_MS + 600_000, None))
    world.advance(NOW_MS + 584_999)
    assert world.live().phase is AllocationPhase.RESERVED, "its room is kept"
    world.advance(NOW_MS + 585_000)
    assert world.live().phase is AllocationPhase.STARTING


def test_a_machine_is_booted_ahead_and_its_job_is_ready_at_the_start(theatre: NewTheatre) -> None:
    world = a_world(theatre, pool_p())
    submit(world, between(NOW_MS + 600_000, None))
    world.advance(NOW_MS + 420_000)
    assert len(world.commands("launch_machine")) == 1
    world.boot()
    world.advance(NOW_MS + 590_000)
    world.become_ready()
    assert world.live().ready_at_ms == NOW_MS + 590_000


def test_s_040_a_start_in_the_past_is_placed_at_once(theatre: NewTheatre) -> None:
    """Given a start in the past, then placed at once."""
    world = a_world(theatre)
    submit(world, between(NOW_MS - HOUR_MS, None, missed=Missed.SKIP))
    assert world.live().phase is AllocationPhase.STARTING


def test_s_041_a_lead_that_changes_moves_what_is_armed(theatre: NewTheatre) -> None:
    """Given an unknown bundle, when the job (start t=600) arrives, then its timer is at 600; when
    the bundle arrives at t=10, then it moves to 420."""
    world = a_world(theatre)
    submit(world, between(NOW_MS + 600_000, None))
    assert world.fleet.shifts["b1"].place_at_ms == NOW_MS + 585_000
    world.configure(pool_p())
    assert world.fleet.shifts["b1"].place_at_ms == NOW_MS + 420_000
    world.configure(own_pool(tiers=(a_fixed_tier(lead_ms=60_000),)))
    assert world.fleet.shifts["b1"].place_at_ms == NOW_MS + 540_000


def test_s_042_capacity_before_its_time_changes_nothing(theatre: NewTheatre) -> None:
    """Given a scheduled job, when capacity events arrive before its fire instant, then it is
    neither placed nor re-timed."""
    world = a_world(theatre)
    submit(world, between(NOW_MS + 600_000, None))
    armed = world.fleet.shifts["b1"]
    world.join()
    world.hear_inventory(N1)
    assert (world.place(), world.fleet.shifts["b1"]) == (None, armed)


def test_s_045_what_is_upcoming_is_sorted(theatre: NewTheatre) -> None:
    """Given three scheduled jobs, then `pendingPlacements()` is sorted soonest first."""
    world = a_world(theatre)
    submit(world, between(NOW_MS + 3_000, NOW_MS + 9_000), "b3")
    submit(world, between(NOW_MS + 1_000, None), "b1")
    submit(world, between(NOW_MS + 2_000, NOW_MS + 2_500), "b2")
    told = [(e.bundle_id, e.is_start) for e in upcoming(world.fleet, NOW_MS, NOW_MS + DAY_MS)]
    assert told == [("b1", True), ("b2", True), ("b2", False), ("b3", True), ("b3", False)]


def test_s_046_a_start_40_days_ahead_is_not_early(theatre: NewTheatre) -> None:
    """Given a start 40 days ahead, then it is not placed early."""
    world = a_world(theatre)
    start_at_ms = NOW_MS + 40 * DAY_MS
    submit(world, between(start_at_ms, None))
    world.advance(start_at_ms - 15_001)
    assert world.place() is None
    world.advance(start_at_ms - 15_000)
    assert world.place() is not None


def test_s_048_a_stop_long_past_deletes_once_and_places_nothing(theatre: NewTheatre) -> None:
    """Given three jobs of one bundle with a stop time one hour ago, when hydrated, then exactly one
    delete RPC and no placement of any of them."""
    world = a_world(theatre)
    jobs = [a_job(name) for name in ("x", "y", "z")]
    over = between(None, NOW_MS - HOUR_MS, is_deleted_after=True)
    world.submit("b1", *jobs, timetable=over, time_zones=ZONES)
    assert world.count("bundle_deletion_requested") == 1
    assert not world.fleet.allocations.rows
    assert not world.fleet.bundles.rows


def test_s_049_the_stop_holds_for_all_jobs(theatre: NewTheatre) -> None:
    """Given two jobs of a bundle, one tagged t=60 and the other without tag, whatever the order and
    number of their updates, then the delete is sent at 60."""
    world = a_world(theatre)
    table = between(None, NOW_MS + 60_000, is_deleted_after=True)
    world.submit("b1", a_job("x"), a_job("y"), timetable=table, time_zones=ZONES)
    world.submit("b1", a_job("y"), a_job("x"), timetable=table, time_zones=ZONES)
    world.advance(NOW_MS + 59_999)
    assert world.bundle().phase is BundlePhase.ACTIVE
    world.advance(NOW_MS + 60_000)
    assert world.bundle().phase is BundlePhase.DELETING


def test_s_050_without_a_stop_nothing_is_deleted(theatre: NewTheatre) -> None:
    """Given the tag removed from all jobs of the bundle, then no delete."""
    world = a_world(theatre)
    submit(world, between(None, NOW_MS + 60_000, is_deleted_after=True))
    submit(world, None)
    world.advance(NOW_MS + HOUR_MS)
    assert world.bundle().phase is BundlePhase.ACTIVE
    assert world.place() is not None
    assert not world.fleet.shifts.rows


def test_the_end_of_a_shift_really_stops(theatre: NewTheatre) -> None:
    world = a_world(theatre)
    submit(world, between(None, NOW_MS + HOUR_MS))
    world.become_ready()
    world.advance(NOW_MS + HOUR_MS)
    assert world.live().phase is AllocationPhase.STOPPING
    world.finish_stops()
    ended = world.replica()
    assert (ended.phase, ended.reason) == (ReplicaPhase.DORMANT, Reason.OUTSIDE_TIMETABLE)
    assert world.count("shift_ended") == 1


def test_a_window_comes_again_every_day(theatre: NewTheatre) -> None:
    world = a_world(theatre)
    submit(world, daily(20, 22))
    for day in range(3):
        world.advance(at("2026-03-02T20:00") + day * DAY_MS)
        world.become_ready()
        world.advance(at("2026-03-02T22:00") + day * DAY_MS)
        world.finish_stops()
        assert world.replica().phase is ReplicaPhase.DORMANT
    assert world.count("shift_begun") == 3


def test_a_short_gap_is_a_gap(theatre: NewTheatre) -> None:
    windows = tuple(
        Window(time_zone="UTC", days=DAILY, from_ms=start, to_ms=end)
        for start, end in (
            (13 * HOUR_MS, 14 * HOUR_MS),
            (14 * HOUR_MS + 5_000, 15 * HOUR_MS),
            (15 * HOUR_MS, 16 * HOUR_MS),
        )
    )
    world = a_world(theatre)
    submit(world, Timetable(time_zone="UTC", windows=windows))
    world.advance(at("2026-03-02T13:00"))
    world.become_ready()
    world.advance(at("2026-03-02T14:00"))
    assert world.live().phase is AllocationPhase.STOPPING
    world.finish_stops()
    world.advance(at("2026-03-02T14:00:01"))
    assert world.live().phase is not AllocationPhase.READY
    world.advance(at("2026-03-02T14:30"))
    world.become_ready()
    world.advance(at("2026-03-02T15:30"))
    assert world.live().phase is AllocationPhase.READY, "what touches is one"


# -- missed, edited, overruled -----------------------------------------------------------------


def away(world: Theatre, until_ms: int) -> None:
    """Let the server be away until an instant."""
    world.now_ms = until_ms
    world.restart()
    world.run(*(world.hello(node) for node in world.fleet.nodes.in_order()))


@pytest.mark.parametrize(
    ("missed", "late_ms", "is_run"),
    [
        (Missed.RUN, 30 * MINUTE_MS, True),
        (Missed.SKIP, 30 * MINUTE_MS, False),
        (Missed.SKIP, 4 * MINUTE_MS, True),
    ],
)
def test_a_missed_start_is_run_or_skipped(
    theatre: NewTheatre, missed: Missed, late_ms: int, is_run: bool
) -> None:
    world = a_world(theatre)
    submit(world, daily(20, 22, missed=missed))
    away(world, at("2026-03-02T20:00") + late_ms)
    assert (world.place() is not None) is is_run
    assert world.count("shift_skipped") == (0 if is_run else 1)
    world.advance(at("2026-03-03T20:00"))
    assert world.place() is not None, "the next one comes in any case"


def test_a_restart_during_a_shift_does_not_count_as_missed(theatre: NewTheatre) -> None:
    world = a_world(theatre)
    submit(world, daily(20, 22, missed=Missed.SKIP))
    world.advance(at("2026-03-02T20:00"))
    world.become_ready()
    world.now_ms = at("2026-03-02T21:00")
    world.restart()
    assert world.live().phase is AllocationPhase.READY


def test_a_stop_that_was_missed_is_made_up_for(theatre: NewTheatre) -> None:
    world = a_world(theatre)
    submit(world, daily(20, 22))
    world.advance(at("2026-03-02T20:00"))
    world.become_ready()
    world.now_ms = at("2026-03-02T23:00")
    world.restart()
    assert world.live().phase is AllocationPhase.STOPPING


def test_an_edit_moves_what_is_armed(theatre: NewTheatre) -> None:
    world = a_world(theatre)
    submit(world, between(NOW_MS + 600_000, None))
    submit(world, between(NOW_MS + 900_000, None))
    world.advance(NOW_MS + 884_999)
    assert world.place() is None
    world.advance(NOW_MS + 885_000)
    assert world.place() is not None


def test_an_edit_moves_what_is_reserved_ahead(theatre: NewTheatre) -> None:
    world = a_world(theatre, pool_p(), n1(), n2())
    submit(world, between(NOW_MS + 600_000, None))
    world.advance(NOW_MS + 430_000)
    submit(world, between(NOW_MS + 540_000, None))
    assert world.live().start_at_ms == NOW_MS + 525_000
    submit(world, between(NOW_MS + 2 * HOUR_MS, None))
    assert world.place() is None, "and gives its room back when that is far off again"


def test_an_end_put_off_stops_nothing(theatre: NewTheatre) -> None:
    world = a_world(theatre)
    submit(world, between(None, NOW_MS + HOUR_MS))
    world.become_ready()
    submit(world, between(None, NOW_MS + 2 * HOUR_MS))
    world.advance(NOW_MS + HOUR_MS)
    assert world.live().phase is AllocationPhase.READY


def test_an_operators_word_holds_until_the_shift_ends(theatre: NewTheatre) -> None:
    world = a_world(theatre)
    submit(world, daily(20, 22))
    world.start_job()
    assert world.place() is not None, "outside its hours"
    world.become_ready()
    world.advance(at("2026-03-02T21:00"))
    world.stop_job()
    world.finish_stops()
    assert world.replica().reason is Reason.STOPPED_BY_OPERATOR
    world.advance(at("2026-03-03T20:00"))
    assert world.place() is not None, "the next day is as the timetable has it"


def test_a_job_started_by_hand_ends_with_the_shift(theatre: NewTheatre) -> None:
    world = a_world(theatre)
    submit(world, daily(20, 22))
    world.start_job()
    world.become_ready()
    world.advance(at("2026-03-02T22:00"))
    world.finish_stops()
    assert world.replica().phase is ReplicaPhase.DORMANT


# -- the clock is changed ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("zone", "readings"),
    [
        ("America/New_York", ["once", "skipped"]),
        ("Europe/Berlin", ["once", "skipped", "twice"]),
    ],
)
def test_b85_one_start_for_each_nominal_time(
    theatre: NewTheatre, zone: str, readings: list[str]
) -> None:
    """Starts at 02:30 over the clock changes of a year: one a day, 02:30 skipped is the change."""
    world = a_world(theatre)
    window = Window(time_zone=zone, days=DAILY, from_ms=150 * MINUTE_MS, to_ms=240 * MINUTE_MS)
    submit(world, Timetable(time_zone=zone, windows=(window,)))
    starts = [e for e in upcoming(world.fleet, NOW_MS, NOW_MS + 365 * DAY_MS) if e.is_start]
    assert len(starts) == 365
    assert sorted({e.reading.value for e in starts}) == readings


def test_b86_a_start_in_the_hour_that_comes_twice_runs_once(theatre: NewTheatre) -> None:
    world = a_world(theatre)
    world.run(at_ms=at("2026-10-24T20:00"))
    submit(world, daily(2, 4, "Europe/Berlin"))
    begun_count = world.count("shift_begun")
    world.advance(at("2026-10-25T20:00"))
    assert world.count("shift_begun") == begun_count + 1


def test_a_clock_that_jumps_begins_nothing_twice(theatre: NewTheatre) -> None:
    world = a_world(theatre)
    submit(world, daily(20, 22))
    world.advance(at("2026-03-02T20:30"))
    begun_count = world.count("shift_begun")
    for at_ms in (at("2026-03-02T19:30"), at("2026-03-02T20:30"), at("2026-03-02T21:30")):
        world.run(at_ms=at_ms)  # the step clamps what goes backwards
        world.now_ms = world.fleet.now_ms
    assert world.count("shift_begun") == begun_count


# -- collisions --------------------------------------------------------------------------------


def planned(world: Theatre, timetable: Timetable, **how: Any) -> list[tuple[str, str, int]]:
    """Return the collisions that a plan tells."""
    submission = SubmitBundle(
        request_id="plan",
        principal="tester",
        bundle_id="new",  # type: ignore[arg-type]  # a test's own name
        pool="p",
        jobs=(a_job(capacity=15, launch=Launch(argv=("x",))),),
        timetable=timetable,
        time_zones=ZONES,
        **how,
    )
    made = plan(world.fleet, submission, world.now_ms)
    assert not isinstance(made.result, Refused)
    return [(each.resource, ",".join(each.bundles), each.from_at_ms) for each in made.collisions]


def test_b88_touching_is_accepted_and_a_real_overlap_is_told_with_its_first_date(
    theatre: NewTheatre,
) -> None:
    """Weekly 18:00-20:00 Berlin; book another 20:00-21:00 Berlin and a third 18:00-19:00 UTC for 12
    months: touching accepted, real overlaps told with the first clashing date."""
    world = a_world(theatre)
    world.submit(
        "b1", a_job(capacity=15), timetable=daily(18, 20, "Europe/Berlin"), time_zones=ZONES
    )
    assert planned(world, daily(20, 21, "Europe/Berlin")) == []
    assert planned(world, daily(18, 19)) == [("capacity", "b1", at("2026-03-02T18:00"))]
    assert planned(world, daily(19, 20)) == [], "in winter 19:00 UTC is 20:00 in Berlin"
    assert planned(world, daily(16, 17)) == [("capacity", "b1", at("2026-03-29T16:00"))]


def test_what_can_be_launched_counts(theatre: NewTheatre) -> None:
    world = a_world(theatre, own_pool(tiers=(a_fixed_tier(), an_elastic_tier())), n1(), n2())
    submit(world, daily(18, 20), job={"capacity": 15})
    assert planned(world, daily(18, 20)) == []
