"""Preemption: who gives way to whom, how much, and what becomes of both.

Trials B25, B32, B62 and B64 (trials/placement.md 8.2, 8.3, 8.6) and the rules of docs/placement.md.
"""

from typing import Any

import pytest

from hostler.core.allocation_fact import AllocationFact
from hostler.core.inputs import AllocationReported, CordonNode
from hostler.core.limits import CLAIM_MARGIN_MS
from hostler.model.allocation import AllocationPhase, EndCause, Ended
from hostler.model.bundle import Job
from hostler.model.pool import Band
from hostler.model.reason import Reason
from hostler.model.replica import ReplicaPhase
from hostler.model.settings import BronzeVictims, Preemption
from hostler.model.shape import Capability, CapabilityRequest, Device, Requirement, Shape
from hostler.testing.builders import a_job, a_node, a_pool, an_elastic_tier
from tests.core.placing.conftest import NewTheatre
from tests.core.placing.theatre import N1, N2, Theatre, n1, n2, own_pool

GOLD, SILVER, BRONZE = Band.GOLD, Band.SILVER, Band.BRONZE


def banded(band: Band, capacity: int = 10, **changes: Any) -> Job:
    """Return a job of a band."""
    return a_job(band=band, capacity=capacity, **changes)


def victims_of(world: Theatre, key: str = "gold/main/0") -> list[str]:
    """Return who gave way to a replica, as its trace has it."""
    decisions = world.fleet.traces[key].decisions
    return [v.replica_id for d in decisions if d.outcome == "claimed" for v in d.victims]


def filled(theatre: NewTheatre, *records: Any, band: Band = BRONZE, **settings: Any) -> Theatre:
    """Return a world whose one node is full of a replica of a band, which is ready."""
    world = theatre(own_pool(), n1(), *records, **settings)
    world.submit(band.value, banded(band))
    world.become_ready()
    return world


def test_gold_has_bronze_end_and_takes_its_room(theatre: NewTheatre) -> None:
    world = filled(theatre)
    world.advance(1_000)
    world.submit("gold", banded(GOLD))
    victim = world.live("bronze/main/0")
    assert (victim.phase, victim.stop_reason) == (
        AllocationPhase.STOPPING,
        "preempted by gold/main/0 (gold)",
    )
    gold = world.replica("gold/main/0")
    assert (gold.phase, gold.reason) == (ReplicaPhase.PENDING, Reason.ROOM_CLAIMED)
    assert gold.claim is not None
    assert (gold.claim.node_id, gold.claim.allocation_ids) == (N1, (victim.allocation_id,))
    assert victims_of(world) == ["bronze/main/0"]
    assert [d.outcome for d in world.fleet.traces["bronze/main/0"].decisions][-1] == "preempted"
    world.finish_stops()
    assert world.place("gold/main/0") == N1
    bronze = world.replica("bronze/main/0")
    assert (bronze.phase, bronze.reason) == (ReplicaPhase.PENDING, Reason.NO_CAPACITY)
    assert bronze.preempted is not None
    assert bronze.preempted.by == "gold/main/0"
    assert world.fleet.traces["gold/main/0"].decisions[-1].rule == "the room that was made for it"
    assert world.count("replica_preempted") == world.count("replica_room_claimed") == 1


@pytest.mark.parametrize(
    ("above", "below", "is_preempting"),
    [
        (GOLD, SILVER, True),
        (SILVER, BRONZE, True),
        (GOLD, GOLD, False),
        (SILVER, SILVER, False),
        (SILVER, GOLD, False),
        (BRONZE, BRONZE, False),
        (BRONZE, SILVER, False),
    ],
)
def test_only_lower_bands_give_way(
    theatre: NewTheatre, above: Band, below: Band, is_preempting: bool
) -> None:
    world = filled(theatre, band=below)
    world.submit("later", banded(above))
    assert bool(world.count("replica_preempted")) is is_preempting


def test_silver_that_gave_way_is_placed_elsewhere(theatre: NewTheatre) -> None:
    """A gold replica fits on no node; the silver one that gives way fits on another."""
    world = theatre(own_pool(), n1(), n2())
    world.submit("small", banded(SILVER, 4))
    world.submit("large", banded(SILVER, 6))
    world.submit("other", banded(SILVER, 5))
    assert world.places() == {"small/main/0": N1, "large/main/0": N1, "other/main/0": N2}
    world.become_ready()
    world.submit("gold", banded(GOLD, 6))
    assert victims_of(world) == ["large/main/0"]
    world.finish_stops()
    assert world.place("gold/main/0") == N1
    assert world.replica("large/main/0").phase is ReplicaPhase.PENDING
    world.join()
    assert world.place("large/main/0") is not None


def test_bronze_gives_way_before_silver_however_many(theatre: NewTheatre) -> None:
    world = theatre(own_pool(), n1(), n2())
    world.submit("silver", banded(SILVER))
    for number in range(2):
        world.submit(f"bronze{number}", banded(BRONZE, 5))
    world.become_ready()
    world.submit("gold", banded(GOLD))
    assert sorted(victims_of(world)) == ["bronze0/main/0", "bronze1/main/0"]


def test_b_064_no_more_gives_way_than_is_needed(theatre: NewTheatre) -> None:
    """Gold job needs 4 cores on a node of twelve 1-core GS. Expect 4 victims, shortest remaining
    session first, and a trace of why those. (How long a session would go on, nobody says; those
    that have run for least lose least.)"""
    world = theatre(own_pool(), n1(shape=Shape(capacity=12)))
    for number in range(12):
        world.advance(1_000 * number)
        world.submit(f"gs{number}", banded(BRONZE, 1))
        world.become_ready(f"gs{number}/main/0")
    world.advance(60_000)
    world.submit("gold", banded(GOLD, 4))
    assert sorted(victims_of(world)) == [f"gs{number}/main/0" for number in (10, 11, 8, 9)]
    (decision,) = [d for d in world.fleet.traces["gold/main/0"].decisions if d.outcome == "claimed"]
    assert sorted(v.age_ms for v in decision.victims) == [49_000, 50_000, 51_000, 52_000]
    world.finish_stops()
    assert world.place("gold/main/0") == N1


def test_b_062_devices_are_freed_together(theatre: NewTheatre) -> None:
    """`p1` runs two bronze 1-GPU jobs; a gold job wants both. Expect both evicted once and the gold
    job placed in the same plan."""
    shape = Shape(
        capacity=10,
        capabilities=(Capability(name="gpu", count=2),),
        devices=tuple(Device(kind="gpu", device_id=name) for name in ("g0", "g1")),
    )

    def gpus(count: int) -> Requirement:
        return Requirement(capabilities=(CapabilityRequest(name="gpu", count=count),))

    world = theatre(own_pool(), n1(shape=shape))
    for number in range(2):
        world.submit(f"b{number}", a_job(band=BRONZE, requirement=gpus(1)))
    world.become_ready()
    world.submit("gold", a_job(band=GOLD, requirement=gpus(2)))
    assert sorted(victims_of(world)) == ["b0/main/0", "b1/main/0"]
    world.finish_stops()
    assert world.live("gold/main/0").devices == {"gpu": ("g0", "g1")}
    assert world.count("replica_preempted") == 2


def test_b_025_two_do_not_count_on_one_victim(theatre: NewTheatre) -> None:
    """INF-high-1 and INF-high-2 arrive together; one bronze victim. Expect one admitted, the other
    re-planned."""
    world = filled(theatre)
    world.run(world.submission("g1", banded(GOLD)), world.submission("g2", banded(GOLD)))
    assert world.replica("g1/main/0").claim is not None
    second = world.replica("g2/main/0")
    assert (second.claim, second.reason) == (None, Reason.NO_CAPACITY)
    world.finish_stops()
    assert world.place("g1/main/0") == N1
    assert world.replica("g2/main/0").phase is ReplicaPhase.PENDING


def test_b_032_a_victim_that_does_not_end_is_not_waited_for(theatre: NewTheatre) -> None:
    """Agent of victim's node hangs on stop. Expect choice dropped after the stop limit and another
    node tried, without double eviction."""
    world = theatre(own_pool(), n1(), n2())
    for name in ("b1", "b2"):
        world.submit(name, banded(BRONZE))
    world.become_ready()
    world.submit("gold", banded(GOLD))
    first = world.replica("gold/main/0").claim
    assert first is not None
    grace_ms = world.live("b1/main/0").launch.stop_grace_ms
    assert first.until_at_ms == world.now_ms + grace_ms + CLAIM_MARGIN_MS
    world.advance(first.until_at_ms)
    second = world.replica("gold/main/0").claim
    assert second is not None
    assert second.node_id != first.node_id
    assert sorted(victims_of(world)) == ["b1/main/0", "b2/main/0"]
    assert world.count("replica_preempted") == 2
    assert world.count("replica_claim_ended") == 1


def test_nobody_ends_for_nothing(theatre: NewTheatre) -> None:
    """Even without bronze they would not fit: too large, not there, or beside their own."""
    world = theatre(own_pool(), n1(), n2())
    world.submit("gold0", banded(GOLD, 6), replica_count=2)
    world.submit("bronze", banded(BRONZE, 4), replica_count=2)
    world.become_ready()
    world.submit("large", banded(GOLD, 11))
    world.submit("middle", banded(GOLD, 5))
    world.submit("third", banded(GOLD, 1, name="main"), replica_count=3)
    gone = Requirement(capabilities=(CapabilityRequest(name="gpu"),))
    world.submit("gpu", a_job(band=GOLD, requirement=gone))
    for key in ("third/main/0", "third/main/1"):
        assert world.replica(key).claim is not None, "each on a node of its own"
    for key in ("large/main/0", "middle/main/0", "third/main/2", "gpu/main/0"):
        assert world.replica(key).claim is None
    assert world.count("replica_preempted") == 2


def test_a_machine_is_bought_before_anybody_ends(theatre: NewTheatre) -> None:
    world = theatre(a_pool(tiers=(an_elastic_tier(node_count_max=2),)))
    world.submit("bronze", banded(BRONZE))
    world.boot()
    world.submit("gold", banded(GOLD))
    assert not world.count("replica_preempted")
    assert len(world.launched()) == 2
    world.submit("gold2", banded(GOLD))
    assert victims_of(world, "gold2/main/0") == ["bronze/main/0"]


def test_a_launch_that_is_only_put_off_is_waited_for(theatre: NewTheatre) -> None:
    world = theatre(a_pool(launch_count_max=1))
    world.submit("bronze", banded(BRONZE))
    world.submit("gold", banded(GOLD))
    assert world.replica("gold/main/0").reason is Reason.LAUNCHES_IN_FLIGHT
    assert not world.count("replica_preempted")


def test_who_holds_a_machine_that_is_still_to_come_gives_way_at_once(theatre: NewTheatre) -> None:
    world = theatre(a_pool(tiers=(an_elastic_tier(node_count_max=1),)))
    world.submit("bronze", banded(BRONZE))
    (node,) = world.launched()
    world.submit("gold", banded(GOLD))
    assert world.place("gold/main/0") == node.node_id
    assert world.replica("bronze/main/0").phase is ReplicaPhase.PENDING


def test_spares_and_leased_nodes_are_let_be(theatre: NewTheatre) -> None:
    world = theatre(own_pool(), n1(is_spare=True), n2())
    world.acquire()
    world.submit("gold", banded(GOLD))
    assert world.replica("gold/main/0").claim is None


def test_a_victim_is_left_alone_for_a_while(theatre: NewTheatre) -> None:
    world = filled(theatre, preemption=Preemption(window_ms=60_000))
    world.submit("gold", banded(GOLD))
    world.finish_stops()
    world.delete("gold")
    world.finish_stops()
    assert world.place("bronze/main/0") == N1
    world.become_ready()
    world.submit("gold2", banded(GOLD))
    assert world.replica("gold2/main/0").claim is None
    world.advance(60_000)
    assert world.replica("bronze/main/0").preempted is None or world.live(
        "bronze/main/0"
    ).phase is (AllocationPhase.STOPPING)
    assert victims_of(world, "gold2/main/0") == ["bronze/main/0"]


def test_a_victim_does_not_preempt_back(theatre: NewTheatre) -> None:
    """Silver gave way to gold; then gold becomes bronze, and silver could have its room again."""
    world = filled(theatre, band=SILVER, preemption=Preemption(window_ms=60_000))
    world.submit("gold", banded(GOLD))
    world.finish_stops()
    world.submit("gold", banded(BRONZE))
    assert world.live("gold/main/0").band is BRONZE
    assert world.replica("silver/main/0").claim is None
    world.advance(60_000)
    assert world.replica("silver/main/0").claim is not None


def test_budgets_bound_how_much_gives_way(theatre: NewTheatre) -> None:
    budget = Preemption(victim_per_bundle_count_max=1, victim_count_max=2, window_ms=60_000)
    world = theatre(
        own_pool(), *(a_node(f"n-90000{n}", incarnation=1) for n in range(4)), preemption=budget
    )
    world.submit("a", banded(BRONZE), replica_count=2)
    world.submit("b", banded(BRONZE))
    world.submit("c", banded(BRONZE))
    world.become_ready()
    for number in range(3):
        world.submit(f"gold{number}", banded(GOLD))
    world.finish_stops()
    claimed = [n for n in range(3) if world.place(f"gold{n}/main/0")]
    assert claimed == [0, 1]
    gave_way = [r.bundle_id for r in world.fleet.replicas.in_order() if r.preempted is not None]
    assert len(gave_way) == len(set(gave_way)) == 2
    world.advance(60_000)
    assert world.count("replica_preempted") == 3


def test_a_claim_survives_a_restart(theatre: NewTheatre) -> None:
    world = filled(theatre)
    world.submit("gold", banded(GOLD))
    world.restart()
    bronze = world.live("bronze/main/0")
    fact = AllocationFact(allocation_id=bronze.allocation_id, epoch=1, phase="stopping")
    world.run(world.hello(world.fleet.nodes[N1], fact))
    assert world.replica("gold/main/0").claim is not None
    world.submit("late", banded(SILVER, 1))
    world.finish_stops()
    assert world.place("gold/main/0") == N1
    assert world.count("replica_preempted") == 1


def test_a_claim_is_taken_while_its_replica_changes(theatre: NewTheatre) -> None:
    """Found by the simulator: who had just got its room was looked for among those who wait."""
    world = filled(theatre)
    world.submit("gold", banded(GOLD))
    bronze = world.live("bronze/main/0")
    fact = AllocationFact(
        allocation_id=bronze.allocation_id,
        epoch=1,
        phase="ended",
        ended=Ended(cause=EndCause.STOPPED),
    )
    world.run(
        world.submission("gold", banded(GOLD), labels={"a": "b"}),
        AllocationReported(node_id=bronze.node_id, fact=fact),
    )
    assert world.place("gold/main/0") == N1


def test_a_claim_ends_when_another_place_is_found(theatre: NewTheatre) -> None:
    world = filled(theatre)
    world.submit("gold", banded(GOLD))
    world.submit("silver", banded(SILVER))
    node = world.join()
    assert world.place("gold/main/0") == node.node_id
    assert world.replica("gold/main/0").claim is None
    assert world.replica("silver/main/0").claim is not None, "it ends anyway, for silver now"
    world.finish_stops()
    assert world.place("silver/main/0") == N1
    assert world.count("replica_preempted") == 1


def test_a_claim_ends_with_its_replica(theatre: NewTheatre) -> None:
    world = filled(theatre)
    world.submit("gold", banded(GOLD))
    world.delete("gold")
    world.finish_stops()
    assert world.place("bronze/main/0") == N1


def test_gold_takes_over_room_that_is_kept_for_silver(theatre: NewTheatre) -> None:
    world = filled(theatre)
    world.submit("silver", banded(SILVER))
    assert world.replica("silver/main/0").claim is not None
    world.submit("gold", banded(GOLD))
    assert world.replica("gold/main/0").claim is not None
    assert world.replica("silver/main/0").claim is None
    world.finish_stops()
    assert world.place("gold/main/0") == N1
    assert world.count("replica_preempted") == 1


def test_bronze_victims_are_dropped_where_so_configured(theatre: NewTheatre) -> None:
    policy = Preemption(bronze_victims=BronzeVictims.DROP)
    world = filled(theatre, preemption=policy)
    world.submit("gold", banded(GOLD))
    world.finish_stops()
    bronze = world.replica("bronze/main/0")
    assert (bronze.phase, bronze.reason) == (ReplicaPhase.DROPPED, Reason.PREEMPTED)
    world.start_job("bronze")
    assert world.replica("bronze/main/0").phase is ReplicaPhase.PENDING


def test_it_can_be_switched_off_or_put_off(theatre: NewTheatre) -> None:
    never = filled(theatre, preemption=Preemption(bands=()))
    never.submit("gold", banded(GOLD))
    assert never.replica("gold/main/0").claim is None
    later = filled(theatre, preemption=Preemption(after_ms=5_000))
    later.submit("gold", banded(GOLD))
    later.advance(4_999)
    assert later.replica("gold/main/0").claim is None
    later.advance(5_000)
    assert later.replica("gold/main/0").claim is not None


def test_who_comes_to_a_cordoned_node_finds_its_claim_gone(theatre: NewTheatre) -> None:
    world = filled(theatre)
    world.submit("gold", banded(GOLD))
    world.ask(CordonNode, node_id=N1)
    gold = world.replica("gold/main/0")
    assert (gold.claim, gold.reason) == (None, Reason.NO_CAPACITY)
