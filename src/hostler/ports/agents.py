"""Agents as the engine reaches them: hand a command over, and wait for its answer.

Whoever holds the links to the agents offers this. What agents say by themselves comes in through
`Engine.observe`.
"""

from __future__ import annotations

from typing import Protocol, TypeAlias

from hostler.base.errors import Failed
from hostler.base.ids import NodeId
from hostler.wire.agent import (
    AssignRole,
    CheckReady,
    CommandAnswered,
    ConfigureAllocation,
    EndLease,
    StartAllocation,
    StopAllocation,
)

AgentCommand: TypeAlias = (
    StartAllocation | ConfigureAllocation | AssignRole | StopAllocation | CheckReady | EndLease
)
"""What an agent does for us; each carries a `command_id` that its answer repeats."""


class AgentUnreachable(Failed):
    """The node has no link at present; the command has not left."""

    def __init__(self, node_id: str) -> None:
        super().__init__("unreachable", "the node's agent is not connected", node_id=node_id)


class AgentSessionLost(Failed):
    """The link's session ended before the answer came; the agent may have done it."""

    def __init__(self, node_id: str) -> None:
        super().__init__(
            "outcome_unknown",
            "the link was lost before the answer came",
            effect="unknown",
            node_id=node_id,
        )


class AgentGateway(Protocol):
    """All agents of the fleet."""

    async def deliver(self, node_id: NodeId, command: AgentCommand) -> CommandAnswered:
        """Hand a command to a node's agent and return its answer. May be cancelled at any time.

        Raises:
            AgentUnreachable: It never left.
            AgentSessionLost: Nobody knows; the same command may be delivered again.
        """
        ...

    def dismiss(self, node_id: NodeId, reason: str) -> None:
        """End the link of a node that is retired; its agent is refused for good from now on."""
        ...


class Nobody:
    """A gateway without agents: what an engine has until it is given another."""

    async def deliver(self, node_id: NodeId, command: AgentCommand) -> CommandAnswered:  # noqa: ARG002 - as the port says
        """Say that the node has no link."""
        raise AgentUnreachable(node_id)

    def dismiss(self, node_id: NodeId, reason: str) -> None:
        """Do nothing: there is no link to end."""
