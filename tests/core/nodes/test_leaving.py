"""Leaving a node that is to be empty: elsewhere first where that may be, and never into nowhere."""

from hostler.base.ids import NodeId
from hostler.core.inputs import CordonNode, UncordonNode
from hostler.model import Allocation
from hostler.model.allocation import AllocationPhase, EndCause, Ended
from hostler.model.bundle import Fallback
from hostler.model.node import NodePhase
from hostler.model.pool import Band
from hostler.model.shape import Shape
from hostler.testing.builders import a_fixed_tier, a_job, a_pool, an_elastic_tier
from tests.core.nodes.conftest import NewStable
from tests.core.nodes.stable import Stable, a_launched_node, an_own_node, an_own_pool
from tests.core.nodes.test_draining import MINUTE_MS, drain


def live(world: Stable, replica_id: str) -> list[str]:
    """Return where the live copies of a replica are."""
    keys = world.fleet.index.allocations_by_replica.keys(replica_id)
    return sorted(world.fleet.allocations[key].node_id for key in keys)


def newest(world: Stable, replica_id: str) -> Allocation:
    """Return the latest copy of a replica."""
    keys = world.fleet.index.allocations_by_replica.keys(replica_id)
    return max((world.fleet.allocations[key] for key in keys), key=lambda each: each.epoch)


def note(world: Stable, allocation_id: str) -> str:
    """Return what an allocation waits for before it leaves."""
    return world.fleet.notes[allocation_id]["drain"].reason


def test_what_may_overlap_is_ready_elsewhere_before_it_stops(stable: NewStable) -> None:
    """B44: a drain does not take a service of one copy to zero."""
    world = stable(an_own_pool(), an_own_node("n-1"), an_own_node("n-2"))
    old = world.run_allocation(world.place("b", a_job(can_overlap=True)))
    drain(world, old.node_id)
    assert world.commands("stop_allocation") == []
    assert live(world, "b/main/0") == ["n-1", "n-2"]
    assert note(world, old.allocation_id) == "migrating"
    new = newest(world, "b/main/0")
    world.run_allocation(new)
    assert len(world.commands("stop_allocation")) == 1
    assert "node_drained" not in world.events()
    world.report(old, "ended", ended=Ended(cause=EndCause.STOPPED))
    assert world.events().count("node_drained") == 1
    assert world.fleet.replicas["b/main/0"].restart_at_ms == ()
    world.check_calm()


def test_b044_if_the_new_copy_never_warms_the_old_one_stays(stable: NewStable) -> None:
    world = stable(an_own_pool(), an_own_node("n-1"), an_own_node("n-2"))
    old = world.run_allocation(world.place("b", a_job(can_overlap=True)))
    drain(world, old.node_id, deadline_ms=MINUTE_MS)
    world.advance(30 * MINUTE_MS)
    assert world.fleet.allocations[old.allocation_id].phase is AllocationPhase.READY
    assert world.events().count("node_drain_overdue") == 1


def test_b041_what_finds_no_place_stays_and_says_what_it_needs(stable: NewStable) -> None:
    world = stable(an_own_pool(), an_own_node("n-1"), an_own_node("n-2"))
    old = world.run_allocation(world.place("b", a_job(capacity=8)))
    world.run_allocation(world.place("c", a_job(capacity=8)))
    drain(world, old.node_id)
    assert note(world, old.allocation_id) == "no_capacity"
    assert "1 capacity" in world.fleet.notes[old.allocation_id]["drain"].detail
    world.advance(10 * MINUTE_MS)
    assert world.fleet.allocations[old.allocation_id].phase is AllocationPhase.READY
    assert world.node(old.node_id).drain is not None
    world.ask_to_delete("c")
    world.succeed(world.commands("stop_allocation")[0])
    stopping = world.fleet.allocations[old.allocation_id]
    assert stopping.phase is AllocationPhase.STOPPING
    world.check_calm()


def test_b004_what_must_not_be_twice_is_stopped_first_and_keeps_its_next_room(
    stable: NewStable,
) -> None:
    world = stable(an_own_pool(), an_own_node("n-1"), an_own_node("n-2"))
    old = world.run_allocation(world.place("b", a_job(capacity=8)))
    drain(world, old.node_id)
    assert live(world, "b/main/0") == [old.node_id]
    assert world.events().count("replica_stopped_first") == 1
    world.submit("c", a_job(capacity=8, band=Band.GOLD))
    assert world.allocation_of("c/main/0") is None, "the room is kept"
    world.report(old, "ended", ended=Ended(cause=EndCause.STOPPED))
    new = world.allocation_of("b/main/0")
    assert new is not None
    assert {old.node_id, new.node_id} == {"n-1", "n-2"}
    world.check_calm()


def test_several_are_not_stopped_for_the_same_room(stable: NewStable) -> None:
    world = stable(an_own_pool(), an_own_node("n-1"), an_own_node("n-2"))
    for name in ("a", "b", "c"):
        world.run_allocation(world.place(name, a_job(capacity=5)))
    full = next(n for n in ("n-1", "n-2") if world.node(n).allocation_count == 2)
    drain(world, full)
    assert len(world.commands("stop_allocation")) == 1
    for command_id in world.commands("stop_allocation"):
        world.succeed(command_id)
    assert sum(len(live(world, f"{name}/main/0")) for name in ("a", "b", "c")) == 3
    assert world.node(full).allocation_count == 1


def test_a_machine_is_there_before_anything_is_stopped_for_it(stable: NewStable) -> None:
    world = stable(a_pool(tiers=(a_fixed_tier(), an_elastic_tier())), an_own_node())
    old = world.run_allocation(world.place("b", a_job(capacity=8)))
    drain(world, old.node_id)
    assert world.commands("stop_allocation") == []
    assert note(world, old.allocation_id) == "machine_starting"
    assert len(world.commands("launch_machine")) == 1
    world.boot()
    assert len(world.commands("stop_allocation")) == 1
    world.report(old, "ended", ended=Ended(cause=EndCause.STOPPED))
    new = world.allocation_of("b/main/0")
    assert new is not None
    assert world.node(new.node_id).tier == "cloud"
    world.check_calm()


def test_a_machine_that_never_comes_costs_nobody_their_place(stable: NewStable) -> None:
    world = stable(a_pool(tiers=(a_fixed_tier(), an_elastic_tier())), an_own_node())
    old = world.run_allocation(world.place("b", a_job(capacity=8)))
    drain(world, old.node_id)
    world.launch()
    world.advance(10 * MINUTE_MS)
    assert world.fleet.allocations[old.allocation_id].phase is AllocationPhase.READY
    world.check_calm()


def test_a_drain_that_is_called_off_leaves_everything_where_it_is(stable: NewStable) -> None:
    world = stable(a_pool(tiers=(a_fixed_tier(), an_elastic_tier())), an_own_node("n-1"))
    twice = world.run_allocation(world.place("a", a_job(can_overlap=True)))
    once = world.run_allocation(world.place("b", a_job()))
    drain(world, "n-1")
    world.ask(UncordonNode, node_id=NodeId("n-1"))
    for old in (twice, once):
        replica = world.fleet.replicas[old.replica_id]
        assert (replica.migration, replica.claim) == (None, None)
        assert world.fleet.allocations[old.allocation_id].phase is AllocationPhase.READY
    assert world.node("n-1").allocation_count == 2
    assert world.commands("stop_allocation") == []
    world.check_calm()


def test_s_137_all_run_elsewhere_before_the_machine_is_stopped_once(stable: NewStable) -> None:
    """S-137: gold and bronze run on the other node before they stop on the drained one."""
    world = stable(an_own_pool(tiers=(a_fixed_tier(), an_elastic_tier())), a_launched_node("n-1"))
    old = [
        world.run_allocation(world.place("g", a_job(band=Band.GOLD, can_overlap=True))),
        world.run_allocation(world.place("z", a_job(band=Band.BRONZE, can_overlap=True))),
    ]
    drain(world, "n-1", then_retire=True)
    world.boot()
    for each in old:
        assert world.fleet.allocations[each.allocation_id].phase is AllocationPhase.READY
        new = newest(world, each.replica_id)
        assert new.node_id != "n-1"
        world.run_allocation(new)
        assert world.commands("stop_machine") == []
        world.report(each, "ended", ended=Ended(cause=EndCause.STOPPED))
    assert len(world.commands("stop_machine")) == 1
    world.bury()
    assert world.node("n-1").phase is NodePhase.RETIRED


def test_s_138_a_node_of_ones_own_is_emptied_and_needs_no_stop(stable: NewStable) -> None:
    """S-138: jobs of an operator-attached node are moved, nothing is terminated, the drain ends."""
    world = stable(an_own_pool(), an_own_node("n-1"), an_own_node("n-2"))
    old = world.run_allocation(world.place())
    drain(world, old.node_id)
    world.report(old, "ended", ended=Ended(cause=EndCause.STOPPED))
    assert world.events().count("node_drained") == 1
    assert world.commands("stop_machine") == []


def test_s_136_an_uncordoned_node_gets_who_waits(stable: NewStable) -> None:
    """S-136: a pending job is placed on an uncordoned node without another event."""
    world = stable(an_own_pool(), an_own_node("n-1"))
    world.ask(CordonNode, node_id=NodeId("n-1"))
    world.submit("b")
    assert world.allocation_of("b/main/0") is None
    world.ask(UncordonNode, node_id=NodeId("n-1"))
    assert world.allocation_of("b/main/0") is not None


def test_b053_two_drains_do_not_take_both_copies_down(stable: NewStable) -> None:
    world = stable(an_own_pool(), *(an_own_node(f"n-{n}") for n in range(3)))
    world.submit("b", replica_count=2)
    pair = [world.allocation_of(f"b/main/{index}") for index in range(2)]
    for each in pair:
        assert each is not None
        world.run_allocation(each)
    for each in pair:
        assert each is not None
        drain(world, each.node_id)
    assert len(world.commands("stop_allocation")) == 1


def test_gold_leaves_before_silver_where_there_is_room_for_one(stable: NewStable) -> None:
    small = Shape(capacity=5, cores_milli=8_000, memory_bytes=16 * 2**30)
    world = stable(an_own_pool(), an_own_node("n-1"), an_own_node("n-2", shape=small))
    world.ask(CordonNode, node_id=NodeId("n-2"))
    silver = world.run_allocation(world.place("a", a_job(capacity=5)))
    gold = world.run_allocation(world.place("b", a_job(capacity=5, band=Band.GOLD)))
    drain(world, "n-1")
    assert note(world, gold.allocation_id) == "no_capacity"
    world.ask(UncordonNode, node_id=NodeId("n-2"))
    assert world.commands("stop_allocation") == [f"{gold.allocation_id}/stop/1"]
    assert note(world, silver.allocation_id) == "no_capacity"


def test_a_look_in_vain_does_not_put_the_next_one_off(stable: NewStable) -> None:
    """Simulator seed 62: what would fit is in a pool that is closed to it while its own is not."""
    own = an_own_pool()
    other = a_pool("q", tiers=(a_fixed_tier(),))
    nodes = [an_own_node("n-1"), an_own_node("n-2"), an_own_node("n-3", pool="q")]
    world = stable(own, other, *nodes)
    given = {"fallback_pools": ("q",), "fallback": Fallback.WHEN_UNAVAILABLE}
    old = world.run_allocation(world.place("b", a_job(capacity=8), **given))
    world.run_allocation(world.place("full", a_job(capacity=8)))
    drain(world, old.node_id)
    retry_at_ms = world.fleet.replicas["b/main/0"].migration_retry_at_ms
    assert retry_at_ms > world.now_ms
    world.advance(10_000)
    world.run(CordonNode(request_id="c", principal="me", node_id=NodeId("n-3")))
    world.run(UncordonNode(request_id="u", principal="me", node_id=NodeId("n-3")))
    assert world.fleet.replicas["b/main/0"].migration_retry_at_ms == retry_at_ms
    world.check_calm()
    # Seed 331: now the other pool is open to it, which the next look will find, and no scan before.
    world.run(CordonNode(request_id="d", principal="me", node_id=NodeId("n-2")))
    world.check_calm()
    world.advance(retry_at_ms)
    assert live(world, "b/main/0") == ["n-1"]
    assert world.fleet.allocations[old.allocation_id].phase is AllocationPhase.STOPPING
