"""Trials of trials/placement.md 8.4 about drains: what was reported elsewhere, tried on ours.

B41, B44 and B53 are in test_leaving.py. B49 does not apply: a machine is ended by its id
or by the label of its node, never by making a group smaller (each provider's conformance).
"""

from hostler.base.ids import NodeId
from hostler.core.inputs import (
    AcquireLease,
    CordonNode,
    DrainNode,
    ReleaseLease,
    UncordonNode,
)
from hostler.model.allocation import AllocationPhase, EndCause, Ended
from hostler.model.lease import LeaseOutcome, LeasePhase
from hostler.model.node import NodePhase
from hostler.testing.builders import a_fixed_tier, a_job, a_pool, an_elastic_tier
from tests.core.nodes.conftest import NewStable
from tests.core.nodes.stable import a_launched_node, an_own_node, an_own_pool
from tests.core.nodes.test_draining import MINUTE_MS, drain
from tests.core.placing.conftest import NewTheatre, theatre
from tests.core.placing.test_services import a_service
from tests.core.placing.theatre import Theatre, own_pool

__all__ = ["theatre"]


def test_b040_a_machine_ends_only_when_its_agent_says_that_nothing_is_left(
    stable: NewStable,
) -> None:
    """B40: 25 minutes left; drain and "delete when drained". No deletion before it is empty."""
    world = stable(a_pool(tiers=(an_elastic_tier(),)), a_launched_node())
    old = world.run_allocation(world.place())
    drain(world, old.node_id, deadline_ms=MINUTE_MS, is_forced=True, then_retire=True)
    world.advance(25 * MINUTE_MS)
    assert world.fleet.allocations[old.allocation_id].phase is AllocationPhase.STOPPING
    assert f"{old.node_id}/stop/1" not in world.commands("stop_machine")
    assert "node_drained" not in world.events()
    world.report(old, "ended", ended=Ended(cause=EndCause.STOPPED))
    assert world.events().count("node_drained") == 1
    assert f"{old.node_id}/stop/1" in world.commands("stop_machine")


def test_b043_services_are_back_everywhere_whenever_a_drain_is_called_off(
    theatre: NewTheatre,
) -> None:
    """B43: drain and undo every node in turn, 50 rounds: services on all nodes each time."""
    nodes = [f"n-{900001 + number}" for number in range(3)]
    world = theatre(own_pool(), *(an_own_node(each) for each in nodes))
    world.configure(own_pool(), services=(a_service(),))
    world.become_ready()
    for _ in range(50):
        for node_id in nodes:
            world.drain(node_id)
            world.finish_stops()
            world.ask(UncordonNode, node_id=node_id)
            world.become_ready()
            assert served(world) == nodes


def served(world: Theatre) -> list[str]:
    """Return the nodes on which a copy of the service is ready."""
    rows = world.fleet.allocations.in_order()
    return sorted(each.node_id for each in rows if each.phase is AllocationPhase.READY)


def test_b046_nothing_is_placed_where_a_cordon_comes_with_the_request(theatre: NewTheatre) -> None:
    """B46: cordon a node between decide and commit of 20 jobs: none goes there."""
    world = theatre(own_pool(), an_own_node("n-900001"), an_own_node("n-900002"))
    jobs = [world.submission(f"b{number}", a_job(capacity=1)) for number in range(20)]
    close = CordonNode(request_id="c", principal="ann", node_id=NodeId("n-900001"))
    world.run(*jobs[:10], close, *jobs[10:])
    assert set(world.places().values()) == {"n-900002"}
    assert len(world.places()) == 10, "as many as there is room for"


def test_b047_no_lease_is_given_on_a_machine_that_goes(stable: NewStable) -> None:
    """B47: lease at every point of the reaper's path: refused, or the machine is kept."""
    idle_ms = 10_000
    for offset_ms in (-1, 0, 1):
        node = a_launched_node(idle_since_at_ms=0)
        world = stable(a_pool(tiers=(an_elastic_tier(),), idle_ms=idle_ms), node)
        request = AcquireLease(request_id="r", principal="ann", pool="p", timeout_ms=MINUTE_MS)
        world.advance(idle_ms + min(offset_ms, 0) - 1)
        if offset_ms > 0:
            world.advance(idle_ms)
        world.run(request, at_ms=idle_ms + offset_ms)
        (lease,) = world.fleet.leases.in_order()
        if lease.phase is LeasePhase.HELD:
            assert world.node().retire_reason is None
            assert not world.commands("stop_machine")
        else:
            assert world.node().phase is NodePhase.STOPPING
        assert (lease.phase is LeasePhase.HELD) is (offset_ms <= 0)


def test_b050_what_leaves_two_nodes_at_once_goes_to_neither(stable: NewStable) -> None:
    """B50: two nodes stop together, each the other's only fallback: work waits with its reason."""
    world = stable(an_own_pool(), an_own_node("n-1"), an_own_node("n-2"))
    first = world.run_allocation(world.place("a", a_job(capacity=6, can_overlap=True)))
    second = world.run_allocation(world.place("b", a_job(capacity=6, can_overlap=True)))
    assert {first.node_id, second.node_id} == {"n-1", "n-2"}
    world.run(
        *(
            DrainNode(
                request_id=each,
                principal="ann",
                node_id=NodeId(each),
                deadline_ms=10 * MINUTE_MS,
            )
            for each in (first.node_id, second.node_id)
        )
    )
    world.advance(5 * MINUTE_MS)
    for each in (first, second):
        assert world.fleet.allocations[each.allocation_id].phase is AllocationPhase.READY
        assert world.fleet.notes[each.allocation_id]["drain"].reason == "no_capacity"
    assert sum(each.is_live for each in world.fleet.allocations.in_order()) == 2


def test_b052_a_second_wave_costs_nobody_of_the_first_its_machine(stable: NewStable) -> None:
    """B52: 40 runs, then 40 more while scale-in runs: no machine with a live lease is ended."""
    tier = an_elastic_tier(node_count_max=80)
    world = stable(
        a_pool(tiers=(a_fixed_tier(), tier), idle_ms=MINUTE_MS, launch_count_max=80),
    )
    first = [world.acquire(timeout_ms=10 * MINUTE_MS) for _ in range(40)]
    world.boot()
    for lease in first[::2]:
        world.ask(ReleaseLease, lease_id=lease.lease_id, outcome=LeaseOutcome.HEALTHY)
    world.advance(world.now_ms + MINUTE_MS - 1)
    second = [world.acquire(timeout_ms=10 * MINUTE_MS) for _ in range(40)]
    world.advance(world.now_ms + 1)
    held = {
        world.fleet.leases[each.lease_id].node_id
        for each in (*first[1::2], *second)
        if world.fleet.leases[each.lease_id].phase is LeasePhase.HELD
    }
    assert len(held) >= 20
    going = {node.node_id for node in world.in_phase(NodePhase.STOPPING)}
    assert not going & held
    world.boot()
