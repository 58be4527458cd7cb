"""Several slots on one node: who shares it with whom, and how keys are counted and take turns."""

import pytest

from hostler.model.lease import Lease, LeasePhase, Share
from hostler.model.reason import Reason
from hostler.testing.builders import a_fixed_tier, a_node, a_pool, an_elastic_tier
from tests.core.leasing.conftest import NewRental
from tests.core.leasing.rental import Rental

OWN = (a_fixed_tier(),)


def of(world: Rental, key: str, share: Share = Share.ANY, **fields: object) -> Lease:
    """Ask for a slot and return the lease."""
    given = {"timeout_ms": 90_000, **fields}
    return world.acquire(fairness_key=key, share=share, **given)  # type: ignore[arg-type]  # fields of a request


@pytest.mark.parametrize(
    ("tenant", "newcomer", "is_together"),
    [
        (("a", Share.ANY), ("b", Share.ANY), True),
        (("a", Share.ANY), ("b", Share.SAME_KEY), False),
        (("a", Share.ANY), ("b", Share.NONE), False),
        (("a", Share.SAME_KEY), ("b", Share.ANY), False),
        (("a", Share.SAME_KEY), ("a", Share.ANY), True),
        (("a", Share.ANY), ("a", Share.SAME_KEY), True),
        (("a", Share.SAME_KEY), ("a", Share.SAME_KEY), True),
        (("a", Share.SAME_KEY), ("a", Share.NONE), False),
        (("a", Share.NONE), ("a", Share.ANY), False),
        (("a", Share.NONE), ("a", Share.SAME_KEY), False),
    ],
)
def test_sc_227_both_sides_must_consent(
    rental: NewRental,
    tenant: tuple[str, Share],
    newcomer: tuple[str, Share],
    is_together: bool,
) -> None:
    world = rental(a_pool(tiers=OWN, slot_count=2), a_node(slot_count=2))
    first, second = of(world, *tenant), of(world, *newcomer)
    assert (second.phase is LeasePhase.HELD) is is_together
    world.release(first)
    assert world.now(second).phase is LeasePhase.HELD


def test_a_node_that_was_mixed_is_of_nobody_until_it_is_idle(rental: NewRental) -> None:
    world = rental(a_pool(tiers=OWN, slot_count=3), a_node(slot_count=3))
    first, second = of(world, "a"), of(world, "b")
    picky = of(world, "b", Share.SAME_KEY)
    assert picky.phase is LeasePhase.WAITING
    world.release(first)
    world.release(second)
    assert world.now(picky).phase is LeasePhase.HELD


def test_sharing_is_checked_together_with_the_requirement(rental: NewRental) -> None:
    from hostler.model.shape import Requirement

    world = rental(a_pool(tiers=OWN, slot_count=2), a_node("n-1", slot_count=2))
    needs = Requirement(capacity=5)
    of(world, "a", Share.SAME_KEY, requirement=needs)
    assert of(world, "b", requirement=needs).phase is LeasePhase.WAITING
    assert of(world, "a", requirement=needs).node_id == "n-1"


def test_one_more_lease_on_a_node_that_the_key_holds_costs_nothing(rental: NewRental) -> None:
    """spec/leasing L-051, L-057: the cap counts machines, not leases."""
    world = rental(
        a_pool(tiers=OWN, slot_count=2, lease_per_key_max=1),
        a_node("n-1", slot_count=2),
        a_node("n-2", slot_count=2),
    )
    first, second, third = of(world, "a"), of(world, "a"), of(world, "a")
    assert (first.node_id, second.node_id) == ("n-1", "n-1")
    assert third.reason is Reason.KEY_CAP_REACHED
    assert of(world, "b").node_id == "n-2"
    assert of(world, "b", Share.SAME_KEY).node_id == "n-2"
    world.release(first)
    assert world.now(third).node_id == "n-1"


def test_a_capped_key_gets_the_slot_that_another_key_leaves_next_to_it(rental: NewRental) -> None:
    world = rental(
        a_pool(tiers=OWN, slot_count=2, lease_per_key_max=1), a_node("n-1", slot_count=2)
    )
    of(world, "a")
    other = of(world, "b")
    waiting = of(world, "a")
    assert waiting.phase is LeasePhase.WAITING
    world.release(other)
    assert world.now(waiting).node_id == "n-1"


def test_leases_that_share_with_nobody_are_given_a_node_each(rental: NewRental) -> None:
    world = rental(a_pool(tiers=(an_elastic_tier(),), slot_count=4))
    for key in "ab":
        of(world, key, Share.NONE)
    assert len(world.commands("launch_machine")) == 2
    world.boot()
    assert len(world.held()) == 2


def test_keys_take_turns(rental: NewRental) -> None:
    """trials F04: tenant A asks for 1,000, B for 1, 10 warm: B is served within one turn."""
    nodes = [a_node(f"n-{i}") for i in range(10)]
    world = rental(a_pool(tiers=OWN, waiting_count_max=2_000), *nodes)
    world.run(*(world.request(f"a{i}", fairness_key="a", timeout_ms=900_000) for i in range(1_000)))
    single = of(world, "b")
    assert single.phase is LeasePhase.WAITING
    world.release(world.fleet.leases[world.held()[0]])
    assert world.now(single).phase is LeasePhase.HELD


def test_age_comes_before_any_priority_in_the_end(rental: NewRental) -> None:
    world = rental(a_pool(tiers=OWN, line_step_ms=10_000), a_node())
    holder = world.acquire()
    old = world.acquire(timeout_ms=900_000)
    world.advance(9_999)
    urgent = world.acquire(priority=1, timeout_ms=900_000)
    world.advance(10_001)
    late = world.acquire(priority=1, timeout_ms=900_000)
    served = []
    for _ in range(3):
        world.release(holder)
        holder = world.fleet.leases[world.held()[0]]
        served.append(holder.lease_id)
    assert served == [urgent.lease_id, old.lease_id, late.lease_id]


def test_waiting_holds_no_room_and_the_urgent_goes_first(rental: NewRental) -> None:
    """trials F02: 100 low requests wait on a full quota, then one high: it goes first."""
    world = rental(a_pool(tiers=OWN), a_node())
    holder = world.acquire()
    world.run(*(world.request(f"low{i}", timeout_ms=900_000) for i in range(100)))
    high = world.acquire(priority=10, timeout_ms=900_000)
    world.release(holder)
    assert world.now(high).phase is LeasePhase.HELD


def test_a_hundred_slots_of_one_machine_serve_a_hundred(rental: NewRental) -> None:
    """trials D07: one machine with 100 slots, 100 requests at once: 100 leases on it."""
    world = rental(a_pool(tiers=OWN, slot_count=100), a_node(slot_count=100))
    world.run(*(world.request(f"r{i}", fairness_key=f"k{i % 7}") for i in range(100)))
    assert len(world.held()) == 100


def test_a_node_that_is_cut_anew_remembers_with_whom_it_may_be_shared(rental: NewRental) -> None:
    """Whoever wants a node for itself keeps it, and nobody's wish outlives its lease."""
    halves, whole = a_pool(tiers=OWN, slot_count=2), a_pool(tiers=OWN, slot_count=1)
    world = rental(whole, a_node("n-1"))
    alone = of(world, "a", Share.NONE)
    world.configure(halves)
    second = of(world, "b")
    assert second.phase is LeasePhase.WAITING
    world.release(alone)
    assert world.now(second).phase is LeasePhase.HELD
    world.release(second)
    alone = of(world, "a", Share.NONE)
    world.configure(whole)
    world.release(alone)
    assert of(world, "b").phase is LeasePhase.HELD
