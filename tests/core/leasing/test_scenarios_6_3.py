"""spec/leasing.md 6.3: settlement and leases."""

from hostler.core.inputs import ReleaseLease
from hostler.core.replies import Accepted, Refused
from hostler.model.lease import LeaseOutcome, LeasePhase
from hostler.model.node import NodePhase, RetireReason
from hostler.testing.builders import a_fixed_tier, a_node, a_pool, an_elastic_tier
from tests.core.leasing.conftest import NewRental
from tests.core.leasing.rental import a_launched_node

OWN = (a_fixed_tier(),)
CLOUD = (an_elastic_tier(node_count_max=1),)


def test_sc_050_default_outcome(rental: NewRental) -> None:
    """Given a lease, when released without an argument, then it counts as healthy and the worker is
    idle."""
    world = rental(a_pool(tiers=OWN), a_node())
    lease = world.acquire()
    world.ask(ReleaseLease, lease_id=lease.lease_id)
    assert world.now(lease).outcome is LeaseOutcome.HEALTHY
    assert world.node_of(lease).idle_since_at_ms is not None
    assert world.fleet.index.nodes_free.count("p") == 1


def test_sc_051_once_only(rental: NewRental) -> None:
    """Given a released lease, when released again and failed, then nothing changes."""
    world = rental(a_pool(tiers=OWN), a_node())
    lease = world.acquire()
    world.release(lease)
    before = world.fleet.digest()
    for answer in (world.release(lease), world.poison(lease)):
        assert answer == Accepted(subject_id=lease.lease_id, is_repeat=True)
    assert world.fleet.digest() == before


def test_sc_052_concurrent_settlement(rental: NewRental) -> None:
    """Given one handle, when release and fail are started together, then exactly one takes
    effect."""
    world = rental(a_pool(tiers=OWN), a_node())
    lease = world.acquire()
    world.run(
        *(
            ReleaseLease(
                request_id=outcome.value,
                principal="tester",
                lease_id=lease.lease_id,
                outcome=outcome,
            )
            for outcome in (LeaseOutcome.HEALTHY, LeaseOutcome.POISON)
        )
    )
    assert world.now(lease).outcome is LeaseOutcome.HEALTHY
    assert world.node_of(lease).cordon is None
    assert world.node_of(lease).lease_count == 0


def test_sc_053_old_handle(rental: NewRental) -> None:
    """Given lease 1 released and the worker leased again, when lease 1 is failed (with or without a
    second release), then inFlight stays 1 and the worker stays unflagged."""
    world = rental(a_pool(tiers=OWN), a_node())
    first = world.acquire()
    world.release(first)
    second = world.acquire()
    assert second.epoch > first.epoch
    for answer in (world.poison(first), world.release(first), world.poison(first)):
        assert isinstance(answer, Accepted)
        assert answer.is_repeat
    assert world.now(second).phase is LeasePhase.HELD
    assert (world.node_of(second).lease_count, world.node_of(second).cordon) == (1, None)


def test_sc_054_after_destruction(rental: NewRental) -> None:
    """Given a worker destroyed, when its late release comes, then nothing changes."""
    world = rental(a_pool(tiers=CLOUD), a_launched_node())
    lease = world.acquire()
    world.release(lease, LeaseOutcome.REVOKED, principal="operator", is_operator=True)
    world.succeed(world.commands("stop_machine")[0])
    assert world.node_of(lease).phase is NodePhase.RETIRED
    before = world.fleet.digest()
    assert world.release(lease) == Accepted(subject_id=lease.lease_id, is_repeat=True)
    assert world.fleet.digest() == before


def test_sc_055_poison(rental: NewRental) -> None:
    """Given a lease, when failed, then destroy is called once with its reason, and in the end total
    is 0."""
    world = rental(a_pool(tiers=CLOUD), a_launched_node())
    lease = world.acquire()
    world.poison(lease, detail="disk full")
    node = world.node_of(lease)
    assert (node.retire_reason, node.lease_count) == (RetireReason.POISONED, 0)
    assert world.now(lease).outcome_detail == "disk full"
    assert len(world.commands("stop_machine")) == 1
    world.succeed(world.commands("stop_machine")[0])
    assert not world.alive()


def test_sc_056_two_settlements_one_worker(rental: NewRental) -> None:
    """Given slots 2 and two leases, when both settle together, then inFlight is seen as 2, 1, 0 and
    never anything else."""
    world = rental(a_pool(tiers=OWN, slot_count=2), a_node(slot_count=2))
    first, second = world.acquire(), world.acquire()
    seen = [world.node_of(first).lease_count]
    for lease in (first, second):
        world.release(lease)
        seen.append(world.node_of(first).lease_count)
    assert seen == [2, 1, 0]


def test_sc_058_heartbeat(rental: NewRental) -> None:
    """Given a lease, when heartbeats come at 5,000 and 7,000, then the last-heartbeat is 5,000 then
    7,000 (and the lease lives that much longer, G-50)."""
    world = rental(a_pool(tiers=OWN, lease_ms=6_000), a_node())
    lease = world.acquire()
    for at_ms in (5_000, 7_000):
        world.advance(at_ms)
        world.heartbeat(lease)
        assert world.now(lease).heartbeat_at_ms == at_ms
        assert world.now(lease).expires_at_ms == at_ms + 6_000
    world.advance(12_999)
    assert world.now(lease).phase is LeasePhase.HELD
    world.advance(13_000)
    assert world.now(lease).outcome is LeaseOutcome.EXPIRED


def test_sc_059_failed_destroy(rental: NewRental) -> None:
    """Given destroy of the worker fails, when its lease fails, then the worker still counts, takes
    nothing, and its stop is tried until the backend says that it is gone."""
    world = rental(a_pool(tiers=CLOUD), a_launched_node())
    lease = world.acquire()
    world.poison(lease)
    (stop,) = world.commands("stop_machine")
    world.fail(stop, "unreachable")
    assert [n.lease_count for n in world.alive()] == [0]
    assert world.fleet.index.nodes_free.count("p") == 0
    world.advance(60_000)
    assert world.commands("stop_machine") == [stop]
    world.succeed(stop)
    assert not world.alive()


def test_sc_064_quick_release(rental: NewRental) -> None:
    """Given a destroy that takes 30 s, when a lease is failed, then the call returns without
    waiting for the destroy, and the worker takes no new lease."""
    world = rental(a_pool(tiers=CLOUD), a_launched_node())
    lease = world.acquire()
    assert isinstance(world.poison(lease), Accepted)
    assert world.now(lease).phase is LeasePhase.SETTLED
    assert world.acquire().phase is LeasePhase.WAITING


def test_sc_065_stale_heartbeat(rental: NewRental) -> None:
    """Given a worker re-leased to a second run, when the first handle heartbeats, then the second
    lease's renewal time does not move."""
    world = rental(a_pool(tiers=OWN), a_node())
    first = world.acquire()
    world.release(first)
    second = world.acquire()
    world.advance(100)
    answer = world.heartbeat(first)
    assert isinstance(answer, Refused)
    assert answer.code == "lease_ended"
    assert world.now(second) == second
