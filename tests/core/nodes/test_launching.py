"""Launching: asked for once, counted at once, and whatever comes of it leaves no machine behind."""

import pytest

from hostler.base.ids import CommandId, MachineId, NodeId
from hostler.core import limits
from hostler.core.inputs import CommandSettled, FullScan, Succeeded
from hostler.core.machine_fact import MachineFact
from hostler.core.outbox import backoff_ms
from hostler.model.allocation import EndCause
from hostler.model.node import NodePhase, Origin, RetireReason
from hostler.testing.builders import a_fixed_tier, a_pool, an_elastic_tier
from tests.core.nodes.conftest import NewStable

BOOT_MS = 120_000
SILENT_MS = 120_000
"""After so long a silence a node is lost."""
ONE = an_elastic_tier(node_count_max=1)
CERTAIN = ("request_invalid", "capacity_unavailable", "quota_exceeded", "credentials_rejected")


def test_growth_is_counted_from_the_moment_it_is_asked_for(stable: NewStable) -> None:
    world = stable(a_pool(warm_count=2))
    assert len(world.commands("launch_machine")) == 2
    world.run(FullScan())
    world.run(at_ms=5_000)
    assert len(world.commands("launch_machine")) == 2
    assert len(world.fleet.nodes) == 2


def test_no_more_launches_are_out_than_the_pool_allows(stable: NewStable) -> None:
    world = stable(a_pool(warm_count=7, launch_count_max=3))
    assert len(world.commands("launch_machine")) == 3
    world.launch()
    assert len(world.commands("launch_machine")) == 3
    world.boot()
    world.boot()
    assert len(world.in_phase(NodePhase.READY)) == 7


def test_a_tier_never_grows_above_its_maximum(stable: NewStable) -> None:
    world = stable(a_pool(warm_count=1, tiers=(ONE,)))
    world.acquire(timeout_ms=900_000)
    world.acquire(timeout_ms=900_000)
    world.boot()
    assert len(world.fleet.nodes) == 1
    assert "limit_reached" in {note.reason.value for note in world.fleet.notes["p"].values()}


def test_a_launched_machine_whose_agent_says_hello_is_ready(stable: NewStable) -> None:
    world = stable(a_pool(warm_count=1))
    (node,) = world.launch()
    assert (node.phase, node.machine_id) == (NodePhase.STARTING, "m-n-000001")
    world.hello(node.node_id)
    assert world.node(node.node_id).phase is NodePhase.READY
    assert world.node(node.node_id).idle_since_at_ms == 0


def test_an_agent_that_has_not_reported_what_it_has_is_waited_for(stable: NewStable) -> None:
    world = stable(a_pool(warm_count=1))
    (node,) = world.launch()
    world.hello(node.node_id, is_told=False)
    assert world.node(node.node_id).phase is NodePhase.STARTING
    world.hello(node.node_id)
    assert world.node(node.node_id).phase is NodePhase.READY


def test_an_agent_may_be_quicker_than_the_answer_to_its_launch(stable: NewStable) -> None:
    world = stable(a_pool(warm_count=1))
    world.hello("n-000001")
    assert world.node("n-000001").phase is NodePhase.READY
    world.succeed("n-000001/launch/1")
    assert world.node("n-000001").machine_id == "m-n-000001"
    assert not world.commands("launch_machine")


def test_a_launch_is_not_tried_again_once_its_agent_has_come(stable: NewStable) -> None:
    """A provider that has forgotten the first attempt would make a second machine."""
    world = stable(a_pool(warm_count=1))
    world.hello("n-000001")
    world.fail("n-000001/launch/1", "throttled")
    assert not world.commands("launch_machine")
    world.list(MachineFact(machine_id=MachineId("m-x"), node_id=NodeId("n-000001")))
    assert world.node("n-000001").machine_id == "m-x"


def test_inv_15_a_machine_is_not_stopped_while_its_launch_is_out(stable: NewStable) -> None:
    world = stable(a_pool(warm_count=1))
    world.hello("n-000001")
    world.configure()
    assert world.node("n-000001").phase is NodePhase.STOPPING
    assert not world.commands("stop_machine")
    assert {note.reason.value for note in world.fleet.notes["n-000001"].values()} == {"booting"}
    world.succeed("n-000001/launch/1")
    stop = world.fleet.commands["n-000001/stop/1"].command
    assert stop.machine_id == "m-n-000001"  # type: ignore[union-attr]  # a stop has one


@pytest.mark.parametrize("code", ["quota_exceeded", "outcome_unknown"])
def test_inv_20_no_launch_is_left_of_a_node_that_is_gone(stable: NewStable, code: str) -> None:
    world = stable(a_pool(warm_count=1))
    world.hello("n-000001")
    world.configure()
    world.fail("n-000001/launch/1", code)
    assert not world.commands("launch_machine")
    assert world.commands("stop_machine") == ["n-000001/stop/1"]
    world.bury()
    assert world.node("n-000001").phase is NodePhase.RETIRED


def test_inv_20_the_launch_of_a_node_that_was_lost_is_found(stable: NewStable) -> None:
    """Simulator seed 21: its epoch has risen, and nobody knew the launch under the new number."""
    world = stable(a_pool(warm_count=1, tiers=(an_elastic_tier(boot_ms=2 * SILENT_MS),)))
    world.hello("n-000001")
    world.silence("n-000001")
    world.advance(SILENT_MS)
    node = world.node("n-000001")
    assert (node.phase, node.epoch, node.machine_id) == (NodePhase.STOPPING, 2, None)
    assert not world.commands("stop_machine")
    world.fail("n-000001/launch/1", "outcome_unknown")
    assert world.commands("stop_machine") == ["n-000001/stop/2"]
    world.bury()
    assert not world.fleet.commands.get(CommandId("n-000001/launch/1"))


@pytest.mark.parametrize("code", CERTAIN)
def test_a_launch_that_surely_brought_nothing_ends_its_node(stable: NewStable, code: str) -> None:
    world = stable(a_pool(warm_count=1, tiers=(an_elastic_tier(offers=()),)))
    world.configure(a_pool(warm_count=1))
    world.fail("n-000001/launch/1", code)
    assert world.node("n-000001").phase is NodePhase.RETIRED
    assert not world.commands("stop_machine")
    assert world.events().count("node_launch_failed") == 1


def test_another_offer_serves_while_one_cools_down(stable: NewStable) -> None:
    world = stable(a_pool(warm_count=1))
    world.fail("n-000001/launch/1", "capacity_unavailable")
    assert world.node("n-000002").offer == "large"
    world.fail("n-000002/launch/1", "capacity_unavailable")
    assert not world.commands("launch_machine")
    world.advance(limits.COOLDOWN_MS_MIN)
    assert world.node("n-000003").offer == "small"


def test_the_pause_doubles_with_each_failure_and_ends_with_a_node(stable: NewStable) -> None:
    small = an_elastic_tier().offers[:1]
    world = stable(a_pool(warm_count=1, tiers=(an_elastic_tier(offers=small),)))
    pauses = []
    for number in range(1, 4):
        world.fail(f"n-00000{number}/launch/1", "capacity_unavailable")
        pauses.append(world.fleet.cooldowns["p/cloud/small"].until_at_ms - world.now_ms)
        world.advance(world.now_ms + pauses[-1])
    assert pauses == [5_000, 10_000, 20_000]
    world.run(at_ms=world.now_ms + 1)
    world.boot()
    assert not len(world.fleet.cooldowns)


def test_rejected_credentials_are_left_alone_for_long_until_somebody_acts(
    stable: NewStable,
) -> None:
    pool = a_pool(warm_count=1, tiers=(an_elastic_tier(offers=an_elastic_tier().offers[:1]),))
    world = stable(pool)
    world.fail("n-000001/launch/1", "credentials_rejected")
    world.advance(limits.COOLDOWN_MS_MAX - 1)
    assert not world.commands("launch_machine")
    world.configure(a_pool(warm_count=1, tiers=pool.tiers, idle_ms=1))
    assert world.commands("launch_machine")


@pytest.mark.parametrize("code", ["throttled", "unreachable", "outcome_unknown"])
def test_a_launch_that_may_yet_work_is_tried_again_under_its_id(
    stable: NewStable, code: str
) -> None:
    world = stable(a_pool(warm_count=1))
    world.fail("n-000001/launch/1", code)
    entry = world.fleet.commands["n-000001/launch/1"]
    assert entry.next_at_ms == backoff_ms(1, None)
    world.advance(5_000)  # what says something of the whole provider pauses all that it launches
    launches = [sent for delta in world.deltas for sent in delta.dispatches]
    sent = next(each for each in launches if each.attempt == 2)
    assert (sent.command_id, sent.attempt) == ("n-000001/launch/1", 2)


@pytest.mark.parametrize(
    ("code", "phase"), [("throttled", "retired"), ("outcome_unknown", "stopping")]
)
def test_a_launch_is_given_up_after_enough_attempts(
    stable: NewStable, code: str, phase: str
) -> None:
    world = stable(a_pool(warm_count=1, tiers=(an_elastic_tier(boot_ms=3_600_000),)))
    for _ in range(limits.LAUNCH_ATTEMPTS_MAX):
        world.fail("n-000001/launch/1", code)
        world.advance(world.now_ms + 60_000)
    assert world.node("n-000001").phase == phase


def test_one_doubtful_attempt_makes_the_end_doubtful(stable: NewStable) -> None:
    world = stable(a_pool(warm_count=1))
    world.fail("n-000001/launch/1", "outcome_unknown")
    world.advance(1_000)
    world.fail("n-000001/launch/1", "capacity_unavailable")
    assert world.node("n-000001").phase is NodePhase.STOPPING
    assert world.commands("stop_machine") == ["n-000001/stop/1"]
    stop = world.fleet.commands["n-000001/stop/1"].command
    assert stop.machine_id is None  # type: ignore[union-attr]  # a stop has one
    world.bury()
    assert world.node("n-000001").phase is NodePhase.RETIRED


def test_silence_on_a_launch_is_an_unknown_outcome(stable: NewStable) -> None:
    patience_ms = limits.PATIENCE_MS["launch_machine"]
    world = stable(a_pool(warm_count=1, tiers=(an_elastic_tier(boot_ms=2 * patience_ms),)))
    world.advance(patience_ms)
    entry = world.fleet.commands["n-000001/launch/1"]
    assert (entry.is_doubtful, entry.last_code) == (True, "outcome_unknown")


def test_a_success_without_a_machine_is_the_providers_defect(stable: NewStable) -> None:
    world = stable(a_pool(warm_count=1))
    world.run(CommandSettled(command_id=CommandId("n-000001/launch/1"), outcome=Succeeded()))
    assert world.node("n-000001").phase is NodePhase.STOPPING


def test_a_machine_that_comes_after_its_launch_was_given_up_is_stopped(stable: NewStable) -> None:
    world = stable(a_pool(warm_count=1))
    world.fail("n-000001/launch/1", "capacity_unavailable")
    late = MachineFact(machine_id=MachineId("m-late"), pool="p", tier="cloud")
    settled = CommandSettled(
        command_id=CommandId("n-000001/launch/1"), outcome=Succeeded(machines=(late,))
    )
    world.run(settled)
    (stray,) = world.in_phase(NodePhase.STOPPING)
    assert (stray.origin, stray.machine_id, stray.provider) == (Origin.ORPHAN, "m-late", "fake")
    world.run(settled)
    assert len(world.in_phase(NodePhase.STOPPING)) == 1


def test_a_machine_of_a_node_that_is_forgotten_is_stopped(stable: NewStable) -> None:
    world = stable(a_pool())
    late = MachineFact(machine_id=MachineId("m-late"), pool="p", tier="cloud")
    command_id = CommandId("n-000777/launch/1")
    world.run(CommandSettled(command_id=command_id, outcome=Succeeded(machines=(late,))))
    assert [node.machine_id for node in world.in_phase(NodePhase.STOPPING)] == ["m-late"]


def test_a_late_answer_names_the_machine_of_a_node_that_is_being_stopped(
    stable: NewStable,
) -> None:
    world = stable(a_pool(warm_count=1))
    world.run(CommandSettled(command_id=CommandId("n-000001/launch/1"), outcome=Succeeded()))
    late = MachineFact(machine_id=MachineId("m-late"))
    world.run(
        CommandSettled(
            command_id=CommandId("n-000001/launch/1"), outcome=Succeeded(machines=(late,))
        )
    )
    assert world.node("n-000001").machine_id == "m-late"
    assert not [n for n in world.fleet.nodes.in_order() if n.origin is Origin.ORPHAN]


def test_a_machine_that_does_not_boot_in_time_is_stopped_and_its_offer_left_alone(
    stable: NewStable,
) -> None:
    world = stable(a_pool(warm_count=1))
    world.launch()
    world.advance(BOOT_MS - 1)
    assert world.node("n-000001").phase is NodePhase.STARTING
    world.advance(BOOT_MS)
    node = world.node("n-000001")
    assert (node.phase, node.retire_reason) == (NodePhase.STOPPING, RetireReason.BOOT_FAILED)
    assert world.fleet.cooldowns["p/cloud/small"].code == "boot_timeout"


def test_what_was_to_start_on_a_machine_that_never_comes_is_placed_anew(
    stable: NewStable,
) -> None:
    world = stable(a_pool(tiers=(a_fixed_tier(), an_elastic_tier())))
    first = world.place()
    assert world.node(first.node_id).phase is NodePhase.REQUESTED
    world.launch()
    world.advance(BOOT_MS)
    ended = world.fleet.allocations[first.allocation_id].ended
    assert ended is not None
    assert ended.cause is EndCause.LAUNCH_FAILED
    second = world.allocation_of("b/main/0")
    assert second is not None
    assert second.node_id != first.node_id
    assert world.fleet.replicas["b/main/0"].restart_at_ms == ()


def test_a_launch_that_never_left_is_taken_back_without_a_trace(stable: NewStable) -> None:
    world = stable(a_pool(warm_count=1))
    world.fail("n-000001/launch/1", "throttled")
    world.configure()
    assert world.node("n-000001").phase is NodePhase.RETIRED
    assert not world.commands("launch_machine")


def test_a_node_that_is_no_longer_wanted_waits_for_the_answer_that_is_out(
    stable: NewStable,
) -> None:
    world = stable(a_pool(warm_count=1))
    world.configure()
    assert world.node("n-000001").phase is NodePhase.REQUESTED
    world.succeed("n-000001/launch/1")
    assert world.node("n-000001").phase is NodePhase.STOPPING
    world.bury()
    assert world.node("n-000001").phase is NodePhase.RETIRED
