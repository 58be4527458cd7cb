"""Maintenance that operators add and remove, besides what is configured (issue 5)."""

from __future__ import annotations

from typing import Any

import pytest

from hostler.core.inputs import FullScan
from hostler.core.maintenance import ADDED_COUNT_MAX
from hostler.core.maintenance_inputs import AddMaintenance, RemoveMaintenance
from hostler.core.replies import Accepted, Refused
from hostler.model.calendar import Weekday, Window
from hostler.model.maintenance import MaintenancePlan
from hostler.model.timetable import Timetable
from hostler.testing.builders import a_job, a_pool, an_elastic_tier
from tests.core.mirror import reloaded
from tests.core.nodes.test_consolidation import settle
from tests.core.nodes.test_maintenance import EAST, HOUR, MINUTE, UTC, a_plan
from tests.core.placing.conftest import NewTheatre, theatre
from tests.core.placing.theatre import N1, N2, Theatre, n1, n2, own_pool

__all__ = ["theatre"]


def a_world(new: NewTheatre, *plans: MaintenancePlan) -> Theatre:
    """Return two nodes, on the first of which a replica runs, with these plans configured."""
    world = new(own_pool(), n1(), n2(), UTC, maintenance=plans)
    world.submit("b1", a_job(can_overlap=True))
    settle(world)
    assert world.place() == N1
    return world


def add(world: Theatre, **changes: Any) -> Accepted | Refused:
    """Add a plan about the first node, from two to three."""
    return world.ask(AddMaintenance, plan=a_plan(**changes), time_zones=(UTC,))


def test_a_node_is_empty_for_what_was_added_and_it_is_forgotten_when_it_is_over(
    theatre: NewTheatre,
) -> None:
    world = a_world(theatre)
    assert isinstance(add(world, reason="fan"), Accepted)
    record = world.fleet.maintenances["kernel"]
    assert record.added is not None
    assert (record.added.by, record.from_at_ms) == ("tester", 2 * HOUR)
    world.advance(2 * HOUR - 15 * MINUTE)
    settle(world)
    assert world.place() == N2
    assert not world.fleet.nodes[N1].takes_work
    world.advance(3 * HOUR)
    assert world.fleet.nodes[N1].takes_work
    assert "kernel" not in world.fleet.maintenances
    world.check_calm()
    assert world.count("maintenance_added") == 1


def test_it_is_there_after_a_restart_and_after_another_configuration(theatre: NewTheatre) -> None:
    world = a_world(theatre)
    add(world)
    world.configure(own_pool(), heartbeat_ms=4_000)
    assert world.fleet.maintenances["kernel"].added is not None
    again = reloaded(world.fleet)
    assert again.maintenances["kernel"] == world.fleet.maintenances["kernel"]


def test_what_is_removed_while_it_holds_opens_its_nodes(theatre: NewTheatre) -> None:
    world = a_world(theatre)
    add(world)
    world.advance(2 * HOUR + MINUTE)
    assert not world.fleet.nodes[N1].takes_work
    assert isinstance(world.ask(RemoveMaintenance, maintenance_name="kernel"), Accepted)
    node = world.fleet.nodes[N1]
    assert (node.takes_work, node.cordon, node.drain, node.maintenance) == (True, None, None, None)
    assert len(world.fleet.maintenances) == 0
    world.check_calm()


def test_a_machine_launched_meanwhile_is_meant_by_none_but_what_is_said_of_it(
    theatre: NewTheatre,
) -> None:
    """Simulator seed 128: closed for the second one, it was taken for an old one of the first."""
    tier = an_elastic_tier(boot_ms=HOUR)
    world = theatre(a_pool(tiers=(tier,), warm_count=1), UTC, maintenance=(of_all(),))
    world.advance(2 * HOUR + MINUTE)
    settle(world)
    (node,) = [each for each in world.launched() if each.takes_work]
    ends_at_ms = 2 * HOUR + 10 * MINUTE
    timetable = Timetable(time_zone="UTC", from_at_ms=2 * HOUR, to_at_ms=ends_at_ms)
    add(world, name="fan", node_ids=(node.node_id,), timetable=timetable)
    maintained = world.fleet.nodes[node.node_id].maintenance
    assert maintained is not None
    assert (maintained.name, maintained.to_at_ms) == ("fan", ends_at_ms)
    world.check_calm()
    world.advance(ends_at_ms)
    assert world.fleet.nodes[node.node_id].takes_work


def test_other_limits_of_leases_do_not_change_what_a_machine_is_closed_for(
    theatre: NewTheatre,
) -> None:
    """What was closed for two stays closed for both, also if it would be too new for one now."""
    tier = an_elastic_tier(boot_ms=HOUR)
    pool = a_pool(tiers=(tier,), node_count_min=1)
    world = theatre(pool, UTC, maintenance=(of_all(),))
    settle(world)
    (node,) = world.launched()
    world.advance(2 * HOUR - 15 * MINUTE)
    world.configure(a_pool(tiers=(tier,), node_count_min=1, lease_ms_max=3 * HOUR))
    timetable = Timetable(time_zone="UTC", from_at_ms=HOUR, to_at_ms=4 * HOUR)
    add(world, name="fan", node_ids=(node.node_id,), timetable=timetable)
    world.check_calm()
    maintained = world.fleet.nodes[node.node_id].maintenance
    assert maintained is not None
    assert maintained.to_at_ms == 4 * HOUR
    assert not world.fleet.nodes[node.node_id].takes_work


def of_all() -> MaintenancePlan:
    """Return a plan about all nodes of the pool."""
    return a_plan(name="all", node_ids=(), pools=("p",))


def test_windows_that_recur_stay_until_they_are_removed(theatre: NewTheatre) -> None:
    world = a_world(theatre)
    daily = Window(time_zone="UTC", days=tuple(Weekday), from_ms=2 * HOUR, to_ms=3 * HOUR)
    add(world, timetable=Timetable(time_zone="UTC", windows=(daily,)))
    world.advance(3 * HOUR + 1)
    assert world.fleet.maintenances["kernel"].from_at_ms == 26 * HOUR
    world.run(FullScan())
    assert "kernel" in world.fleet.maintenances


def test_the_same_once_more_changes_nothing(theatre: NewTheatre) -> None:
    world = a_world(theatre)
    add(world)
    again = add(world)
    assert isinstance(again, Accepted)
    assert again.is_repeat


@pytest.mark.parametrize(
    ("changes", "code", "paths"),
    [
        ({"name": "old"}, "maintenance_exists", []),
        ({"name": "added", "reason": "other"}, "maintenance_exists", []),
        (
            {"pools": ("nowhere",), "lead_ms": -1},
            "maintenance_invalid",
            ["pools[0]", "lead_ms"],
        ),
        ({"node_ids": ()}, "maintenance_invalid", [""]),
        (
            {"timetable": Timetable(time_zone="Mars", from_at_ms=1, to_at_ms=2)},
            "maintenance_invalid",
            ["time_zone"],
        ),
        (
            {"timetable": Timetable(time_zone="UTC", from_at_ms=1, to_at_ms=MINUTE)},
            "maintenance_over",
            [],
        ),
    ],
)
def test_what_cannot_be_added_is_refused_with_all_that_is_wrong(
    theatre: NewTheatre, changes: dict[str, Any], code: str, paths: list[str]
) -> None:
    world = a_world(theatre, a_plan(name="old"))
    add(world, name="added")
    world.advance(HOUR)
    answer = add(world, **{"name": "new", **changes})
    assert isinstance(answer, Refused)
    assert (answer.code, [each.path for each in answer.problems]) == (code, paths)
    assert sorted(world.fleet.maintenances.rows) == ["added", "old"]


def test_what_is_configured_is_removed_there_and_what_is_not_there_not_at_all(
    theatre: NewTheatre,
) -> None:
    world = a_world(theatre, a_plan(name="old"))
    told = [world.ask(RemoveMaintenance, maintenance_name=name) for name in ("old", "other")]
    assert [each.code for each in told if isinstance(each, Refused)] == [
        "maintenance_configured",
        "maintenance_not_found",
    ]


def test_a_configuration_does_not_take_over_what_an_operator_has_added(
    theatre: NewTheatre,
) -> None:
    world = a_world(theatre)
    add(world)
    answer = world.configure(own_pool(), time_zones=(UTC, EAST), maintenance=(a_plan(),))
    assert isinstance(answer, Refused)
    assert answer.problems[0].path == "settings.maintenance[0].name"
    assert "hostler maintenance remove kernel" in answer.problems[0].message


def test_only_so_many_can_be_added(theatre: NewTheatre) -> None:
    world = a_world(theatre)
    for number in range(ADDED_COUNT_MAX):
        record = world.fleet.maintenances
        if number == 0:
            add(world, name="m")
        else:
            copy = record["m"]
            record.rows[f"m{number}"] = type(copy)(
                name=f"m{number}", plan=copy.plan, added=copy.added, since_at_ms=0
            )
    answer = add(world, name="last")
    assert isinstance(answer, Refused)
    assert answer.code == "maintenance_too_many"
