"""Joining: agents that enrol, say hello, come back, and say what they run."""

from hostler.base.ids import AllocationId, MachineId, NodeId
from hostler.core.allocation_fact import AllocationFact
from hostler.core.inputs import InventoryReported, JoinAgent, ServerStarted
from hostler.core.replies import Accepted, Refused
from hostler.model.allocation import AllocationPhase, EndCause, Ended
from hostler.model.node import Health, NodePhase, Origin
from hostler.model.shape import Shape
from hostler.testing.builders import a_fixed_tier, a_pool, an_elastic_tier
from tests.core.nodes.conftest import NewStable
from tests.core.nodes.stable import Stable, a_launched_node, an_own_node, an_own_pool

MINE = MachineId("box-1")


def refused(answer: Accepted | Refused) -> str:
    """Return the code of a refusal."""
    assert isinstance(answer, Refused), answer
    return answer.code


def subject(answer: Accepted | Refused) -> str:
    """Return what an acceptance is about."""
    assert isinstance(answer, Accepted), answer
    return answer.subject_id


def test_an_agent_joins_a_fixed_tier_as_a_new_node(stable: NewStable) -> None:
    world = stable(an_own_pool(slot_count=3))
    node = world.node(subject(world.join(machine_id=MINE, hostname="box")))
    assert (node.phase, node.origin, node.slot_count) == (NodePhase.STARTING, Origin.JOINED, 3)
    world.run(InventoryReported(node_id=node.node_id, shape=Shape(capacity=7)))
    assert world.node(node.node_id).phase is NodePhase.STARTING
    world.hello(node.node_id)
    assert world.node(node.node_id).phase is NodePhase.READY


def test_the_same_machine_is_the_same_node(stable: NewStable) -> None:
    world = stable(an_own_pool())
    first = subject(world.join(machine_id=MINE))
    assert subject(world.join(machine_id=MINE)) == first
    assert subject(world.join(machine_id=MachineId("box-2"))) != first
    world.hello(first)
    assert world.join(machine_id=MINE) == Accepted(subject_id=first, is_repeat=True)
    world.hello("n-000002")


def test_a_launched_node_is_claimed_by_its_agent_as_often_as_it_asks(stable: NewStable) -> None:
    world = stable(a_pool(warm_count=1))
    for _ in range(2):
        assert world.join(node_id="n-000001", hostname="h") == Accepted(subject_id="n-000001")
    world.boot()
    assert world.join(node_id="n-000001") == Accepted(subject_id="n-000001", is_repeat=True)
    assert len(world.fleet.nodes) == 1


def test_who_cannot_join_is_told_why(stable: NewStable) -> None:
    tiers = (a_fixed_tier(node_count_max=1), an_elastic_tier())
    world = stable(a_pool(tiers=tiers), an_own_node(machine_id=MINE))
    assert refused(world.join(pool="q")) == "tier_not_found"
    assert refused(world.join(tier="cloud")) == "tier_not_fixed"
    assert refused(world.join(machine_id=MachineId("box-2"))) == "tier_full"
    assert refused(world.join(node_id="n-000009")) == "node_not_found"
    assert refused(world.join(node_id="n-900001", machine_id=MachineId("b"))) == "machine_mismatch"


def test_nobody_joins_a_disabled_pool_or_a_node_that_goes(stable: NewStable) -> None:
    world = stable(a_pool(warm_count=1), an_own_pool(name="q"), an_own_node(pool="q"))
    world.boot()
    world.configure()
    assert refused(world.join(pool="q", machine_id=MINE)) == "pool_disabled"
    assert refused(world.join(node_id="n-000001")) == "node_retiring"


def test_what_an_agent_does_not_know_its_offer_has_promised(stable: NewStable) -> None:
    world = stable(a_pool(warm_count=1))
    (node,) = world.launch()
    told = Shape(capacity=None, cores_milli=3_900, memory_bytes=None, capabilities=None)
    world.run(InventoryReported(node_id=node.node_id, shape=told))
    known = world.node(node.node_id).shape
    assert (known.capacity, known.cores_milli, known.capabilities) == (10, 3_900, ())
    world.boot()


def test_a_word_from_an_earlier_life_is_ignored(stable: NewStable) -> None:
    world = stable(an_own_pool(), an_own_node(incarnation=5))
    world.silence()
    world.hello("n-900001", incarnation=4)
    assert world.node().silent_since_at_ms == 0
    world.hello("n-900001", incarnation=6)
    assert (world.node().silent_since_at_ms, world.node().incarnation) == (None, 6)


def running(world: Stable) -> AllocationFact:
    """Place a bundle, let it run, and return what its agent would say of it."""
    allocation = world.run_allocation(world.place())
    return AllocationFact(
        allocation_id=allocation.allocation_id, epoch=allocation.epoch, phase="ready"
    )


def test_what_an_agent_still_runs_stays(stable: NewStable) -> None:
    world = stable(an_own_pool(), an_own_node())
    fact = running(world)
    world.hello("n-900001", fact, incarnation=2)
    assert world.fleet.allocations[fact.allocation_id].phase is AllocationPhase.READY
    assert world.outbox == {}


def test_what_an_agent_once_had_and_does_not_name_has_ended(stable: NewStable) -> None:
    world = stable(an_own_pool(), an_own_node())
    fact = running(world)
    world.hello("n-900001", incarnation=2)
    ended = world.fleet.allocations[fact.allocation_id].ended
    assert ended is not None
    assert ended.cause is EndCause.SUPERVISOR_LOST


def test_what_an_agent_never_acknowledged_is_sent_again(stable: NewStable) -> None:
    world = stable(an_own_pool(), an_own_node())
    allocation = world.place()
    delta = world.hello("n-900001", incarnation=2)
    assert world.fleet.allocations[allocation.allocation_id].phase is AllocationPhase.STARTING
    assert [each.command_id for each in delta.dispatches] == ["a-000001/start/1"]
    world.run_allocation(allocation)


def test_what_an_agent_runs_and_we_do_not_know_is_stopped(stable: NewStable) -> None:
    world = stable(an_own_pool(), an_own_node())
    stranger = AllocationFact(allocation_id=AllocationId("a-000077"), epoch=3, phase="running")
    world.hello("n-900001", stranger)
    assert world.commands("stop_allocation") == ["a-000077/stop/3"]
    world.succeed("a-000077/stop/3")
    world.run(at_ms=1)
    assert world.outbox == {}


def test_an_earlier_grant_of_a_known_allocation_is_stopped(stable: NewStable) -> None:
    world = stable(an_own_pool(), an_own_node())
    fact = running(world)
    old = AllocationFact(allocation_id=fact.allocation_id, epoch=0, phase="running")
    world.hello("n-900001", fact, old, incarnation=2)
    assert world.commands("stop_allocation") == ["a-000001/stop/0"]


def test_reports_move_an_allocation(stable: NewStable) -> None:
    world = stable(an_own_pool(), an_own_node())
    allocation = world.place()
    seen = []
    for phase in ("starting", "running", "ready", "unready", "ready", "stopping", "ready"):
        world.report(allocation, phase)
        seen.append(world.fleet.allocations[allocation.allocation_id].phase.value)
    assert seen == ["starting", "running", "ready", "running", "ready", "stopping", "stopping"]
    world.report(allocation, "ended", ended=Ended(cause=EndCause.EXITED, exit_code=3))
    assert world.fleet.allocations[allocation.allocation_id].ended == Ended(
        cause=EndCause.EXITED, exit_code=3
    )
    world.report(allocation, "ready")


def test_a_restart_sends_everything_again_and_suspects_nobody_for_a_full_interval(
    stable: NewStable,
) -> None:
    world = stable(an_own_pool(), an_own_node("n-900001"), an_own_node("n-900002"))
    world.place()
    world.silence("n-900002", since_at_ms=0)
    world.advance(14_000)
    delta = world.run(ServerStarted())
    assert [each.command_id for each in delta.dispatches] == ["a-000001/start/1"]
    world.advance(28_999)
    assert {node.health for node in world.fleet.nodes.in_order()} == {Health.LIVE}
    world.hello("n-900001")
    world.advance(29_000)
    assert world.node("n-900001").health is Health.LIVE
    assert world.node("n-900002").health is Health.SUSPECT


def test_a_restart_makes_a_launch_that_was_out_doubtful(stable: NewStable) -> None:
    world = stable(a_pool(warm_count=1))
    world.run(ServerStarted())
    world.fail("n-000001/launch/1", "capacity_unavailable")
    assert world.node("n-000001").phase is NodePhase.STOPPING


def test_a_restart_asks_every_provider_for_its_list(stable: NewStable) -> None:
    world = stable(a_pool(), a_launched_node())
    world.list(world.machine(world.node()))
    assert not world.commands("list_machines")
    world.run(ServerStarted())
    assert world.commands("list_machines") == ["fake/list/2"]


def test_a_batch_of_agents_joins_in_one_step(stable: NewStable) -> None:
    world = stable(an_own_pool())
    joins = [
        JoinAgent(
            request_id=f"j{n}", principal="", pool="p", tier="own", machine_id=MachineId(f"m{n}")
        )
        for n in range(3)
    ]
    world.run(*joins)
    assert sorted(world.fleet.nodes.rows) == ["n-000001", "n-000002", "n-000003"]
    assert NodeId("n-000002") in world.fleet.nodes
