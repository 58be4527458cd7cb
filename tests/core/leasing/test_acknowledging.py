"""A grant that its holder never took up: taken back, and the node is as it was."""

from hostler.core.inputs import ServerStarted
from hostler.model.lease import LeaseOutcome, LeasePhase
from hostler.model.node import NodePhase, RetireReason
from hostler.testing.builders import a_fixed_tier, a_node, a_pool
from tests.core.leasing.conftest import NewRental
from tests.core.leasing.rental import a_launched_node

OWN = (a_fixed_tier(),)


def test_a_grant_that_nobody_takes_up_is_given_to_the_next(rental: NewRental) -> None:
    world = rental(a_pool(tiers=OWN), a_node())
    lost = world.acquire(ack_ms=2_000)
    waiting = world.acquire(timeout_ms=9_000)
    world.advance(1_999)
    assert world.now(waiting).phase is LeasePhase.WAITING
    world.advance(2_000)
    assert world.now(lost).outcome is LeaseOutcome.UNACKNOWLEDGED
    assert world.now(waiting).phase is LeasePhase.HELD
    assert world.node_of(lost).cordon is None


def test_a_heartbeat_takes_it_up(rental: NewRental) -> None:
    world = rental(a_pool(tiers=OWN, lease_ms=60_000), a_node())
    lease = world.acquire(ack_ms=2_000)
    assert not lease.is_acknowledged
    world.advance(1_000)
    world.heartbeat(lease)
    assert world.now(lease).is_acknowledged
    assert world.now(lease).expires_at_ms == 61_000
    world.advance(61_000)
    assert world.now(lease).outcome is LeaseOutcome.EXPIRED


def test_a_lost_reply_is_answered_with_the_same_lease_while_it_stands(rental: NewRental) -> None:
    world = rental(a_pool(tiers=OWN), a_node("n-1"), a_node("n-2"))
    lost = world.acquire(ack_ms=2_000, idempotency_key="k")
    assert world.acquire(ack_ms=2_000, idempotency_key="k").lease_id == lost.lease_id


def test_a_lost_reply_is_answered_with_the_same_node_if_it_is_free(rental: NewRental) -> None:
    world = rental(a_pool(tiers=OWN), a_node("n-1"), a_node("n-2"))
    other = world.acquire()
    lost = world.acquire(ack_ms=2_000, idempotency_key="k")
    assert lost.node_id == "n-2"
    world.advance(2_000)
    world.release(other)
    again = world.acquire(ack_ms=2_000, idempotency_key="k")
    assert again.lease_id != lost.lease_id
    assert again.node_id == "n-2"
    assert world.acquire(ack_ms=2_000, idempotency_key="k").lease_id == again.lease_id


def test_a_lost_reply_is_answered_with_a_free_node_otherwise(rental: NewRental) -> None:
    world = rental(a_pool(tiers=OWN), a_node("n-1"), a_node("n-2"))
    lost = world.acquire(ack_ms=2_000, idempotency_key="k")
    world.advance(2_000)
    world.acquire()
    again = world.acquire(ack_ms=2_000, idempotency_key="k")
    assert (lost.node_id, again.node_id) == ("n-1", "n-2")


def test_whoever_was_away_with_the_server_has_the_whole_time_again(rental: NewRental) -> None:
    world = rental(a_pool(tiers=OWN), a_node())
    lease = world.acquire(ack_ms=2_000)
    world.run(ServerStarted(), at_ms=1_500)
    assert world.now(lease).expires_at_ms == 3_500


def test_the_last_use_of_a_node_is_not_used_up_by_a_grant_that_nobody_took(
    rental: NewRental,
) -> None:
    world = rental(a_pool(use_count_max=1), a_launched_node())
    lost = world.acquire(ack_ms=2_000)
    world.advance(2_000)
    node = world.node_of(lost)
    assert (node.phase, node.retire_reason, node.use_count) == (NodePhase.READY, None, 0)
    assert world.acquire().node_id == node.node_id


def test_the_next_one_can_see_who_was_there_before(rental: NewRental) -> None:
    world = rental(a_pool(tiers=OWN), a_node())
    first = world.acquire(fairness_key="build-42")
    world.advance(500)
    world.release(first)
    tenant = world.node_of(first).last_tenant
    assert tenant is not None
    assert (tenant.lease_id, tenant.fairness_key) == (first.lease_id, "build-42")
    assert (tenant.outcome, tenant.ended_at_ms) == (LeaseOutcome.HEALTHY, 500)


def test_inv_10_a_last_use_that_was_none_may_be_given_to_whoever_waits(rental: NewRental) -> None:
    world = rental(a_pool(use_count_max=1), a_launched_node())
    lost = world.acquire(ack_ms=2_000)
    waiting = world.acquire(timeout_ms=9_000)
    world.advance(2_000)
    assert world.now(waiting).node_id == world.now(lost).node_id
    assert world.node_of(waiting).retire_reason is RetireReason.USED_UP
