"""spec/placement.md 6.1: start-up and hydration.

Hydration is loading the records from the store, then `ServerStarted`; the history of a job is what
its replica and allocations say. A terminal verdict is a phase of the replica, and durable.

Not here: S-001 is the configuration's (`tests/core/nodes`, `wire.documents`). S-002, S-012, S-014
are about a connection to a Manager and its stream, which we do not have. S-013: a closed engine
has no alarm left to ring. S-018 is in test_services.py. S-016 is about callbacks that raise: the
core calls nobody back, it returns a delta.
"""

from hostler.core.allocation_fact import AllocationFact
from hostler.core.fleet import Fleet
from hostler.model.allocation import AllocationPhase, EndCause
from hostler.model.pool import Band
from hostler.model.reason import Reason
from hostler.model.replica import ReplicaPhase
from hostler.testing.builders import a_job, a_pool
from tests.core.placing.conftest import NewTheatre
from tests.core.placing.theatre import N1, N2, fixture, n1, n2, own_pool


def test_s_004_everything_is_there_before_anything_is_done(theatre: NewTheatre) -> None:
    """Given an initial state with 3 jobs and 2 running nodes, when hydrated, then ... inside any of
    these callbacks `nodeForJob`, `bundles()` and `inventories()` already show the full initial
    state."""
    world = theatre(own_pool(), n1(), n2())
    for number in range(3):
        world.submit(f"b{number}")
    loaded = Fleet()
    loaded.load(
        [record for table in world.fleet.tables.values() for record in table.rows.values()],
        revision=world.fleet.revision,
        event_seq=world.fleet.event_seq,
        now_ms=world.fleet.now_ms,
    )
    assert loaded.digest() == world.fleet.digest()
    for key in ("b0/main/0", "b1/main/0", "b2/main/0"):
        expected = world.fleet.index.allocations_by_replica.keys(key)
        assert loaded.index.allocations_by_replica.keys(key) == expected
    assert loaded.index.nodes_by_tier.keys("p/own") == [N1, N2]


def test_s_005_what_runs_is_left_alone_after_a_restart(theatre: NewTheatre) -> None:
    """Given `j1` whose history ends in `running` on `n1` at instant X, when hydrated, then no start
    or create RPC is sent, `nodeForJob(j1)` is `n1`, and `placementForJob(j1)` is a `place` on `n1`
    with `at` = X."""
    world = theatre(*fixture())
    world.submit()
    world.advance(1_000)
    world.report(world.live(), "running", started_at_ms=900)
    world.succeed("a-000001/start/1")
    before = world.live()
    world.advance(5_000)
    delta = world.restart()
    names = {type(each.command).__name__ for each in delta.dispatches}
    assert names <= {"ListMachines"}
    assert world.live() == before
    assert (before.node_id, before.started_at_ms) == (N1, 900)


def test_s_006_a_machine_that_never_comes_is_replaced_once(theatre: NewTheatre) -> None:
    """Given `j1` whose history ends in `provisioned` on `m1` 30 s ago and `m1` not in the running
    set, when hydrated, then nothing is placed; when 120 s have passed since that entry without
    `nodeStarted`, then it is recovered once."""
    world = theatre(a_pool())
    world.submit()
    world.succeed(world.commands("launch_machine")[0])
    (first,) = world.launched()
    world.advance(30_000)
    world.restart()
    assert world.place() == first.node_id
    world.advance(119_999)
    assert world.place() == first.node_id
    world.advance(140_000)
    assert world.place() not in (None, first.node_id)
    assert world.count("replica_placed") == 2
    assert world.replica().restart_at_ms == ()


def test_s_008_what_was_given_up_stays_so(theatre: NewTheatre) -> None:
    """Given `j1` with `terminalState` set, when hydrated and then 10 inventories arrive, then it is
    never placed."""
    world = theatre(own_pool(), n1(), n2())
    world.submit("b1", a_job(band=Band.BRONZE))
    world.end()
    assert world.replica().phase is ReplicaPhase.DROPPED
    world.restart()
    for _ in range(10):
        world.hear_inventory(N1)
    assert world.replica().phase is ReplicaPhase.DROPPED
    assert world.places() == {}


def test_s_009_the_newest_place_is_the_place(theatre: NewTheatre) -> None:
    """Given a history running on A at 10, stopped at 20, provisioned on B at 30, when
    `currentNodeIdForJob` is asked, then B."""
    world = theatre(own_pool(), n1(), n2())
    world.submit()
    world.report(world.live(), "running")
    world.end()
    assert world.place() == N2
    assert world.live().phase is AllocationPhase.STARTING
    world.restart()
    assert world.place() == N2


def test_s_010_what_has_stopped_is_nowhere(theatre: NewTheatre) -> None:
    """Given a history running on A at 10, stopped at 20, when asked, then nothing."""
    world = theatre(own_pool(), n1())
    world.submit("b1", a_job(band=Band.BRONZE))
    world.report(world.live(), "running")
    world.end(cause=EndCause.EXITED, exit_code=0)
    world.restart()
    assert world.place() is None


def test_s_017_a_broken_bundle_is_broken_after_a_restart(theatre: NewTheatre) -> None:
    """Given jobs of bundle `b1` hydrated with the persisted verdict "restart ceiling", when
    hydrated, then `isBundleBroken(b1)` is true and no sibling is placed."""
    world = theatre(own_pool(), n1(), n2())
    world.submit("b1", a_job("main"), a_job("other"))
    for number in range(7):
        world.end_at(number * 5_000)
    assert world.replica().phase is ReplicaPhase.BROKEN
    assert world.place("b1/other/0") is not None
    world.restart()
    for node_id in (N1, N2):
        node = world.fleet.nodes[node_id]
        facts = [
            AllocationFact(allocation_id=a.allocation_id, epoch=a.epoch, phase="running")
            for a in world.fleet.allocations.in_order()
            if a.is_live and a.node_id == node_id
        ]
        world.run(world.hello(node, *facts, incarnation=2))
    assert world.replica().reason is Reason.RESTART_CEILING
    world.end("b1/other/0")
    sibling = world.replica("b1/other/0")
    assert (sibling.phase, sibling.reason) == (ReplicaPhase.PENDING, Reason.BUNDLE_BROKEN)
    assert world.places() == {}
