"""Everything that waits can say why, for what, and what a person can do."""

from hostler.base.ids import NodeId, ReplicaId
from hostler.core.explain import Explanation, explain, explain_replica
from hostler.core.sentences import SENTENCES
from hostler.model.node import Cordon
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
    assert (why.by, why.reason) == ("record", Reason.NO_CAPACITY)
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


def test_a_named_node_says_everything_that_is_in_the_way(theatre: NewTheatre) -> None:
    """Not the first failing check, as a decision does, but all of them."""
    cordon = Cordon(by="ops", reason="disk", at_ms=0)
    world = theatre(own_pool(), n1(cordon=cordon), n2())
    world.submit("b1", a_job(capacity=11))
    found = explain_replica(world.fleet, REPLICA, NodeId(N1))
    assert found is not None
    assert [(c.reason, c.detail) for c in found.checks] == [
        (Reason.CORDONED, "disk"),
        (Reason.CAPACITY, "needs 11, 10 free"),
    ]


def test_a_node_that_would_do_has_nothing_in_the_way(theatre: NewTheatre) -> None:
    world = theatre(own_pool(), own_pool(name="q"), n1(), n2(), a_node("n-900003", pool="q"))
    world.submit()
    for node_id, expected in ((N1, []), (N2, []), ("n-900003", [Reason.WRONG_POOL])):
        found = explain_replica(world.fleet, REPLICA, NodeId(node_id))
        assert found is not None
        assert [check.reason for check in found.checks] == expected


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
    assert explained(world, "b1").summary.startswith("Of 2 replicas 2 have a place and 0 are ready")
    assert explained(world, "p").summary == "It has 1 requested node, 2 ready nodes."
    assert explain(world.fleet, "nothing") is None
