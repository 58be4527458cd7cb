"""A node is to go: its holders are told, may leave early or stay a little longer, and then end."""

from msgspec.structs import replace

from hostler.base.ids import NodeId
from hostler.core.inputs import DrainNode, ExtendLease, FullScan, UncordonNode
from hostler.core.replies import Refused
from hostler.model import Lease
from hostler.model.lease import LeaseOutcome, LeasePhase
from hostler.model.node import NodePhase, RetireReason
from hostler.testing.builders import a_fixed_tier, a_node, a_pool
from tests.core.leasing.conftest import NewRental
from tests.core.leasing.rental import Rental, a_launched_node

OWN = (a_fixed_tier(),)


def drain(world: Rental, node_id: str, deadline_ms: int) -> None:
    """Drain a node."""
    world.ask(DrainNode, node_id=NodeId(node_id), deadline_ms=deadline_ms)


def extend(world: Rental, lease: Lease, by_ms: int) -> Refused | None:
    """Ask to stay longer; return the refusal, if any."""
    now = world.now(lease)
    answer = world.ask(ExtendLease, lease_id=now.lease_id, epoch=now.epoch, by_ms=by_ms)
    return answer if isinstance(answer, Refused) else None


def test_holders_are_told_and_ended_at_the_deadline(rental: NewRental) -> None:
    world = rental(a_pool(tiers=OWN), a_node("n-1"))
    lease = world.acquire()
    drain(world, "n-1", 30_000)
    assert world.now(lease).retiring_at_ms == 30_000
    assert world.events().count("lease_retiring") == 1
    world.advance(29_999)
    assert world.now(lease).phase is LeasePhase.HELD
    world.advance(30_000)
    assert world.now(lease).outcome is LeaseOutcome.REVOKED
    assert world.now(lease).phase_since_at_ms == 30_000


def test_a_holder_that_leaves_early_ends_the_wait(rental: NewRental) -> None:
    world = rental(a_pool(tiers=OWN), a_node("n-1"))
    lease = world.acquire()
    drain(world, "n-1", 30_000)
    world.release(lease)
    assert "node_drained" in world.events()


def test_a_holder_may_stay_longer_within_the_bound(rental: NewRental) -> None:
    world = rental(a_pool(tiers=OWN, retire_extension_ms_max=10_000), a_node("n-1"))
    lease = world.acquire()
    refused = extend(world, lease, 5_000)
    assert refused is not None
    assert refused.code == "lease_not_retiring"
    drain(world, "n-1", 30_000)
    assert extend(world, lease, 6_000) is None
    too_much = extend(world, lease, 6_000)
    assert too_much is not None
    assert too_much.code == "extension_invalid"
    assert "from 1 to 4000 now" in too_much.message
    world.advance(35_999)
    assert world.now(lease).phase is LeasePhase.HELD
    world.advance(36_000)
    assert world.now(lease).outcome is LeaseOutcome.REVOKED
    gone = extend(world, lease, 1)
    assert gone is not None
    assert gone.code == "lease_not_held"


def test_nobody_stays_longer_unless_the_pool_lets_them(rental: NewRental) -> None:
    world = rental(a_pool(tiers=OWN), a_node("n-1"))
    lease = world.acquire()
    drain(world, "n-1", 30_000)
    assert extend(world, lease, 1) is not None


def test_a_drain_that_is_ended_lets_leases_stay(rental: NewRental) -> None:
    world = rental(a_pool(tiers=OWN), a_node("n-1"))
    lease = world.acquire()
    drain(world, "n-1", 30_000)
    world.ask(UncordonNode, node_id=NodeId("n-1"))
    assert world.now(lease).retiring_at_ms is None
    world.advance(60_000)
    assert world.now(lease).phase is LeasePhase.HELD


def test_a_new_deadline_is_told_again(rental: NewRental) -> None:
    world = rental(a_pool(tiers=OWN), a_node("n-1"))
    lease = world.acquire()
    drain(world, "n-1", 30_000)
    drain(world, "n-1", 10_000)
    assert world.now(lease).retiring_at_ms == 10_000
    assert world.events().count("lease_retiring") == 2


def test_a_node_that_is_to_retire_gives_notice(rental: NewRental) -> None:
    world = rental(a_pool(retire_notice_ms=20_000), a_launched_node("n-1"))
    lease = world.acquire(lease_ms=600_000)
    node = world.node_of(lease)
    world.fleet.write(node.KIND, node.key, replace(node, retire_reason=RetireReason.SURPLUS))
    world.run(FullScan())
    assert world.now(lease).retiring_at_ms == 20_000
    world.advance(20_000)
    assert world.now(lease).outcome is LeaseOutcome.REVOKED
    assert world.node_of(lease).phase is NodePhase.STOPPING


def test_siblings_of_a_poisoned_lease_go_on_undisturbed(rental: NewRental) -> None:
    """spec/leasing L-127."""
    world = rental(a_pool(slot_count=2), a_launched_node("n-1", slot_count=2))
    bad, good = world.acquire(), world.acquire()
    world.poison(bad)
    assert world.node_of(good).phase is NodePhase.DRAINING
    assert world.now(good).retiring_at_ms is None
