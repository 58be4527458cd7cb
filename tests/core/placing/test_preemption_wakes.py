"""What lets preemption look again: every fact that may ease it, and nothing that does not.

Found by the simulator's full scans (seeds 30, 52, 92): each was work that a step should have done.
"""

from typing import Any

from hostler.core.inputs import CordonNode, UncordonNode
from hostler.core.limits import CLAIM_MARGIN_MS
from hostler.model.allocation import EndCause, Ended
from hostler.model.bundle import Job
from hostler.model.launch import Launch
from hostler.model.pool import Band
from hostler.model.replica import ReplicaPhase
from hostler.model.settings import Preemption
from hostler.testing.builders import a_fixed_tier, a_job, a_pool, an_elastic_tier
from tests.core.placing.conftest import NewTheatre
from tests.core.placing.theatre import N1, N2, Theatre, n1, n2, own_pool

GOLD, BRONZE = Band.GOLD, Band.BRONZE


def a_banded(band: Band, capacity: int = 10, **changes: Any) -> Job:
    """Return a job of a band."""
    return a_job(band=band, capacity=capacity, **changes)


def two_full(theatre: NewTheatre, *records: Any, **settings: Any) -> Theatre:
    """Return a world with a bronze replica filling each of two nodes."""
    world = theatre(*(records or (own_pool(),)), n1(), n2(), **settings)
    for name in ("low1", "low2"):
        world.submit(name, a_banded(BRONZE))
    world.become_ready()
    return world


def has_claim(world: Theatre, bundle: str) -> bool:
    """Say whether room is kept for a bundle's first replica."""
    return world.replica(f"{bundle}/main/0").claim is not None


def test_whose_move_has_failed_may_give_way_again(theatre: NewTheatre) -> None:
    """It is over on another node than the one on which it stays, and nothing changes there."""
    world = theatre(own_pool(), n1(), n2())
    world.submit("wall", a_banded(GOLD, 6))
    world.submit("low", a_banded(BRONZE, 5, can_overlap=True))
    low = world.live("low/main/0")
    assert low.node_id != world.place("wall/main/0")
    world.become_ready()
    world.ask(CordonNode, node_id=low.node_id)
    job = a_banded(BRONZE, 4, can_overlap=True, launch=Launch(argv=("new",)))
    world.submit("low", job)
    under_way = world.replica("low/main/0").migration
    assert under_way is not None
    target = world.fleet.allocations[str(under_way.target_id)]
    assert target.node_id == world.place("wall/main/0")
    world.ask(UncordonNode, node_id=low.node_id)
    world.submit("gold", a_banded(GOLD, 8))
    assert not has_claim(world, "gold")
    world.report(target, "ended", ended=Ended(cause=EndCause.EXITED, exit_code=1))
    assert world.replica("low/main/0").migration is None
    assert has_claim(world, "gold")
    world.check_calm()


def test_one_who_has_a_claim_hides_nobody_behind(theatre: NewTheatre) -> None:
    world = two_full(theatre)
    world.ask(CordonNode, node_id=N2)
    world.submit("gold1", a_banded(GOLD))
    world.submit("gold2", a_banded(GOLD))
    assert (has_claim(world, "gold1"), has_claim(world, "gold2")) == (True, False)
    world.ask(UncordonNode, node_id=N2)
    assert has_claim(world, "gold2")
    world.check_calm()


def test_what_its_own_bundle_keeps_from_one_is_open_to_the_next(theatre: NewTheatre) -> None:
    """Siblings do not give way to each other; whoever asks for the same behind is no sibling."""
    low = a_job(name="low", band=BRONZE, capacity=4)
    world = theatre(own_pool(), n1())
    world.submit("mixed", low)
    world.become_ready()
    world.ask(CordonNode, node_id=N1)
    world.submit("mixed", a_banded(GOLD), low)
    world.submit("gold", a_banded(GOLD))
    world.ask(UncordonNode, node_id=N1)
    assert (has_claim(world, "mixed"), has_claim(world, "gold")) == (False, True)
    world.check_calm()


def test_who_stands_behind_need_not_be_told_first(theatre: NewTheatre) -> None:
    """Only who stands first is told that no machine comes any more; it holds for all behind."""
    tier = an_elastic_tier(node_count_max=2, offers=an_elastic_tier().offers[:1])
    pool = a_pool(tiers=(a_fixed_tier(), tier), launch_count_max=1)
    world = two_full(theatre, pool)
    for number in range(1, 5):
        world.submit(f"gold{number}", a_banded(GOLD, 8))
    assert not any(has_claim(world, f"gold{number}") for number in range(1, 5))
    world.boot()
    world.boot()
    assert [has_claim(world, f"gold{number}") for number in (3, 4)] == [True, True]
    world.check_calm()


def test_a_victim_that_is_forgotten_lets_another_give_way(theatre: NewTheatre) -> None:
    world = two_full(theatre, preemption=Preemption(victim_count_max=1))
    world.submit("gold1", a_banded(GOLD))
    world.submit("gold2", a_banded(GOLD))
    world.finish_stops()
    assert not has_claim(world, "gold2")
    (victim,) = [r for r in world.fleet.replicas.in_order() if r.preempted is not None]
    assert victim.phase is ReplicaPhase.PENDING
    world.delete(victim.bundle_id)
    assert victim.replica_id not in world.fleet.replicas
    assert has_claim(world, "gold2")
    world.check_calm()


def test_a_claim_on_room_that_does_not_come_by_itself_ends_in_time(theatre: NewTheatre) -> None:
    """Not after the claim's own time, but that of who was ending already when it was made."""
    world = theatre(own_pool(), n1())
    world.submit("low", a_banded(BRONZE))
    world.become_ready()
    grace_ms = world.live("low/main/0").launch.stop_grace_ms
    world.delete("low")
    world.advance(20_000)
    world.submit("gold", a_banded(GOLD))
    assert has_claim(world, "gold")
    world.advance(grace_ms + CLAIM_MARGIN_MS - 1)
    assert has_claim(world, "gold")
    world.advance(grace_ms + CLAIM_MARGIN_MS)
    assert not has_claim(world, "gold")
    world.check_calm()


def test_room_kept_for_what_is_deleted_is_open_to_the_next(theatre: NewTheatre) -> None:
    """Seeds 431 and 460: a claim went with its record, and nobody was looked at for its room."""
    world = two_full(theatre)
    world.ask(CordonNode, node_id=N2)
    world.submit("gold1", a_banded(GOLD))
    world.submit("gold2", a_banded(GOLD))
    assert (has_claim(world, "gold1"), has_claim(world, "gold2")) == (True, False)
    world.delete("gold1")
    assert has_claim(world, "gold2")
    assert world.count("replica_claim_ended") == 1
    world.check_calm()
