"""Everything that waits can say why, for what, and what a person can do."""

from hostler.base.ids import ReplicaId
from hostler.core.explain import Explanation, explain
from hostler.core.inputs import ReleaseLease
from hostler.core.sentences import SENTENCES
from hostler.model.allocation import EndCause
from hostler.model.node import Cordon
from hostler.model.pool import Band
from hostler.model.reason import Reason
from hostler.testing.builders import a_job, a_node, a_pool
from tests.core.placing.conftest import NewTheatre
from tests.core.placing.theatre import N1, N2, Theatre, fixture, n1, n2, own_pool

REPLICA = ReplicaId("b1/main/0")


def explained(world: Theatre, about: str) -> Explanation:
    """Explain what must exist."""
    found = explain(world.fleet, about)
    assert found is not None, about
    return found


def test_every_reason_has_its_sentences() -> None:
    assert set(SENTENCES) == set(Reason)
    assert all(text.endswith(".") for pair in SENTENCES.values() for text in pair)


def test_a_pending_replica_says_what_it_waits_for(theatre: NewTheatre) -> None:
    world = theatre(own_pool(), n1())
    world.submit("b1", a_job(capacity=11))
    found = explained(world, REPLICA)
    assert (found.kind, found.phase) == ("replica", "pending")
    assert found.summary == "No node of its pools has room."
    (why,) = found.reasons
    assert (why.by, why.reason) == ("placing", Reason.NO_CAPACITY)
    assert why.detail == "p/own: 0 of 1 nodes fit (1 capacity), exhausted"
    assert why.advice.startswith("Free room")
    assert [d.outcome for d in found.decisions] == ["failed"]


def test_a_replica_whose_machine_boots_says_so(theatre: NewTheatre) -> None:
    world = theatre(a_pool())
    world.submit()
    found = explained(world, REPLICA)
    assert found.phase == "placed"
    assert "which is requested" in found.summary
    assert found.reasons[0].reason is Reason.MACHINE_STARTING
    world.boot()
    found = explained(world, REPLICA)
    assert found.commands == ("a-000001/start/1",)
    assert "was sent" in found.summary
    world.become_ready()
    assert explained(world, REPLICA).summary.endswith("and is ready.")


def test_a_replica_that_backs_off_says_until_when(theatre: NewTheatre) -> None:
    world = theatre(own_pool(), n1(), n2())
    world.submit()
    world.end()
    world.end()
    found = explained(world, REPLICA)
    assert (found.phase, found.next_at_ms) == ("backing_off", 5_000)
    assert found.reasons[0].reason is Reason.BACKING_OFF


def test_a_node_says_how_far_it_is(theatre: NewTheatre) -> None:
    world = theatre(a_pool(launch_count_max=1))
    world.submit("b1", a_job(capacity=10))
    world.submit("b2", a_job(capacity=10))
    (node,) = world.launched()
    assert explained(world, node.node_id).summary == "Its machine (small) is asked for at fake."
    assert explained(world, node.node_id).commands == ("n-000001/launch/1",)
    assert explained(world, "b2").reasons[0].reason is Reason.LAUNCHES_IN_FLIGHT
    world.succeed("n-000001/launch/1")
    booting = explained(world, node.node_id)
    assert booting.summary == "Its machine exists; its agent has not said hello."
    assert booting.next_at_ms == 15_000  # its provider is asked whether it still exists
    assert [why.reason for why in booting.reasons] == [Reason.BOOTING]
    world.advance(120_000)
    leaving = explained(world, node.node_id)
    assert leaving.summary == "Its machine is being stopped (boot_failed)."
    world.succeed("n-000001/stop/1")
    assert explained(world, node.node_id).summary == "Its machine is gone (boot_failed)."


def test_a_node_says_why_it_takes_nothing(theatre: NewTheatre) -> None:
    cordon = Cordon(by="ops", reason="disk", at_ms=0)
    spare = a_node("n-900003", is_spare=True, incarnation=1)
    world = theatre(own_pool(spare_count=1), n1(cordon=cordon), n2(), spare)
    world.submit("b1", a_job(capacity=10))
    world.become_ready()
    world.drain(N2, 0, is_forced=True)
    cordoned = explained(world, N1)
    assert cordoned.summary == (
        "It is live, takes nothing new and holds no allocations and no leases."
    )
    assert [(w.reason, w.detail) for w in cordoned.reasons] == [(Reason.CORDONED, "by ops: disk")]
    drained = explained(world, N2)
    assert {Reason.DRAINING, Reason.IN_USE} <= {why.reason for why in drained.reasons}
    kept = explained(world, spare.node_id)
    assert [w.reason for w in kept.reasons if w.by == "record"] == [Reason.SPARE_RESERVED]
    assert "is being stopped" in explained(world, REPLICA).summary


def test_an_ended_allocation_and_a_dropped_replica_say_how(theatre: NewTheatre) -> None:
    world = theatre(own_pool(), n1())
    world.submit("b1", a_job(band=Band.BRONZE))
    world.report(world.live(), "running")
    assert explained(world, REPLICA).summary == f"It runs on {N1} and is not ready."
    world.end(exit_code=3, message="exit status 3")
    ended = explained(world, "a-000001")
    assert ended.summary == f"It has ended on {N1}: exited exit status 3."
    dropped = explained(world, REPLICA)
    assert dropped.summary == "It failed, and bronze is not recovered."
    assert explained(world, "b1").summary == "It has 1 replica, 0 placed and 0 ready."


def test_a_bundle_says_that_a_change_is_under_way(theatre: NewTheatre) -> None:
    world = theatre(own_pool(), n1())
    world.submit()
    world.become_ready()
    world.submit("b1", a_job(capacity=5))
    assert explained(world, "b1").summary.endswith("generation 2 is being brought about.")
    world.delete()
    assert explained(world, REPLICA).phase == "stopping"


def test_leases_say_what_they_wait_for(theatre: NewTheatre) -> None:
    world = theatre(own_pool(), n1())
    held = world.acquire()
    waiting = world.acquire(timeout_ms=1_000)
    found = explained(world, waiting.lease_id)
    assert (found.phase, found.next_at_ms) == ("waiting", 1_000)
    assert found.reasons[0].reason is waiting.reason
    world.advance(1_000)
    refused = explained(world, waiting.lease_id)
    assert refused.summary == "It was refused. No slot was free in the time that was given."
    world.ask(ReleaseLease, lease_id=held.lease_id)
    settled = explained(world, held.lease_id)
    assert settled.summary == f"It held a slot on {N1} and was settled healthy."
    assert all(command.startswith(held.lease_id) for command in settled.commands)


def test_nodes_bundles_pools_allocations_and_leases_can_be_asked_about(
    theatre: NewTheatre,
) -> None:
    world = theatre(*fixture())
    lease = world.acquire(timeout_ms=60_000)
    found = explained(world, lease.lease_id)
    assert (found.kind, found.phase) == ("lease", "held")
    assert f"holds a slot on {lease.node_id}" in found.summary
    world.submit(replica_count=2)
    assert explained(world, N1).summary == "It takes work and holds no allocations and 1 lease."
    assert explained(world, N2).summary == "It takes work and holds 1 allocation and no leases."
    assert explained(world, N2).commands == ("a-000001/start/1",)
    assert explained(world, "a-000001").kind == "allocation"
    assert explained(world, "b1").summary.startswith("It has 2 replicas, 2 placed and 0 ready")
    assert explained(world, "p").summary == "It has 1 requested node, 2 ready nodes."
    assert explain(world.fleet, "nothing") is None


def test_a_broken_replica_says_how_it_ended_last(theatre: NewTheatre) -> None:
    world = theatre(own_pool(), n1())
    world.submit()
    for number in range(6):
        world.end_at(number * 5_000, REPLICA)
    world.advance(40_000)
    world.end(REPLICA, EndCause.START_FAILED, message="cannot run /x: no such file")
    (why,) = explained(world, REPLICA).reasons
    assert why.reason is Reason.RESTART_CEILING
    assert why.detail == (
        "recovered 6 times within 1h (6 exited), "
        "then start_failed on n-900001: cannot run /x: no such file"
    )
    assert why.since_at_ms == world.fleet.now_ms
