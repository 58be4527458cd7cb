"""N-1: which single node, zone, provider or interruptible tier would hurt whom."""

from typing import Any

from hostler.core.planning import plan
from hostler.core.protection import Protection, protection_of
from hostler.core.replies import Refused
from hostler.model import Node
from hostler.model.pool import Band, Reliability
from hostler.model.reason import Reason
from hostler.testing.builders import a_job, a_node, a_pool, an_elastic_tier
from tests.core.placing.conftest import NewTheatre
from tests.core.placing.test_planning import state
from tests.core.placing.theatre import Theatre, own_pool


def a_place(number: int, zone: str = "", **changes: Any) -> Node:
    """Return a node of the fixed tier."""
    return a_node(f"n-90000{number}", zone=zone, incarnation=1, **changes)


def protection(world: Theatre, name: str = "b1") -> Protection:
    """Ask, and hold the fleet to being as it was."""
    before = state(world.fleet)
    found = protection_of(world.fleet, name, world.now_ms)
    assert state(world.fleet) == before
    return found


def hurts(found: Protection) -> list[tuple[str, str, list[str]]]:
    """Return which loss hurts whom."""
    return [(one.kind, one.name, [key for key, _ in one.replicas]) for one in found.hurts]


def test_room_elsewhere_protects(theatre: NewTheatre) -> None:
    world = theatre(own_pool(), a_place(1), a_place(2))
    world.submit()
    assert protection(world).is_protected
    world.submit("b2", a_job(capacity=8))
    assert protection(world).is_protected is False
    assert hurts(protection(world)) == [("node", "n-900001", ["b1/main/0"])]


def test_a_zone_may_be_missed_though_no_node_is(theatre: NewTheatre) -> None:
    places = [a_place(1, "a"), a_place(2, "a"), a_place(3, "b")]
    world = theatre(own_pool(), *places)
    world.submit("b1", a_job(capacity=8), replica_count=2)
    found = protection(world)
    assert hurts(found) == [("zone", "a", ["b1/main/1"])]
    assert dict(found.hurts[0].replicas) == {"b1/main/1": Reason.NO_CAPACITY}


def test_the_more_urgent_have_the_room_that_is_left(theatre: NewTheatre) -> None:
    world = theatre(own_pool(), a_place(1), a_place(2))
    world.submit("b1", a_job(capacity=4))
    world.submit("b2", a_job(capacity=6, band=Band.GOLD))
    assert protection(world, "b2").is_protected
    world.submit("b3", a_job(capacity=1))
    assert world.place("b3/main/0") == "n-900002"
    assert hurts(protection(world, "b1")) == [("node", "n-900001", ["b1/main/0"])]


def test_machines_that_may_be_launched_count_unless_they_are_lost_too(theatre: NewTheatre) -> None:
    spot = an_elastic_tier("spot", reliability=Reliability.INTERRUPTIBLE)
    world = theatre(a_pool(tiers=(spot,)))
    world.submit("b1", replica_count=2)
    assert hurts(protection(world)) == [
        ("provider", "fake", ["b1/main/0", "b1/main/1"]),
        ("interruptible_tier", "p/spot", ["b1/main/0", "b1/main/1"]),
    ]


def test_bronze_is_not_recovered_and_so_never_protected(theatre: NewTheatre) -> None:
    world = theatre(own_pool(), a_place(1), a_place(2))
    world.submit("b1", a_job(band=Band.BRONZE))
    (hurt,) = protection(world).hurts
    assert hurt.replicas == (("b1/main/0", Reason.BAND_DROPPED),)


def test_who_has_no_place_is_not_protected(theatre: NewTheatre) -> None:
    world = theatre(own_pool(), a_place(1))
    world.submit("b1", replica_count=2)
    assert protection(world).unplaced == ("b1/main/1",)
    assert protection(world).is_protected is False


def test_a_plan_tells_what_it_would_not_survive(theatre: NewTheatre) -> None:
    world = theatre(own_pool(), a_place(1), a_place(2))
    found = plan(world.fleet, world.submission("b1", a_job(capacity=8), replica_count=2), 0)
    assert found.protection is not None
    assert hurts(found.protection) == [
        ("node", "n-900001", ["b1/main/0"]),
        ("node", "n-900002", ["b1/main/1"]),
    ]


def test_a_bundle_that_asks_for_protection_is_refused_without(theatre: NewTheatre) -> None:
    world = theatre(own_pool(), a_place(1), a_place(2))
    before = world.fleet.digest()
    answer = world.try_submit("b1", replica_count=2, is_protection_required=True)
    assert isinstance(answer, Refused)
    assert (answer.code, answer.is_conflict, len(answer.problems)) == ("not_protected", True, 2)
    assert "n-900001" in answer.message
    assert world.fleet.digest() == before
    world.join(tier="own")
    world.submit("b1", replica_count=2, is_protection_required=True)
    assert len(world.places()) == 2
    world.submit("b1", replica_count=2, is_protection_required=True)
    world.lose("n-900001")
    assert len(world.places()) == 2
    again = world.submit("b1", replica_count=2, is_protection_required=True)
    assert again.is_repeat


def test_what_is_wrong_is_said_before_what_is_not_protected(theatre: NewTheatre) -> None:
    world = theatre(own_pool(), a_place(1))
    answer = world.try_submit("b1", pool="nowhere", is_protection_required=True)
    assert isinstance(answer, Refused)
    assert answer.code == "bundle_invalid"
