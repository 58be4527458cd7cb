"""Who is to blame for an end, what counts, and who clears it; jobs started, stopped and reset."""

from typing import Any

import pytest

from hostler.core.replies import Refused
from hostler.model.allocation import AllocationPhase, EndCause
from hostler.model.bundle import Job
from hostler.model.launch import Launch
from hostler.model.pool import Band
from hostler.model.reason import Reason
from hostler.model.replica import ReplicaPhase
from hostler.model.settings import RecoveryLimits
from hostler.testing.builders import a_job, a_node
from tests.core.placing.conftest import NewTheatre
from tests.core.placing.theatre import N1, Theatre, fixture, n1, n2, own_pool

MAIN = "b1/main/0"


def crash_until_broken(world: Theatre) -> None:
    """Let the replica fail as often as it takes."""
    while world.replica().phase is not ReplicaPhase.BROKEN:
        if world.allocation_of(MAIN) is None:
            world.advance(world.now_ms + 5_000)
        world.end()


@pytest.mark.parametrize("band", list(Band))
def test_a_server_outage_is_nobodys_fault(theatre: NewTheatre, band: Band) -> None:
    """Agents that heard nothing have stopped everything; all of it comes back, uncounted."""
    world = theatre(own_pool(), n1())
    world.submit("b1", a_job(band=band))
    for _ in range(10):
        world.become_ready()
        world.end(cause=EndCause.FENCED)
        assert world.place() == N1, "its node is as good as any"
    assert world.replica().restart_at_ms == ()


@pytest.mark.parametrize(
    ("cause", "count"),
    [
        (EndCause.EXITED, 1),
        (EndCause.START_FAILED, 1),
        (EndCause.SUPERVISOR_LOST, 1),
        (EndCause.NODE_LOST, 1),
        (EndCause.FENCED, 0),
        (EndCause.REJECTED, 0),
        (EndCause.STOPPED, 0),
        (EndCause.LAUNCH_FAILED, 0),
    ],
)
def test_only_the_job_or_its_node_is_to_blame(
    theatre: NewTheatre, cause: EndCause, count: int
) -> None:
    world = theatre(own_pool(), n1(), n2())
    world.submit()
    world.end(cause=cause)
    assert [each.cause for each in world.replica().restarts] == [cause] * count


def test_b79_a_failed_placement_between_attempts_forgets_nothing(theatre: NewTheatre) -> None:
    """Ceiling 2; the job always crashes; the fleet is full between attempts 1 and 2, the
    controller restarts once: exactly 2 restarts, then the ceiling is reached."""
    world = theatre(own_pool(), n1(), recovery=RecoveryLimits(restart_count_max=2))
    world.submit("b1", a_job(capacity=6))
    world.submit("b2", a_job(capacity=6))
    world.end_at(1_000)
    assert world.place("b2/main/0") == N1, "the room is gone between two attempts"
    world.delete("b2")
    world.restart()
    world.finish_stops()
    world.run(world.hello(world.fleet.nodes[N1]))
    assert world.place() == N1
    world.end()
    world.advance(world.now_ms + 30_000)
    assert len(world.replica().restarts) == 2
    world.end()
    assert world.replica().reason is Reason.RESTART_CEILING


def test_b80_ten_copies_that_crash_at_once_share_the_ceiling_of_the_bundle(
    theatre: NewTheatre,
) -> None:
    """10 copies crash at once with a ceiling of 10: at most 10 restarts, counted by cause."""
    nodes = [a_node(f"n-9000{number:02d}", incarnation=1) for number in range(10)]
    limits = RecoveryLimits(bundle_restart_count_max=10, exclusion_ms=0)
    world = theatre(own_pool(), *nodes, recovery=limits)
    world.submit("b1", a_job(), replica_count=10)
    for _ in range(3):
        for replica in list(world.fleet.replicas.in_order()):
            if world.allocation_of(replica.replica_id) is not None:
                world.end(replica.replica_id)
        world.advance(world.now_ms + 60_000)
    restarts = [each for r in world.fleet.replicas.in_order() for each in r.restarts]
    assert len(restarts) == 10
    (broken,) = (r for r in world.fleet.replicas.in_order() if r.phase is ReplicaPhase.BROKEN)
    assert broken.reason_detail.startswith("replicas of the bundle crashed 10 times within 1h")


def test_the_loss_of_many_nodes_does_not_break_a_bundle(theatre: NewTheatre) -> None:
    nodes = [a_node(f"n-9000{number:02d}", incarnation=1) for number in range(6)]
    limits = RecoveryLimits(bundle_restart_count_max=2)
    world = theatre(own_pool(), *nodes, recovery=limits)
    world.submit("b1", a_job(), replica_count=6)
    for node in nodes:
        world.fall_silent(node.node_id)
    world.advance(world.now_ms + 60_000)
    phases = {r.phase for r in world.fleet.replicas.in_order()}
    assert ReplicaPhase.BROKEN not in phases


def test_a_reset_gives_a_broken_bundle_another_chance(theatre: NewTheatre) -> None:
    world = theatre(own_pool(), n1(), n2())
    world.submit("b1", a_job())
    crash_until_broken(world)
    world.restart()
    assert world.replica().phase is ReplicaPhase.BROKEN, "a restart clears nothing"
    world.run(*(world.hello(node) for node in world.fleet.nodes.in_order()))
    world.submit("b1", a_job(), labels={"a": "b"})
    assert world.replica().phase is ReplicaPhase.BROKEN, "nor does a label"
    answer = world.reset()
    assert not isinstance(answer, Refused)
    assert world.replica().phase is ReplicaPhase.PLACED
    assert world.replica().restarts == ()
    again = world.reset()
    assert not isinstance(again, Refused)
    assert again.is_repeat


def test_a_reset_of_a_job_that_is_off_starts_nothing(theatre: NewTheatre) -> None:
    world = theatre(own_pool(), n1(), n2())
    world.submit()
    crash_until_broken(world)
    world.stop_job()
    world.reset()
    assert world.replica().phase is ReplicaPhase.DORMANT


def test_one_replica_can_be_reset_alone(theatre: NewTheatre) -> None:
    world = theatre(own_pool(), n1(), n2())
    world.submit("b1", a_job(), replica_count=2)
    world.end(MAIN)
    world.end("b1/main/1")
    world.reset("b1", "b1/main/1")
    assert world.replica("b1/main/1").restarts == ()
    assert world.replica(MAIN).restarts != ()
    missing = world.reset("b1", "b1/main/7")
    assert isinstance(missing, Refused)
    assert missing.is_missing


def test_health_for_long_enough_clears(theatre: NewTheatre) -> None:
    world = theatre(own_pool(), n1(), n2())
    world.submit()
    world.end()
    world.become_ready()
    world.advance(world.now_ms + 600_000)
    assert world.replica().restarts == ()


# -- started and stopped ---------------------------------------------------------------------


def two_jobs(**changes: Any) -> tuple[Job, Job]:
    """Return a job of the name `main` and one of the name `side`."""
    return a_job(**changes), a_job("side", launch=Launch(argv=("side",)))


def test_stop_really_stops_and_frees(theatre: NewTheatre) -> None:
    """G-148: today's answer to a stop was a tag."""
    world = theatre(own_pool(), n1())
    world.submit("b1", *two_jobs())
    world.become_ready()
    world.stop_job()
    assert world.live().phase is AllocationPhase.STOPPING
    world.finish_stops()
    stopped = world.replica()
    assert (stopped.phase, stopped.reason) == (ReplicaPhase.DORMANT, Reason.STOPPED_BY_OPERATOR)
    assert world.place("b1/side/0") == N1, "the other job is not touched"
    world.submit("b2", a_job(capacity=6))
    assert world.place("b2/main/0") == N1, "its room is free"
    again = world.stop_job()
    assert not isinstance(again, Refused)
    assert again.is_repeat


def test_a_stop_outlives_updates_restarts_and_new_copies(theatre: NewTheatre) -> None:
    world = theatre(own_pool(), n1(), n2())
    world.submit("b1", *two_jobs())
    world.stop_job()
    world.finish_stops()
    world.submit("b1", *two_jobs(launch=Launch(argv=("better",))), replica_count=2)
    world.restart()
    assert {world.replica(f"b1/main/{index}").phase for index in (0, 1)} == {ReplicaPhase.DORMANT}
    world.start_job()
    assert world.replica().phase is not ReplicaPhase.DORMANT
    assert world.bundle().switched == {}, "it runs by itself: nothing need be remembered"


def test_a_start_while_it_stops_places_it_again_afterwards(theatre: NewTheatre) -> None:
    world = theatre(own_pool(), n1())
    world.submit()
    world.become_ready()
    world.stop_job()
    world.start_job()
    world.finish_stops()
    assert (world.place(), world.replica().restart_at_ms) == (N1, ())


def test_a_crash_while_it_stops_is_no_failure(theatre: NewTheatre) -> None:
    world = theatre(own_pool(), n1())
    world.submit()
    world.become_ready()
    world.stop_job()
    world.end(cause=EndCause.EXITED, exit_code=1)
    assert (world.replica().phase, world.replica().restarts) == (ReplicaPhase.DORMANT, ())


def test_a_machine_launched_for_a_stopped_job_goes_after_a_linger(theatre: NewTheatre) -> None:
    world = theatre(*(each for each in fixture() if each.key not in (N1, "n-900002")))
    world.submit()
    world.boot()
    world.become_ready()
    (node,) = world.launched()
    world.stop_job()
    world.finish_stops()
    assert world.fleet.nodes[node.node_id].retire_reason is None
    pool = world.fleet.pools["p"]
    world.advance(world.now_ms + pool.idle_ms)
    assert world.commands("stop_machine")


def test_a_stopped_dormant_job_starts_only_when_told(theatre: NewTheatre) -> None:
    world = theatre(own_pool(), n1())
    world.submit("b1", a_job(is_dormant=True))
    world.start_job()
    world.become_ready()
    world.stop_job()
    world.finish_stops()
    assert world.replica().phase is ReplicaPhase.DORMANT
    world.start_job()
    assert world.place() == N1
