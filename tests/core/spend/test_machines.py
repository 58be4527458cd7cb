"""Machines in the books: from the provider's word of their start to its word of their end."""

import pytest
from msgspec.structs import replace

from hostler.base.ids import CommandId, MachineId, NodeId
from hostler.core.inputs import CommandFailed, CommandSettled, SilenceNoticed, Succeeded
from hostler.core.machine_fact import MachineFact
from hostler.core.spend_index import FLEET
from hostler.model import Node
from hostler.model.node import NodePhase, Origin, RetireReason
from hostler.model.reason import Reason
from hostler.model.spend import UNITS_PER_MICRO, SpendBy, Stretch
from hostler.testing.builders import a_fixed_tier, a_node, a_pool, an_elastic_tier
from tests.core.leasing.rental import a_launched_node
from tests.core.spend.accounts import HOUR_MS, MAY_29, Accounts, a_budget, a_cap
from tests.core.spend.conftest import NewAccounts

PRICE = 100_000


def asked_for(world: Accounts) -> Node:
    """Have a machine asked for and return its node."""
    world.acquire(timeout_ms=10 * HOUR_MS)
    (node,) = [n for n in world.fleet.nodes.in_order() if n.phase is NodePhase.REQUESTED]
    return node


def a_fact(node: Node, created_at_ms: int) -> MachineFact:
    return MachineFact(
        machine_id=MachineId("m-1"), node_id=node.node_id, epoch=1, created_at_ms=created_at_ms
    )


def list_of(world: Accounts, *facts: MachineFact) -> None:
    """Let the provider answer with every machine that it has."""
    (command_id,) = world.commands("list_machines")
    world.succeed(command_id, *facts)


def test_a_machine_costs_from_the_start_that_its_provider_tells(accounts: NewAccounts) -> None:
    world = accounts(a_pool(), now_ms=MAY_29)
    node = asked_for(world)
    world.now_ms = MAY_29 + 8_000
    world.succeed(world.commands("launch_machine")[0], a_fact(node, MAY_29 + 3_000))
    assert world.machine_ms() == 5_000
    world.advance(MAY_29 + 20_000)
    assert world.machine_ms() == 17_000


@pytest.mark.parametrize("by", ["late launch", "list"])
def test_a_machine_that_a_list_named_before_it_began_costs_from_its_beginning(
    accounts: NewAccounts, by: str
) -> None:
    """As when a server dies between the two calls that make a container."""
    world = accounts(a_pool(), now_ms=MAY_29)
    node = asked_for(world)
    (launch,) = world.commands("launch_machine")
    created, began = MAY_29 + 3_000, MAY_29 + 19_000
    world.run(at_ms=MAY_29 + 18_000)
    list_of(world, a_fact(node, created))
    assert world.machine_ms() == 15_000
    fact = replace(a_fact(node, created), started_at_ms=began)
    world.now_ms = MAY_29 + 20_000
    if by == "list":
        world.advance(MAY_29 + 80_000)
        list_of(world, fact)
    else:
        world.run(CommandSettled(command_id=CommandId(launch), outcome=Succeeded(machines=(fact,))))
    assert world.machine_ms() == world.now_ms - began


def test_a_machine_ends_when_its_provider_says_it_did(accounts: NewAccounts) -> None:
    world = accounts(
        a_pool(),
        a_launched_node(price_microusd_per_hour=PRICE, retire_reason=RetireReason.IDLE),
    )
    world.advance(60_000)
    (command_id,) = world.commands("stop_machine")
    entry = world.fleet.commands[command_id]
    world.run(
        CommandSettled(command_id=entry.command_id, outcome=Succeeded(ended_at_ms=45_000)),
        at_ms=60_000,
    )
    assert world.machine_ms() == 45_000
    used = world.fleet.index.spend.used(FLEET, SpendBy.OFFER, Stretch.TOTAL, 0)
    assert used.cost_units == 45_000 * PRICE
    assert not world.fleet.meters.rows
    world.advance(HOUR_MS)
    assert world.machine_ms() == 45_000


def test_a_machine_that_an_agent_tells_of_first_is_corrected(accounts: NewAccounts) -> None:
    world = accounts(a_pool(), a_launched_node(machine_id=None))
    world.advance(10_000)
    node = world.fleet.nodes["n-900001"]
    assert node.metered_from_ms == 0
    world.run(
        CommandSettled(
            command_id=f"{node.node_id}/launch/1",  # type: ignore[arg-type]  # an id by its form
            outcome=Succeeded(machines=(a_fact(node, 4_000),)),
        )
    )
    assert world.machine_ms() == 6_000


def test_a_machine_without_a_name_costs_for_as_long_as_its_agent_spoke(
    accounts: NewAccounts,
) -> None:
    """Simulator seed 44: its launch was never answered, and nobody can say when it ended."""
    world = accounts(a_pool(), a_launched_node(machine_id=None))
    silence = SilenceNoticed(node_id=NodeId("n-900001"), since_at_ms=9_000)
    world.run(silence, at_ms=10_000)
    world.advance(300_000)
    (stop,) = world.commands("stop_machine")
    world.run(CommandSettled(command_id=CommandId(stop), outcome=Succeeded()))
    assert world.fleet.nodes["n-900001"].phase is NodePhase.RETIRED
    assert world.machine_ms() == 9_000


def test_a_stop_by_label_learns_which_machine_it_ends(accounts: NewAccounts) -> None:
    world = accounts(a_pool())
    node = asked_for(world)
    world.advance(node.boot_ms)
    (stop,) = world.commands("stop_machine")
    entry = world.fleet.commands[stop]
    met = CommandFailed(code="outcome_unknown", machines=(a_fact(node, 1_000),))
    world.run(CommandSettled(command_id=entry.command_id, outcome=met))
    assert world.machine_ms() == world.now_ms - 1_000
    assert world.fleet.commands[stop].command.met_machine_ids == ("m-1",)  # type: ignore[union-attr]  # a stop
    gone = Succeeded(ended_at_ms=9_000)
    world.run(CommandSettled(command_id=entry.command_id, outcome=gone))
    assert world.fleet.index.spend.used(FLEET, SpendBy.OFFER, Stretch.TOTAL, 0).node_ms == 8_000


def test_a_start_that_is_told_to_be_later_frees_money_for_who_was_held_back(
    accounts: NewAccounts,
) -> None:
    budget = a_budget(a_cap(node_ms=HOUR_MS), pool="")
    old = a_launched_node("n-900001", machine_id=None, started_at_ms=0)
    world = accounts(a_pool(), a_pool("q"), budget, old, now_ms=HOUR_MS)
    waiting = world.acquire("q", timeout_ms=HOUR_MS)
    assert world.now(waiting).node_id is None
    assert world.why(waiting).reason is Reason.BUDGET_SPENT
    list_of(world, a_fact(old, HOUR_MS - 1_000))
    assert world.commands("launch_machine")


def test_a_stop_by_label_is_asked_by_id_once_that_is_known(accounts: NewAccounts) -> None:
    """Simulator seed 569: by the label nothing was found any more, so nobody said when it ended."""
    world = accounts(a_pool())
    node = asked_for(world)
    (launch,) = world.commands("launch_machine")
    world.advance(node.boot_ms)
    (stop,) = world.commands("stop_machine")
    answer = Succeeded(machines=(a_fact(node, 1_000),))
    world.run(CommandSettled(command_id=CommandId(launch), outcome=answer))
    world.run(CommandSettled(command_id=CommandId(stop), outcome=Succeeded()))
    assert world.fleet.nodes[node.node_id].phase is NodePhase.STOPPING
    world.advance(world.now_ms + 1_000)
    assert world.fleet.commands[stop].command.machine_id == "m-1"  # type: ignore[union-attr]  # a stop
    world.run(CommandSettled(command_id=CommandId(stop), outcome=Succeeded(ended_at_ms=9_000)))
    assert world.fleet.nodes[node.node_id].phase is NodePhase.RETIRED
    assert world.fleet.index.spend.used(FLEET, SpendBy.OFFER, Stretch.TOTAL, 0).node_ms == 8_000


def test_stuck_02_what_will_not_die_still_costs_and_is_nobodys_lease(
    accounts: NewAccounts,
) -> None:
    """S02: `terminate_fail` 2 h: not in the lease limit, still in the money cap; both shown."""
    node = a_launched_node(price_microusd_per_hour=PRICE)
    budget = a_budget(a_cap(cost_micros=10**9), lease_count_max=1)
    world = accounts(
        a_pool(tiers=(a_fixed_tier(), an_elastic_tier())), budget, node, a_node("n-900002")
    )
    lease = world.acquire()
    node = world.node_of(lease)
    world.poison(lease)
    for _ in range(20):
        world.fail(world.commands("stop_machine")[0], "outcome_unknown")
        world.advance(world.now_ms + 360_000)
    assert world.fleet.nodes[node.node_id].phase is NodePhase.STOPPING
    assert world.acquire().lease_id in world.held()
    assert world.usage().cost_units == world.now_ms * PRICE
    assert world.now_ms >= 2 * HOUR_MS


def test_boxes_of_a_fixed_tier_have_its_price(accounts: NewAccounts) -> None:
    tier = a_fixed_tier(price_microusd_per_hour=3_600_000)
    box = a_node(price_microusd_per_hour=3_600_000)
    world = accounts(a_pool(tiers=(tier,)), a_budget(a_cap(cost_micros=10**9)), box)
    world.advance(7_000)
    assert world.usage().cost_units == 7_000 * UNITS_PER_MICRO


def test_parts_of_leases_and_bundles_never_exceed_their_machines(accounts: NewAccounts) -> None:
    node = a_launched_node(price_microusd_per_hour=PRICE, slot_count=3)
    world = accounts(a_pool(slot_count=3), node)
    leases = [world.acquire() for _ in range(3)]
    world.advance(30_000)
    for lease in leases:
        world.release(lease)
    index = world.fleet.index.spend
    by_key = index.used(("pool", "p"), SpendBy.KEY, Stretch.TOTAL, 0)
    assert by_key.cost_units == 3 * 30_000 * (PRICE // 3)
    assert by_key.cost_units <= 30_000 * PRICE
    assert world.machine_ms() == 30_000


def test_an_orphan_costs_from_where_its_former_record_ended(accounts: NewAccounts) -> None:
    world = accounts(a_pool(), a_launched_node(retire_reason=RetireReason.IDLE))
    world.advance(50_000)
    world.succeed(world.commands("stop_machine")[0])
    (listing,) = world.commands("list_machines")
    former = world.fleet.nodes["n-900001"]
    assert former.phase is NodePhase.RETIRED
    world.now_ms = 180_000  # a list may be late by the grace for orphans, and no more
    back = MachineFact(
        machine_id=MachineId("m-n-900001"),
        node_id=former.node_id,
        pool="p",
        tier="cloud",
        created_at_ms=1,
    )
    world.succeed(listing, back)
    (orphan,) = [n for n in world.fleet.nodes.in_order() if n.origin is Origin.ORPHAN]
    assert orphan.metered_from_ms == 50_001  # it says that it began a millisecond later
    assert world.fleet.providers["fake"].unattributed_ms == 130_000
    assert "spend_unattributed" in world.events()


def test_a_record_that_no_machine_covers_is_unattributed(accounts: NewAccounts) -> None:
    world = accounts(a_pool(tiers=(an_elastic_tier(),)), a_launched_node())
    world.succeed(world.commands("list_machines")[0])
    world.advance(60_000)
    world.succeed(world.commands("list_machines")[0])
    assert world.fleet.providers["fake"].unattributed_ms == 60_000
