"""Sizes that follow the calendar. Trials Z04 and Z07 are of the calendar and of what is printed."""

from datetime import UTC, datetime, timedelta

from hostler.core.explain.windows import comings
from hostler.core.inputs import AcquireLease
from hostler.core.replies import Accepted
from hostler.engine.time_zones import read_time_zones
from hostler.model.calendar import TimeZone, Weekday, Window
from hostler.model.node import NodePhase, RetireReason
from hostler.model.pool import SizeWindow
from hostler.model.reason import Reason
from hostler.testing.builders import a_pool, an_elastic_tier
from tests.core.nodes.conftest import NewStable
from tests.core.nodes.stable import a_launched_node

HOUR_MS = 3_600_000
MINUTE_MS = 60_000
BOOT_MS = 120_000
BERLIN = read_time_zones(["Europe/Berlin"], 1_780_000_000_000)[0]


def at(*parts: int) -> int:
    """Return a UTC instant."""
    moment = datetime(*parts, tzinfo=UTC)  # type: ignore[misc,arg-type]  # year to minute
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)


def office_hours(name: str = "office", **sizes: int) -> SizeWindow:
    """Return 09:00 to 17:00 in Berlin, every day."""
    window = Window(
        time_zone="Europe/Berlin", days=tuple(Weekday), from_ms=9 * HOUR_MS, to_ms=17 * HOUR_MS
    )
    return SizeWindow(name=name, window=window, **sizes)


def test_z_06_two_are_ready_when_the_window_begins(stable: NewStable) -> None:
    """Trial Z06: floor 2 from 09:00: two ready at 09:00 (lead time known)."""
    begin = at(2026, 6, 1, 7)
    pool = a_pool(windows=(office_hours(warm_count=2),))
    world = stable(BERLIN, pool, now_ms=begin - 2 * HOUR_MS)
    world.advance(begin - BOOT_MS - 1)
    assert not world.commands("launch_machine")
    world.advance(begin - BOOT_MS)
    assert len(world.commands("launch_machine")) == 2
    assert len(world.boot()) == 2


def test_z_01_local_hours_stay_local_hours_over_both_clock_changes(stable: NewStable) -> None:
    """Trial Z01: 09-17 Europe/Berlin, host in UTC, both clock changes."""
    pool = a_pool(
        windows=(office_hours(warm_count=1),), tiers=(an_elastic_tier(boot_ms=60_000),), idle_ms=0
    )
    for day, begin, end in (
        ((2026, 3, 28), at(2026, 3, 28, 8), at(2026, 3, 28, 16)),
        ((2026, 3, 29), at(2026, 3, 29, 7), at(2026, 3, 29, 15)),
        ((2026, 10, 25), at(2026, 10, 25, 8), at(2026, 10, 25, 16)),
    ):
        world = stable(BERLIN, pool, now_ms=at(*day))
        world.advance(begin - 60_001)
        assert not world.fleet.nodes.rows
        world.advance(begin - 1)
        assert len(world.boot()) == 1
        world.advance(end - 1)
        assert len(world.in_phase(NodePhase.READY)) == 1
        world.advance(end)
        assert [n.retire_reason for n in world.fleet.nodes.in_order()] == [RetireReason.IDLE]


def test_the_first_window_that_sets_a_number_has_its_way(stable: NewStable) -> None:
    pool = a_pool(
        windows=(office_hours("first", node_count_min=1), office_hours("second", warm_count=3)),
        warm_count=0,
    )
    world = stable(BERLIN, pool, now_ms=at(2026, 6, 1, 10))
    sizes = world.fleet.sizes["p"]
    assert (sizes.warm_count, sizes.node_count_min) == (3, 1)
    assert sizes.windows == ("first", "second")


def test_a_maximum_falls_with_its_window_and_what_is_idle_above_it_goes(
    stable: NewStable,
) -> None:
    end = at(2026, 6, 1, 15)
    nodes = [a_launched_node(f"n-{n}", idle_since_at_ms=end - 1) for n in range(3)]
    pool = a_pool(windows=(office_hours(node_count_max=3),), node_count_max=1)
    world = stable(BERLIN, pool, *nodes, now_ms=end - 1)
    assert len(world.in_phase(NodePhase.READY)) == 3
    world.advance(end)
    gone = world.in_phase(NodePhase.STOPPING)
    assert [node.retire_reason for node in gone] == [RetireReason.SURPLUS] * 2


def test_sizes_are_right_at_once_after_a_restart_in_the_middle_of_a_window(
    stable: NewStable,
) -> None:
    world = stable(BERLIN, a_pool(windows=(office_hours(warm_count=2),)), now_ms=at(2026, 6, 1, 12))
    assert len(world.commands("launch_machine")) == 2


def test_a_zone_that_gets_other_rules_moves_the_window(stable: NewStable) -> None:
    world = stable(
        BERLIN, a_pool(windows=(office_hours(warm_count=1),)), now_ms=at(2026, 6, 1, 15, 30)
    )
    assert not world.fleet.sizes["p"].windows
    late = TimeZone(
        name=BERLIN.name, offsets=BERLIN.offsets[:1], known_until_at_ms=BERLIN.known_until_at_ms
    )
    pool = world.fleet.pools["p"]
    world.configure(pool, time_zones=(late,))
    assert world.fleet.sizes["p"].windows == ("office",)


def test_without_windows_nothing_is_written_down(stable: NewStable) -> None:
    world = stable(BERLIN, a_pool(windows=(office_hours(warm_count=1),)), now_ms=0)
    world.configure(a_pool())
    assert not world.fleet.sizes.rows


# -- what is printed ---------------------------------------------------------------------------


def test_z_07_what_is_covered_and_what_is_not_is_printed(stable: NewStable) -> None:
    """Trial Z07: the text says Monday to Friday, the window Monday and Friday: the gap is shown."""
    days = (Weekday.MONDAY, Weekday.FRIDAY)
    window = Window(time_zone="Europe/Berlin", days=days, from_ms=0, to_ms=0)
    pool = a_pool(windows=(SizeWindow(name="weekdays", window=window, warm_count=1),))
    world = stable(BERLIN, pool, now_ms=at(2026, 5, 31, 22))
    told = [(each.window, each.local) for each in comings(world.fleet, pool, world.now_ms)][:3]
    assert told == [
        ("weekdays", "Mon 2026-06-01 00:00 to Tue 2026-06-02 00:00"),
        ("", "Tue 2026-06-02 00:00 to Fri 2026-06-05 00:00"),
        ("weekdays", "Fri 2026-06-05 00:00 to Sat 2026-06-06 00:00"),
    ]


def test_the_days_of_both_clock_changes_are_printed_whatever_is_near(stable: NewStable) -> None:
    night = Window(
        time_zone="Europe/Berlin", days=tuple(Weekday), from_ms=HOUR_MS, to_ms=4 * HOUR_MS
    )
    pool = a_pool(windows=(SizeWindow(name="night", window=night, warm_count=1),))
    world = stable(BERLIN, pool, now_ms=at(2026, 6, 1))
    notes = {
        each.local: each.note
        for each in comings(world.fleet, pool, world.now_ms)
        if "clock" in each.note
    }
    assert notes == {
        "Sun 2026-10-25 01:00 to 04:00": "60 minutes longer: the clock changes",
        "Sun 2027-03-28 01:00 to 04:00": "60 minutes shorter: the clock changes",
    }


def test_overlaps_name_who_has_its_way(stable: NewStable) -> None:
    pool = a_pool(windows=(office_hours("one", warm_count=1), office_hours("two", warm_count=2)))
    world = stable(BERLIN, pool, now_ms=at(2026, 6, 1))
    notes = {each.note for each in comings(world.fleet, pool, world.now_ms) if each.window == "two"}
    assert notes == {"overlaps one, which goes first"}


def test_who_waits_is_told_when_a_window_takes_the_room_away(stable: NewStable) -> None:
    end = at(2026, 6, 1, 15)
    pool = a_pool(windows=(office_hours(node_count_max=1),), node_count_max=0)
    world = stable(BERLIN, pool, now_ms=end - 1)
    answer = world.ask(AcquireLease, pool="p", timeout_ms=HOUR_MS)
    assert isinstance(answer, Accepted)
    for _ in pool.tiers[0].offers:
        world.fail(world.commands("launch_machine")[-1], "capacity_unavailable")
    assert world.fleet.leases[answer.subject_id].reason is Reason.OFFER_COOLING_DOWN
    world.advance(end)
    assert world.fleet.leases[answer.subject_id].reason is Reason.LIMIT_REACHED
