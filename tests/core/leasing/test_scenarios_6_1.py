"""spec/leasing.md 6.1: selection, growth, fairness, affinity.

A worker is a node, a driver a provider, a probe the agent's hello, `max` the `node_count_max` of
an elastic tier. Where the better system ("target") differs from the source, the target is tested:
a failed launch never fails the request that it was for, it waits for the next one.
"""

from hostler.model.lease import LeasePhase
from hostler.model.node import NodePhase
from hostler.model.reason import Reason
from hostler.model.shape import CapabilityRequest, Requirement
from hostler.testing.builders import a_fixed_tier, a_node, a_pool, an_elastic_tier
from tests.core.leasing.conftest import NewRental
from tests.core.leasing.rental import a_launched_node

GPU = Requirement(capabilities=(CapabilityRequest(name="gpu"),))


def test_sc_001_grow_on_demand(rental: NewRental) -> None:
    """Given an empty pool, when one acquire is made, then it is leased on the first worker."""
    world = rental(a_pool(tiers=(an_elastic_tier(node_count_max=1),)))
    lease = world.acquire(timeout_ms=60_000)
    assert (lease.phase, lease.reason) == (LeasePhase.WAITING, Reason.MACHINE_STARTING)
    world.boot()
    assert world.now(lease).phase is LeasePhase.HELD
    assert [(n.node_id, n.lease_count) for n in world.alive()] == [("n-000001", 1)]


def test_sc_002_reuse(rental: NewRental) -> None:
    """Given SC-001 released healthy, when another acquire is made, then the same worker is leased,
    total stays 1, and the backend has seen one provision."""
    world = rental(a_pool(tiers=(an_elastic_tier(node_count_max=1),)))
    first = world.acquire(timeout_ms=60_000)
    world.boot()
    world.release(first)
    assert world.fleet.index.nodes_free.count("p") == 1
    second = world.acquire()
    assert second.node_id == world.now(first).node_id
    assert world.events().count("node_requested") == 1


def test_sc_003_unready_machine(rental: NewRental) -> None:
    """Given probes of worker-0 always fail, then the backend holds no machine of it in the end,
    and a next machine serves (G-18: the request waits on instead of failing)."""
    world = rental(a_pool(tiers=(an_elastic_tier(node_count_max=1, boot_ms=10_000),)))
    lease = world.acquire(timeout_ms=600_000)
    (silent,) = world.launch()
    world.advance(10_000)
    assert world.now(lease).phase is LeasePhase.WAITING
    assert world.fleet.nodes[silent.node_id].phase is NodePhase.STOPPING
    world.succeed(world.commands("stop_machine")[0])
    assert world.fleet.nodes[silent.node_id].phase is NodePhase.RETIRED
    world.advance(15_000)
    world.boot()
    assert world.node_of(lease).node_id == "n-000002"


def test_sc_004_late_readiness(rental: NewRental) -> None:
    """Given the first two probes fail and the third succeeds, then leased, and no destroy sent."""
    world = rental(a_pool(tiers=(an_elastic_tier(node_count_max=1, boot_ms=10_000),)))
    lease = world.acquire(timeout_ms=600_000)
    (node,) = world.launch()
    world.advance(9_999)
    world.run(world.hello(node))
    assert world.now(lease).phase is LeasePhase.HELD
    assert not world.commands("stop_machine")


def test_sc_005_disabled(rental: NewRental) -> None:
    """Given enabled false, when acquire, then pool_disabled with no driver call."""
    world = rental(a_pool(is_enabled=False), a_node())
    assert world.refused().code == Reason.POOL_DISABLED
    assert not world.commands("launch_machine")


def test_sc_006_atomic_stamping(rental: NewRental) -> None:
    """Given max 2 and one idle worker, when two acquires of different issues start together, then
    both are leased on different workers."""
    world = rental(a_pool(tiers=(an_elastic_tier(node_count_max=2),)), a_launched_node())
    world.run(
        *(world.request(name, fairness_key=name, timeout_ms=60_000) for name in ("one", "two"))
    )
    world.boot()
    nodes = {world.answered(name).node_id for name in ("one", "two")}
    assert nodes == {"n-900001", "n-000001"}


def test_sc_007_reservation(rental: NewRental) -> None:
    """Given max 1, empty, timeouts 50, when two acquires start together, then exactly one is
    leased, the other is refused, total 1."""
    world = rental(a_pool(tiers=(an_elastic_tier(node_count_max=1),)))
    world.run(*(world.request(name, timeout_ms=50) for name in ("one", "two")))
    world.now_ms = 30
    world.boot()
    world.advance(50)
    assert world.answered("one").phase is LeasePhase.HELD
    assert world.answered("two").reason is Reason.TIMED_OUT
    assert len(world.alive()) == 1


def test_sc_008_reservation_at_scale(rental: NewRental) -> None:
    """Given max 3 and provisions that finish later, when 8 acquires of 8 issues start together,
    then at most 3 are leased and total never exceeds 3 at any observation."""
    world = rental(a_pool(tiers=(an_elastic_tier(node_count_max=3),)))
    names = [f"issue-{i}" for i in range(8)]
    world.run(*(world.request(name, fairness_key=name) for name in names))
    assert len(world.alive()) == 3
    world.boot()
    assert len(world.alive()) == 3
    assert len(world.held()) == 3
    world.advance(1_000)
    assert len(world.in_phase(LeasePhase.REFUSED)) == 5
    assert len(world.alive()) == 3


def test_sc_009_failed_provision(rental: NewRental) -> None:
    """Given provisions raise, then the failure is told; given the fault is cleared, an acquire is
    leased (G-18: here the very request, which waited)."""
    world = rental(a_pool(tiers=(an_elastic_tier(node_count_max=1, boot_ms=600_000),)))
    lease = world.acquire(timeout_ms=600_000)
    world.fail(world.commands("launch_machine")[0], "capacity_unavailable")
    assert "node_launch_failed" in world.events()
    assert world.now(lease).phase is LeasePhase.WAITING
    world.advance(300_000)
    world.boot()
    assert world.now(lease).phase is LeasePhase.HELD


def test_sc_010_slots(rental: NewRental) -> None:
    """Given max 1 and slots 2, when issues a, b, c acquire with timeout 30, then a and b share one
    worker, inFlight 2, and c is refused after 30 ms."""
    world = rental(
        a_pool(tiers=(an_elastic_tier(node_count_max=1),), slot_count=2),
        a_launched_node(slot_count=2),
    )
    a, b, c = (world.acquire(fairness_key=key, timeout_ms=30) for key in "abc")
    assert a.node_id == b.node_id
    assert world.node_of(a).lease_count == 2
    world.advance(29)
    assert world.now(c).phase is LeasePhase.WAITING
    world.advance(30)
    assert world.now(c).reason is Reason.TIMED_OUT


def test_sc_012_affinity(rental: NewRental) -> None:
    """Given max 2 and two idle workers, when acquire names the first, then the first is leased,
    also if the second has been idle longer."""
    world = rental(
        a_pool(tiers=(a_fixed_tier(),)),
        a_node("n-1", idle_since_at_ms=50),
        a_node("n-2", idle_since_at_ms=10),
        now_ms=100,
    )
    assert world.acquire(affinity_node_id="n-1").node_id == "n-1"
    assert world.acquire(affinity_node_id="n-2").node_id == "n-2"


def test_sc_013_affinity_does_not_wait(rental: NewRental) -> None:
    """Given the preferred worker is leased and another is idle, when acquire names the busy host,
    then the idle one is leased at once."""
    world = rental(a_pool(tiers=(a_fixed_tier(),)), a_node("n-1"), a_node("n-2"))
    busy = world.acquire()
    assert world.acquire(affinity_node_id=busy.node_id).node_id == "n-2"


def test_sc_015_fairness_cap(rental: NewRental) -> None:
    """Given max 4 and cap 1, when issue-A acquires twice (second with timeout 30), then the second
    is refused after 30 ms although there is room, and issue-B is leased."""
    nodes = [a_node(f"n-{i}") for i in range(4)]
    world = rental(a_pool(tiers=(a_fixed_tier(),), lease_per_key_max=1), *nodes)
    world.acquire(fairness_key="issue-A")
    second = world.acquire(fairness_key="issue-A", timeout_ms=30)
    world.advance(30)
    assert world.now(second).reason is Reason.TIMED_OUT
    assert "on 1 nodes (lease_per_key_max 1)" in world.now(second).reason_detail
    assert world.acquire(fairness_key="issue-B").phase is LeasePhase.HELD


def test_sc_016_fairness_returns(rental: NewRental) -> None:
    """Given SC-015 with the first lease of issue-A released, when issue-A acquires again, then it
    is leased."""
    world = rental(a_pool(tiers=(a_fixed_tier(),), lease_per_key_max=1), a_node("n-1"))
    first = world.acquire(fairness_key="issue-A")
    world.release(first)
    assert world.acquire(fairness_key="issue-A").phase is LeasePhase.HELD


def test_sc_017_fairness_in_flight(rental: NewRental) -> None:
    """Given cap 1, max 4, gated provisions, when two acquires of one issue start together (timeout
    80) and the gate opens, then exactly one is leased and total <= 1."""
    world = rental(a_pool(tiers=(an_elastic_tier(node_count_max=4),), lease_per_key_max=1))
    world.run(*(world.request(name, fairness_key="a", timeout_ms=80) for name in ("x", "y")))
    assert len(world.alive()) == 1
    world.boot()
    world.advance(80)
    assert world.answered("x").phase is LeasePhase.HELD
    assert world.answered("y").reason is Reason.TIMED_OUT
    assert len(world.alive()) == 1


def test_sc_021_concurrent_cap(rental: NewRental) -> None:
    """Given a cap of 1 machine with one lease out, when another acquire is made, then it is refused
    at its timeout at the latest, and only one machine ever exists."""
    world = rental(a_pool(tiers=(an_elastic_tier(node_count_max=1),)), a_launched_node())
    world.acquire()
    second = world.acquire(timeout_ms=1_000)
    assert second.reason is Reason.LIMIT_REACHED
    world.advance(1_000)
    assert world.now(second).reason is Reason.TIMED_OUT
    assert "tier cloud has 1 machines (node_count_max 1)" in world.now(second).reason_detail
    assert len(world.alive()) == 1


def test_sc_022_concurrent_cap_with_something_to_wait_for(rental: NewRental) -> None:
    """Given SC-021 with timeout 5,000 and the lease released after 1,000, then the second request
    is leased at 1,000 on the same machine."""
    world = rental(a_pool(tiers=(an_elastic_tier(node_count_max=1),)), a_launched_node())
    first = world.acquire()
    second = world.acquire(timeout_ms=5_000)
    world.advance(1_000)
    world.release(first)
    assert world.now(second).granted_at_ms == 1_000
    assert world.now(second).node_id == world.now(first).node_id


def test_sc_024_requirements(rental: NewRental) -> None:
    """Given machine classes small and gpu, one idle small machine, when a request requiring gpu
    arrives, then a gpu machine is grown and the small one is untouched; when gpu's class limit is
    reached the request waits although small machines are idle."""
    small, large = an_elastic_tier().offers
    world = rental(
        a_pool(
            tiers=(
                an_elastic_tier(offers=(small,)),
                an_elastic_tier("gpus", offers=(large,), node_count_max=1),
            )
        ),
        a_launched_node(),
    )
    first = world.acquire(requirement=GPU, timeout_ms=60_000)
    world.boot()
    assert world.node_of(first).offer == "large"
    assert world.fleet.nodes["n-900001"].use_count == 0
    second = world.acquire(requirement=GPU, timeout_ms=60_000)
    assert (second.phase, second.reason) == (LeasePhase.WAITING, Reason.LIMIT_REACHED)
    assert world.fleet.index.nodes_free.keys("p") == ["n-900001"]
    assert len(world.alive()) == 2
