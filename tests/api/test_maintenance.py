"""Maintenance and consolidation as the API and the command line show them."""

from __future__ import annotations

from hostler.api.convert import nodes as views
from hostler.api.convert.maintenance import maintenance
from hostler.cli.output import table
from hostler.cli.tables import MAINTENANCE_COLUMNS, node_state
from hostler.model.reason import Reason
from hostler.testing.builders import a_job
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
