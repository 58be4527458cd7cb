"""Clean-up between two leases: a slot is free when it has gone well, and a failure is kept."""

from typing import Any

import pytest

from hostler.model import Lease
from hostler.model.command import EndLease
from hostler.model.lease import LeaseOutcome, LeasePhase, Share
from hostler.model.node import NodePhase, RetireReason
from hostler.testing.builders import a_fixed_tier, a_node, a_pool
from tests.core.leasing.conftest import NewRental
from tests.core.leasing.rental import Rental, a_launched_node

SCRUB = ("/bin/scrub", "--all")


def a_clean_pool(**changes: Any) -> Any:
    """Return a pool that cleans up."""
    return a_pool(
        **{"tiers": (a_fixed_tier(),), "clean_up": SCRUB, "clean_up_ms": 5_000, **changes}
    )


def ending(world: Rental, lease: Lease) -> str:
    """Return the id of the command that ends a lease on its node."""
    return f"{lease.lease_id}/end/{lease.epoch}"


def test_a_slot_is_free_once_it_is_clean(rental: NewRental) -> None:
    world = rental(a_clean_pool(), a_node())
    first = world.acquire()
    waiting = world.acquire(timeout_ms=60_000)
    world.release(first)
    command = world.fleet.commands[ending(world, first)].command
    assert isinstance(command, EndLease)
    assert (command.clean_up, command.clean_up_ms) == (SCRUB, 5_000)
    assert world.now(waiting).phase is LeasePhase.WAITING
    world.advance(700)
    world.succeed(ending(world, first))
    assert world.now(waiting).phase is LeasePhase.HELD
    done = world.node_of(first).last_clean_up
    assert done is not None
    assert (done.lease_id, done.is_success, done.ended_at_ms) == (first.lease_id, True, 700)


def test_a_node_of_ours_that_cannot_be_cleaned_waits_for_a_person(rental: NewRental) -> None:
    world = rental(a_clean_pool(), a_node())
    first = world.acquire()
    world.release(first)
    world.fail(ending(world, first), "refused", "clean_up_failed: exit code 3")
    node = world.node_of(first)
    assert node.cordon is not None
    assert (node.cordon.by, node.cordon.reason) == ("hostler", "poisoned")
    assert node.last_clean_up is not None
    assert node.last_clean_up.detail == "clean_up_failed: exit code 3"
    assert "node_clean_up_failed" in world.events()
    assert world.acquire().phase is LeasePhase.WAITING


def test_a_launched_node_that_cannot_be_cleaned_is_replaced(rental: NewRental) -> None:
    world = rental(a_pool(clean_up=SCRUB), a_launched_node())
    first = world.acquire()
    world.release(first)
    world.fail(ending(world, first), "refused", "clean_up_failed: exit code 3")
    node = world.node_of(first)
    assert (node.phase, node.retire_reason) == (NodePhase.STOPPING, RetireReason.POISONED)


def test_an_attempt_that_nobody_answers_is_made_again(rental: NewRental) -> None:
    world = rental(a_clean_pool(), a_node())
    first = world.acquire()
    world.release(first)
    world.fail(ending(world, first), "unreachable")
    assert world.node_of(first).cleaning_count == 1
    world.advance(10_000)
    world.succeed(ending(world, first))
    assert world.node_of(first).cleaning_count == 0


def test_other_slots_are_held_meanwhile(rental: NewRental) -> None:
    world = rental(a_clean_pool(slot_count=2), a_node(slot_count=2))
    first, second = world.acquire(), world.acquire()
    world.release(first)
    third = world.acquire(timeout_ms=60_000)
    assert third.phase is LeasePhase.WAITING
    world.succeed(ending(world, first))
    assert world.now(third).phase is LeasePhase.HELD
    assert world.now(second).phase is LeasePhase.HELD


@pytest.mark.parametrize("newcomer", [("b", Share.ANY), ("b", Share.NONE)])
def test_a_slot_that_is_cleaned_belongs_to_no_key(
    rental: NewRental, newcomer: tuple[str, Share]
) -> None:
    """As many slots are free before and after, but nobody has to consent any more."""
    world = rental(a_clean_pool(slot_count=2), a_node(slot_count=2))
    first = world.acquire(fairness_key="a", share=Share.SAME_KEY)
    key, share = newcomer
    waiting = world.acquire(fairness_key=key, share=share, timeout_ms=60_000)
    assert waiting.phase is LeasePhase.WAITING
    world.release(first)
    assert world.node_of(first).cleaning_count == 1
    assert world.now(waiting).phase is LeasePhase.HELD


def test_nothing_is_cleaned_where_nothing_ran_or_nobody_follows(rental: NewRental) -> None:
    world = rental(a_clean_pool(), a_node("n-1"), a_node("n-2"))
    for lease, outcome in ((world.acquire(ack_ms=100), None), (world.acquire(), "poison")):
        if outcome:
            world.release(lease, LeaseOutcome(outcome))
        else:
            world.advance(100)
        assert world.node_of(lease).cleaning_count == 0
