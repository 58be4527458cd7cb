"""Disruption budgets: what runs well is disturbed only as far, and only when, they allow."""

from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from hostler.api.convert.bundles import bundle
from hostler.cli.protection_text import budgets_text
from hostler.core.disruption import Hindrance, hindrance, standings
from hostler.core.inputs import DrainNode
from hostler.core.replies import Accepted, Refused
from hostler.core.txn import Txn
from hostler.engine.time_zones import read_time_zones
from hostler.model import TimeZone
from hostler.model.calendar import Offset, Weekday, Window
from hostler.model.disruption import DisruptionBudget
from hostler.model.launch import Launch
from hostler.model.reason import Reason
from hostler.model.replica import MigrationCause
from hostler.testing.builders import a_job, a_node
from tests.core.placing.theatre import Theatre, own_pool

HOUR_MS = 3_600_000
UTC = TimeZone(name="UTC", offsets=(Offset(from_at_ms=0, offset_ms=0),), known_until_at_ms=10**15)
BERLIN = read_time_zones(["Europe/Berlin"], 1_780_000_000_000)[0]
SHOW = Window(time_zone="UTC", days=(Weekday.THURSDAY,), from_ms=2 * HOUR_MS, to_ms=4 * HOUR_MS)
"""On 1970-01-01 from 02:00 to 04:00."""


def a_theatre(count: int = 4, **settings: Any) -> Theatre:
    nodes = [a_node(f"n-{900001 + n}", incarnation=1) for n in range(count)]
    return Theatre(own_pool(), UTC, *nodes, **settings)


def a_budget(**fields: Any) -> DisruptionBudget:
    return DisruptionBudget(name="careful", **fields)


def drain(
    world: Theatre, key: str, deadline_ms: int = 10 * HOUR_MS, *, is_forced: bool = False
) -> None:
    answer = world.ask(
        DrainNode, node_id=world.place(key), deadline_ms=deadline_ms, is_forced=is_forced
    )
    assert isinstance(answer, Accepted), answer


def stops(world: Theatre) -> int:
    return len(world.commands("stop_allocation"))


def ask(
    world: Theatre,
    key: str,
    *,
    cause: MigrationCause = MigrationCause.ROLLOUT,
    has_gap: bool = True,
) -> Hindrance | None:
    txn = Txn(world.fleet, world.now_ms)
    found = hindrance(txn, world.live(key), cause, has_gap=has_gap)
    txn.abandon()
    return found


def test_without_a_budget_one_replica_of_a_job_is_disturbed_at_a_time() -> None:
    world = a_theatre(4)
    world.submit(replica_count=2)
    world.become_ready()
    for key in ("b1/main/0", "b1/main/1"):
        drain(world, key)
    assert stops(world) == 1
    waiting = next(
        notes["drain"]
        for key, notes in world.fleet.notes.items()
        if key.startswith("a-") and "drain" in notes
    )
    assert waiting.reason is Reason.SIBLINGS_UNSETTLED
    world.finish_stops()
    assert stops(world) == 0
    world.become_ready()  # the first is back, so the second goes
    assert stops(world) == 1


def test_a_replica_that_never_had_a_place_holds_up_no_drain() -> None:
    world = a_theatre(2)
    world.submit(replica_count=3)
    world.become_ready()
    assert ask(world, "b1/main/0", cause=MigrationCause.DRAIN) is None


@pytest.mark.parametrize(("most", "expected"), [(1, 1), (2, 2), (0, 0)])
def test_a_bundle_says_how_many_may_be_away(most: int, expected: int) -> None:
    world = a_theatre(6)
    budget = a_budget(unavailable_count_max=most)
    world.submit(replica_count=3, disruption_budgets=(budget,))
    world.become_ready()
    for index in range(3):
        drain(world, f"b1/main/{index}")
    assert stops(world) == expected


def test_who_failed_counts_as_away() -> None:
    world = a_theatre(4)
    world.submit(replica_count=3, disruption_budgets=(a_budget(unavailable_count_max=1),))
    world.become_ready()
    world.end("b1/main/2")
    drain(world, "b1/main/0")
    assert stops(world) == 0
    world.become_ready()
    assert stops(world) == 1


def test_so_many_must_stay_ready_and_no_gap_takes_none() -> None:
    world = a_theatre(4)
    world.submit(replica_count=2, disruption_budgets=(a_budget(ready_count_min=2),))
    world.become_ready()
    found = ask(world, "b1/main/0")
    assert found is not None
    assert found.reason is Reason.DISRUPTION_BUDGET
    assert found.detail == "careful: at least 2 must stay ready, and without it 1 would be"
    assert ask(world, "b1/main/0", has_gap=False) is None
    drain(world, "b1/main/0")
    assert stops(world) == 0


def test_a_budget_holds_in_its_windows_only_and_says_until_when() -> None:
    world = a_theatre(3)
    budget = a_budget(unavailable_count_max=0, windows=(SHOW,))
    world.submit(replica_count=2, disruption_budgets=(budget,))
    world.become_ready()
    assert ask(world, "b1/main/0") is None
    world.advance(3 * HOUR_MS)
    found = ask(world, "b1/main/0")
    assert found is not None
    assert found.until_at_ms == 4 * HOUR_MS
    drain(world, "b1/main/0")
    assert stops(world) == 0
    world.advance(4 * HOUR_MS - 1)
    assert stops(world) == 0
    world.advance(4 * HOUR_MS)
    assert stops(world) == 1


def test_a_budget_of_the_fleet_counts_over_all_that_it_selects() -> None:
    fleet = a_budget(labels={"team": "video"}, unavailable_count_max=1)
    world = a_theatre(6, disruption_budgets=(fleet,))
    for name in ("b1", "b2"):
        world.submit(name, a_job(capacity=6), labels={"team": "video", "tier": "a"})
    world.submit("b3", a_job(capacity=6), labels={"team": "audio"})
    world.become_ready()
    for name in ("b1", "b2", "b3"):
        drain(world, f"{name}/main/0")
    assert sorted(each.partition("/")[0] for each in world.commands("stop_allocation")) == sorted(
        world.live(f"{name}/main/0").allocation_id for name in ("b1", "b3")
    )


def test_a_changed_budget_lets_a_waiting_drain_go_on() -> None:
    world = a_theatre(3)
    world.submit(disruption_budgets=(a_budget(unavailable_count_max=0),))
    world.become_ready()
    drain(world, "b1/main/0")
    assert stops(world) == 0
    world.submit()
    assert stops(world) == 1


def test_the_deadline_of_a_forced_drain_is_past_all_budgets() -> None:
    world = a_theatre(3)
    world.submit(disruption_budgets=(a_budget(unavailable_count_max=0),))
    world.become_ready()
    drain(world, "b1/main/0", deadline_ms=HOUR_MS, is_forced=True)
    world.advance(HOUR_MS)
    assert stops(world) == 1


def test_a_rollout_keeps_to_the_budget_and_does_not_fail_by_it() -> None:
    world = a_theatre(3)
    budget = a_budget(unavailable_count_max=0, windows=(SHOW,))
    world.advance(2 * HOUR_MS)
    world.submit(replica_count=2, disruption_budgets=(budget,))
    world.become_ready()
    world.advance(world.now_ms + 60_000)
    new = a_job(launch=Launch(argv=("new",)))
    world.submit("b1", new, replica_count=2, disruption_budgets=(budget,))
    world.advance(4 * HOUR_MS - 1)
    assert stops(world) == 0
    assert world.count("rollout_failed") == 0
    assert "no more than 0 may be away" in world.fleet.rollouts["b1"].waits_for
    world.advance(4 * HOUR_MS)
    assert stops(world) == 1


def test_what_is_wrong_with_budgets_is_told() -> None:
    world = a_theatre(1)
    elsewhere = Window(time_zone="Nowhere", days=(Weekday.MONDAY,), from_ms=0, to_ms=0)
    budgets = (a_budget(unavailable_count_max=-1), a_budget(windows=(elsewhere,)))
    answer = world.try_submit(disruption_budgets=budgets)
    assert isinstance(answer, Refused)
    assert [(each.path, each.code) for each in answer.problems] == [
        ("disruption_budgets[0].unavailable_count_max", "out_of_range"),
        ("disruption_budgets[1].name", "duplicate"),
        ("disruption_budgets[1].windows[0].time_zone", "unknown_time_zone"),
    ]
    refused = world.configure(own_pool(), disruption_budgets=budgets)
    assert isinstance(refused, Refused)
    assert len(refused.problems) == 3


def test_it_is_told_how_far_each_budget_is_used() -> None:
    wide = DisruptionBudget(
        name="show", labels={"team": "video"}, ready_count_min=2, windows=(SHOW,)
    )
    world = a_theatre(disruption_budgets=(wide,))
    own = a_budget(unavailable_count_max=1)
    world.submit("b1", replica_count=2, labels={"team": "video"}, disruption_budgets=(own,))
    world.submit("b2", labels={"team": "video"})
    world.become_ready("b1/main/0", "b2/main/0")
    first, second = standings(world.fleet, world.bundle("b1"), world.now_ms)
    assert (first.job, first.is_in_force, first.away, first.ready_count) == (
        "main",
        True,
        ("b1/main/1",),
        1,
    )
    assert (second.job, second.is_in_force, second.ready_count) == ("", False, 2)
    (only,) = standings(world.fleet, world.bundle("b2"), 3 * HOUR_MS)
    assert (only.budget.name, only.is_in_force) == ("show", True)
    view = bundle(world.fleet, world.bundle("b1"), is_protection_told=True)
    assert budgets_text(view) == (
        "careful of main: 1 of 1 away; show of the fleet: 2 ready, 2 must be (not in force now)"
    )


@pytest.mark.parametrize("day", [(2026, 3, 28), (2026, 10, 24), (2026, 6, 1)])
def test_b089_moves_keep_to_the_night_over_clock_changes(day: tuple[int, int, int]) -> None:
    """B89: moves 22:00 to 06:00 local only, across midnight and daylight saving; tried by every
    voluntary cause at 21:59, 22:00, 05:59, 06:00. Involuntary ones are exempt."""
    by_day = Window(
        time_zone="Europe/Berlin",
        days=tuple(Weekday),
        from_ms=6 * HOUR_MS,
        to_ms=22 * HOUR_MS,
    )
    evening = in_berlin(day, 22)
    morning = in_berlin(day, 6, days_on=1)
    nodes = [a_node(f"n-{900001 + n}", incarnation=1) for n in range(3)]
    world = Theatre(own_pool(), BERLIN, *nodes, now_ms=evening - HOUR_MS)
    budget = a_budget(unavailable_count_max=0, windows=(by_day,))
    world.submit("b1", a_job(can_overlap=True), replica_count=2, disruption_budgets=(budget,))
    world.become_ready()
    found = []
    for at_ms in (evening - 60_000, evening, morning - 60_000, morning):
        world.advance(at_ms)
        found.append([ask(world, "b1/main/0", cause=each) is None for each in MigrationCause])
    assert found == [[False] * 4, [True] * 4, [True] * 4, [False] * 4]
    lost = world.place("b1/main/0")
    world.lose(str(lost))
    assert world.place("b1/main/0") not in (None, lost), "a loss asks nobody"


def test_b089_a_move_begun_within_its_time_is_finished_after_it() -> None:
    world = a_theatre(3, now_ms=0)
    busy = Window(time_zone="UTC", days=(Weekday.THURSDAY,), from_ms=HOUR_MS, to_ms=23 * HOUR_MS)
    budget = a_budget(unavailable_count_max=0, windows=(busy,))
    world.submit("b1", a_job(can_overlap=True), replica_count=2, disruption_budgets=(budget,))
    world.become_ready()
    world.advance(HOUR_MS - 60_000)
    drain(world, "b1/main/0")
    world.advance(HOUR_MS + 60_000)
    assert stops(world) == 0, "its second copy is not ready yet"
    for each in list(world.fleet.allocations.in_order()):
        world.report(each, "ready")
    assert stops(world) == 1


def in_berlin(day: tuple[int, int, int], hour: int, *, days_on: int = 0) -> int:
    """Return an hour of the wall clock there, so many days on."""
    local = datetime(*day, hour, tzinfo=ZoneInfo("Europe/Berlin")) + timedelta(days=days_on)
    return int(local.timestamp()) * 1_000
