"""Listing: machines that nobody stands for, machines that lists miss, answers that were lost."""

from hostler.base.ids import MachineId, NodeId
from hostler.core import limits
from hostler.core.inputs import EndOrphan
from hostler.core.machine_fact import MachineFact
from hostler.core.replies import Accepted, Refused
from hostler.model import Counter
from hostler.model.node import Health, NodePhase, Origin
from hostler.testing.builders import a_fixed_tier, a_pool, an_elastic_tier
from tests.core.nodes.conftest import NewStable
from tests.core.nodes.stable import Stable, a_launched_node, an_own_node, an_own_pool

GRACE_MS = 120_000
EVERY_MS = 60_000


OURS = Counter(name="n", value=900_100)
"""So many nodes this fleet has had."""


def a_machine(name: str = "m-x", node_id: str = "n-777777", created_at_ms: int = 0) -> MachineFact:
    """Return a listed machine with our label."""
    return MachineFact(
        machine_id=MachineId(name),
        node_id=NodeId(node_id),
        pool="p",
        tier="cloud",
        created_at_ms=created_at_ms,
    )


def orphans(world: Stable) -> list[str]:
    """Return the machines that were found without a node."""
    return [
        str(node.machine_id)
        for node in world.fleet.nodes.in_order()
        if node.origin is Origin.ORPHAN
    ]


def test_every_provider_in_use_is_asked_again_and_again(stable: NewStable) -> None:
    tiers = (an_elastic_tier(), an_elastic_tier("other", provider="rare"))
    world = stable(a_pool(tiers=tiers))
    assert world.commands("list_machines") == ["fake/list/1", "rare/list/1"]
    world.list()
    world.list(provider="rare")
    assert world.commands("list_machines") == []
    world.advance(EVERY_MS)
    assert world.commands("list_machines") == ["fake/list/2", "rare/list/2"]


def test_a_list_that_does_not_come_is_not_asked_for_twice(stable: NewStable) -> None:
    world = stable(a_pool())
    world.advance(5 * EVERY_MS)
    assert world.commands("list_machines") == ["fake/list/1"]


def test_an_orphan_is_found_and_stopped(stable: NewStable) -> None:
    world = stable(a_pool(), OURS)
    world.advance(GRACE_MS)
    world.list(a_machine())
    (node,) = world.in_phase(NodePhase.STOPPING)
    assert (node.origin, node.machine_id) == (Origin.ORPHAN, "m-x")
    assert world.events().count("orphan_found") == 1
    world.list(a_machine())
    assert orphans(world) == ["m-x"]
    world.bury()
    assert world.node(node.node_id).phase is NodePhase.RETIRED


def test_a_young_machine_is_left_alone(stable: NewStable) -> None:
    world = stable(a_pool())
    world.advance(GRACE_MS)
    world.list(a_machine(created_at_ms=1))
    assert orphans(world) == []
    world.list(a_machine(created_at_ms=1))
    assert orphans(world) == ["m-x"]


def test_a_machine_of_a_retired_node_is_an_orphan_however_young(stable: NewStable) -> None:
    world = stable(a_pool(warm_count=1))
    world.fail("n-000001/launch/1", "capacity_unavailable")
    world.list(a_machine(node_id="n-000001", created_at_ms=world.now_ms))
    assert orphans(world) == ["m-x"]


def test_a_second_machine_of_one_node_is_an_orphan(stable: NewStable) -> None:
    world = stable(a_pool(), a_launched_node())
    world.advance(GRACE_MS)
    world.list(world.machine(world.node()), a_machine(node_id="n-900001"))
    assert orphans(world) == ["m-x"]
    assert world.node().phase is NodePhase.READY


def test_a_list_brings_the_answer_to_a_launch_that_was_lost(stable: NewStable) -> None:
    world = stable(a_pool(warm_count=1))
    world.list(a_machine(node_id="n-000001"))
    node = world.node("n-000001")
    assert (node.phase, node.machine_id) == (NodePhase.STARTING, "m-x")
    assert not world.commands("launch_machine")
    assert orphans(world) == []


def test_a_list_names_the_machine_of_a_node_whose_agent_was_quicker(stable: NewStable) -> None:
    world = stable(a_pool(warm_count=1))
    world.hello("n-000001")
    world.list(a_machine(node_id="n-000001"))
    assert world.node("n-000001").machine_id == "m-x"


def test_absence_from_one_list_is_not_absence(stable: NewStable) -> None:
    world = stable(a_pool(), a_launched_node())
    world.advance(EVERY_MS)
    world.list()
    assert not world.commands("check_machine")
    world.list(world.machine(world.node()))
    world.list()
    assert not world.commands("check_machine")
    assert world.node().health is Health.LIVE


def test_a_machine_that_lists_in_a_row_miss_is_asked_about_and_only_gone_is_gone(
    stable: NewStable,
) -> None:
    world = stable(a_pool(), a_launched_node())
    world.advance(EVERY_MS)
    for _ in range(3):
        world.list()
    assert world.commands("check_machine") == ["n-900001/check/1"]
    world.succeed("n-900001/check/1", world.machine(world.node()))
    assert world.node().health is Health.LIVE
    world.list()
    world.silence()
    world.succeed("n-900001/check/1")
    assert world.node().phase is NodePhase.RETIRED


def test_s_100_an_agent_that_speaks_is_believed_more_than_its_provider(stable: NewStable) -> None:
    """Missing machine: an idle record the driver does not list is not dropped for that alone."""
    world = stable(a_pool(warm_count=1), a_launched_node())
    world.advance(EVERY_MS)
    for _ in range(4):
        for _ in range(3):
            world.list()
        world.succeed("n-900001/check/1")
    assert (world.node().phase, world.node().health) == (NodePhase.READY, Health.LIVE)
    assert not world.node().is_machine_gone
    assert world.events().count("node_gone_doubted") == 1
    world.silence(cut=True)
    world.succeed("n-900001/check/1")
    assert world.node().phase is NodePhase.RETIRED


def test_a_machine_with_the_name_of_a_node_that_never_was_is_held_until_told(
    stable: NewStable,
) -> None:
    world = stable(a_pool(warm_count=1), a_launched_node(), OURS)
    world.advance(GRACE_MS)
    stranger = a_machine(node_id="n-999999")
    world.list(world.machine(world.node()), stranger)
    (node,) = world.in_phase(NodePhase.STOPPING)
    assert (node.is_foreign, node.pool) == (True, "")
    assert not world.commands("stop_machine")
    assert world.fleet.notes[node.node_id]["retirement"].reason == "foreign_machine"
    world.list(world.machine(world.node()), stranger)
    assert orphans(world) == ["m-x"]
    world.advance(world.now_ms + 10 * limits.STUCK_AFTER_MS)
    assert "node_stuck" not in world.events()
    assert isinstance(world.ask(EndOrphan, node_id=node.node_id), Accepted)
    assert world.commands("stop_machine") == [f"{node.node_id}/stop/1"]
    again = world.ask(EndOrphan, node_id=node.node_id)
    assert again == Accepted(subject_id=node.node_id, is_repeat=True)
    world.bury()
    assert world.node(node.node_id).phase is NodePhase.RETIRED


def test_a_held_machine_that_goes_by_itself_is_forgotten(stable: NewStable) -> None:
    world = stable(a_pool())
    world.advance(GRACE_MS)
    world.list(a_machine())
    (node,) = world.in_phase(NodePhase.STOPPING)
    for _ in range(3):
        world.list()
    world.succeed(f"{node.node_id}/check/1")
    assert world.node(node.node_id).phase is NodePhase.RETIRED


def test_only_orphans_are_ended_so(stable: NewStable) -> None:
    world = stable(a_pool(), a_launched_node())
    answer = world.ask(EndOrphan, node_id="n-900001")
    assert isinstance(answer, Refused)
    assert answer.code == "node_not_orphan"


def test_a_list_cannot_miss_what_came_after_it_was_asked_for(stable: NewStable) -> None:
    world = stable(a_pool(warm_count=1))
    world.run(at_ms=1_000)
    world.launch()
    world.list()
    assert world.fleet.providers["fake"].absent_list_counts == {}


def test_a_machine_that_joined_by_itself_need_not_be_listed(stable: NewStable) -> None:
    world = stable(
        a_pool(tiers=(a_fixed_tier(provider="local"),)),
        an_own_node(provider="local", machine_id="box"),
    )
    world.advance(EVERY_MS)
    for _ in range(3):
        world.list(provider="local")
    assert not world.commands("check_machine")


def test_a_machine_that_vanishes_while_it_boots_is_given_up(stable: NewStable) -> None:
    slow = an_elastic_tier(boot_ms=10 * EVERY_MS)
    world = stable(a_pool(warm_count=1, tiers=(slow,)))
    world.launch()
    world.list()
    for _ in range(2):
        world.list()
    world.succeed("n-000001/check/1")
    assert world.node("n-000001").phase is NodePhase.RETIRED
    assert world.fleet.cooldowns["p/cloud/small"].code == "machine_gone"


def test_a_provider_that_is_no_longer_used_is_no_longer_asked(stable: NewStable) -> None:
    world = stable(a_pool())
    world.configure(an_own_pool())
    world.advance(2 * EVERY_MS)
    assert not len(world.fleet.providers)
    assert not world.commands("list_machines")
