"""What would become of a request, and why a lease waits: told without touching anything."""

from hostler.core.explain import explain
from hostler.core.inputs import AcquireLease, DrainNode
from hostler.core.lease_planning import LeasePlan, plan_lease
from hostler.model.lease import LeasePhase
from hostler.model.reason import Reason
from hostler.testing.builders import a_fixed_tier, a_node, a_pool, an_elastic_tier
from tests.core.leasing.conftest import NewRental
from tests.core.leasing.rental import Rental

OWN = (a_fixed_tier(),)


def plan(world: Rental, **fields: object) -> LeasePlan:
    """Ask what would come of it; the fleet must be as before."""
    given = {"pool": "p", "timeout_ms": 60_000, **fields}
    before = world.fleet.digest()
    request = AcquireLease(request_id="plan", principal="tester", **given)  # type: ignore[arg-type]  # fields of a request
    made = plan_lease(world.fleet, request, world.now_ms)
    assert world.fleet.digest() == before
    return made


def test_sc_020_can_acquire(rental: NewRental) -> None:
    """Given max 1: true when empty, false when leased, true after release, false once draining."""
    world = rental(a_pool(tiers=(an_elastic_tier(node_count_max=1),)))
    empty = plan(world)
    assert (empty.can_acquire, empty.launch_count) == (True, 1)
    lease = world.acquire(timeout_ms=60_000)
    world.boot()
    held = plan(world)
    assert (held.can_acquire, held.code) == (False, Reason.LIMIT_REACHED)
    world.release(lease)
    assert plan(world).can_acquire
    world.configure()
    assert not plan(world).can_acquire


def test_a_plan_says_where_and_behind_whom(rental: NewRental) -> None:
    world = rental(a_pool(tiers=OWN), a_node("n-1"))
    assert plan(world).node_id == "n-1"
    world.acquire()
    world.acquire(timeout_ms=60_000)
    waiting = plan(world)
    assert (waiting.phase, waiting.position, waiting.can_acquire) == (LeasePhase.WAITING, 1, False)
    assert plan(world, timeout_ms=0).code == Reason.TIMED_OUT
    assert plan(world, pool="nowhere").code == "pool_not_found"


def test_a_machine_that_is_on_its_way_to_others_does_not_count(rental: NewRental) -> None:
    world = rental(a_pool(tiers=(an_elastic_tier(node_count_max=1),)))
    world.acquire(timeout_ms=60_000)
    assert not plan(world).can_acquire


def test_a_waiting_lease_is_explained_by_who_is_before_it(rental: NewRental) -> None:
    world = rental(a_pool(tiers=OWN), a_node("n-1"))
    world.acquire(fairness_key="a")
    world.acquire(fairness_key="b", timeout_ms=50_000)
    last = world.acquire(fairness_key="b", timeout_ms=60_000)
    told = explain(world.fleet, last.lease_id)
    assert told is not None
    assert told.summary == (
        "It waits in the line of pool p, 1 lease of 1 key before it and 0 behind,"
        " until 1970-01-01 00:01:00 UTC."
    )
    assert told.reasons[0].reason is Reason.NO_CAPACITY


def test_a_held_lease_is_explained_by_what_ends_it(rental: NewRental) -> None:
    world = rental(a_pool(tiers=OWN), a_node("n-1"), a_node("n-2"))
    lost = world.acquire(ack_ms=5_000)
    told = explain(world.fleet, lost.lease_id)
    assert told is not None
    assert "taken back at 1970-01-01 00:00:05 UTC unless it is renewed" in told.summary
    going = world.acquire()
    world.ask(DrainNode, node_id=going.node_id, deadline_ms=30_000)
    told = explain(world.fleet, going.lease_id)
    assert told is not None
    assert "it ends at 1970-01-01 00:00:30 UTC" in told.summary


def test_sc_183_capacity_shows_when_it_is_there_and_for_whom(rental: NewRental) -> None:
    """Given one who watches for capacity, then none while leased, some on release, none in a drain;
    with a parked request that takes the worker, none until the last release."""
    world = rental(a_pool(tiers=OWN), a_node())
    held = world.acquire()
    assert not plan(world, timeout_ms=0).can_acquire
    parked = world.acquire(timeout_ms=900_000)
    world.release(held)
    assert not plan(world, timeout_ms=0).can_acquire
    world.release(world.now(parked))
    assert plan(world, timeout_ms=0).can_acquire
    world.ask(DrainNode, node_id=world.now(parked).node_id, deadline_ms=1_000)
    assert not plan(world, timeout_ms=0).can_acquire
