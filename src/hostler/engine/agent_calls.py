"""Commands to agents, in the words of the link."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import assert_never

from hostler.base.ids import CommandId
from hostler.core.fleet import Fleet
from hostler.core.inputs import CommandFailed, Outcome, Succeeded
from hostler.engine.translate import agent_command
from hostler.model.command import AnyAgentCommand
from hostler.ports.agents import AgentCommand, AgentGateway


def call_agent(
    agents: AgentGateway, fleet: Fleet, command_id: CommandId, command: AnyAgentCommand
) -> Callable[[], Awaitable[Outcome]]:
    """Return what makes one attempt; everything that it needs of the fleet is read now."""
    message = agent_command(fleet, command_id, command)

    async def attempt() -> Outcome:
        if message is None:
            # The record went while the command was under way; the node has nothing to start.
            return CommandFailed(code="refused", message="the allocation is no more")
        return await _deliver(agents, command, message)

    return attempt


async def _deliver(
    agents: AgentGateway, command: AnyAgentCommand, message: AgentCommand
) -> Outcome:
    answered = await agents.deliver(command.node_id, message)
    match answered.outcome:
        case "done":
            return Succeeded()
        case "refused":
            told = ": ".join(part for part in (answered.code, answered.message) if part)
            return CommandFailed(code="refused", message=told)
        case _:
            assert_never(answered.outcome)
