"""A launch that its provider does not answer has as long as its machine has to boot (gap G-033)."""

import pytest

from hostler.base.ids import CommandId, MachineId, NodeId
from hostler.core import limits
from hostler.core.inputs import CommandFailed, CommandSettled, ServerStarted, Succeeded
from hostler.core.machine_fact import MachineFact
from hostler.model.allocation import EndCause
from hostler.model.node import NodePhase, Origin
from hostler.testing.builders import a_pool, an_elastic_tier
from tests.core.nodes.conftest import NewStable

BOOT_MS = 120_000
LAUNCH = CommandId("n-000001/launch/1")
ONE_OFFER = an_elastic_tier(offers=an_elastic_tier().offers[:1], node_count_max=50)


def test_it_is_given_up_and_its_place_filled_again(stable: NewStable) -> None:
    world = stable(a_pool(warm_count=1, tiers=(ONE_OFFER,)))
    world.advance(BOOT_MS - 1)
    assert world.commands("launch_machine") == [LAUNCH]
    world.advance(BOOT_MS)
    failure = world.node("n-000001").launch_failure
    assert failure is not None
    assert (failure.code, failure.is_certain) == ("launch_timeout", False)
    assert failure.message == "its launch is not answered after 2m: no answer in time"
    assert world.commands("stop_machine") == ["n-000001/stop/1"]
    assert list(world.fleet.notes["n-000001"]) == ["retirement"], "it does not boot any more"
    assert world.fleet.cooldowns["p/cloud/small"].code == "launch_timeout"
    world.advance(BOOT_MS + limits.COOLDOWN_MS_MIN)
    assert world.commands("launch_machine") == ["n-000002/launch/1"]


def test_what_was_to_start_there_is_placed_elsewhere(stable: NewStable) -> None:
    world = stable(a_pool(tiers=(an_elastic_tier(),)))
    first = world.place()
    world.advance(BOOT_MS)
    ended = world.fleet.allocations[first.allocation_id].ended
    assert ended is not None
    assert ended.cause is EndCause.LAUNCH_FAILED
    second = world.allocation_of("b/main/0")
    assert second is not None
    assert second.node_id != first.node_id
    assert world.fleet.replicas["b/main/0"].restart_at_ms == ()


def test_many_in_a_row_stop_growth(stable: NewStable) -> None:
    """Each of them may have made a machine that is paid for."""
    world = stable(a_pool(warm_count=1, tiers=(ONE_OFFER,), boot_failure_count_max=2))
    for _ in range(6):
        world.advance(world.now_ms + BOOT_MS)
        world.bury()
    breaker = world.fleet.breakers["p/cloud"]
    assert [each.code for each in breaker.failures] == ["launch_timeout"] * 2
    assert not world.commands("launch_machine")
    assert world.fleet.counters["n"].value == 2


def test_an_answer_that_comes_late_names_the_machine_that_is_stopped(stable: NewStable) -> None:
    world = stable(a_pool(warm_count=1, tiers=(ONE_OFFER,)))
    world.advance(BOOT_MS)
    late = MachineFact(machine_id=MachineId("m-late"), node_id=NodeId("n-000001"))
    settled = CommandSettled(command_id=LAUNCH, outcome=Succeeded(machines=(late,)))
    world.run(settled)
    assert world.node("n-000001").machine_id == "m-late"
    world.bury()
    assert world.node("n-000001").phase is NodePhase.STOPPING, "by the label nothing was found"
    world.advance(world.now_ms + 1_000)
    world.bury()
    assert world.node("n-000001").phase is NodePhase.RETIRED
    world.run(settled)
    assert world.node("n-000001").phase is NodePhase.RETIRED
    assert not [node for node in world.fleet.nodes.in_order() if node.origin is Origin.ORPHAN]


def test_an_answer_that_comes_when_its_node_is_gone_finds_the_machine_an_end(
    stable: NewStable,
) -> None:
    """The stop met nothing, as the launch was still on its way to the provider."""
    world = stable(a_pool(warm_count=1, tiers=(ONE_OFFER,)))
    world.advance(BOOT_MS)
    world.bury()
    late = MachineFact(machine_id=MachineId("m-late"), node_id=NodeId("n-000001"), pool="p")
    world.run(CommandSettled(command_id=LAUNCH, outcome=Succeeded(machines=(late,))))
    (orphan,) = [node for node in world.fleet.nodes.in_order() if node.origin is Origin.ORPHAN]
    assert (orphan.phase, orphan.machine_id) == (NodePhase.STOPPING, "m-late")


def test_the_answer_gives_the_machine_its_whole_time_to_boot(stable: NewStable) -> None:
    world = stable(a_pool(warm_count=1))
    world.advance(BOOT_MS - 1)
    world.launch()
    world.advance(2 * BOOT_MS - 2)
    assert world.node("n-000001").phase is NodePhase.STARTING
    world.advance(2 * BOOT_MS - 1)
    assert world.node("n-000001").phase is NodePhase.STOPPING


def test_after_a_restart_it_is_asked_for_again_before_it_is_given_up(stable: NewStable) -> None:
    """While the server was down nobody listened for an answer."""
    world = stable(a_pool(warm_count=1))
    back_at_ms = 10 * BOOT_MS
    world.run(ServerStarted(), at_ms=back_at_ms)
    world.advance(back_at_ms)
    entry = world.fleet.commands[LAUNCH]
    assert (entry.attempt_count, world.node("n-000001").phase) == (2, NodePhase.REQUESTED)
    assert entry.next_at_ms == back_at_ms + limits.LAUNCH_PATIENCE_MS_MIN
    world.advance(entry.next_at_ms)
    assert world.node("n-000001").phase is NodePhase.STOPPING


@pytest.mark.parametrize(
    ("before", "phase"),
    [([], NodePhase.RETIRED), (["outcome_unknown"], NodePhase.STOPPING)],
    ids=["surely nothing", "perhaps a machine"],
)
def test_nor_does_a_pause_of_its_provider_hold_it_for_longer(
    stable: NewStable, before: list[str], phase: NodePhase
) -> None:
    world = stable(a_pool(warm_count=1, tiers=(ONE_OFFER,)))
    for code in before:
        world.fail(LAUNCH, code)
        world.advance(limits.OUTBOX_BACKOFF_MS_MIN)
    throttled = CommandFailed(code="throttled", retry_after_ms=10 * BOOT_MS)
    world.run(CommandSettled(command_id=LAUNCH, outcome=throttled))
    world.advance(BOOT_MS - 1)
    assert world.node("n-000001").phase is NodePhase.REQUESTED
    world.advance(BOOT_MS)
    assert world.node("n-000001").phase is phase
    assert not world.commands("launch_machine")
