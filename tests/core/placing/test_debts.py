"""Debts: a place that breaks a preferred rule is remembered, and left once there is a better one.

spec/placement.md C-077; trials B58, B59.
"""

from typing import Any

import pytest

from hostler.core.inputs import CordonNode, UncordonNode
from hostler.model import Node
from hostler.model.constraint import NodeRule, SpreadOver, SpreadRule
from hostler.model.node import Cordon
from hostler.model.reason import Reason
from hostler.model.replica import ReplicaPhase
from hostler.model.shape import AttributeMatch, MatchRule
from hostler.testing.builders import a_fixed_tier, a_job, a_node, a_pool, an_elastic_tier
from tests.core.placing.conftest import NewTheatre
from tests.core.placing.theatre import Theatre, own_pool

MINUTE = 60_000
SETTLE = 10 * MINUTE
DAY = 24 * 60 * MINUTE
ZONES = (SpreadRule(over=SpreadOver.ZONE),)


def a_place(number: int, zone: str = "", **changes: Any) -> Node:
    """Return a node of the fixed tier."""
    return a_node(f"n-90000{number}", zone=zone, incarnation=1, **changes)


def in_debt(theatre: NewTheatre, **job: Any) -> Theatre:
    """Return two ready replicas in one zone that had better be apart, and a cordoned way out."""
    cordon = Cordon(by="me", reason="", at_ms=0)
    places = [a_place(1, "a"), a_place(2, "a"), a_place(3, "b", cordon=cordon)]
    world = theatre(own_pool(), *places)
    world.submit("b1", a_job(**job), replica_count=2, spread=ZONES)
    world.become_ready()
    return world


def uncordon(world: Theatre, number: int = 3) -> None:
    """Open the way out."""
    world.ask(UncordonNode, node_id=f"n-90000{number}")


def note(world: Theatre, key: str = "b1/main/1") -> Reason | None:
    """Return why a debt is not repaid yet."""
    found = world.fleet.notes.get(key, {}).get("repaying")
    return None if found is None else found.reason


def test_a_broken_preference_is_a_debt_of_the_replica(theatre: NewTheatre) -> None:
    world = in_debt(theatre)
    debt = world.replica("b1/main/1").debt
    assert debt is not None
    assert (debt.rules, debt.since_at_ms) == (("spread_zone",), world.now_ms)
    assert world.replica("b1/main/0").debt is None
    world.advance(2 * MINUTE)
    assert note(world) is Reason.NO_BETTER_PLACE


def test_it_is_repaid_when_a_better_place_has_been_there_for_a_while(theatre: NewTheatre) -> None:
    world = in_debt(theatre)
    uncordon(world)
    world.advance(2 * MINUTE)
    assert note(world) is Reason.BETTER_PLACE_SETTLING
    assert world.place("b1/main/1") == "n-900002"
    world.advance(2 * MINUTE + SETTLE)
    assert world.replica("b1/main/1").moving_to == "n-900003"
    world.finish_stops()
    assert world.place("b1/main/1") == "n-900003"
    replica = world.replica("b1/main/1")
    assert (replica.debt, replica.moving_to) == (None, None)
    assert world.count("replica_repaying") == 1


def test_the_room_is_held_until_it_comes(theatre: NewTheatre) -> None:
    """B58: a move must name a better target and hold it before evicting."""
    world = in_debt(theatre, capacity=6)
    uncordon(world)
    world.advance(world.now_ms + 2 * MINUTE + SETTLE)
    world.submit("thief", a_job(capacity=6), a_job("x", capacity=6))
    assert "n-900003" not in world.places().values()
    world.finish_stops()
    assert world.place("b1/main/1") == "n-900003"


def test_who_may_overlap_has_a_second_copy_first(theatre: NewTheatre) -> None:
    world = in_debt(theatre, can_overlap=True)
    uncordon(world)
    world.advance(2 * MINUTE + SETTLE)
    assert world.commands("stop_allocation") == []
    targets = [a for a in world.fleet.allocations.in_order() if a.node_id == "n-900003"]
    assert len(targets) == 1
    world.report(targets[0], "ready")
    world.finish_stops()
    assert world.place("b1/main/1") == "n-900003"
    assert world.replica("b1/main/1").debt is None


def test_the_last_ready_copy_is_not_stopped(theatre: NewTheatre) -> None:
    labels = {"disk": "ssd"}
    cordon = Cordon(by="me", reason="", at_ms=0)
    world = theatre(own_pool(), a_place(1), a_place(2, labels=labels, cordon=cordon))
    match = AttributeMatch(attribute="label:disk", rule=MatchRule.IN, values=("ssd",))
    world.submit("b1", a_job(node_rules=(NodeRule(match=match, is_required=False),)))
    world.become_ready()
    uncordon(world, 2)
    world.advance(DAY)
    assert world.place() == "n-900001"
    assert note(world, "b1/main/0") is Reason.LAST_READY_COPY


def test_one_moves_at_a_time(theatre: NewTheatre) -> None:
    cordon = Cordon(by="me", reason="", at_ms=0)
    places = [a_place(n, "a") for n in (1, 2, 3)]
    others = [a_place(4, "b", cordon=cordon), a_place(5, "c", cordon=cordon)]
    world = theatre(own_pool(), *places, *others)
    world.submit("b1", replica_count=3, spread=ZONES)
    world.become_ready()
    uncordon(world, 4)
    uncordon(world, 5)
    world.advance(2 * MINUTE + SETTLE)
    moving = [r for r in world.fleet.replicas.in_order() if r.moving_to]
    assert len(moving) == 1
    world.finish_stops()
    world.advance(world.now_ms + DAY)
    assert world.count("replica_repaying") == 1
    world.become_ready()
    world.advance(world.now_ms + 5 * MINUTE + SETTLE)
    world.finish_stops()
    assert world.count("replica_repaying") == 2
    assert len(set(world.places().values())) == 3


def test_a_place_that_comes_and_goes_moves_nobody(theatre: NewTheatre) -> None:
    world = in_debt(theatre)
    for _ in range(20):
        uncordon(world)
        world.advance(world.now_ms + 5 * MINUTE)
        world.ask(CordonNode, node_id="n-900003", reason="")
        world.advance(world.now_ms + 5 * MINUTE)
    assert world.count("replica_repaying") == 0


def test_no_move_to_where_it_is(theatre: NewTheatre) -> None:
    """B58: make the best target equal the source. Expect no move."""
    world = theatre(own_pool(), a_place(1, "a"), a_place(2, "a"))
    world.submit("b1", replica_count=2, spread=ZONES)
    world.become_ready()
    world.advance(DAY)
    assert world.count("replica_repaying") == 0
    assert world.commands("stop_allocation") == []


def test_a_preference_that_cannot_be_met_moves_nobody_until_it_can(theatre: NewTheatre) -> None:
    """B59: prefers spot, none available. Expect zero moves in 24 h; one move when spot appears and
    stays 10 min."""
    spot = an_elastic_tier("spot", labels={"kind": "spot"}, node_count_max=0)
    own = a_fixed_tier()
    world = theatre(a_pool(tiers=(own, spot)), a_place(1), a_place(2))
    match = AttributeMatch(attribute="label:kind", rule=MatchRule.IN, values=("spot",))
    rule = NodeRule(match=match, is_required=False)
    world.submit("b1", a_job(can_overlap=True, node_rules=(rule,)))
    world.become_ready()
    world.advance(DAY)
    assert world.count("replica_repaying") == 0
    spot = an_elastic_tier("spot", labels={"kind": "spot"}, node_count_max=1, boot_ms=SETTLE)
    world.configure(a_pool(tiers=(own, spot)))
    world.advance(world.now_ms + SETTLE)
    assert world.count("replica_repaying") == 0
    world.advance(world.now_ms + SETTLE + MINUTE)
    assert world.count("replica_repaying") == 1
    world.boot()
    target = next(a for a in world.fleet.allocations.in_order() if a.node_id != "n-900001")
    world.report(target, "ready")
    world.finish_stops()
    world.advance(world.now_ms + DAY)
    assert world.count("replica_repaying") == 1
    assert world.replica().debt is None


def test_a_debt_that_others_have_paid_is_forgotten(theatre: NewTheatre) -> None:
    world = in_debt(theatre)
    world.submit("b1", replica_count=1, spread=ZONES)
    world.finish_stops()
    world.submit("b1", replica_count=2, spread=ZONES)
    world.become_ready()
    assert world.replica("b1/main/1").debt is not None
    world.lose("n-900001")
    world.advance(world.now_ms + 15 * MINUTE)
    assert world.replica("b1/main/1").phase is ReplicaPhase.PLACED
    told = (world.replica("b1/main/0").debt, world.replica("b1/main/1").debt)
    assert None in told


@pytest.mark.parametrize("is_overlapping", [True, False])
def test_who_has_moved_lately_waits_longer_each_time(
    theatre: NewTheatre, *, is_overlapping: bool
) -> None:
    world = in_debt(theatre, can_overlap=is_overlapping)
    moves = 0
    for _ in range(48):
        uncordon(world)
        world.advance(world.now_ms + 15 * MINUTE)
        for allocation in list(world.fleet.allocations.in_order()):
            if allocation.is_live and allocation.phase.value in ("starting", "running"):
                world.report(allocation, "ready")
        world.finish_stops()
        world.become_ready()
        if world.place("b1/main/1") == "n-900003":
            world.drain("n-900003")
            world.finish_stops()
            world.become_ready()
        world.advance(world.now_ms + 15 * MINUTE)
        moves = world.count("replica_repaying")
    assert moves <= 6


def test_who_is_on_the_move_is_not_looked_at_again_at_once(theatre: NewTheatre) -> None:
    world = in_debt(theatre)
    uncordon(world)
    world.advance(2 * MINUTE + SETTLE)
    assert world.replica("b1/main/1").moving_to is not None
    debt = world.replica("b1/main/1").debt
    assert debt is not None
    assert debt.look_at_ms > world.now_ms
    world.advance(world.now_ms + 5 * MINUTE)
    assert world.count("replica_repaying") == 1
    world.finish_stops()
    assert world.place("b1/main/1") == "n-900003"


def test_a_scan_does_not_take_an_old_end_for_an_opening(theatre: NewTheatre) -> None:
    """Simulator seed 85: it looked sooner than it would have, for room that was there before."""
    world = in_debt(theatre)
    world.submit("b2")
    world.become_ready()
    world.delete("b2")
    world.finish_stops()
    world.advance(10 * MINUTE)
    debt = world.replica("b1/main/1").debt
    assert debt is not None
    assert debt.look_at_ms > world.now_ms + MINUTE
    world.check_calm()


def test_room_held_for_what_is_deleted_on_its_way_is_open_to_the_next(theatre: NewTheatre) -> None:
    world = in_debt(theatre, capacity=6)
    uncordon(world)
    world.advance(2 * MINUTE + SETTLE)
    assert world.replica("b1/main/1").moving_to == "n-900003"
    world.submit("b2", a_job(capacity=6))
    assert world.place("b2/main/0") is None
    world.delete("b1")
    assert world.place("b2/main/0") == "n-900003"
    world.check_calm()
