"""spec/leasing.md 6.6: hydrate and recovery.

Records are the truth and are loaded before anything else happens, so there is no hydrate. What an
earlier process knew, the next one knows; what it had asked for, the next one asks again under the
same id. SC-121 to SC-123 are therefore about records (a row is a node), SC-125 and SC-128 have no
counterpart, SC-129 and SC-130 (a damaged ledger) are the store's (`tests/store`), and SC-135 is in
`test_replacing.py`.
"""

from hostler.base.ids import MachineId
from hostler.core.inputs import ServerStarted
from hostler.core.machine_fact import MachineFact
from hostler.model.lease import LeasePhase
from hostler.model.node import NodePhase, Origin
from hostler.testing.builders import a_fixed_tier, a_pool, an_elastic_tier
from tests.core.nodes.conftest import NewStable
from tests.core.nodes.stable import a_launched_node

MINUTE_MS = 60_000


def test_sc_120_adoption(stable: NewStable) -> None:
    """Given two machines of ours, when the server starts again, then both are idle, and an acquire
    is leased on one of them without a provision."""
    world = stable(a_pool(), a_launched_node("n-900001"), a_launched_node("n-900002"))
    world.run(ServerStarted())
    world.contact("n-900001")
    world.contact("n-900002")
    lease = world.acquire()
    assert lease.node_id in ("n-900001", "n-900002")
    assert not world.commands("launch_machine")


def test_sc_121_orphan_row(stable: NewStable) -> None:
    """Given records of a survivor and of a machine that is not there, then only the survivor stays
    in inventory."""
    world = stable(a_pool(), a_launched_node("n-900001"), a_launched_node("n-900002"))
    world.run(ServerStarted())
    world.contact("n-900001")
    world.contact("n-900002")
    world.silence("n-900002", cut=True)  # what is not there does not speak
    (command_id,) = world.commands("check_machine")
    world.succeed(command_id)
    assert world.node("n-900001").phase is NodePhase.READY
    assert world.node("n-900002").phase is not NodePhase.READY


def test_sc_122_provisional_with_survivor(stable: NewStable) -> None:
    """Given a launch that was out when the server died and whose machine is listed, then it is
    adopted and its record kept."""
    world = stable(a_pool(warm_count=1))
    world.run(ServerStarted())
    world.list(MachineFact(machine_id=MachineId("m-7"), node_id=world.node("n-000001").node_id))
    assert world.node("n-000001").phase is NodePhase.STARTING
    assert world.node("n-000001").origin is Origin.LAUNCHED


def test_sc_123_provisional_without_survivor(stable: NewStable) -> None:
    """Given a launch that was out and whose machine is nowhere, then it is asked for again under
    its id, not forgotten and not made twice (G-41: age has nothing to do with it)."""
    world = stable(a_pool(warm_count=1))
    before = world.commands("launch_machine")
    world.run(ServerStarted())
    world.list()
    assert world.commands("launch_machine") == before
    assert len(world.fleet.nodes) == 1


def test_sc_124_paid_list_always_fails(stable: NewStable) -> None:
    """Given a paid provider whose list always fails, then nothing is destroyed for that."""
    world = stable(a_pool(warm_count=1), a_launched_node())
    world.run(ServerStarted())
    world.contact()
    for _ in range(5):
        for command_id in world.commands("list_machines"):
            world.fail(command_id, "unreachable")
        world.advance(world.now_ms + 2 * MINUTE_MS)
    assert world.node().phase is NodePhase.READY
    assert not world.commands("stop_machine")


def test_sc_126_third_time_lucky(stable: NewStable) -> None:
    """Given list fails twice, then it succeeds on the third call after a pause, and the machine
    survives."""
    world = stable(a_pool(), a_launched_node())
    world.run(ServerStarted())
    world.contact()
    (command_id,) = world.commands("list_machines")
    for _ in range(2):
        world.fail(command_id, "unreachable")
        world.advance(world.now_ms + MINUTE_MS)
    world.list(world.machine(world.node()))
    assert world.node().phase is NodePhase.READY


def test_sc_127_sequence(stable: NewStable) -> None:
    """Given survivors, when more are grown after a restart, then no id is used twice."""
    world = stable(a_pool(tiers=(an_elastic_tier(node_count_max=3),), warm_count=1))
    world.boot()
    world.acquire()
    world.run(ServerStarted())
    world.boot()
    ids = [node.node_id for node in world.fleet.nodes.in_order()]
    assert ids == ["n-000001", "n-000002"]


def test_sc_132_probe_before_lease(stable: NewStable) -> None:
    """Given a survivor that does not answer, when an acquire comes, then it is not leased on it
    once it is known to be silent."""
    world = stable(a_pool(tiers=(a_fixed_tier(), an_elastic_tier())), a_launched_node())
    world.run(ServerStarted())
    world.advance(20_000)
    lease = world.acquire(timeout_ms=MINUTE_MS)
    assert lease.phase is LeasePhase.WAITING


def test_sc_138_late_list(stable: NewStable) -> None:
    """Given a provider whose list fails for 60 s, then afterwards unknown machines are handled."""
    world = stable(a_pool())
    world.run(ServerStarted())
    (command_id,) = world.commands("list_machines")
    world.fail(command_id, "unreachable")
    world.advance(3 * MINUTE_MS)
    world.list(MachineFact(machine_id=MachineId("m-x")))
    (node,) = world.in_phase(NodePhase.STOPPING)
    assert node.machine_id == "m-x"


def test_sc_139_early_acquire(stable: NewStable) -> None:
    """Given a server that has just started, when an acquire comes in the same batch, then it cannot
    collide with a survivor's lease."""
    world = stable(a_pool(tiers=(an_elastic_tier(node_count_max=1),)), a_launched_node())
    first = world.acquire()
    world.run(ServerStarted())
    second = world.acquire(timeout_ms=MINUTE_MS)
    assert world.fleet.leases[first.lease_id].phase is LeasePhase.HELD
    assert second.phase is LeasePhase.WAITING
