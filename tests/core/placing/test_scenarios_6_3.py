"""spec/placement.md 6.3: jobs and bundles.

Not here: S-029 and S-036 are about jobs that lack requirements or tags; ours always have both (a
requirement of nothing is one, and is placed).
"""

from hostler.core.replies import Refused
from hostler.model.bundle import BundlePhase
from hostler.model.launch import Launch
from hostler.model.reason import Reason
from hostler.model.replica import ReplicaPhase
from hostler.testing.builders import a_job
from tests.core.placing.conftest import NewTheatre
from tests.core.placing.theatre import N1, fixture, n1, n2, own_pool, pool_p


def test_s_028_a_bundle_that_waits_for_its_pool_is_placed_when_that_can(
    theatre: NewTheatre,
) -> None:
    """Given `jobUpdated(j1)` before `bundleUpdated(b1)` and nothing else, when the bundle arrives,
    then `j1` is placed. (With us a job never comes before its bundle, but a bundle may come before
    its pool has what it needs.)"""
    world = theatre(own_pool())
    world.submit()
    assert world.replica().reason is Reason.NO_CAPACITY
    world.configure(pool_p())
    assert world.replica().phase is ReplicaPhase.PLACED


def test_s_030_a_dormant_job_sleeps_until_it_is_not(theatre: NewTheatre) -> None:
    """Given a dormant job (`startMode`=`manual`), when inventories arrive, then not placed; when an
    update without the tag arrives, then placed once."""
    world = theatre(own_pool(), n1(), n2())
    world.submit("b1", a_job(is_dormant=True))
    replica = world.replica()
    assert (replica.phase, replica.reason) == (ReplicaPhase.DORMANT, Reason.DORMANT)
    for _ in range(3):
        world.hear_inventory(N1)
    assert world.place() is None
    world.submit("b1", a_job())
    assert world.place() == N1
    assert world.count("replica_placed") == 1


def test_an_operator_starts_a_dormant_job(theatre: NewTheatre) -> None:
    world = theatre(own_pool(), n1(), n2())
    world.submit("b1", a_job(is_dormant=True))
    answer = world.start_job()
    assert not isinstance(answer, Refused)
    assert not answer.is_repeat
    assert world.place() == N1
    again = world.start_job()
    assert not isinstance(again, Refused)
    assert again.is_repeat
    world.submit("b1", a_job(is_dormant=True), labels={"a": "b"})
    assert world.place() == N1


def test_s_032_what_a_deletion_frees_is_used_at_once(theatre: NewTheatre) -> None:
    """Given `jobDeleted` of a placed job of capacity 6 on `n1` and a pending job of capacity 6,
    then the pending one is placed on `n1` without any other event."""
    world = theatre(own_pool(), n1())
    world.submit("b1", a_job(capacity=6))
    world.submit("b2", a_job(capacity=6))
    world.delete("b1")
    world.finish_stops()
    assert world.places() == {"b2/main/0": N1}


def test_s_033_deleting_the_unknown_is_refused_and_says_nothing(theatre: NewTheatre) -> None:
    """Given `jobDeleted` for an unknown id, then no `onJobDeleted`, no error."""
    world = theatre(*fixture())
    answer = world.delete("nobody")
    assert isinstance(answer, Refused)
    assert answer.is_missing
    assert world.events() == []


def test_s_034_what_no_workload_sees_moves_none(theatre: NewTheatre) -> None:
    """Given a known job, when its config is updated to C, then `jobs()` shows C, the callback gets
    (id, C), nothing is re-placed."""
    world = theatre(*fixture())
    world.submit()
    before = world.live()
    world.submit(labels={"team": "news"})
    assert world.bundle().labels == {"team": "news"}
    assert world.bundle().generation == world.bundle().observed_generation == 2
    assert world.live() == before
    assert world.count("bundle_changed") == 1


def test_s_037_room_is_free_when_its_holder_has_ended(theatre: NewTheatre) -> None:
    """Given `bundleDeleted` before `jobDeleted` of its job on `n1` (capacity 6 of 10), when in
    between a job of capacity 6 is pending, then it is not put on `n1` until the `jobDeleted`."""
    world = theatre(own_pool(), n1())
    world.submit("b1", a_job(capacity=6))
    world.delete("b1")
    assert world.bundle("b1").phase is BundlePhase.DELETING
    world.submit("b2", a_job(capacity=6))
    assert world.replica("b2/main/0").reason is Reason.NO_CAPACITY
    world.finish_stops()
    assert world.place("b2/main/0") == N1


def test_a_bundle_that_is_being_deleted_cannot_be_submitted(theatre: NewTheatre) -> None:
    world = theatre(*fixture())
    world.submit()
    world.delete()
    answer = world.try_submit()
    assert isinstance(answer, Refused)
    assert (answer.code, answer.is_conflict) == ("bundle_deleting", True)
    assert world.delete() != answer
    world.finish_stops()
    assert world.submit().is_repeat is False


def test_more_and_fewer_replicas(theatre: NewTheatre) -> None:
    world = theatre(own_pool(), n1(), n2())
    world.submit(replica_count=2)
    world.become_ready()
    world.submit(replica_count=1)
    assert world.replica("b1/main/1").phase is ReplicaPhase.STOPPING
    world.finish_stops()
    assert list(world.fleet.replicas.rows) == ["b1/main/0"]
    world.submit(replica_count=2)
    assert len(world.places()) == 2


def test_a_replica_that_is_wanted_again_while_it_stops_begins_anew(theatre: NewTheatre) -> None:
    world = theatre(own_pool(), n1(), n2())
    world.submit(replica_count=2)
    world.become_ready()
    first = world.live("b1/main/1")
    world.submit(replica_count=1)
    world.submit(replica_count=2)
    assert world.replica("b1/main/1").phase is ReplicaPhase.STOPPING
    world.finish_stops()
    assert world.replica("b1/main/1").phase is ReplicaPhase.PLACED
    assert world.live("b1/main/1").allocation_id != first.allocation_id


def test_jobs_come_and_go_with_the_bundle(theatre: NewTheatre) -> None:
    world = theatre(own_pool(), n1())
    world.submit("b1", a_job("main"), a_job("old", capacity=2))
    world.submit("b1", a_job("main"), a_job("new", capacity=2))
    world.finish_stops()
    assert sorted(world.places()) == ["b1/main/0", "b1/new/0"]


NEW = Launch(argv=("sleep", "2000"))


def test_a_new_launch_replaces_one_replica_at_a_time_the_primary_last(theatre: NewTheatre) -> None:
    world = theatre(own_pool(), n1(), n2())
    world.submit(replica_count=2)
    world.become_ready()
    world.submit("b1", a_job(launch=NEW), replica_count=2)
    assert world.commands("stop_allocation") == ["a-000002/stop/1"]
    world.finish_stops()
    assert world.live("b1/main/1").launch == NEW
    assert world.commands("stop_allocation") == [], "the primary waits until the backup is ready"
    world.become_ready("b1/main/1")
    assert world.commands("stop_allocation") == [], "and until it has stayed so"
    world.advance(world.now_ms + 10_000)
    assert world.commands("stop_allocation") == ["a-000001/stop/1"]
    world.finish_stops()
    world.become_ready()
    assert world.live("b1/main/0").launch == NEW
    assert world.bundle().observed_generation == 2
    assert world.replica().restart_at_ms == ()


def test_what_does_not_serve_is_replaced_without_waiting(theatre: NewTheatre) -> None:
    world = theatre(own_pool(), n1(), n2())
    world.submit(replica_count=2)
    world.submit("b1", a_job(launch=NEW), replica_count=2)
    assert len(world.commands("stop_allocation")) == 2


def test_a_smaller_requirement_helps_the_replica_that_waits(theatre: NewTheatre) -> None:
    world = theatre(own_pool(), n1())
    world.submit("b1", a_job("main", capacity=6), a_job("side", capacity=6))
    world.become_ready()
    assert world.place("b1/side/0") is None
    world.submit("b1", a_job("main", capacity=5), a_job("side", capacity=5))
    world.finish_stops()
    assert sorted(world.places()) == ["b1/main/0", "b1/side/0"]


def test_a_new_pool_moves_what_runs(theatre: NewTheatre) -> None:
    world = theatre(own_pool(), own_pool(name="q"), n1(), n2(pool="q"))
    world.submit()
    world.become_ready()
    world.submit(pool="q")
    world.finish_stops()
    assert world.live().node_id == n2().node_id


def test_a_job_made_dormant_keeps_what_runs_and_places_nothing_new(theatre: NewTheatre) -> None:
    world = theatre(own_pool(), n1())
    world.submit("b1", a_job(capacity=6), replica_count=2)
    world.submit("b1", a_job(capacity=6, is_dormant=True), replica_count=2)
    assert world.place("b1/main/0") == N1
    assert world.replica("b1/main/1").phase is ReplicaPhase.DORMANT
