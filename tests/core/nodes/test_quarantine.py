"""spec/placement.md 6.8: rejections, and what becomes of nodes that refuse or come and go.

Not here: S-098, S-105, S-106 and S-108, which are in `tests/core/placing/test_changes.py` and
`test_placement.py`, as they are about one replica and not about nodes.
"""

from typing import Any

import pytest

from hostler.base.ids import NodeId
from hostler.core.inputs import UncordonNode
from hostler.model.node import Quarantine, QuarantineCause
from hostler.model.settings import QuarantineLimits
from hostler.testing.builders import a_job
from tests.core.nodes.conftest import NewStable
from tests.core.nodes.stable import Stable, an_own_node, an_own_pool

N1, N2 = "n-1", "n-2"


def one_node(stable: NewStable, count: int = 1, **settings: Any) -> Stable:
    """Return a world of one node, or of several of which only the first may be used at first."""
    nodes = [an_own_node(f"n-{n + 1}") for n in range(count)]
    return stable(an_own_pool(), *nodes, **settings)


def refuse(world: Stable, at_ms: int, name: str = "") -> str:
    """Let a new job be refused by the node that it is placed on; return the node."""
    world.advance(at_ms)
    name = name or f"b{at_ms}"
    placed = world.place(name, a_job(capacity=1))
    world.fail(f"{placed.allocation_id}/start/{placed.epoch}", "refused", "busy")
    return placed.node_id


def quarantine(world: Stable, node_id: str = N1) -> Quarantine | None:
    """Return the quarantine of a node, if it is in one."""
    found = world.node(node_id).quarantine
    return None if found is None or found.is_over else found


def test_three_refusals_within_the_window_keep_everybody_off(stable: NewStable) -> None:
    """3.17: rejections at 0, 1, 2 s (window 5, count 3): unhealthy at 2."""
    world = one_node(stable)
    for at_ms in (0, 1_000, 2_000):
        assert quarantine(world) is None
        refuse(world, at_ms)
    found = quarantine(world)
    assert found is not None
    assert (found.cause, found.until_at_ms) == (QuarantineCause.REJECTIONS, 32_000)
    assert world.events().count("node_quarantined") == 1
    world.submit("new", a_job(capacity=1))
    assert world.allocation_of("new/main/0") is None, "a first placement too"


@pytest.mark.parametrize("instants", [(0, 3_000, 6_000), (0, 2_000, 5_000)])
def test_s_100_refusals_far_apart_do_not(stable: NewStable, instants: tuple[int, ...]) -> None:
    """S-100: rejections at 0, 3, 6 s, then never unhealthy; at 0, 2, 5 s neither."""
    world = one_node(stable)
    for at_ms in instants:
        refuse(world, at_ms)
    assert quarantine(world) is None


def test_s_101_the_settings_say_how_many(stable: NewStable) -> None:
    """S-101: count 1: the first rejection escalates."""
    limits = QuarantineLimits(rejection_count_max=1, rejection_window_ms=10_000)
    world = one_node(stable, quarantine=limits)
    refuse(world, 0)
    assert quarantine(world) is not None


def test_s_102_a_clean_inventory_does_not_end_it_but_one_accepted_job_does(
    stable: NewStable,
) -> None:
    """S-102: an unhealthy node and a clean inventory: it stays out until its probation is over."""
    world = one_node(stable, quarantine=QuarantineLimits(rejection_count_max=1))
    refuse(world, 0)
    world.hello(N1)
    for name in ("x", "y"):
        world.submit(name, a_job(capacity=1))
    assert world.node(N1).allocation_count == 0
    world.advance(29_999)
    assert world.node(N1).allocation_count == 0
    world.advance(30_000)
    assert world.node(N1).allocation_count == 1, "one on trial"
    trial = world.fleet.index.allocations_by_node.keys(N1)[0]
    world.run_allocation(world.fleet.allocations[trial])
    assert quarantine(world) is None
    assert world.events().count("node_trusted") == 1
    assert world.node(N1).allocation_count > 1


def test_who_refuses_on_trial_is_left_alone_for_twice_as_long(stable: NewStable) -> None:
    limits = QuarantineLimits(rejection_count_max=1, pause_ms_max=100_000)
    world = one_node(stable, quarantine=limits)
    refuse(world, 0)
    pauses = []
    for number in range(3):
        found = quarantine(world)
        assert found is not None
        pauses.append(found.until_at_ms - found.since_at_ms)
        world.submit(f"t{number}", a_job(capacity=1))
        world.advance(found.until_at_ms)
        trial = world.node(N1).quarantine
        assert trial is not None
        assert trial.trial_id is not None
        world.fail(world.commands("start_allocation")[0], "refused", "busy")
    assert pauses == [30_000, 60_000, 100_000]


def test_an_operator_may_trust_it_now(stable: NewStable) -> None:
    world = one_node(stable, quarantine=QuarantineLimits(rejection_count_max=1))
    refuse(world, 0)
    world.submit("x", a_job(capacity=1))
    world.ask(UncordonNode, node_id=NodeId(N1))
    assert quarantine(world) is None
    assert world.allocation_of("x/main/0") is not None


def test_a_poison_job_does_not_take_the_whole_pool(stable: NewStable) -> None:
    world = one_node(stable, 4, quarantine=QuarantineLimits(rejection_count_max=1))
    for number in range(8):
        refuse(world, number * 10)
    nodes = [quarantine(world, f"n-{n + 1}") for n in range(4)]
    assert sum(each is not None for each in nodes) == 2
    notes = [world.fleet.notes.get(f"n-{n + 1}", {}) for n in range(4)]
    assert "quarantine_brake" in [each.reason for n in notes for each in n.values()]


def test_s_104_refusals_do_not_break_a_bundle(stable: NewStable) -> None:
    """S-104: seven rejections of a silver job within an hour: the bundle is not broken."""
    world = one_node(stable, quarantine=QuarantineLimits(pause_ms=0))
    world.submit("b", a_job(capacity=1))
    for _ in range(7):
        placed = world.allocation_of("b/main/0")
        assert placed is not None
        world.fail(f"{placed.allocation_id}/start/{placed.epoch}", "refused", "busy")
        world.advance(world.now_ms + 120_000)
    replica = world.fleet.replicas["b/main/0"]
    assert (replica.phase, replica.restart_at_ms) == ("placed", ())


def test_a_node_that_comes_and_goes_is_left_alone_for_longer_each_time(stable: NewStable) -> None:
    """G-153: growing quarantine per node, cleared by a stable period."""
    world = one_node(stable)
    untils = []
    for _ in range(3):
        world.silence(N1)
        world.advance(world.now_ms + 60_000)
        lost_at_ms = world.now_ms
        world.hello(N1)
        found = quarantine(world)
        assert found is not None
        untils.append(found.until_at_ms - lost_at_ms)
        world.advance(world.now_ms + 200_000)
        found = quarantine(world)
        if found is not None:
            world.submit(f"t{lost_at_ms}", a_job(capacity=1))
            trial = world.node(N1).quarantine
            assert trial is not None
            assert trial.trial_id is not None
            world.run_allocation(world.fleet.allocations[trial.trial_id])
    assert untils == [30_000, 60_000, 120_000]
    world.advance(world.now_ms + 3_600_000)
    assert world.node(N1).quarantine is None
