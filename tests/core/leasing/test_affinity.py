"""Near to a node or a former lease: preferred at once, waited for, or required; and exclusions."""

import pytest

from hostler.base.ids import LeaseId, NodeId
from hostler.core.inputs import AgentSaidHello
from hostler.model.lease import LeasePhase
from hostler.model.reason import Reason
from hostler.testing.builders import a_fixed_tier, a_node, a_pool, an_elastic_tier
from tests.core.leasing.conftest import NewRental
from tests.core.leasing.rental import Rental, a_launched_node

OWN = (a_fixed_tier(),)
N1, N2 = NodeId("n-1"), NodeId("n-2")


@pytest.fixture
def two(rental: NewRental) -> Rental:
    """A pool of two nodes."""
    return rental(a_pool(tiers=OWN), a_node("n-1"), a_node("n-2"))


@pytest.mark.parametrize(
    ("wait_ms", "free_at_ms", "node_id", "granted_at_ms"),
    [
        (2_000, 1_000, "n-2", 1_000),
        (500, 1_000, "n-1", 500),
    ],
)
def test_sc_252_affinity_with_a_waiting_budget(
    two: Rental, wait_ms: int, free_at_ms: int, node_id: str, granted_at_ms: int
) -> None:
    """Given b busy until 1,000 and an affinity waiting budget of 2,000, then b is chosen at 1,000,
    and with a budget of 500 a is chosen at 500."""
    busy = two.acquire(affinity_node_id=N2)
    waiting = two.acquire(affinity_node_id=N2, affinity_wait_ms=wait_ms, timeout_ms=9_000)
    assert (waiting.phase, waiting.reason) == (LeasePhase.WAITING, Reason.AFFINITY_WAIT)
    two.advance(free_at_ms)
    two.release(busy)
    two.advance(5_000)
    assert two.now(waiting).node_id == node_id
    assert two.now(waiting).granted_at_ms == granted_at_ms


def test_sc_252_both_free(two: Rental) -> None:
    """Given static hosts [a, b] both free and a preference for b, then b is taken."""
    assert two.acquire(affinity_node_id=N2, affinity_wait_ms=1_000).node_id == "n-2"


def test_sc_251_a_former_lease_names_a_machine_and_no_address(two: Rental) -> None:
    """Given a run whose former machine is gone, when it retries with affinity, then whatever else
    has its address is not treated as a match."""
    world = two
    former = world.acquire(affinity_node_id=N2)
    world.release(former)
    again = world.acquire(affinity_lease_id=former.lease_id, is_affinity_required=True)
    assert again.node_id == "n-2"


def test_a_required_node_that_is_gone_is_refused_at_once(rental: NewRental) -> None:
    world = rental(a_pool(), a_launched_node("n-1"), a_launched_node("n-2"))
    former = world.acquire(affinity_node_id=N1)
    waiting = world.acquire(
        affinity_lease_id=former.lease_id, is_affinity_required=True, timeout_ms=90_000
    )
    hoping = world.acquire(affinity_node_id=N1, affinity_wait_ms=60_000, timeout_ms=90_000)
    assert waiting.reason is Reason.AFFINITY_WAIT
    world.poison(former)
    assert world.now(waiting).reason is Reason.AFFINITY_GONE
    assert world.now(hoping).node_id == "n-2"
    refused = world.refused(affinity_lease_id=former.lease_id, is_affinity_required=True)
    assert refused.code == Reason.AFFINITY_GONE


def test_whoever_waits_for_one_node_holds_nobody_up_and_buys_nothing(rental: NewRental) -> None:
    world = rental(a_pool(tiers=(an_elastic_tier(),)), a_launched_node("n-1"))
    holder = world.acquire()
    world.acquire(affinity_node_id=N1, is_affinity_required=True, timeout_ms=9_000)
    assert not world.commands("launch_machine")
    other = world.acquire(timeout_ms=900_000)
    assert len(world.commands("launch_machine")) == 1
    world.boot()
    assert world.now(other).phase is LeasePhase.HELD
    world.release(holder)


def test_excluded_nodes_are_passed_over(two: Rental) -> None:
    assert two.acquire(excluded_node_ids=(N1,)).node_id == "n-2"
    waiting = two.acquire(excluded_node_ids=(N1,), timeout_ms=9_000)
    assert waiting.phase is LeasePhase.WAITING
    assert two.acquire().node_id == "n-1"


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"affinity_node_id": N1, "affinity_lease_id": LeaseId("l-1")}, "affinity_invalid"),
        ({"affinity_wait_ms": 5}, "affinity_invalid"),
        ({"affinity_node_id": N1, "affinity_wait_ms": -1}, "affinity_invalid"),
        ({"is_affinity_required": True}, "affinity_invalid"),
        ({"affinity_node_id": N1, "excluded_node_ids": (N1,)}, "affinity_invalid"),
        ({"affinity_lease_id": LeaseId("l-9"), "is_affinity_required": True}, "affinity_gone"),
        ({"excluded_node_ids": tuple(NodeId(f"n-{i}") for i in range(17))}, "excluded_invalid"),
        ({"ack_ms": 0}, "ack_ms_invalid"),
    ],
)
def test_words_that_do_not_go_together_are_refused(
    two: Rental, fields: dict[str, object], code: str
) -> None:
    assert two.refused(**fields).code == code


def test_nobody_is_near_to_a_lease_of_another_principal(two: Rental) -> None:
    former = two.acquire()
    refused = two.refused(affinity_lease_id=former.lease_id, principal="other")
    assert refused.code == "not_holder"


def test_a_preference_for_a_node_that_never_was_is_no_obstacle(two: Rental) -> None:
    lease = two.acquire(affinity_node_id=NodeId("n-77"), affinity_wait_ms=60_000)
    assert lease.node_id == "n-1"


def test_a_new_agent_of_the_node_serves_who_waits_for_it(rental: NewRental) -> None:
    world = rental(a_pool(tiers=OWN), a_node("n-1"))
    holder = world.acquire()
    waiting = world.acquire(affinity_node_id=N1, is_affinity_required=True, timeout_ms=9_000)
    world.run(AgentSaidHello(node_id=N1, incarnation=2, shape=world.fleet.nodes[N1].shape))
    assert world.now(waiting).phase is LeasePhase.WAITING
    world.release(holder)
    assert world.now(waiting).node_id == "n-1"
