"""A replica that is moved while it runs: the second place first, then the end of the first."""

from typing import Any

from hostler.core import migration
from hostler.core.allocation_fact import AllocationFact
from hostler.core.inputs import FullScan
from hostler.core.order import READERS
from hostler.core.txn import Txn
from hostler.model.allocation import AllocationPhase, EndCause
from hostler.model.pool import Band
from hostler.model.reason import Reason
from hostler.model.replica import MigrationCause, ReplicaPhase
from hostler.testing.builders import a_fixed_tier, a_job, an_elastic_tier
from tests.core.placing.conftest import NewTheatre
from tests.core.placing.theatre import N1, N2, Theatre, fixture, n1, n2, own_pool, pool_p

MAIN = "b1/main/0"


def move(world: Theatre, key: str = MAIN, **how: Any) -> Reason | None:
    """Ask for a replica to be moved, as a controller does."""
    txn = Txn(world.fleet, world.now_ms, READERS)
    given: dict[str, Any] = {"within_ms": 60_000, **how}
    refused = migration.begin(txn, world.replica(key), MigrationCause.ROLLOUT, **given)
    world.fleet.keep(txn.close())
    world.run(FullScan())
    return refused


def copies(world: Theatre, key: str = MAIN) -> list[str]:
    """Return the nodes of a replica's live allocations, the oldest first."""
    keys = world.fleet.index.allocations_by_replica.keys(key)
    return [world.fleet.allocations[each].node_id for each in keys]


def report_target(world: Theatre, phase: str, **how: Any) -> None:
    """Let the target of the migration say what became of it."""
    under_way = world.replica().migration
    assert under_way is not None
    assert under_way.target_id is not None
    world.report(world.fleet.allocations[under_way.target_id], phase, **how)


def moving(new: NewTheatre, *records: Any, **fields: Any) -> Theatre:
    """Return a world in which one replica of capacity 4 runs, and may overlap."""
    world = new(*records)
    world.submit("b1", a_job(can_overlap=True), **fields)
    world.become_ready()
    return world


def test_the_old_copy_ends_when_the_new_one_is_ready(theatre: NewTheatre) -> None:
    world = moving(theatre, own_pool(), n1(), n2())
    first = world.live()
    assert move(world) is None
    assert copies(world) == [N1, N2]
    assert world.replica().place_id == first.allocation_id
    report_target(world, "running")
    assert world.live().phase is AllocationPhase.READY, "the new one is not ready yet"
    report_target(world, "ready")
    assert world.fleet.allocations[first.allocation_id].phase is AllocationPhase.STOPPING
    world.finish_stops()
    assert copies(world) == [N2]
    assert world.replica().migration is None
    assert (world.replica().phase, world.count("replica_migrated")) == (ReplicaPhase.PLACED, 1)
    assert world.live().epoch == first.epoch + 1
    assert world.replica().restart_at_ms == ()


def test_what_may_not_overlap_is_not_moved(theatre: NewTheatre) -> None:
    world = theatre(own_pool(), n1(), n2())
    world.submit()
    world.become_ready()
    assert move(world) is Reason.OVERLAP_FORBIDDEN
    assert copies(world) == [N1]


def test_without_room_it_waits_and_then_stays(theatre: NewTheatre) -> None:
    world = moving(theatre, own_pool(), n1())
    assert move(world) is None
    under_way = world.replica().migration
    assert under_way is not None
    assert under_way.reason is Reason.SPREAD_NODE
    world.advance(world.now_ms + 60_000)
    assert world.replica().migration is None
    assert (copies(world), world.count("replica_migration_failed")) == ([N1], 1)
    assert move(world) is Reason.BACKING_OFF


def test_no_second_place_is_taken_for_a_job_that_is_stopped(theatre: NewTheatre) -> None:
    """Simulator seed 399: room appeared while the one copy that there was came to its end."""
    world = moving(theatre, own_pool(), n1())
    assert move(world) is None
    world.stop_job()
    assert world.replica().migration is None
    world.join()
    assert copies(world) == [N1]
    world.finish_stops()
    assert (copies(world), world.replica().phase) == ([], ReplicaPhase.DORMANT)
    world.check_calm()


def test_room_that_appears_is_taken(theatre: NewTheatre) -> None:
    world = moving(theatre, own_pool(), n1())
    move(world)
    other = world.join()
    assert copies(world) == [N1, other.node_id]


def test_it_may_stay_on_its_node_if_that_is_said(theatre: NewTheatre) -> None:
    world = moving(theatre, own_pool(), n1())
    move(world, may_stay=True)
    assert copies(world) == [N1, N1]


def test_a_new_copy_that_fails_changes_nothing(theatre: NewTheatre) -> None:
    world = moving(theatre, own_pool(), n1(), n2())
    first = world.live()
    move(world)
    target = world.fleet.allocations[world.fleet.index.allocations_by_replica.keys(MAIN)[1]]
    world.report(target, "ended")
    assert copies(world) == [N1]
    replica = world.replica()
    assert (replica.migration, replica.restart_at_ms) == (None, ())
    world.report(first, "ended")
    assert world.replica().restart_at_ms != (), "the end of its place is followed as ever"
    assert world.live().epoch == first.epoch + 2


def test_an_old_copy_that_fails_leaves_its_place_to_the_new_one(theatre: NewTheatre) -> None:
    world = moving(theatre, own_pool(), n1(), n2())
    first = world.live()
    move(world)
    world.report(first, "ended")
    assert copies(world) == [N2]
    replica = world.replica()
    assert (replica.phase, replica.restart_at_ms) == (ReplicaPhase.PLACED, ())
    assert replica.place_id == world.live().allocation_id


def test_both_copies_lost_at_once_are_one_loss(theatre: NewTheatre) -> None:
    world = moving(theatre, own_pool(), n1())
    move(world, may_stay=True)
    world.lose(N1)
    replica = world.replica()
    assert (replica.migration, replica.phase) == (None, ReplicaPhase.PENDING)
    assert len(replica.restart_at_ms) == 1


def test_the_new_copy_fails_after_the_takeover(theatre: NewTheatre) -> None:
    world = moving(theatre, own_pool(), n1(), n2())
    move(world)
    report_target(world, "ready")
    report_target(world, "ended")
    world.finish_stops()
    replica = world.replica()
    assert (replica.migration, replica.phase) == (None, ReplicaPhase.PLACED)
    assert copies(world) != [], "it was stopped as planned, and is placed again at once"


def test_whoever_has_no_place_comes_first(theatre: NewTheatre) -> None:
    world = moving(theatre, own_pool(), n1())
    move(world)
    world.submit("b2", a_job(capacity=8))
    assert world.place("b2/main/0") is None
    other = world.join()
    assert world.place("b2/main/0") == other.node_id
    assert copies(world) == [N1]


def test_a_deletion_ends_both_copies(theatre: NewTheatre) -> None:
    world = moving(theatre, own_pool(), n1(), n2())
    move(world)
    world.delete()
    assert len(world.commands("stop_allocation")) == 2
    world.finish_stops()
    assert not world.fleet.bundles.rows
    assert not world.fleet.replicas.rows


def test_a_restart_goes_on_with_it(theatre: NewTheatre) -> None:
    world = moving(theatre, own_pool(), n1(), n2())
    move(world)
    world.restart()
    for key in world.fleet.index.allocations_by_replica.keys(MAIN):
        each = world.fleet.allocations[key]
        phase = "ready" if each.phase is AllocationPhase.READY else "starting"
        fact = AllocationFact(allocation_id=each.allocation_id, epoch=each.epoch, phase=phase)
        world.run(world.hello(world.fleet.nodes[each.node_id], fact))
    report_target(world, "ready")
    world.finish_stops()
    assert copies(world) == [N2]


def test_a_machine_is_launched_for_the_second_place(theatre: NewTheatre) -> None:
    world = moving(theatre, *(each for each in fixture() if each.key != N2))
    world.submit("b2", a_job(capacity=4))
    move(world)
    assert len(copies(world)) == 2
    (launched,) = world.launched()
    world.boot()
    report_target(world, "ready")
    world.finish_stops()
    assert copies(world) == [launched.node_id]
    assert world.live().ended is None


def test_a_target_that_loses_its_cause_ends_first(theatre: NewTheatre) -> None:
    world = moving(theatre, own_pool(), n1(), n2())
    move(world)
    txn = Txn(world.fleet, world.now_ms, READERS)
    migration.cancel(txn, world.replica(), "not wanted any more")
    world.fleet.keep(txn.close())
    world.run(FullScan())
    assert len(copies(world)) == 2
    assert move(world) is Reason.MIGRATING
    report_target(world, "ended", ended=None)
    assert copies(world) == [N1]
    assert world.live().ended is None
    assert world.end(cause=EndCause.EXITED) is not None


def test_a_change_of_band_reaches_both_copies(theatre: NewTheatre) -> None:
    """Simulator seed 12: the target kept the former band when it had taken over."""
    world = moving(theatre, own_pool(), n1(), n2())
    assert move(world) is None
    world.submit("b1", a_job(can_overlap=True, band=Band.GOLD))
    report_target(world, "ready")
    world.finish_stops()
    assert (world.replica().band, world.live().band) == (Band.GOLD, Band.GOLD)
    world.check_calm()


def test_the_target_of_one_of_a_gang_waits_for_no_other(theatre: NewTheatre) -> None:
    """Simulator seed 500: it stayed reserved on a node that was there, for the machine of a sibling
    whose move had failed."""
    offer = an_elastic_tier().offers[0]
    tier = an_elastic_tier(offers=(offer,))
    world = theatre(pool_p(tiers=(a_fixed_tier(), tier)), n1(), n2())
    jobs = (a_job("a", capacity=10, can_overlap=True), a_job("b", capacity=10, can_overlap=True))
    world.submit("b1", *jobs, is_gang=True)
    world.become_ready()
    assert move(world, "b1/a/0") is None
    assert move(world, "b1/b/0") is None
    first, _ = (node.node_id for node in world.launched())
    world.succeed(f"{first}/launch/1")
    world.run(world.hello(world.fleet.nodes[first]))
    (target,) = (a for a in world.fleet.allocations.in_order() if a.node_id == first)
    assert target.phase is AllocationPhase.STARTING
    world.check_calm()
