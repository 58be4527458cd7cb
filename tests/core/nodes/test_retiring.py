"""Retiring: only the provider's word ends a machine's record, and history is forgotten in time."""

from hostler.core import limits
from hostler.core.inputs import AcquireLease, ReleaseLease, ServerStarted
from hostler.model.lease import LeaseOutcome
from hostler.model.node import NodePhase, RetireReason
from hostler.testing.builders import a_pool, an_elastic_tier
from tests.core.nodes.conftest import NewStable
from tests.core.nodes.stable import Stable, a_launched_node, an_own_node, an_own_pool

ENDED_MS = 900_000


def poison(world: Stable, lease_id: str) -> None:
    """End a lease badly."""
    world.ask(ReleaseLease, lease_id=lease_id, outcome=LeaseOutcome.POISON)


def test_a_machine_is_counted_and_asked_about_until_its_provider_says_gone(
    stable: NewStable,
) -> None:
    world = stable(a_pool(tiers=(an_elastic_tier(node_count_max=1),)), a_launched_node())
    poison(world, world.acquire().lease_id)
    world.acquire(timeout_ms=10_000_000)
    assert world.node().phase is NodePhase.STOPPING
    for _ in range(30):
        world.fail("n-900001/stop/1", "outcome_unknown")
        world.advance(world.now_ms + 60_000)
    assert world.node().phase is NodePhase.STOPPING
    assert not world.commands("launch_machine")
    assert world.fleet.notes["n-900001"]["retirement"].reason == "stop_unconfirmed"
    assert world.events().count("node_stuck") == 1
    assert world.fleet.index.nodes_stuck.keys("stuck") == ["n-900001"]
    world.bury()
    assert world.node().phase is NodePhase.RETIRED
    assert world.commands("launch_machine")


def test_a_stop_that_was_out_when_the_server_died_goes_out_again(stable: NewStable) -> None:
    world = stable(a_pool(), a_launched_node())
    poison(world, world.acquire().lease_id)
    delta = world.run(ServerStarted())
    assert "n-900001/stop/1" in [each.command_id for each in delta.dispatches]


def test_an_unfit_node_waits_for_its_other_leases(stable: NewStable) -> None:
    world = stable(a_pool(slot_count=2), a_launched_node(slot_count=2))
    first, second = world.acquire(), world.acquire()
    poison(world, first.lease_id)
    assert world.node().phase is NodePhase.DRAINING
    assert world.fleet.notes["n-900001"]["retirement"].reason == "in_use"
    world.ask(ReleaseLease, lease_id=second.lease_id)
    assert world.node().phase is NodePhase.STOPPING


def test_a_single_use_node_goes_after_its_lease(stable: NewStable) -> None:
    world = stable(a_pool(use_count_max=1), a_launched_node())
    lease = world.acquire()
    assert world.node().retire_reason is RetireReason.USED_UP
    world.ask(ReleaseLease, lease_id=lease.lease_id)
    assert world.node().phase is NodePhase.STOPPING


def test_nothing_is_asked_of_the_agent_of_a_retired_node(stable: NewStable) -> None:
    world = stable(a_pool(), a_launched_node())
    poison(world, world.acquire().lease_id)
    assert world.commands("end_lease")
    world.bury()
    assert not world.commands("end_lease")
    world.run(at_ms=world.now_ms + 1)


def test_a_machine_that_goes_while_its_node_is_being_emptied_is_not_asked_to_stop(
    stable: NewStable,
) -> None:
    world = stable(a_pool(slot_count=2), a_launched_node(slot_count=2))
    first, second = world.acquire(), world.acquire()
    poison(world, first.lease_id)
    world.silence(cut=True)
    world.succeed("n-900001/check/1")
    assert world.node().phase is NodePhase.RETIRED
    assert world.fleet.leases[second.lease_id].outcome is LeaseOutcome.NODE_LOST
    assert world.node().retire_reason is RetireReason.POISONED


def test_what_is_over_is_forgotten_when_it_is_old_enough(stable: NewStable) -> None:
    world = stable(an_own_pool(), an_own_node())
    lease = world.acquire()
    world.ask(AcquireLease, pool="p", timeout_ms=0)
    world.ask(ReleaseLease, lease_id=lease.lease_id)
    allocation = world.run_allocation(world.place())
    world.ask_to_delete("b")
    world.succeed(f"{allocation.allocation_id}/stop/1")
    world.advance(ENDED_MS - 1)
    assert len(world.fleet.leases) == 2
    assert len(world.fleet.allocations) == 1
    world.advance(ENDED_MS)
    assert len(world.fleet.leases) == len(world.fleet.allocations) == 0


def test_a_retired_node_is_forgotten_and_then_its_pool(stable: NewStable) -> None:
    world = stable(a_pool(), a_launched_node())
    world.configure()
    world.bury()
    assert "p" not in world.fleet.pools
    world.advance(ENDED_MS - 1)
    assert "n-900001" in world.fleet.nodes
    world.advance(ENDED_MS)
    assert not len(world.fleet.nodes)
    world.advance(ENDED_MS + 120_000)
    assert not len(world.fleet.providers)
    assert world.fleet.notes == {}


def test_a_pause_is_remembered_for_a_while_after_its_end(stable: NewStable) -> None:
    small = an_elastic_tier().offers[:1]
    world = stable(a_pool(tiers=(an_elastic_tier(offers=small),)))
    lease = world.acquire(timeout_ms=1_000)
    world.fail("n-000001/launch/1", "capacity_unavailable")
    world.advance(limits.COOLDOWN_MS_MIN)
    assert world.fleet.leases[lease.lease_id].outcome is None
    assert world.fleet.cooldowns["p/cloud/small"].is_over
    world.advance(limits.COOLDOWN_MS_MIN + limits.COOLDOWN_MEMORY_MS)
    assert not len(world.fleet.cooldowns)


def test_receipts_are_forgotten_after_a_day(stable: NewStable) -> None:
    world = stable(an_own_pool(), an_own_node())
    world.ask(AcquireLease, pool="p", timeout_ms=0, idempotency_key="k")
    assert len(world.fleet.receipts) == 1
    world.advance(86_400_000)
    assert not len(world.fleet.receipts)
