"""Boot logs: what a machine wrote that did not boot is kept with its node, and bounded."""

from typing import Any

from hostler.core.explain import explain
from hostler.core.inputs import CommandFailed, CommandSettled, Succeeded
from hostler.core.limits import BOOT_LOG_CHARS_MAX
from hostler.model.command import CheckMachine, StopMachine
from hostler.model.node import NodePhase
from hostler.testing.builders import a_pool
from tests.core.nodes.conftest import NewStable
from tests.core.nodes.stable import Stable

LOG = "starting\nTOKEN=hunter2\nno space left on device"


def failing(stable: NewStable) -> Stable:
    """Return a world in which a machine has just been given up."""
    world = stable(a_pool(warm_count=1))
    world.launch()
    world.advance(120_000)
    return world


def settle(world: Stable, command_id: str, outcome: Any) -> None:
    entry = world.fleet.commands[command_id]
    world.run(CommandSettled(command_id=entry.command_id, outcome=outcome))


def the_stop(world: Stable) -> str:
    return next(each for each in world.commands("stop_machine") if each.startswith("n-000001/"))


def test_a_machine_that_is_given_up_is_asked_for_its_log_before_it_ends(stable: NewStable) -> None:
    world = failing(stable)
    stop = world.fleet.commands[the_stop(world)].command
    assert isinstance(stop, StopMachine)
    assert stop.is_boot_log_wanted
    settle(world, the_stop(world), Succeeded(boot_log=LOG))
    node = world.node("n-000001")
    assert node.phase is NodePhase.RETIRED
    assert node.boot_log == "starting\nTOKEN=[redacted]\nno space left on device"
    assert node.launch_failure is not None
    assert node.launch_failure.code == "boot_timeout"
    told = explain(world.fleet, "n-000001")
    assert told is not None
    assert any("no space left on device" in each.detail for each in told.reasons)


def test_the_first_log_is_kept_while_the_machine_is_still_ending(stable: NewStable) -> None:
    world = failing(stable)
    settle(world, the_stop(world), CommandFailed(code="outcome_unknown", boot_log=LOG))
    stop = world.fleet.commands[the_stop(world)].command
    assert isinstance(stop, StopMachine)
    assert not stop.is_boot_log_wanted
    world.advance(world.now_ms + 1_000)
    settle(world, the_stop(world), Succeeded(boot_log="later"))
    assert "no space left" in world.node("n-000001").boot_log


def test_a_machine_that_ends_as_it_boots_brings_its_log_with_the_check(stable: NewStable) -> None:
    world = stable(a_pool(warm_count=1))
    world.launch()
    world.advance(15_000)
    (check,) = world.commands("check_machine")
    command = world.fleet.commands[check].command
    assert isinstance(command, CheckMachine)
    assert command.is_boot_log_wanted
    settle(world, check, Succeeded(boot_log=LOG))
    node = world.node("n-000001")
    assert node.launch_failure is not None
    assert node.launch_failure.code == "machine_gone"
    assert "no space left" in node.boot_log


def test_a_long_log_keeps_its_end(stable: NewStable) -> None:
    world = failing(stable)
    log = "".join(f"line {number}\n" for number in range(10_000))
    settle(world, the_stop(world), Succeeded(boot_log=log))
    kept = world.node("n-000001").boot_log
    assert len(kept) <= BOOT_LOG_CHARS_MAX
    assert kept.endswith("line 9999")
    assert kept.startswith("line ")


def test_a_machine_that_goes_for_another_reason_is_asked_for_no_log(stable: NewStable) -> None:
    world = stable(a_pool(warm_count=1))
    world.boot()
    world.configure(a_pool(warm_count=0, idle_ms=0))
    stop = world.fleet.commands[the_stop(world)].command
    assert isinstance(stop, StopMachine)
    assert not stop.is_boot_log_wanted
