"""What a changed launch does to what runs: a few at a time, gated by health, and back if it is bad.

Left to others: the handshake of two live copies (migration), and disruption budgets.
"""

from typing import Any

import pytest

from hostler.core.replies import Refused
from hostler.model import Allocation
from hostler.model.allocation import AllocationPhase, EndCause, Ended
from hostler.model.bundle import OnFailure, RolloutPolicy
from hostler.model.launch import Launch, TcpReadiness
from hostler.model.pool import Band
from hostler.model.replica import ReplicaPhase
from hostler.model.rollout import RolloutPhase, Steering
from hostler.model.shape import Requirement
from hostler.testing.builders import a_job, a_node
from tests.core.placing.conftest import NewTheatre
from tests.core.placing.theatre import Theatre, n1, n2, own_pool

OLD, NEW, NEWER = (Launch(argv=(name,)) for name in ("old", "new", "newer"))
SETTLE_MS = 10_000


def a_fleet(new: NewTheatre, count: int = 4, **fields: Any) -> Theatre:
    """Return nodes and a bundle of as many replicas, all ready."""
    world = new(own_pool(), *(a_node(f"n-90000{number}", incarnation=1) for number in range(count)))
    submit(world, OLD, replica_count=count, **fields)
    world.become_ready()
    return world


def submit(world: Theatre, launch: Launch, *, overlap: bool = False, **fields: Any) -> None:
    """Submit the bundle with this launch."""
    count = fields.pop("replica_count", 4)
    job = a_job(launch=launch, can_overlap=overlap, **fields.pop("job", {}))
    world.submit("b1", job, replica_count=count, **fields)


def launches(world: Theatre) -> list[str]:
    """Return what each replica's place runs, in order."""
    found = []
    for replica in world.fleet.replicas.in_order():
        allocation = world.allocation_of(replica.replica_id)
        found.append("-" if allocation is None else allocation.launch.argv[0])
    return found


def ready_count(world: Theatre) -> int:
    """Return how many copies are ready and not asked to stop."""
    rows = world.fleet.allocations.in_order()
    return sum(each.phase is AllocationPhase.READY for each in rows)


def settle(world: Theatre, rounds: int = 12) -> list[int]:
    """Let agents obey and copies become ready and stay so; return how many were ready between."""
    seen = []
    for _ in range(rounds):
        seen.append(ready_count(world))
        world.finish_stops()
        seen.append(ready_count(world))
        for allocation in list(world.fleet.allocations.in_order()):
            if allocation.phase is AllocationPhase.STARTING:
                world.report(allocation, "ready")
        world.advance(world.now_ms + SETTLE_MS)
        seen.append(ready_count(world))
    return seen


def second_copy(world: Theatre) -> Allocation:
    """Return what is to take over from the first copy of the only replica."""
    under_way = world.replica().migration
    target = None if under_way is None else world.fleet.allocations.get(under_way.target_id)
    assert target is not None
    return target


@pytest.mark.parametrize(("max_parallel", "least"), [(1, 3), (2, 2), (10, 1)])
def test_as_many_as_allowed_go_at_once(theatre: NewTheatre, max_parallel: int, least: int) -> None:
    policy = RolloutPolicy(max_parallel=max_parallel)
    world = a_fleet(theatre, rollout=policy)
    submit(world, NEW, rollout=policy)
    seen = settle(world)
    assert min(seen) == least, "and one that is ready always stays"
    assert launches(world) == ["new"] * 4
    assert (world.rollout().phase, world.rollout().settled_count) == (RolloutPhase.DONE, 4)
    assert world.bundle().observed_generation == world.bundle().generation


def test_policy_changes_restart_nothing(theatre: NewTheatre) -> None:
    world = a_fleet(theatre)
    before = world.places()
    submit(world, OLD, job={"band": Band.GOLD}, labels={"a": "b"})
    assert world.places() == before
    assert not world.fleet.rollouts.rows
    assert world.bundle().observed_generation == 2


def test_where_copies_may_overlap_the_new_one_is_there_first(theatre: NewTheatre) -> None:
    world = a_fleet(theatre, 1, overlap=True)
    submit(world, NEW, overlap=True, replica_count=1)
    assert min(settle(world, 4)) == 1
    assert launches(world) == ["new"]
    assert world.rollout().phase is RolloutPhase.DONE


def test_a_probe_of_a_port_must_not_reach_the_old_copy(theatre: NewTheatre) -> None:
    """On the node of the old copy it would; so the new one goes elsewhere."""
    world = a_fleet(theatre, 1, overlap=True)
    submit(
        world,
        Launch(argv=("new",), readiness=TcpReadiness(port=80)),
        overlap=True,
        replica_count=1,
    )
    assert len(world.fleet.index.allocations_by_replica.keys("b1/main/0")) == 1
    world.join()
    assert len(world.fleet.index.allocations_by_replica.keys("b1/main/0")) == 2


def test_a_broken_version_is_taken_back(theatre: NewTheatre) -> None:
    world = a_fleet(theatre)
    submit(world, NEW)
    world.finish_stops()
    world.end("b1/main/3", message="no such codec", exit_code=3)
    rollout = world.rollout()
    assert rollout.phase is RolloutPhase.ROLLING_BACK
    assert rollout.evidence == "b1/main/3 (a-000005 on n-900003) exited with 3: no such codec"
    assert (world.bundle().generation, world.bundle().jobs[0].launch) == (3, OLD)
    settle(world, 3)
    assert launches(world) == ["old"] * 4
    assert world.rollout().phase is RolloutPhase.ROLLED_BACK
    assert world.replica("b1/main/3").restart_at_ms == ()
    assert world.count("allocation_ended") == 2, "three replicas were never touched"


def test_a_copy_that_crashes_before_it_has_stayed_ready_is_evidence(theatre: NewTheatre) -> None:
    world = a_fleet(theatre)
    submit(world, NEW)
    world.finish_stops()
    world.become_ready("b1/main/3")
    world.advance(world.now_ms + SETTLE_MS - 1)
    world.end("b1/main/3")
    assert world.rollout().phase is RolloutPhase.ROLLING_BACK


def test_a_second_copy_that_crashes_costs_nothing(theatre: NewTheatre) -> None:
    world = a_fleet(theatre, 1, overlap=True)
    first = world.live()
    submit(world, NEW, overlap=True, replica_count=1)
    keys = world.fleet.index.allocations_by_replica.keys("b1/main/0")
    world.report(
        world.fleet.allocations[keys[1]], "ended", ended=Ended(cause=EndCause.START_FAILED)
    )
    assert world.rollout().phase is RolloutPhase.ROLLING_BACK
    world.advance(world.now_ms + SETTLE_MS)
    assert world.live().allocation_id == first.allocation_id
    assert world.rollout().phase is RolloutPhase.ROLLED_BACK


@pytest.mark.parametrize("cause", [EndCause.NODE_LOST, EndCause.FENCED, EndCause.SUPERVISOR_LOST])
def test_the_loss_of_a_node_says_nothing_of_the_version(
    theatre: NewTheatre, cause: EndCause
) -> None:
    world = a_fleet(theatre)
    submit(world, NEW)
    world.finish_stops()
    world.end("b1/main/3", cause)
    assert world.rollout().phase is RolloutPhase.ROLLING


def test_no_progress_is_a_failure(theatre: NewTheatre) -> None:
    policy = RolloutPolicy(progress_within_ms=30_000)
    world = a_fleet(theatre, rollout=policy)
    submit(world, NEW, rollout=policy)
    world.finish_stops()
    world.advance(world.now_ms + 30_000)
    assert world.rollout().phase is RolloutPhase.ROLLING_BACK
    assert world.rollout().evidence == (
        "no progress within 30s; b1/main/3: a-000005 is starting, not ready"
    )


def test_what_asks_for_too_much_is_taken_back(theatre: NewTheatre) -> None:
    policy = RolloutPolicy(progress_within_ms=30_000)
    world = a_fleet(theatre, rollout=policy)
    submit(world, OLD, rollout=policy, job={"requirement": Requirement(capacity=99)})
    world.finish_stops()
    assert world.replica("b1/main/3").phase is ReplicaPhase.PENDING
    world.advance(world.now_ms + 30_000)
    settle(world, 2)
    assert world.rollout().phase is RolloutPhase.ROLLED_BACK
    assert ready_count(world) == 4


def test_a_failure_may_be_held_and_gone_on_from(theatre: NewTheatre) -> None:
    policy = RolloutPolicy(on_failure=OnFailure.HOLD)
    world = a_fleet(theatre, rollout=policy)
    submit(world, NEW, rollout=policy)
    world.finish_stops()
    world.end("b1/main/3")
    assert world.rollout().phase is RolloutPhase.HELD
    settle(world, 3)
    assert launches(world) == ["old", "old", "old", "new"]
    world.steer(Steering.RESUME)
    settle(world)
    assert (launches(world), world.rollout().phase) == (["new"] * 4, RolloutPhase.DONE)


def test_it_turns_back_once_and_not_to_and_fro(theatre: NewTheatre) -> None:
    world = a_fleet(theatre)
    submit(world, NEW)
    world.finish_stops()
    world.end("b1/main/3")
    world.end("b1/main/3", message="the old one too")
    assert world.rollout().phase is RolloutPhase.HELD
    assert "the old one too" in world.rollout().evidence
    assert world.bundle().generation == 3


def test_paused_it_replaces_nothing_and_has_time(theatre: NewTheatre) -> None:
    world = a_fleet(theatre)
    submit(world, NEW)
    world.steer(Steering.PAUSE)
    again = world.steer(Steering.PAUSE)
    assert not isinstance(again, Refused)
    assert again.is_repeat
    settle(world, 3)
    world.advance(world.now_ms + 3_600_000)
    assert launches(world) == ["old", "old", "old", "new"]
    assert world.rollout().phase is RolloutPhase.ROLLING
    world.steer(Steering.RESUME)
    settle(world)
    assert launches(world) == ["new"] * 4


def test_undo_leads_back_under_way_and_afterwards(theatre: NewTheatre) -> None:
    world = a_fleet(theatre)
    submit(world, NEW)
    settle(world, 2)
    world.steer(Steering.UNDO)
    settle(world)
    assert (launches(world), world.rollout().phase) == (["old"] * 4, RolloutPhase.ROLLED_BACK)
    world.steer(Steering.UNDO)
    settle(world)
    assert launches(world) == ["new"] * 4, "and undoing that is the new one again"


def test_a_second_update_supersedes_and_leads_back_to_what_was_whole(theatre: NewTheatre) -> None:
    world = a_fleet(theatre)
    submit(world, NEW)
    settle(world, 1)
    submit(world, NEWER)
    settle(world, 2)
    assert "newer" in launches(world)
    world.steer(Steering.UNDO)
    settle(world)
    assert launches(world) == ["old"] * 4


def test_a_second_update_stops_a_second_copy_of_the_first(theatre: NewTheatre) -> None:
    world = a_fleet(theatre, 1, overlap=True)
    submit(world, NEW, overlap=True, replica_count=1)
    submit(world, NEWER, overlap=True, replica_count=1)
    world.finish_stops()
    assert launches(world) == ["old"]
    world.advance(world.now_ms + 30_000)
    settle(world, 3)
    assert launches(world) == ["newer"]


def test_it_goes_on_at_once_when_it_turns_back(theatre: NewTheatre) -> None:
    """Back to what is desired already: nobody else has anything to do (seed 146)."""
    policy = RolloutPolicy(progress_within_ms=60_000)
    world = a_fleet(theatre, 1, overlap=True, rollout=policy)
    change: dict[str, Any] = {"overlap": True, "replica_count": 1, "rollout": policy}
    submit(world, NEW, **change)
    world.report(second_copy(world), "ready")
    world.finish_stops()
    assert launches(world) == ["new"], "ready, and not for long enough"
    submit(world, OLD, **change)
    world.report(second_copy(world), "ended", ended=Ended(cause=EndCause.FENCED))
    world.now_ms += 60_000
    world.restart()
    assert world.rollout().phase is RolloutPhase.ROLLING_BACK
    world.check_calm()


def test_a_label_during_a_rollout_changes_nothing_about_it(theatre: NewTheatre) -> None:
    world = a_fleet(theatre)
    submit(world, NEW)
    submit(world, NEW, labels={"a": "b"})
    assert world.rollout().generation == 3
    settle(world)
    assert launches(world) == ["new"] * 4


def test_a_restart_goes_on_with_it(theatre: NewTheatre) -> None:
    policy = RolloutPolicy(progress_within_ms=120_000)
    world = a_fleet(theatre, rollout=policy)
    submit(world, NEW, rollout=policy)
    evidence_at_ms = world.now_ms + 120_000
    world.restart()
    assert (world.fleet.timers.next_at_ms() or 0) <= evidence_at_ms
    assert world.rollout().phase is RolloutPhase.ROLLING


def test_refusals_say_what_is_the_matter(theatre: NewTheatre) -> None:
    world = theatre(own_pool(), n1(), n2())
    for steering, name in (
        (Steering.UNDO, "nobody"),
        (Steering.PAUSE, "b1"),
        (Steering.UNDO, "b1"),
    ):
        if name == "b1" and "b1" not in world.fleet.bundles:
            world.submit()
        assert isinstance(world.steer(steering, name), Refused)


def test_a_deleted_bundle_takes_its_rollout_along(theatre: NewTheatre) -> None:
    world = a_fleet(theatre)
    submit(world, NEW)
    world.delete()
    world.finish_stops()
    assert not world.fleet.rollouts.rows
