"""spec/leasing.md 6.2: waiting, timeout, abort."""

from hostler.base.ids import LeaseId
from hostler.core.inputs import ReleaseLease
from hostler.model.lease import LeasePhase
from hostler.model.node import NodePhase
from hostler.model.reason import Reason
from hostler.testing.builders import a_fixed_tier, a_node, a_pool, an_elastic_tier
from tests.core.leasing.conftest import NewRental
from tests.core.leasing.rental import a_launched_node

OWN = (a_fixed_tier(),)


def releasing(lease_id: LeaseId, name: str) -> ReleaseLease:
    return ReleaseLease(request_id=name, principal="tester", lease_id=lease_id)


def test_sc_030_timeout(rental: NewRental) -> None:
    """Given the only worker leased, when acquire with timeout 30, then acquire_timeout at 30 ms
    after parking and the queue is empty."""
    world = rental(a_pool(tiers=OWN), a_node())
    world.acquire()
    waiting = world.acquire(timeout_ms=30)
    world.advance(29)
    assert world.now(waiting).phase is LeasePhase.WAITING
    world.advance(1_000)
    assert world.now(waiting).reason is Reason.TIMED_OUT
    assert world.now(waiting).phase_since_at_ms == 30
    assert world.fleet.index.leases_waiting.count("p") == 0


def test_sc_031_wake_on_release(rental: NewRental) -> None:
    """Given one parked request with timeout 10,000, when the lease is released, then the parked one
    is leased on the same worker without time passing."""
    world = rental(a_pool(tiers=OWN), a_node())
    first = world.acquire()
    parked = world.acquire(timeout_ms=10_000)
    world.release(first)
    assert world.now(parked).phase is LeasePhase.HELD
    assert world.now(parked).node_id == first.node_id
    assert world.now(parked).granted_at_ms == world.now(first).phase_since_at_ms


def test_sc_032_order(rental: NewRental) -> None:
    """Given three parked requests p1, p2, p3 in that order, when the lease is released healthy
    three times by successive holders, then they are served p1, p2, p3."""
    world = rental(a_pool(tiers=OWN), a_node())
    holder = world.acquire()
    parked = [world.acquire(timeout_ms=10_000) for _ in range(3)]
    served = []
    for _ in parked:
        world.release(holder)
        holder = world.fleet.leases[world.held()[0]]
        served.append(holder.lease_id)
    assert served == [lease.lease_id for lease in parked]


def test_sc_034_abort_while_parked(rental: NewRental) -> None:
    """Given a parked request with timeout 10,000, when its signal fires, then it is refused at once
    (here: as cancelled, G-06), and a later release does not stamp a lease for it."""
    world = rental(a_pool(tiers=OWN), a_node())
    first = world.acquire()
    parked = world.acquire(timeout_ms=10_000)
    world.release(parked)
    assert world.now(parked).reason is Reason.CANCELLED
    world.release(first)
    assert not world.held()
    assert world.now(parked).phase is LeasePhase.REFUSED


def test_sc_035_drain_rejects(rental: NewRental) -> None:
    """Given two parked requests, when drain begins, then both get pool_disabled at once."""
    world = rental(a_pool(tiers=OWN), a_node())
    world.acquire()
    parked = [world.acquire(timeout_ms=10_000) for _ in range(2)]
    world.configure()
    assert [world.now(lease).reason for lease in parked] == [Reason.POOL_DISABLED] * 2


def test_sc_038_reload_makes_room(rental: NewRental) -> None:
    """Given max 1 leased and two parked requests, when max is raised to 3, then both are served by
    growth."""
    world = rental(a_pool(tiers=(an_elastic_tier(node_count_max=1),)), a_launched_node())
    world.acquire()
    parked = [world.acquire(timeout_ms=60_000) for _ in range(2)]
    assert not world.commands("launch_machine")
    world.configure(a_pool(tiers=(an_elastic_tier(node_count_max=3),)))
    world.boot()
    assert [world.now(lease).phase for lease in parked] == [LeasePhase.HELD] * 2


def test_sc_040_no_overtaking(rental: NewRental) -> None:
    """Given max 2 and one parked request, when an idle machine appears and in the same instant a
    new acquire arrives, then the parked one is served first."""
    world = rental(a_pool(tiers=(an_elastic_tier(node_count_max=2),)), a_launched_node())
    world.acquire()
    parked = world.acquire(timeout_ms=60_000)
    (node,) = world.launch()
    world.run(world.request("new"), world.hello(node))
    assert world.now(parked).phase is LeasePhase.HELD
    assert world.answered("new").phase is LeasePhase.WAITING


def test_sc_042_deadline_is_total(rental: NewRental) -> None:
    """Given a machine that does not get ready, when acquire with timeout 1,000, then it is answered
    by 1,000, whatever the machine does."""
    world = rental(a_pool(tiers=(an_elastic_tier(node_count_max=1),)))
    lease = world.acquire(timeout_ms=1_000)
    world.launch()
    world.advance(5_000)
    assert world.now(lease).reason is Reason.TIMED_OUT
    assert world.now(lease).phase_since_at_ms == 1_000


def test_sc_043_aborted_before_the_grant(rental: NewRental) -> None:
    """Given a signal already set when a worker gets free, then the request is refused as cancelled
    and no lease is stamped."""
    world = rental(a_pool(tiers=OWN), a_node())
    first = world.acquire()
    aborted = world.acquire(timeout_ms=10_000)
    world.run(releasing(first.lease_id, "x"), releasing(aborted.lease_id, "y"))
    assert world.now(aborted).reason is Reason.CANCELLED
    assert not world.held()


def test_sc_045_growth_overtaken_by_drain(rental: NewRental) -> None:
    """Given a gated provision for a request with timeout 30,000, when drain begins and the gate
    opens, then the caller gets pool_disabled at once and the machine is destroyed."""
    world = rental(a_pool(tiers=(an_elastic_tier(node_count_max=1),)))
    lease = world.acquire(timeout_ms=30_000)
    world.configure()
    assert world.now(lease).reason is Reason.POOL_DISABLED
    for command_id in world.commands("launch_machine"):
        world.succeed(command_id)
    for node in [n for n in world.alive() if n.phase is NodePhase.STARTING]:
        world.run(world.hello(node))
    assert world.commands("stop_machine")
    world.succeed(world.commands("stop_machine")[0])
    assert not world.alive()


def test_sc_047_bounded_queue(rental: NewRental) -> None:
    """Given a queue limit of 100 and 100 parked requests, when another arrives, then it is refused
    at once as overloaded."""
    world = rental(a_pool(tiers=OWN, waiting_count_max=100), a_node())
    world.acquire()
    world.run(*(world.request(f"w{i}", timeout_ms=10_000) for i in range(100)))
    refused = world.refused()
    assert refused.code == Reason.OVERLOADED
    assert "100" in refused.message


def test_sc_048_woken_after_capacity_by_top_up(rental: NewRental) -> None:
    """Given warm 1 and a parked request after a poison, when a machine lands, then the parked
    request is leased in the same step."""
    world = rental(
        a_pool(tiers=(an_elastic_tier(node_count_max=2),), warm_count=1), a_launched_node()
    )
    first = world.acquire()
    world.poison(first)
    parked = world.acquire(timeout_ms=60_000)
    assert parked.phase is LeasePhase.WAITING
    world.boot()
    assert world.now(parked).phase is LeasePhase.HELD
