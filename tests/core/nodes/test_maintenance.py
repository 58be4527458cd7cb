"""Maintenance windows: nodes are empty when they begin, and open by themselves after (issue 5)."""

from typing import Any

import pytest

from hostler.base.ids import NodeId
from hostler.core.explain import explain_node
from hostler.core.inputs import CordonNode, LabelNode, UncordonNode
from hostler.core.replies import Refused
from hostler.model import TimeZone
from hostler.model.calendar import Offset, Weekday, Window
from hostler.model.lease import LeasePhase
from hostler.model.maintenance import MaintenancePlan
from hostler.model.reason import Reason
from hostler.model.timetable import Timetable
from hostler.testing.builders import a_fixed_tier, a_job, a_pool, an_elastic_tier
from tests.core.nodes.test_consolidation import settle
from tests.core.placing.conftest import NewTheatre, theatre
from tests.core.placing.theatre import N1, N2, Theatre, n1, n2, own_pool

__all__ = ["theatre"]

MINUTE = 60_000
HOUR = 60 * MINUTE
UTC = TimeZone(name="UTC", offsets=(Offset(from_at_ms=0, offset_ms=0),), known_until_at_ms=1 << 53)
EAST = TimeZone(
    name="Far/East", offsets=(Offset(from_at_ms=0, offset_ms=HOUR),), known_until_at_ms=1 << 53
)
ONCE = Timetable(time_zone="UTC", from_at_ms=2 * HOUR, to_at_ms=3 * HOUR)
MAIN = "b1/main/0"


def a_plan(**changes: Any) -> MaintenancePlan:
    """Return a plan about the first node, from two to three, with a lead of fifteen minutes."""
    given: dict[str, Any] = {"name": "kernel", "node_ids": (N1,), "timetable": ONCE}
    return MaintenancePlan(**{**given, **changes})


def planned(new: NewTheatre, *plans: MaintenancePlan, pool: Any = None, **job: Any) -> Theatre:
    """Return a world of two nodes with plans, in which a replica runs on the first node."""
    world = new(pool or own_pool(), n1(), n2(), UTC, EAST, maintenance=plans or (a_plan(),))
    world.submit("b1", a_job(**{"can_overlap": True, **job}))
    settle(world)
    assert world.place() == N1
    return world


def test_a_node_is_empty_when_it_begins_and_open_after_it(theatre: NewTheatre) -> None:
    world = planned(theatre)
    world.advance(2 * HOUR - 15 * MINUTE - 1)
    assert world.fleet.nodes[N1].takes_work
    world.advance(2 * HOUR - 15 * MINUTE)
    assert not world.fleet.nodes[N1].takes_work
    settle(world)
    assert world.place() == N2, "its second copy was ready before the first one ended"
    world.advance(2 * HOUR + 1)
    assert not world.fleet.nodes[N1].takes_work
    world.advance(3 * HOUR)
    node = world.fleet.nodes[N1]
    assert (node.takes_work, node.cordon, node.drain, node.maintenance) == (True, None, None, None)
    assert (world.count("node_maintenance_begun"), world.count("node_maintenance_ended")) == (1, 1)
    world.advance(48 * HOUR)
    assert world.count("node_maintenance_begun") == 1, "it was for once"


def test_it_recurs_on_the_wall_clock_of_its_time_zone(theatre: NewTheatre) -> None:
    window = Window(time_zone="Far/East", days=tuple(Weekday), from_ms=4 * HOUR, to_ms=5 * HOUR)
    world = planned(theatre, a_plan(timetable=Timetable(time_zone="Far/East", windows=(window,))))
    begun: list[int] = []
    for hour in range(73):
        world.advance(hour * HOUR)
        settle(world)
        if not world.fleet.nodes[N1].takes_work:
            begun.append(hour)
    assert begun == [3, 27, 51], "four in the East is three in UTC"
    assert world.count("node_maintenance_begun") == 3


@pytest.mark.parametrize("is_forced", [False, True])
def test_what_finds_no_place_stays_unless_it_is_to_be_stopped(
    theatre: NewTheatre, *, is_forced: bool
) -> None:
    world = theatre(own_pool(), n1(), UTC, maintenance=(a_plan(is_forced=is_forced),))
    world.submit("b1", a_job())
    settle(world)
    world.advance(2 * HOUR)
    world.finish_stops()
    assert (world.place() is None) is is_forced
    assert world.count("node_drain_overdue") == 1
    world.advance(3 * HOUR)
    settle(world)
    assert world.place() == N1, "it runs there again, or still"


def test_nodes_are_chosen_by_pool_and_label(theatre: NewTheatre) -> None:
    by_label = a_plan(name="rack", node_ids=(), pools=("p",), labels={"rack": "a"})
    tier = a_fixed_tier(labels={"row": "1"})
    by_tier = a_plan(name="row", node_ids=(), labels={"row": "2"})
    world = planned(theatre, by_label, by_tier, pool=own_pool(tiers=(tier,)))
    world.ask(LabelNode, node_id=N2, labels={"rack": "a"})
    world.advance(2 * HOUR)
    assert [world.fleet.nodes[key].takes_work for key in (N1, N2)] == [True, False]
    world.ask(LabelNode, node_id=N1, labels={"rack": "a"})
    assert not world.fleet.nodes[N1].takes_work, "also one that comes to be meant meanwhile"
    world.ask(LabelNode, node_id=N1, labels={"rack": ""})
    assert world.fleet.nodes[N1].takes_work


def test_a_lease_that_could_last_into_it_goes_to_another_node(theatre: NewTheatre) -> None:
    pool = own_pool(lease_ms_max=HOUR, lease_ms=HOUR)
    world = theatre(pool, n1(), n2(), UTC, maintenance=(a_plan(),))
    world.advance(HOUR)
    assert world.acquire().node_id == N2, "an hour from now on would be too long"
    waiting = world.acquire(timeout_ms=4 * HOUR)
    assert waiting.phase is LeasePhase.WAITING
    assert world.fleet.nodes[N1].cordon is None, "jobs still come until its lead"
    world.advance(3 * HOUR)
    assert world.fleet.leases[waiting.lease_id].node_id in (N1, N2)


def test_leases_without_an_end_are_told_and_end_when_it_begins(theatre: NewTheatre) -> None:
    world = theatre(own_pool(lease_ms=9 * HOUR), n1(), UTC, maintenance=(a_plan(),))
    lease = world.acquire()
    world.advance(2 * HOUR - 15 * MINUTE)
    held = world.fleet.leases[lease.lease_id]
    assert (held.phase, held.retiring_at_ms) == (LeasePhase.HELD, 2 * HOUR)
    world.advance(2 * HOUR)
    assert world.fleet.leases[lease.lease_id].phase is LeasePhase.SETTLED


def test_uncordon_has_a_node_left_alone_for_this_time_only(theatre: NewTheatre) -> None:
    window = Window(time_zone="UTC", days=tuple(Weekday), from_ms=2 * HOUR, to_ms=3 * HOUR)
    world = planned(theatre, a_plan(timetable=Timetable(time_zone="UTC", windows=(window,))))
    world.advance(2 * HOUR - 15 * MINUTE)
    world.ask(UncordonNode, node_id=N1)
    settle(world)
    assert (world.fleet.nodes[N1].takes_work, world.place()) == (True, N1)
    world.advance(2 * HOUR + MINUTE)
    assert world.fleet.nodes[N1].takes_work
    world.advance(26 * HOUR)
    assert not world.fleet.nodes[N1].takes_work


def test_an_operators_own_cordon_is_not_ended_by_it(theatre: NewTheatre) -> None:
    world = planned(theatre)
    world.advance(2 * HOUR)
    world.ask(CordonNode, node_id=N1, reason="mine")
    world.advance(4 * HOUR)
    cordon = world.fleet.nodes[N1].cordon
    assert cordon is not None
    assert cordon.by == "tester"


def test_taking_the_plan_away_calls_it_off(theatre: NewTheatre) -> None:
    world = planned(theatre)
    world.advance(2 * HOUR - 15 * MINUTE)
    world.configure(own_pool(), maintenance=())
    settle(world)
    assert (world.fleet.nodes[N1].takes_work, world.place()) == (True, N1)
    assert not len(world.fleet.maintenances)


def test_machines_that_are_launched_meanwhile_are_not_meant() -> None:
    """Else one would be launched after another, each closed like the one before."""
    plan = a_plan(node_ids=(), pools=("p",))
    pool = a_pool(tiers=(an_elastic_tier(boot_ms=HOUR),), warm_count=2, idle_ms=MINUTE)
    world = Theatre(pool, UTC, maintenance=(plan,))
    settle(world)
    world.advance(2 * HOUR)
    settle(world)
    assert len([node for node in world.launched() if node.takes_work]) == 2
    assert len(world.launched()) == 4
    world.advance(4 * HOUR)
    settle(world)
    assert len(world.launched()) == 2


def test_it_is_explained(theatre: NewTheatre) -> None:
    world = planned(theatre)
    world.advance(2 * HOUR)
    told = explain_node(world.fleet, NodeId(N1))
    assert told is not None
    assert Reason.MAINTENANCE in [each.reason for each in told.reasons]


def test_a_restart_in_the_middle_of_it_changes_nothing(theatre: NewTheatre) -> None:
    world = planned(theatre)
    world.advance(2 * HOUR + MINUTE)
    settle(world)
    world.restart()
    assert world.fleet.nodes[N1].cordon is not None
    assert world.count("node_maintenance_begun") == 1
    world.advance(3 * HOUR)
    node = world.fleet.nodes[N1]
    assert (node.cordon, node.drain, node.maintenance) == (None, None, None)


def test_two_that_fall_together_are_one(theatre: NewTheatre) -> None:
    later = Timetable(time_zone="UTC", from_at_ms=2 * HOUR + 30 * MINUTE, to_at_ms=4 * HOUR)
    world = planned(theatre, a_plan(), a_plan(name="disks", timetable=later))
    world.advance(3 * HOUR + MINUTE)
    assert not world.fleet.nodes[N1].takes_work
    world.advance(4 * HOUR)
    assert world.fleet.nodes[N1].takes_work


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"node_ids": ()}, ""),
        ({"pools": ("nowhere",)}, ".pools[0]"),
        ({"timetable": Timetable(time_zone="Atlantis", windows=())}, ".time_zone"),
        ({"timetable": Timetable(time_zone="UTC", from_at_ms=1)}, ""),
        ({"timetable": Timetable(time_zone="UTC", from_at_ms=2, to_at_ms=1)}, ""),
        ({"lead_ms": -1}, ".lead_ms"),
    ],
)
def test_a_plan_that_makes_no_sense_is_refused(changes: dict[str, Any], path: str) -> None:
    world = Theatre(own_pool())
    answer = world.configure(own_pool(), maintenance=(a_plan(**changes),), time_zones=(UTC,))
    assert isinstance(answer, Refused)
    assert [each.path for each in answer.problems] == [f"settings.maintenance[0]{path}"]
