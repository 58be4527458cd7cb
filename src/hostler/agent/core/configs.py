"""Configurations of running jobs: only ever a later one, and the latest when several came."""

from __future__ import annotations

from hostler.agent.core.effects import WriteConfig
from hostler.agent.core.inputs import AllocationKey, ConfigWritten
from hostler.agent.core.state import Allocation
from hostler.agent.core.turn import Turn
from hostler.wire.agent import ConfigureAllocation


def asked(turn: Turn, command: ConfigureAllocation) -> None:
    """Note what an allocation is to have; it is answered once that is in its folder."""
    known = turn.state.allocations.get(AllocationKey(command.allocation_id, command.epoch))
    if known is None or known.is_ended:
        turn.answer(command.command_id, "refused", "allocation_ended", "nothing of it runs here")
        return
    config = known.config
    config.number_by_command_id[command.command_id] = command.config.number
    latest = config.written if config.wanted is None else config.wanted.number
    if command.config.number > latest:
        config.wanted = command.config


def written(turn: Turn, allocation: Allocation, each: ConfigWritten) -> None:
    """Take in that a configuration is there, or why it is not."""
    config = allocation.config
    config.under_way = 0
    if each.problem is None:
        config.written = max(config.written, each.number)
        return
    if config.wanted is not None and config.wanted.number <= each.number:
        config.wanted = None
    for command_id in _take(allocation, each.number):
        turn.answer(command_id, "refused", "config_not_written", each.problem)


def advance(turn: Turn) -> None:
    """Write what is wanted and not under way, and answer what is settled."""
    for _, allocation in sorted(turn.state.allocations.items()):
        config = allocation.config
        if not config.number_by_command_id:
            continue
        if allocation.is_ended:
            for command_id in _take(allocation, None):
                turn.answer(command_id, "refused", "allocation_ended", "nothing of it runs here")
            continue
        for command_id in _take(allocation, config.written):
            turn.answer(command_id)
        if config.wanted is not None and config.wanted.number <= config.written:
            config.wanted = None
        if config.wanted is not None and not config.under_way and allocation.is_durable:
            config.under_way = config.wanted.number
            turn.do(WriteConfig(key=allocation.key, config=config.wanted))


def _take(allocation: Allocation, up_to: int | None) -> list[str]:
    """Take the commands that are about a number, or an earlier one, off the list; `None`: all."""
    numbers = allocation.config.number_by_command_id
    taken = [key for key, number in numbers.items() if up_to is None or number <= up_to]
    for key in taken:
        del numbers[key]
    return taken
