"""What operators ask of bundles, and what becomes of replicas when pools or bands change."""

import pytest

from hostler.core.job_inputs import StartJob
from hostler.core.replies import Refused
from hostler.model.allocation import AllocationPhase, EndCause
from hostler.model.launch import Launch
from hostler.model.pool import Band
from hostler.model.reason import Reason
from hostler.model.replica import ReplicaPhase
from hostler.testing.builders import a_job, a_node, a_pool
from tests.core.placing.conftest import NewTheatre
from tests.core.placing.theatre import N1, N2, fixture, n1, n2, own_pool

BETTER = Launch(argv=("better",))


def test_starting_what_is_not_there_is_refused(theatre: NewTheatre) -> None:
    world = theatre(*fixture())
    world.submit()
    unknown = world.ask(StartJob, bundle_id="nobody", job="main")
    assert isinstance(unknown, Refused)
    assert unknown.is_missing
    no_job = world.start_job("b1", "side")
    assert isinstance(no_job, Refused)
    assert no_job.is_missing
    world.delete()
    leaving = world.start_job()
    assert isinstance(leaving, Refused)
    assert leaving.is_conflict


def test_deleting_again_is_a_repeat(theatre: NewTheatre) -> None:
    world = theatre(*fixture())
    world.submit()
    world.delete()
    again = world.delete()
    assert not isinstance(again, Refused)
    assert again.is_repeat
    assert world.count("bundle_deletion_requested") == 1


def test_a_bundle_that_never_had_a_place_is_gone_at_once(theatre: NewTheatre) -> None:
    world = theatre(own_pool())
    world.submit()
    world.delete()
    assert not world.fleet.bundles.rows
    assert not world.fleet.traces.rows


def test_a_machine_that_still_boots_is_given_up_without_a_stop(theatre: NewTheatre) -> None:
    world = theatre(a_pool())
    world.submit()
    world.delete()
    assert not world.commands("stop_allocation")
    assert not world.fleet.bundles.rows
    (allocation,) = world.fleet.allocations.in_order()
    assert allocation.ended is not None
    assert allocation.ended.cause is EndCause.CANCELLED


def test_a_band_changes_in_place(theatre: NewTheatre) -> None:
    world = theatre(own_pool(), n1(), n2())
    world.submit()
    before = world.live()
    world.submit("b1", a_job(band=Band.GOLD))
    assert world.live().allocation_id == before.allocation_id
    assert (world.live().band, world.replica().band) == (Band.GOLD, Band.GOLD)


def test_a_better_launch_is_tried_without_waiting(theatre: NewTheatre) -> None:
    world = theatre(own_pool(), n1(), n2())
    world.submit()
    world.end()
    world.end()
    assert world.replica().phase is ReplicaPhase.BACKING_OFF
    world.submit("b1", a_job(launch=BETTER))
    assert world.live().launch == BETTER
    assert world.replica().restart_at_ms == ()


def test_a_dropped_job_that_became_dormant_sleeps(theatre: NewTheatre) -> None:
    world = theatre(own_pool(), n1())
    world.submit("b1", a_job(band=Band.BRONZE))
    world.end()
    world.submit("b1", a_job(band=Band.BRONZE, launch=BETTER, is_dormant=True))
    assert world.replica().phase is ReplicaPhase.DORMANT
    world.start_job()
    assert world.place() == N1


def test_a_pool_that_leaves_takes_nothing_new(theatre: NewTheatre) -> None:
    world = theatre(own_pool(), n1())
    world.submit("b1", a_job(capacity=6))
    world.submit("b2", a_job(capacity=6))
    world.configure()
    world.delete("b1")
    world.finish_stops()
    waiting = world.replica("b2/main/0")
    assert (waiting.phase, waiting.reason) == (ReplicaPhase.PENDING, Reason.POOL_DISABLED)
    world.configure(own_pool())
    assert world.place("b2/main/0") == N1


def test_gold_finds_its_spare_in_a_later_pool(theatre: NewTheatre) -> None:
    spare = a_node("n-900003", pool="q", is_spare=True, incarnation=1)
    world = theatre(own_pool(), own_pool(name="q", spare_count=1), n1(), n2(), spare)
    world.submit("b1", a_job(band=Band.GOLD), fallback_pools=("q",))
    world.end()
    assert world.place() == spare.node_id
    decision = world.fleet.traces["b1/main/0"].decisions[-1]
    assert (decision.is_recovery, decision.rule) == (True, "a gold recovery takes a spare first")


@pytest.mark.parametrize("is_gang", [False, True])
def test_a_spare_that_was_used_takes_what_else_fits(theatre: NewTheatre, is_gang: bool) -> None:
    """It is no spare any more, and what it has left is open to everybody (a gang's: seed 591)."""
    spare = a_node("n-900003", is_spare=True, incarnation=1)
    world = theatre(own_pool(spare_count=1), n1(), spare)
    world.advance(1_000)  # nodes that have just come are news to everybody
    world.submit("b1", a_job(capacity=3, band=Band.GOLD), is_gang=is_gang)
    world.submit("b2", a_job(capacity=7))
    world.submit("b3", a_job(capacity=4))
    assert world.replica("b3/main/0").reason is Reason.NO_CAPACITY
    world.end("b1/main/0")
    assert world.place("b1/main/0") == spare.node_id
    assert world.place("b3/main/0") == spare.node_id
    world.check_calm()


def test_a_stop_asked_for_twice_is_one_stop(theatre: NewTheatre) -> None:
    world = theatre(own_pool(), n1(), n2())
    world.submit()
    world.become_ready()
    world.drain(N1)
    world.delete()
    assert world.live().phase is AllocationPhase.STOPPING
    assert len(world.commands("stop_allocation")) == 1
    world.finish_stops()
    assert not world.fleet.replicas.rows
    assert world.place() is None
    assert world.fleet.nodes[N2].allocation_count == 0
