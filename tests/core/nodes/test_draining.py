"""Draining: what is there moves or ends, in its turn, and by the deadline whatever it is."""

from hostler.core.inputs import CordonNode, DrainNode, ReleaseLease, UncordonNode
from hostler.core.replies import Accepted, Refused
from hostler.model.allocation import AllocationPhase, EndCause, Ended
from hostler.model.lease import LeaseOutcome, LeasePhase
from hostler.model.node import NodePhase, RetireReason
from hostler.testing.builders import a_fixed_tier, a_job, a_pool, an_elastic_tier
from tests.core.nodes.conftest import NewStable
from tests.core.nodes.stable import Stable, a_launched_node, an_own_node, an_own_pool

MINUTE_MS = 60_000


def drain(world: Stable, node_id: str, deadline_ms: int = MINUTE_MS, **fields: object) -> None:
    """Drain a node."""
    answer = world.ask(DrainNode, node_id=node_id, deadline_ms=deadline_ms, **fields)
    assert isinstance(answer, Accepted), answer


def refused(answer: Accepted | Refused) -> str:
    """Return the code of a refusal."""
    assert isinstance(answer, Refused), answer
    return answer.code


def test_a_cordoned_node_gets_nothing_new_and_keeps_what_it_has(stable: NewStable) -> None:
    world = stable(an_own_pool(slot_count=2), an_own_node(slot_count=2))
    first = world.acquire()
    assert world.ask(CordonNode, node_id="n-900001", reason="smells") == Accepted(
        subject_id="n-900001"
    )
    assert world.acquire(timeout_ms=9_000).phase is LeasePhase.WAITING
    assert world.fleet.leases[first.lease_id].phase is LeasePhase.HELD
    world.ask(UncordonNode, node_id="n-900001")
    assert len(world.fleet.index.leases_held.keys("p")) == 2
    assert world.events().count("node_cordoned") == world.events().count("node_uncordoned") == 1


def test_asking_twice_changes_nothing(stable: NewStable) -> None:
    world = stable(an_own_pool(), an_own_node())
    node_id = "n-900001"
    repeat = Accepted(subject_id=node_id, is_repeat=True)
    assert world.ask(UncordonNode, node_id=node_id) == repeat
    world.ask(CordonNode, node_id=node_id, reason="first")
    assert world.ask(CordonNode, node_id=node_id, reason="second") == repeat
    cordon = world.node().cordon
    assert cordon is not None
    assert cordon.reason == "first"


def test_who_names_no_node_or_one_that_goes_is_refused(stable: NewStable) -> None:
    world = stable(a_pool(), a_launched_node())
    assert refused(world.ask(CordonNode, node_id="n-9")) == "node_not_found"
    assert refused(world.ask(DrainNode, node_id="n-900001", deadline_ms=-1)) == "deadline_negative"
    drain(world, "n-900001", then_retire=True)
    assert refused(world.ask(UncordonNode, node_id="n-900001")) == "node_stopping"
    world.bury()
    assert refused(world.ask(DrainNode, node_id="n-900001", deadline_ms=1)) == "node_retired"


def test_an_empty_node_is_drained_at_once_and_stays_cordoned(stable: NewStable) -> None:
    world = stable(an_own_pool(), an_own_node())
    drain(world, "n-900001")
    assert world.events() == ["node_drain_started", "node_drained"]
    assert (world.node().phase, world.node().takes_work) == (NodePhase.READY, False)
    world.advance(2 * MINUTE_MS)
    assert "node_drain_overdue" not in world.events()
    world.ask(UncordonNode, node_id="n-900001")
    assert world.node().takes_work


def test_leases_are_waited_for_and_work_is_placed_elsewhere(stable: NewStable) -> None:
    world = stable(an_own_pool(), an_own_node("n-1"), an_own_node("n-2"))
    allocation = world.run_allocation(world.place())
    drain(world, allocation.node_id)
    stopping = world.fleet.allocations[allocation.allocation_id]
    assert (stopping.phase, stopping.stop_reason) == (AllocationPhase.STOPPING, "drain")
    world.report(allocation, "ended", ended=Ended(cause=EndCause.STOPPED))
    moved = world.allocation_of("b/main/0")
    assert moved is not None
    assert moved.node_id != allocation.node_id
    assert world.fleet.replicas["b/main/0"].restart_at_ms == ()
    assert world.events().count("node_drained") == 1


def test_a_lease_may_end_in_its_time(stable: NewStable) -> None:
    world = stable(an_own_pool(), an_own_node())
    lease = world.acquire()
    drain(world, "n-900001", then_retire=True)
    world.advance(MINUTE_MS - 1)
    assert world.node().phase is NodePhase.READY
    world.ask(ReleaseLease, lease_id=lease.lease_id)
    assert world.node().phase is NodePhase.RETIRED
    assert world.node().retire_reason is RetireReason.OPERATOR


def test_at_the_deadline_nothing_is_waited_for_any_more(stable: NewStable) -> None:
    world = stable(an_own_pool(), an_own_node())
    lease = world.acquire(lease_ms=600_000)
    drain(world, "n-900001")
    world.advance(MINUTE_MS)
    assert world.fleet.leases[lease.lease_id].outcome is LeaseOutcome.REVOKED
    assert world.events().count("node_drain_overdue") == 1
    assert world.events().count("node_drained") == 1
    world.advance(3 * MINUTE_MS)
    assert world.events().count("node_drain_overdue") == 1


def test_two_replicas_of_a_job_are_never_on_the_move_at_once(stable: NewStable) -> None:
    world = stable(an_own_pool(), *(an_own_node(f"n-{n}") for n in range(4)))
    world.submit("b", replica_count=2)
    pair = [world.allocation_of(f"b/main/{index}") for index in range(2)]
    for each in pair:
        assert each is not None
        world.run_allocation(each)
    for each in pair:
        assert each is not None
        drain(world, each.node_id)
    assert len(world.commands("stop_allocation")) == 1
    waiting = next(a for a in pair if a is not None and world.fleet.notes.get(a.allocation_id))
    assert world.fleet.notes[waiting.allocation_id]["drain"].reason == "siblings_unsettled"
    world.succeed(world.commands("stop_allocation")[0])
    assert world.commands("stop_allocation") == []
    for index in range(2):
        found = world.allocation_of(f"b/main/{index}")
        assert found is not None
        if found.phase is AllocationPhase.STARTING:
            world.run_allocation(found)
    assert len(world.commands("stop_allocation")) == 1


def test_the_deadline_outranks_the_turn(stable: NewStable) -> None:
    world = stable(an_own_pool(), *(an_own_node(f"n-{n}") for n in range(2)))
    world.submit("b", replica_count=2)
    for index in range(2):
        found = world.allocation_of(f"b/main/{index}")
        assert found is not None
        world.run_allocation(found)
    drain(world, "n-0", is_forced=True)
    drain(world, "n-1", is_forced=True)
    world.advance(MINUTE_MS)
    assert len(world.commands("stop_allocation")) == 2


def test_a_drain_may_be_asked_for_again_with_another_deadline(stable: NewStable) -> None:
    world = stable(an_own_pool(), an_own_node())
    lease = world.acquire(lease_ms=600_000)
    drain(world, "n-900001", deadline_ms=10 * MINUTE_MS)
    drain(world, "n-900001", deadline_ms=MINUTE_MS)
    world.advance(MINUTE_MS)
    assert world.fleet.leases[lease.lease_id].outcome is LeaseOutcome.REVOKED


def test_what_was_to_start_on_a_draining_node_starts_elsewhere(stable: NewStable) -> None:
    world = stable(a_pool(tiers=(a_fixed_tier(), an_elastic_tier())))
    allocation = world.place()
    drain(world, allocation.node_id, then_retire=True)
    world.boot()
    moved = world.allocation_of("b/main/0")
    assert moved is not None
    assert moved.node_id != allocation.node_id


def test_a_launched_node_is_stopped_when_it_is_empty(stable: NewStable) -> None:
    world = stable(a_pool(tiers=(a_fixed_tier(), an_elastic_tier())), a_launched_node())
    allocation = world.run_allocation(world.place("b", a_job(capacity=3)))
    drain(world, "n-900001", then_retire=True)
    assert world.node().phase is NodePhase.READY
    world.boot()
    world.succeed(f"{allocation.allocation_id}/stop/1")
    assert world.node().phase is NodePhase.STOPPING
    world.bury()
    assert world.node().phase is NodePhase.RETIRED


def test_an_operators_word_retires_a_lost_node_with_what_it_kept(stable: NewStable) -> None:
    world = stable(an_own_pool(), an_own_node())
    world.run_allocation(world.place())
    world.silence()
    world.advance(60_000)
    drain(world, "n-900001", then_retire=True)
    assert world.node().phase is NodePhase.RETIRED


def test_a_machine_that_is_not_there_yet_can_be_drained_and_retired(stable: NewStable) -> None:
    """Trial S01: what starts can be ended as well."""
    world = stable(a_pool(warm_count=1))
    (launching,) = world.fleet.nodes.in_order()
    drain(world, launching.node_id, then_retire=True)
    for command_id in world.commands("launch_machine"):
        world.succeed(command_id)
    assert world.fleet.nodes[launching.node_id].phase is NodePhase.STOPPING
    assert world.fleet.nodes[launching.node_id].retire_reason is RetireReason.OPERATOR
