"""Sizing: floors of what is idle, spares, what waits in line, and what may be let go."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hostler.core.inputs import AgentSaidHello, DeleteBundle, ReleaseLease
from hostler.core.replies import Accepted
from hostler.model.lease import LeasePhase
from hostler.model.node import NodePhase, RetireReason
from hostler.model.pool import Band
from hostler.model.shape import Capability, CapabilityRequest, Requirement, Shape
from hostler.testing.builders import a_fixed_tier, a_pool, an_elastic_tier
from tests.core.nodes.conftest import NewStable
from tests.core.nodes.stable import Stable, a_launched_node, an_own_node, an_own_pool

IDLE_MS = 300_000
GPU = Requirement(capabilities=(CapabilityRequest(name="gpu"),))
BOTH = (a_fixed_tier(), an_elastic_tier())


def release(world: Stable, lease_id: str) -> None:
    """End a lease well."""
    assert isinstance(world.ask(ReleaseLease, lease_id=lease_id), Accepted)


# -- the warm floor ----------------------------------------------------------------------------


def test_the_warm_floor_is_what_is_idle_whatever_is_held(stable: NewStable) -> None:
    world = stable(a_pool(warm_count=2))
    world.boot()
    world.acquire()
    world.acquire()
    world.boot()
    assert len([n for n in world.in_phase(NodePhase.READY) if not n.is_held]) == 2
    assert len(world.fleet.nodes) == 4


def test_a_released_node_counts_as_warm_again(stable: NewStable) -> None:
    world = stable(a_pool(warm_count=1))
    world.boot()
    lease = world.acquire()
    world.boot()
    release(world, lease.lease_id)
    assert len(world.in_phase(NodePhase.READY)) == 2
    assert not world.commands("launch_machine")


def test_idle_nodes_go_after_a_while_and_never_below_the_floor(stable: NewStable) -> None:
    nodes = [a_launched_node(f"n-{n}") for n in range(3)]
    world = stable(a_pool(warm_count=1, launch_count_max=1), *nodes)
    world.advance(IDLE_MS - 1)
    assert len(world.in_phase(NodePhase.READY)) == 3
    world.advance(IDLE_MS)
    gone = world.in_phase(NodePhase.STOPPING)
    assert [node.node_id for node in gone] == ["n-0", "n-1"]
    assert {node.retire_reason for node in gone} == {RetireReason.IDLE}
    world.advance(10 * IDLE_MS)
    assert [node.node_id for node in world.in_phase(NodePhase.READY)] == ["n-2"]
    assert not world.commands("launch_machine")


def test_own_machines_are_never_let_go_for_standing_idle(stable: NewStable) -> None:
    world = stable(an_own_pool(), an_own_node())
    world.advance(10 * IDLE_MS)
    assert world.node().phase is NodePhase.READY


def test_one_loan_within_the_time_keeps_a_node(stable: NewStable) -> None:
    world = stable(a_pool(), a_launched_node())
    world.advance(IDLE_MS - 1_000)
    release(world, world.acquire().lease_id)
    world.advance(IDLE_MS + 1_000)
    assert world.node().phase is NodePhase.READY
    world.advance(2 * IDLE_MS)
    assert world.node().phase is NodePhase.STOPPING


# -- the line ----------------------------------------------------------------------------------


def test_who_waits_gets_machines_and_no_more_than_they_can_fill(stable: NewStable) -> None:
    world = stable(a_pool(slot_count=2))
    for _ in range(5):
        world.acquire(timeout_ms=900_000)
    assert len(world.commands("launch_machine")) == 3
    world.boot()
    assert len(world.fleet.index.leases_held.keys("p")) == 5
    assert not world.commands("launch_machine")


def test_a_machine_on_its_way_serves_the_line_before_the_floor(stable: NewStable) -> None:
    world = stable(a_pool(warm_count=1))
    world.acquire(timeout_ms=900_000)
    assert len(world.commands("launch_machine")) == 2
    world.boot()
    assert len([n for n in world.in_phase(NodePhase.READY) if not n.is_held]) == 1


def test_who_needs_more_gets_the_cheapest_offer_that_has_it(stable: NewStable) -> None:
    world = stable(a_pool())
    world.acquire(timeout_ms=900_000, requirement=GPU)
    assert [node.offer for node in world.in_phase(NodePhase.REQUESTED)] == ["large"]


def test_an_offer_that_does_not_hold_its_promise_is_bought_once(stable: NewStable) -> None:
    world = stable(a_pool(tiers=(an_elastic_tier(offers=an_elastic_tier().offers[1:]),)))
    lease = world.acquire(timeout_ms=200_000, requirement=GPU)
    (node,) = world.launch()
    less = Shape(capacity=100, capabilities=(Capability(name="gpu", count=0),))
    world.run(AgentSaidHello(node_id=node.node_id, incarnation=1, shape=less))
    assert world.node(node.node_id).phase is NodePhase.READY
    assert not world.commands("launch_machine")
    world.advance(200_000)
    assert world.fleet.leases[lease.lease_id].phase is LeasePhase.REFUSED


def test_a_line_that_left_asks_for_nothing_more(stable: NewStable) -> None:
    world = stable(a_pool(launch_count_max=1))
    first = world.acquire(timeout_ms=900_000)
    second = world.acquire(timeout_ms=900_000)
    release(world, first.lease_id)
    release(world, second.lease_id)
    world.boot()
    assert len(world.fleet.nodes) == 1


# -- spares ------------------------------------------------------------------------------------


def test_idle_own_machines_become_spares_before_any_is_bought(stable: NewStable) -> None:
    world = stable(
        a_pool(tiers=BOTH, spare_count=1, spare_band=Band.GOLD),
        a_launched_node("n-1"),
        an_own_node("n-2"),
    )
    assert (world.node("n-1").is_spare, world.node("n-2").is_spare) == (False, True)
    assert world.node("n-2").spare_band is Band.GOLD
    assert not world.commands("launch_machine")


def test_a_missing_spare_is_bought(stable: NewStable) -> None:
    world = stable(a_pool(spare_count=2))
    assert [node.is_spare for node in world.in_phase(NodePhase.REQUESTED)] == [True, True]
    world.boot()
    assert world.acquire(timeout_ms=900_000).phase is LeasePhase.WAITING
    world.boot()
    assert [node.is_spare for node in world.fleet.nodes.in_order()] == [True, True, False]


def test_the_warm_floor_is_not_robbed_for_spares(stable: NewStable) -> None:
    world = stable(an_own_pool(warm_count=1, spare_count=1), an_own_node())
    assert not world.node().is_spare
    world.join()
    world.hello("n-000001")
    assert [node.is_spare for node in world.fleet.nodes.in_order()] == [True, False]


def test_a_spare_that_takes_no_work_is_replaced_and_one_too_many_is_released(
    stable: NewStable,
) -> None:
    world = stable(an_own_pool(spare_count=1), an_own_node("n-1", idle_since_at_ms=0))
    assert world.node("n-1").is_spare
    world.silence("n-1")
    world.advance(15_000)
    world.join()
    world.hello("n-000001")
    assert world.node("n-000001").is_spare
    world.contact("n-1")
    assert len([n for n in world.fleet.nodes.in_order() if n.is_spare]) == 1


def test_a_spare_that_recovery_used_is_refilled(stable: NewStable) -> None:
    world = stable(
        a_pool(tiers=BOTH, spare_count=1),
        an_own_node("n-1"),
        an_own_node("n-2"),
    )
    spare = next(n for n in world.fleet.nodes.in_order() if n.is_spare)
    allocation = world.run_allocation(world.place())
    world.silence(allocation.node_id)
    world.advance(60_000)
    moved = world.allocation_of("b/main/0")
    assert moved is not None
    assert moved.node_id == spare.node_id
    assert not world.node(spare.node_id).is_spare
    assert [node.is_spare for node in world.in_phase(NodePhase.REQUESTED)] == [True]


def test_spares_follow_a_change_of_their_number_and_band(stable: NewStable) -> None:
    world = stable(an_own_pool(spare_count=2), an_own_node("n-1"), an_own_node("n-2"))
    world.configure(an_own_pool(spare_count=1, spare_band=Band.GOLD))
    spares = [node for node in world.fleet.nodes.in_order() if node.is_spare]
    assert [node.spare_band for node in spares] == [Band.GOLD]


# -- configurations ----------------------------------------------------------------------------


def test_a_disabled_pool_lets_its_machines_go_when_they_are_empty(stable: NewStable) -> None:
    world = stable(a_pool(), a_launched_node("n-1"), a_launched_node("n-2"))
    lease = world.acquire()
    world.configure()
    assert sorted(world.phases().values()) == ["ready", "stopping"]
    release(world, lease.lease_id)
    assert set(world.phases().values()) == {"stopping"}
    world.bury()
    assert "p" not in world.fleet.pools


def test_a_tier_that_shrinks_lets_idle_machines_go(stable: NewStable) -> None:
    world = stable(a_pool(), *(a_launched_node(f"n-{n}") for n in range(3)))
    held = world.acquire().node_id
    world.configure(a_pool(tiers=(an_elastic_tier(node_count_max=1),)))
    assert [node.node_id for node in world.in_phase(NodePhase.READY)] == [held]


def test_nodes_of_a_tier_that_is_no_more_go_when_they_are_empty(stable: NewStable) -> None:
    world = stable(a_pool(), a_launched_node())
    world.configure(a_pool(tiers=(an_elastic_tier("other"),)))
    assert world.node().retire_reason is RetireReason.SURPLUS


def test_slots_follow_the_pool_as_far_as_leases_allow(stable: NewStable) -> None:
    world = stable(an_own_pool(slot_count=3), an_own_node(slot_count=3))
    leases = [world.acquire() for _ in range(2)]
    world.configure(an_own_pool(slot_count=1))
    assert world.node().slot_count == 2
    release(world, leases[0].lease_id)
    assert world.node().slot_count == 1
    world.configure(an_own_pool(slot_count=4))
    assert world.node().slot_count == 4


# -- no machine is bought to be let go ---------------------------------------------------------


@pytest.mark.slow
@settings(max_examples=25)
@given(data=st.data())
def test_after_a_quiet_time_nothing_more_is_launched(data: st.DataObject) -> None:
    """Whatever the settings and the load were, a fleet that is left alone comes to rest."""
    draw = data.draw
    elastic = an_elastic_tier(node_count_max=draw(st.integers(1, 6)), boot_ms=3_600_000)
    tiers = (a_fixed_tier(), elastic)
    pool = a_pool(
        tiers=tiers,
        warm_count=draw(st.integers(0, 3)),
        spare_count=draw(st.integers(0, 2)),
        slot_count=draw(st.integers(1, 2)),
        idle_ms=draw(st.sampled_from([0, 1_000, 300_000])),
        launch_count_max=draw(st.integers(1, 3)),
        use_count_max=draw(st.sampled_from([None, 1, 2])),
    )
    own = [an_own_node(f"n-90000{n}") for n in range(draw(st.integers(0, 2)))]
    world = Stable(pool, *own)
    leases = []
    for _ in range(draw(st.integers(0, 6))):
        wanted = draw(st.sampled_from([Requirement(), GPU, Requirement(capacity=8)]))
        leases.append(world.acquire(timeout_ms=60_000, requirement=wanted))
        if draw(st.booleans()):
            world.boot()
    if draw(st.booleans()):
        world.submit()
    for lease in leases:
        release(world, lease.lease_id)
    if "b" in world.fleet.bundles:
        allocation = world.allocation_of("b/main/0")
        world.ask(DeleteBundle, bundle_id="b")
        if allocation is not None and f"{allocation.allocation_id}/stop/1" in world.fleet.commands:
            world.succeed(f"{allocation.allocation_id}/stop/1")
    for _ in range(6):
        world.boot()
        world.bury()
        world.advance(world.now_ms + 301_000)
    minted = world.fleet.counters.get("n")
    for _ in range(2):
        world.boot()
        world.bury()
        world.advance(world.now_ms + 301_000)
    assert world.fleet.counters.get("n") == minted
    assert not world.commands("launch_machine")
    world.check_calm()
