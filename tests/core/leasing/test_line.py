"""The waiting line: order, passing over, bounds, deadlines, and what it tells."""

import pytest

from hostler.core.inputs import AcquireLease, ReleaseLease
from hostler.core.step import step
from hostler.core.waiting import why_waiting
from hostler.model.lease import LeasePhase
from hostler.model.reason import Reason
from hostler.model.shape import Capability, CapabilityRequest, Requirement, Shape
from hostler.testing.builders import LARGE, SMALL, a_fixed_tier, a_node, a_pool, an_elastic_tier
from tests.core.leasing.conftest import NewRental
from tests.core.mirror import snapshot

OWN = (a_fixed_tier(),)
GPU = Requirement(capabilities=(CapabilityRequest(name="gpu"),))


def test_higher_priority_goes_first_then_age(rental: NewRental) -> None:
    world = rental(a_pool(tiers=OWN), a_node())
    holder = world.acquire()
    late = world.acquire(timeout_ms=9_000)
    early = world.acquire(timeout_ms=9_000, priority=1)
    last = world.acquire(timeout_ms=9_000, priority=1)
    order = []
    for _ in range(3):
        world.release(holder)
        holder = world.fleet.leases[world.held()[0]]
        order.append(holder.lease_id)
    assert order == [early.lease_id, last.lease_id, late.lease_id]


def test_age_outlasts_the_width_of_ids(rental: NewRental) -> None:
    world = rental(a_pool(tiers=OWN), a_node())
    holder = world.acquire()
    counter = world.fleet.counters["l"]
    world.fleet.write(counter.KIND, counter.key, type(counter)(name="l", value=999_998))
    elder, younger = world.acquire(), world.acquire()
    assert (elder.lease_id, younger.lease_id) == ("l-999999", "l-1000000")
    world.release(holder)
    assert world.held() == ["l-999999"]


def test_a_capped_key_is_passed_over_and_served_once_it_may(rental: NewRental) -> None:
    world = rental(a_pool(tiers=OWN, lease_per_key_max=1), a_node("n-1"), a_node("n-2"))
    first = world.acquire(fairness_key="a")
    capped = world.acquire(fairness_key="a", timeout_ms=9_000)
    other = world.acquire(fairness_key="b")
    assert capped.reason is Reason.KEY_CAP_REACHED
    assert other.phase is LeasePhase.HELD
    world.release(first)
    assert world.now(capped).phase is LeasePhase.HELD


def test_a_raised_cap_serves_at_once(rental: NewRental) -> None:
    pool = a_pool(tiers=OWN, lease_per_key_max=1)
    world = rental(pool, a_node("n-1"), a_node("n-2"))
    world.acquire(fairness_key="a")
    capped = world.acquire(fairness_key="a", timeout_ms=9_000)
    world.configure(a_pool(tiers=OWN, lease_per_key_max=2))
    assert world.now(capped).phase is LeasePhase.HELD


def test_without_a_key_leases_count_under_their_holder(rental: NewRental) -> None:
    world = rental(a_pool(tiers=OWN, lease_per_key_max=1), a_node("n-1"), a_node("n-2"))
    assert world.acquire(principal="ann").phase is LeasePhase.HELD
    assert world.acquire(principal="ann").phase is LeasePhase.WAITING
    assert world.acquire(principal="bob").phase is LeasePhase.HELD


def test_what_a_slot_cannot_serve_is_passed_over(rental: NewRental) -> None:
    world = rental(
        a_pool(tiers=OWN),
        a_node("n-1", shape=SMALL),
        a_node("n-2", shape=LARGE),
    )
    gpu = world.acquire(requirement=GPU)
    waiting = world.acquire(requirement=GPU, timeout_ms=9_000)
    small = world.acquire()
    assert (gpu.node_id, small.node_id) == ("n-2", "n-1")
    assert waiting.phase is LeasePhase.WAITING
    world.release(small)
    assert world.now(waiting).phase is LeasePhase.WAITING
    world.release(gpu)
    assert world.now(waiting).node_id == "n-2"


def test_a_slot_is_an_equal_share_of_its_node(rental: NewRental) -> None:
    world = rental(a_pool(tiers=OWN, slot_count=2), a_node(slot_count=2))
    assert world.acquire(requirement=Requirement(capacity=5)).phase is LeasePhase.HELD
    assert world.refused(requirement=Requirement(capacity=6)).code == "unsatisfiable"


@pytest.mark.parametrize(
    ("shape", "requirement"),
    [
        (Shape(capacity=4), Requirement(capacity=5)),
        (Shape(cores_milli=999), Requirement(cores_milli=1_000)),
        (Shape(memory_bytes=1), Requirement(memory_bytes=2)),
        (Shape(), GPU),
        (Shape(capabilities=(Capability(name="gpu", count=0),)), GPU),
        (
            Shape(capabilities=(Capability(name="gpu", count=1, attributes={"model": "t4"}),)),
            Requirement(capabilities=(CapabilityRequest(name="gpu", attributes={"model": "a10"}),)),
        ),
    ],
)
def test_what_no_node_could_ever_serve_is_refused_at_once(
    rental: NewRental, shape: Shape, requirement: Requirement
) -> None:
    world = rental(a_pool(tiers=OWN), a_node(shape=shape))
    assert world.refused(requirement=requirement).code == Reason.UNSATISFIABLE


def test_a_fixed_tier_without_nodes_may_still_bring_anything(rental: NewRental) -> None:
    world = rental(a_pool(tiers=OWN))
    assert world.acquire(requirement=GPU).phase is LeasePhase.WAITING


def test_what_a_new_configuration_can_never_serve_is_refused_then(rental: NewRental) -> None:
    world = rental(a_pool(), a_node(tier="cloud", shape=SMALL))
    waiting = world.acquire(requirement=GPU, timeout_ms=90_000)
    for command_id in world.commands("launch_machine"):
        world.fail(command_id, "request_invalid")
    small, _ = an_elastic_tier().offers
    world.configure(a_pool(tiers=(an_elastic_tier(offers=(small,)),)))
    assert world.now(waiting).reason is Reason.UNSATISFIABLE


def test_patience_of_zero_is_refused_unless_something_is_free(rental: NewRental) -> None:
    world = rental(a_pool(tiers=OWN), a_node())
    assert world.acquire(timeout_ms=0).phase is LeasePhase.HELD
    refused = world.acquire(timeout_ms=0)
    assert (refused.phase, refused.reason) == (LeasePhase.REFUSED, Reason.TIMED_OUT)
    assert "no_capacity" in refused.reason_detail


def test_a_slot_freed_at_the_deadline_serves_and_one_after_it_does_not(rental: NewRental) -> None:
    for freed_at_ms, phase in ((1_000, LeasePhase.HELD), (1_001, LeasePhase.REFUSED)):
        world = rental(a_pool(tiers=OWN), a_node())
        holder = world.acquire()
        waiting = world.acquire(timeout_ms=1_000)
        # One late step sees both: the clock stood still while the server was busy.
        world.run(
            ReleaseLease(request_id="x", principal="tester", lease_id=holder.lease_id),
            at_ms=freed_at_ms,
        )
        assert world.now(waiting).phase is phase


def test_a_line_is_bounded_but_free_slots_do_not_count(rental: NewRental) -> None:
    world = rental(a_pool(tiers=OWN, waiting_count_max=1), a_node("n-1"), a_node("n-2"))
    names = ["a", "b", "c", "d"]
    world.run(*(world.request(name) for name in names))
    phases = [world.answered(name).phase for name in names[:3]]
    assert phases == [LeasePhase.HELD, LeasePhase.HELD, LeasePhase.WAITING]
    assert world.replies["d"].code == Reason.OVERLOADED  # type: ignore[union-attr]  # refused


def test_a_line_full_of_a_capped_key_still_serves_others(rental: NewRental) -> None:
    world = rental(
        a_pool(tiers=OWN, waiting_count_max=2, lease_per_key_max=1), a_node("n-1"), a_node("n-2")
    )
    for _ in range(3):
        world.acquire(fairness_key="a")
    assert world.acquire(fairness_key="b").phase is LeasePhase.HELD
    assert world.refused(fairness_key="c").code == Reason.OVERLOADED


def test_one_too_many_within_a_batch_is_refused_as_overloaded(rental: NewRental) -> None:
    world = rental(
        a_pool(tiers=OWN, waiting_count_max=1, lease_per_key_max=1), a_node("n-1"), a_node("n-2")
    )
    world.acquire(fairness_key="a")
    world.run(*(world.request(name, fairness_key="a") for name in "xy"))
    assert world.answered("x").reason is Reason.KEY_CAP_REACHED
    assert world.answered("y").reason is Reason.OVERLOADED


def test_a_waiting_lease_tells_what_would_help(rental: NewRental) -> None:
    world = rental(a_pool(tiers=OWN, lease_per_key_max=2), a_node())
    world.acquire(fairness_key="a")
    waiting = world.acquire(fairness_key="b")
    why = why_waiting(world.fleet, waiting)
    assert why.reason is Reason.NO_CAPACITY
    assert "no slot is free on 1 ready nodes with 1 leases" in why.detail
    world.run(*(world.request(name, fairness_key="a") for name in "xy"))
    world.release(world.fleet.leases[world.held()[0]])


def test_a_disabled_pool_refuses_those_who_wait(rental: NewRental) -> None:
    world = rental(a_pool(tiers=OWN), a_node())
    world.acquire()
    waiting = world.acquire(timeout_ms=9_000)
    world.configure()
    assert world.now(waiting).reason is Reason.POOL_DISABLED
    assert world.refused().code == Reason.POOL_DISABLED


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"pool": "nowhere"}, "pool_not_found"),
        ({"timeout_ms": -1}, "timeout_invalid"),
        ({"timeout_ms": 604_800_001}, "timeout_invalid"),
        ({"lease_ms": 0}, "lease_ms_invalid"),
        ({"lease_ms": 600_001}, "lease_ms_invalid"),
        ({"requirement": Requirement(capacity=-1)}, "requirement_invalid"),
    ],
)
def test_a_malformed_request_is_refused(
    rental: NewRental, fields: dict[str, object], code: str
) -> None:
    world = rental(a_pool(tiers=OWN), a_node())
    assert world.refused(**fields).code == code
    assert not world.fleet.leases.rows


def test_a_spare_a_cordoned_and_a_silent_node_are_not_given(rental: NewRental) -> None:
    world = rental(a_pool(tiers=OWN, spare_count=1), a_node("n-1", is_spare=True))
    assert world.acquire().phase is LeasePhase.WAITING


def test_a_request_sent_twice_under_one_key_is_one_lease(rental: NewRental) -> None:
    world = rental(a_pool(tiers=OWN), a_node("n-1"), a_node("n-2"))
    fields = {"pool": "p", "timeout_ms": 1_000, "idempotency_key": "k"}
    first = world.ask(AcquireLease, **fields)
    again = world.ask(AcquireLease, **fields)
    assert (first.subject_id, again.subject_id) == ("l-000001", "l-000001")  # type: ignore[union-attr]  # both accepted
    assert again.is_repeat  # type: ignore[union-attr]  # accepted
    assert world.ask(AcquireLease, **fields, principal="other").subject_id == "l-000002"  # type: ignore[union-attr]  # accepted
    assert world.refused(idempotency_key="k", priority=1).code == "idempotency_key_reused"


def test_a_repeat_of_a_waiting_request_does_not_stand_in_line_twice(rental: NewRental) -> None:
    world = rental(a_pool(tiers=OWN), a_node())
    world.acquire()
    waiting = world.acquire(idempotency_key="k")
    assert world.acquire(idempotency_key="k").lease_id == waiting.lease_id
    assert world.fleet.index.leases_waiting.count("p") == 1


def test_a_dropped_step_leaves_the_line_as_it_was(rental: NewRental) -> None:
    """A commit that fails is undone; the line and the free slots are then as before it."""
    world = rental(a_pool(tiers=OWN, lease_per_key_max=1), a_node("n-1"), a_node("n-2"))
    holder = world.acquire(fairness_key="a")
    capped = world.acquire(fairness_key="a", timeout_ms=9_000)
    before = world.fleet.digest()
    release = ReleaseLease(request_id="x", principal="tester", lease_id=holder.lease_id)
    dropped = step(world.fleet, [release, world.request("y", fairness_key="b")], world.now_ms)
    world.fleet.drop(dropped)
    assert world.fleet.digest() == before
    assert world.fleet.index.leases_waiting.fronts("p") == []
    assert world.fleet.index.leases_waiting.keys("p") == [capped.lease_id]
    assert world.fleet.index.nodes_free.keys("p") == ["n-2"]
    world.release(holder)
    assert world.now(capped).phase is LeasePhase.HELD


def test_a_dropped_step_leaves_who_stands_alone_in_line(rental: NewRental) -> None:
    """Noted as just come rather than filed, as it was: whoever asks finds the same."""
    world = rental(a_pool(tiers=OWN), a_node())
    world.acquire()
    first, alone = world.acquire(timeout_ms=9_000), world.acquire(timeout_ms=9_000)
    world.release(first)
    before = snapshot(world.fleet)
    release = ReleaseLease(request_id="x", principal="tester", lease_id=alone.lease_id)
    world.fleet.drop(step(world.fleet, [release], world.now_ms))
    assert snapshot(world.fleet) == before


def test_a_dropped_step_that_served_several_leaves_their_order(rental: NewRental) -> None:
    world = rental(a_pool(tiers=OWN), a_node("n-1"), a_node("n-2"))
    holders = [world.acquire(), world.acquire()]
    waiting = [world.acquire(timeout_ms=9_000) for _ in range(3)]
    releases = [
        ReleaseLease(request_id=lease.lease_id, principal="tester", lease_id=lease.lease_id)
        for lease in holders
    ]
    dropped = step(world.fleet, releases, world.now_ms)
    world.fleet.drop(dropped)
    assert world.fleet.index.leases_waiting.keys("p") == [lease.lease_id for lease in waiting]
    world.run(*releases)
    assert world.held() == [lease.lease_id for lease in waiting[:2]]


def test_those_who_come_together_are_served_in_their_order(rental: NewRental) -> None:
    world = rental(a_pool(tiers=OWN), a_node("n-1"), a_node("n-2"))
    world.run(
        world.request("plain"),
        world.request("later", timeout_ms=9_000),
        world.request("urgent", priority=1),
    )
    assert world.answered("urgent").node_id == "n-1"
    assert world.answered("plain").node_id == "n-2"
    assert world.answered("later").phase is LeasePhase.WAITING


def test_a_key_outlives_the_record_of_its_lease(rental: NewRental) -> None:
    world = rental(a_pool(tiers=OWN), a_node())
    lease = world.acquire(idempotency_key="k")
    world.release(lease)
    world.advance(1_000_000)
    assert lease.lease_id not in world.fleet.leases
    assert world.refused(idempotency_key="k").code == "lease_forgotten"
    world.advance(86_400_000)
    assert world.acquire(idempotency_key="k").phase is LeasePhase.HELD


def test_who_does_not_want_to_wait_is_not_told_of_the_line(rental: NewRental) -> None:
    world = rental(a_pool(tiers=OWN, waiting_count_max=1), a_node())
    world.acquire()
    world.acquire(timeout_ms=9_000)
    assert world.refused().code == Reason.OVERLOADED
    assert world.acquire(timeout_ms=0).reason is Reason.TIMED_OUT


def test_capabilities_that_are_not_reported_yet_may_turn_out_to_fit(rental: NewRental) -> None:
    world = rental(a_pool(tiers=OWN), a_node(shape=Shape(capabilities=None)))
    waiting = world.acquire(requirement=GPU)
    assert waiting.phase is LeasePhase.WAITING
    assert world.acquire(requirement=Requirement(capacity=1)).phase is LeasePhase.WAITING
    assert world.acquire().phase is LeasePhase.HELD
