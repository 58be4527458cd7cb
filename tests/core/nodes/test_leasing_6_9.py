"""spec/leasing.md 6.9 and 6.13: who is told, and what else is demanded of machines.

A listener is whoever reads events: they are committed with the step that they tell of, and before
any of its commands leaves. So nobody can be too late, and one who fails fails alone: SC-264 (a sink
that raises) has no counterpart, as no sink is called by the core. SC-183 (a capacity listener) is
the plan of a lease (`tests/core/leasing/test_planning.py`, SC-020). The ledger's half of 6.9 is the
store's (`tests/store`). SC-248 and SC-261 are in `tests/core/spend`; SC-255, 256, 265 and 266 are
the providers' (`tests/providers`, conformance).
"""

from hostler.base.ids import MachineId, NodeId
from hostler.core import limits
from hostler.core.events import EventKind
from hostler.core.inputs import DrainNode, ReleaseLease
from hostler.core.machine_fact import MachineFact
from hostler.model.lease import LeaseOutcome, LeasePhase
from hostler.model.node import NodePhase
from hostler.model.record import Counter
from hostler.testing.builders import a_pool, an_elastic_tier
from tests.core.nodes.conftest import NewStable
from tests.core.nodes.stable import Stable, a_launched_node

HOUR_MS = 3_600_000


def fail(world: Stable, lease_id: str) -> None:
    """Let a holder say that the machine is bad."""
    world.ask(ReleaseLease, lease_id=lease_id, outcome=LeaseOutcome.POISON)


def told(world: Stable, kind: EventKind) -> list[str]:
    """Return the nodes that events of a kind are about."""
    return [
        event.about["node"]
        for delta in world.deltas
        for event in delta.events
        if event.kind is kind and "node" in event.about
    ]


def test_sc_180_before_the_destroy(stable: NewStable) -> None:
    """Given a gated destroy, when a lease fails, then the recycling listener has the id while the
    backend has destroyed nothing."""
    world = stable(a_pool(), a_launched_node())
    fail(world, world.acquire().lease_id)
    assert told(world, EventKind.NODE_STOPPING) == ["n-900001"]
    assert len(world.commands("stop_machine")) == 1
    assert world.node().phase is NodePhase.STOPPING


def test_sc_181_all_once(stable: NewStable) -> None:
    """Given a lease that fails and later a drain, then each was told exactly once."""
    world = stable(a_pool(), a_launched_node("n-900001"), a_launched_node("n-900002"))
    lease = world.acquire()
    fail(world, lease.lease_id)
    world.ask(DrainNode, node_id="n-900002", deadline_ms=1_000, then_retire=True)
    world.bury()
    for kind in (EventKind.NODE_STOPPING, EventKind.NODE_RETIRED):
        assert sorted(told(world, kind)) == ["n-900001", "n-900002"]


def test_sc_182_on_drain(stable: NewStable) -> None:
    """Given a held lease, when drained with deadline 50, then the listener was told its worker, and
    its holder until when it may stay."""
    world = stable(a_pool(), a_launched_node())
    lease = world.acquire()
    world.ask(DrainNode, node_id="n-900001", deadline_ms=50, then_retire=True)
    assert told(world, EventKind.NODE_DRAIN_STARTED) == ["n-900001"]
    assert world.fleet.leases[lease.lease_id].retiring_at_ms == 50
    world.advance(50)
    assert told(world, EventKind.NODE_STOPPING) == ["n-900001"]


def test_sc_245_one_exit(stable: NewStable) -> None:
    """Given a missing record, a destroyed unknown machine and a recycled one, then for each the
    durable record is closed, listeners know, and nothing of it is left."""
    forgotten = Counter(name="n", value=990_000)
    world = stable(a_pool(), a_launched_node("n-900001"), a_launched_node("n-900002"), forgotten)
    fail(world, world.acquire().lease_id)  # recycled
    world.advance(120_000)
    world.silence("n-900002", cut=True)
    stranger = MachineFact(machine_id=MachineId("m-x"), node_id=NodeId("n-777777"))
    for _ in range(3):
        world.list(stranger)  # unknown; and the other one is missing
    for command_id in world.commands("check_machine"):
        world.succeed(command_id)
    world.bury()
    retired = world.in_phase(NodePhase.RETIRED)
    assert len(retired) == 3
    assert sorted(told(world, EventKind.NODE_RETIRED)) == sorted(n.node_id for n in retired)
    for node in retired:
        assert not world.fleet.index.commands_by_target.keys(f"node:{node.node_id}")
        assert not world.fleet.index.leases_by_node.keys(node.node_id)
    assert not world.commands("stop_machine")
    assert not world.commands("check_machine")


def test_sc_246_separate_limits(stable: NewStable) -> None:
    """Given acquire timeout 100 ms and a destroy of 5 s, then the destroy is not cut off."""
    world = stable(a_pool(), a_launched_node())
    fail(world, world.acquire(timeout_ms=100).lease_id)
    (command_id,) = world.commands("stop_machine")
    world.advance(5_000)
    entry = world.fleet.commands[command_id]
    assert (entry.attempt_count, entry.last_code) == (1, "")
    assert entry.next_at_ms >= limits.PATIENCE_MS["stop_machine"]
    world.succeed(command_id)
    assert world.node().phase is NodePhase.RETIRED


def test_sc_247_jitter(stable: NewStable) -> None:
    """Given 20 machines made in one second with ttl 1 h and jitter 10 %, then no minute sees more
    than a quarter of them expire."""
    nodes = [a_launched_node(f"n-9{number:05}", created_at_ms=number) for number in range(20)]
    world = stable(a_pool(age_ms_max=HOUR_MS), *nodes)
    outs = sorted(node.ages_out_at_ms or 0 for node in world.fleet.nodes.in_order())
    for first in outs:
        assert sum(first <= each < first + 60_000 for each in outs) <= 5


def test_sc_254_new_interval(stable: NewStable) -> None:
    """Given interval 1 h, when it becomes 1 s, then a tick happens within 2 s."""
    pool = a_pool()
    world = stable(pool, list_every_ms=HOUR_MS)
    world.list()
    world.advance(60_000)
    assert not world.commands("list_machines")
    world.configure(pool, list_every_ms=1_000)
    world.advance(62_000)
    assert len(world.commands("list_machines")) == 1


def test_sc_019_growth_request(stable: NewStable) -> None:
    """When a growth happens, then provision sees whose machine it is: its node, pool and tier, with
    the fleet's label; what a request said of itself stays with the lease (G-15)."""
    world = stable(a_pool(tiers=(an_elastic_tier(node_count_max=1, zone="z"),)))
    lease = world.acquire(labels={"x": "1", "y": "2"}, timeout_ms=60_000)
    (command_id,) = world.commands("launch_machine")
    command = world.fleet.commands[command_id].command
    asked = [getattr(command, name) for name in ("node_id", "pool", "tier", "offer", "zone")]
    assert asked == ["n-000001", "p", "cloud", "small", "z"]
    assert world.fleet.leases[lease.lease_id].phase is LeasePhase.WAITING
    assert world.fleet.leases[lease.lease_id].labels == {"x": "1", "y": "2"}
