"""Maintenance and consolidation as the API and the command line show them."""

from __future__ import annotations

from typing import Any, Final

import pytest

from hostler.api.convert import nodes as views
from hostler.api.convert.maintenance import maintenance
from hostler.cli.output import table
from hostler.cli.tables import MAINTENANCE_COLUMNS, node_state
from hostler.client import ClientError
from hostler.model.reason import Reason
from hostler.testing.builders import a_job
from hostler.wire.documents import MaintenanceDocument, check_value
from tests.api.lab import Lab
from tests.core.nodes.test_consolidation import LITTLE, a_saving_pool, half_empty, node_of
from tests.core.nodes.test_maintenance import HOUR, MINUTE, ONCE, UTC, a_plan
from tests.core.placing.theatre import N1, Theatre, n1, n2, own_pool


def test_a_plan_is_shown_with_its_nodes_at_each_stage() -> None:
    over = a_plan(name="past", timetable=ONCE)
    world = Theatre(own_pool(lease_ms_max=HOUR), n1(), n2(), UTC, maintenance=(over,))
    world.submit("b1", a_job(can_overlap=True))
    world.become_ready()
    seen: list[tuple[str, list[str], str]] = []
    for at_ms in (0, HOUR, 2 * HOUR - 15 * MINUTE, 2 * HOUR, 3 * HOUR):
        world.advance(at_ms)
        view = maintenance(world.fleet, world.fleet.maintenances["past"])
        node = views.node(world.fleet, world.fleet.nodes[N1], is_connected=True)
        seen.append((view.state, [each.state for each in view.nodes], node_state(node)))
    assert seen == [
        ("planned", [], "ready"),
        ("preparing", ["closing"], "ready closing"),
        ("preparing", ["emptying"], "ready cordoned maintenance draining"),
        ("under_way", ["emptying"], "ready cordoned maintenance draining"),
        ("over", [], "ready"),
    ]
    (row,) = table([view], MAINTENANCE_COLUMNS, now_ms=0)[1:]
    assert row.split()[:2] == ["past", "over"]


def test_a_node_says_why_its_machine_is_not_saved() -> None:
    world = half_empty(a_saving_pool(), can_overlap=False)
    node = views.node(world.fleet, node_of(world, LITTLE), is_connected=True)
    assert [(note.by, note.reason) for note in node.notes] == [
        ("consolidating", Reason.OVERLAP_FORBIDDEN)
    ]
    pool = views.pool(world.fleet, world.fleet.pools["p"])
    assert pool.consolidation is not None
    assert (pool.consolidation.node_id, pool.consolidation.move_count) == (None, 0)


PLAN: Final[dict[str, Any]] = {
    "name": "fan",
    "pools": ["studio"],
    "time_zone": "Europe/Berlin",
    "start": "2199-12-02T02:00",
    "stop": "2199-12-02T04:00",
    "reason": "a new fan",
}


async def test_a_maintenance_is_added_shown_and_removed_by_name(lab: Lab) -> None:
    async with lab.client() as client:
        document = check_value(PLAN, MaintenanceDocument).require()
        view = await client.add_maintenance(document)
        assert (view.name, view.state, view.from_local) == (
            "fan",
            "planned",
            "2199-12-02 02:00 CET",
        )
        assert view.added_by
        assert view.added_at_ms
        assert await client.add_maintenance(document) == view
        assert [each.name for each in await client.maintenance()] == ["fan"]
        (entry,) = [each for each in await client.audit() if each.action == "add_maintenance"]
        assert entry.about == {"maintenance": "fan"}
        assert (await client.remove_maintenance("fan")).name == "fan"
        assert await client.maintenance() == []
        with pytest.raises(ClientError) as missing:
            await client.remove_maintenance("fan")
        assert missing.value.status == 404


async def test_a_maintenance_with_errors_is_told_of_all_of_them(lab: Lab) -> None:
    bad = MaintenanceDocument(name="fan", time_zone="Europe/Bern", lead="soon", start="tomorrow")
    async with lab.client() as client:
        with pytest.raises(ClientError) as wrong:
            await client.add_maintenance(bad)
        assert wrong.value.status == 422
        assert {each.path for each in wrong.value.errors} >= {"start", "lead"}
        unknown = check_value({**PLAN, "time_zone": "Europe/Bern"}, MaintenanceDocument).require()
        with pytest.raises(ClientError) as nowhere:
            await client.add_maintenance(unknown)
        assert [each.path for each in nowhere.value.errors] == ["time_zone"]
