"""spec/leasing.md 6.5: reaper and top-up.

There is no reaper: what a tick did happens at its own instant. A probe is the agent's heartbeat.
SC-091, 093, 114 and 116 are in `test_replacing.py`, SC-100 and 101 in `test_listing.py`. SC-097 and
SC-106 (nothing before hydrate) have no counterpart: there is no time at which records are not
loaded and a step runs. SC-113 (fan-out of probes): agents speak by themselves, all at once.
"""

from hostler.base.ids import MachineId, NodeId
from hostler.core.events import EventKind
from hostler.core.inputs import ReleaseLease
from hostler.core.machine_fact import MachineFact
from hostler.model.lease import LeaseOutcome, LeasePhase
from hostler.model.node import Health, NodePhase, Origin, RetireReason
from hostler.model.record import Counter
from hostler.testing.builders import a_pool, an_elastic_tier
from tests.core.nodes.conftest import NewStable
from tests.core.nodes.stable import Stable, a_launched_node

HOUR_MS = 3_600_000
GRACE_MS = 120_000


def release(world: Stable, lease_id: str) -> None:
    """Let a holder give its lease back."""
    world.ask(ReleaseLease, lease_id=lease_id, outcome=LeaseOutcome.HEALTHY)


def a_stranger(created_at_ms: int = 0) -> MachineFact:
    """Return a listed machine with our label that no record names."""
    return MachineFact(
        machine_id=MachineId("m-x"), node_id=NodeId("n-777777"), created_at_ms=created_at_ms
    )


def orphans(world: Stable) -> list[str]:
    """Return the machines that were taken into records only to end them."""
    nodes = world.fleet.nodes.in_order()
    return [str(node.machine_id) for node in nodes if node.origin is Origin.ORPHAN]


def test_sc_090_ttl(stable: NewStable) -> None:
    """Given ttl 1,000, an idle worker made at 0, now 2,000, then it is destroyed with reason ttl,
    and waiting requests are looked at once."""
    tier = an_elastic_tier(node_count_max=1)
    world = stable(
        a_pool(tiers=(tier,), age_ms_max=HOUR_MS, idle_ms=2 * HOUR_MS), a_launched_node()
    )
    world.advance(HOUR_MS)
    assert world.node().retire_reason is RetireReason.AGED
    waiting = world.acquire(timeout_ms=60_000)
    world.bury()
    world.boot()
    assert world.fleet.leases[waiting.lease_id].phase is LeasePhase.HELD


def test_sc_094_probe_failure(stable: NewStable) -> None:
    """Given an idle worker whose probe fails, then events degraded, one destroy with reason
    unhealthy, record gone (G-19: not at the first miss)."""
    world = stable(a_pool(), a_launched_node())
    world.silence()
    world.advance(20_000)
    assert world.node().health is Health.SUSPECT
    assert not world.commands("stop_machine")
    world.advance(120_000)
    assert world.events().count("node_suspected") == 1
    assert world.node().retire_reason is RetireReason.LOST
    assert len(world.commands("stop_machine")) == 1
    world.bury()
    assert world.node().phase is NodePhase.RETIRED


def test_sc_095_silent_long_run(stable: NewStable) -> None:
    """Given a lease without heartbeats of which it has long, when 60 s and many looks pass, then it
    is still leased, and settles normally."""
    world = stable(a_pool(lease_ms=10 * HOUR_MS), a_launched_node())
    lease = world.acquire()
    world.advance(HOUR_MS)
    assert world.node().lease_count == 1
    release(world, lease.lease_id)
    assert world.fleet.leases[lease.lease_id].outcome is LeaseOutcome.HEALTHY
    assert world.node().phase is NodePhase.READY


def test_sc_096_unknown_machine(stable: NewStable) -> None:
    """Given a labelled machine that it does not know, then it is destroyed with reason orphan; an
    unlabelled one is not even listed to us, and so untouched."""
    world = stable(
        a_pool(), Counter(name="n", value=990_000)
    )  # its node was ours, and is forgotten
    world.advance(GRACE_MS)
    world.list(a_stranger())
    (node,) = world.in_phase(NodePhase.STOPPING)
    assert node.retire_reason is RetireReason.ORPHAN
    assert len(world.commands("stop_machine")) == 1


def test_sc_098_in_progress(stable: NewStable) -> None:
    """Given a labelled machine whose id is being provisioned, then it is left; once its launch was
    given up and it is still there, it is destroyed."""
    world = stable(a_pool(warm_count=1))
    (launching,) = world.fleet.nodes.in_order()
    fact = MachineFact(machine_id=MachineId("m-1"), node_id=launching.node_id)
    world.list(fact)
    assert orphans(world) == []
    assert world.node(launching.node_id).machine_id == "m-1"  # its answer, by another way


def test_sc_102_list_failure(stable: NewStable) -> None:
    """Given list raises, then nothing is dropped or destroyed, and all else goes on."""
    world = stable(a_pool(idle_ms=60_000), a_launched_node())
    lease = world.acquire()
    for _ in range(5):
        (command_id,) = world.commands("list_machines")
        world.fail(command_id, "unreachable", "no route")
        world.advance(world.now_ms + 90_000)
    assert world.node().phase is NodePhase.READY
    assert world.fleet.leases[lease.lease_id].phase is LeasePhase.HELD
    release(world, lease.lease_id)
    world.advance(world.now_ms + 60_000)
    assert world.node().retire_reason is RetireReason.IDLE


def test_sc_103_no_overlap(stable: NewStable) -> None:
    """Given a top-up that is stuck, however often it is looked at, no second provision starts."""
    world = stable(a_pool(warm_count=1))
    for minutes in range(1, 6):
        world.advance(minutes * 60_000)
    assert len(world.commands("launch_machine")) == 1


def test_sc_104_quiet_ticks(stable: NewStable) -> None:
    """Given an empty pool with headroom, when time passes, nobody is told anything."""
    world = stable(a_pool())
    world.list()
    told = len(world.events())
    world.advance(HOUR_MS)
    assert len(world.events()) == told


def test_sc_105_top_up(stable: NewStable) -> None:
    """Given min 2, warm 2, empty, then exactly 2 are provisioned; with no headroom none; with
    failing provisions at most 2 are tried at once."""
    world = stable(a_pool(node_count_min=2, warm_count=2))
    assert len(world.commands("launch_machine")) == 2
    world.boot()
    assert len(world.in_phase(NodePhase.READY)) == 2
    full = stable(
        a_pool(tiers=(an_elastic_tier(node_count_max=1),), warm_count=1), a_launched_node()
    )
    full.acquire()
    assert not full.commands("launch_machine")
    failing = stable(a_pool(warm_count=2))
    for command_id in failing.commands("launch_machine"):
        failing.fail(command_id, "capacity_unavailable")
    assert len(failing.commands("launch_machine")) <= 2


def test_sc_107_end_to_end(stable: NewStable) -> None:
    """Given idle 1,000, when a worker is released and 5,000 pass, then it is gone."""
    world = stable(a_pool(idle_ms=1_000), a_launched_node())
    lease = world.acquire()
    world.advance(500)
    release(world, lease.lease_id)
    world.advance(5_000)
    assert world.node().retire_reason is RetireReason.IDLE
    world.bury()
    assert world.node().phase is NodePhase.RETIRED


def test_sc_115_vanished_under_a_lease(stable: NewStable) -> None:
    """Given a leased machine missing from lists and gone by its provider's word, when its run
    releases healthy with a request parked, then the parked request is not given that machine."""
    world = stable(a_pool(tiers=(an_elastic_tier(node_count_max=2),)), a_launched_node())
    lease = world.acquire()
    world.advance(60_000)
    world.silence("n-900001", cut=True)
    (command_id,) = world.commands("check_machine")
    world.succeed(command_id)  # it brings no machine: gone
    parked = world.acquire(timeout_ms=HOUR_MS)
    release(world, lease.lease_id)
    assert world.fleet.leases[parked.lease_id].node_id != "n-900001"
    assert EventKind.NODE_LOST.value in world.events()
