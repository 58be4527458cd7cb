"""Agents in memory: they outlive the engine, obey epochs, and say what they do.

An agent comes up on every machine that a `FakeCloud` bears. It is a gateway for the engine that is
attached at present; when another one is, every agent says hello to that.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, field
from typing import Protocol, assert_never

from hostler.base.errors import Failed
from hostler.base.ids import AllocationId, MachineId, NodeId
from hostler.core.allocation_fact import AllocationFact
from hostler.core.inputs import AgentSaidHello, AllocationReported, AnyInput, AnyRequest, JoinAgent
from hostler.core.replies import Accepted, Result
from hostler.model.allocation import EndCause, Ended
from hostler.model.shape import Shape
from hostler.ports.agents import AgentCommand, AgentUnreachable
from hostler.ports.clock import Clock
from hostler.ports.provider import LaunchRequest, Machine
from hostler.testing.fake_provider import FakeCloud
from hostler.wire.agent import (
    AssignRole,
    CheckReady,
    CommandAnswered,
    ConfigureAllocation,
    EndLease,
    StartAllocation,
    StopAllocation,
)

RECONNECT_MS = 100
"""Pause before an agent tries again."""


class ServerSide(Protocol):
    """What an agent needs of an engine."""

    async def submit(self, request: AnyRequest) -> Result:
        """Join."""
        ...

    async def observe(self, *inputs: AnyInput) -> None:
        """Say something."""
        ...


@dataclass
class FakeAgent:
    """One agent and what it remembers.

    Attributes:
        phases: The phase of each allocation that it has been given, by id and epoch.
    """

    node_id: NodeId
    machine_id: MachineId
    shape: Shape
    incarnation: int = 1
    is_joined: bool = False
    phases: dict[tuple[AllocationId, int], str] = field(default_factory=dict)

    def facts(self) -> tuple[AllocationFact, ...]:
        """Return everything that it has."""
        return tuple(self.fact(*key) for key in sorted(self.phases))

    def fact(self, allocation_id: AllocationId, epoch: int) -> AllocationFact:
        """Return what it says of one allocation."""
        phase = self.phases[(allocation_id, epoch)]
        return AllocationFact(
            allocation_id=allocation_id,
            epoch=epoch,
            phase=phase,
            started_at_ms=1,
            ended=Ended(cause=EndCause.STOPPED) if phase == "ended" else None,
        )


class FakeAgents:
    """All agents of a fleet.

    Attributes:
        by_node: Every agent that ever was.
        starts: How often each allocation was really started, by id and epoch: once, or it is wrong.
    """

    def __init__(self, cloud: FakeCloud, clock: Clock) -> None:
        self.by_node: dict[NodeId, FakeAgent] = {}
        self.starts: Counter[tuple[AllocationId, int]] = Counter()
        self._cloud = cloud
        self._clock = clock
        self._server: ServerSide | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        cloud.on_birth = self._born

    def __getstate__(self) -> dict[str, object]:
        """Remember what agents know; connections do not outlive a process."""
        return {**vars(self), "_server": None, "_tasks": set()}

    def attach(self, server: ServerSide) -> None:
        """Begin to talk to an engine, once that has started."""
        self._server = server
        for agent in self.by_node.values():
            self._soon(agent)

    def detach(self) -> None:
        """There is no server at present."""
        self._server = None
        for task in self._tasks:
            task.cancel()

    def _born(self, machine: Machine, request: LaunchRequest) -> None:
        agent = FakeAgent(machine.node_id, machine.machine_id, request.offer.shape)
        self.by_node[machine.node_id] = agent
        self._soon(agent)

    def _soon(self, agent: FakeAgent) -> None:
        task = asyncio.get_running_loop().create_task(self._come_up(agent))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _is_there(self, agent: FakeAgent) -> bool:
        return self._cloud.get(agent.machine_id, self._clock.now_ms()) is not None

    async def _come_up(self, agent: FakeAgent) -> None:
        """Join, if that has not been done, and say hello, until the server takes it."""
        server = self._server
        while server is not None and server is self._server and self._is_there(agent):
            try:
                await self._greet(agent, server)
                return
            except Failed:
                await asyncio.sleep(RECONNECT_MS / 1_000)

    async def _greet(self, agent: FakeAgent, server: ServerSide) -> None:
        if not agent.is_joined:
            joined = await server.submit(
                JoinAgent(
                    request_id=f"join {agent.node_id}",
                    principal="agent",
                    node_id=agent.node_id,
                    machine_id=agent.machine_id,
                )
            )
            agent.is_joined = isinstance(joined, Accepted)
        if agent.is_joined:
            await server.observe(
                AgentSaidHello(
                    node_id=agent.node_id,
                    incarnation=agent.incarnation,
                    shape=agent.shape,
                    allocations=agent.facts(),
                )
            )

    # -- the gateway -------------------------------------------------------------------------

    async def deliver(self, node_id: NodeId, command: AgentCommand) -> CommandAnswered:
        """Obey at once; see `AgentGateway.deliver`."""
        agent = self.by_node.get(node_id)
        if agent is None or not agent.is_joined or not self._is_there(agent):
            raise AgentUnreachable(node_id)
        match command:
            case StartAllocation():
                return await self._start(agent, command)
            case StopAllocation():
                key = (AllocationId(command.allocation_id), command.epoch)
                await self._report(agent, key, "ended")
            case CheckReady() | EndLease() | ConfigureAllocation() | AssignRole():
                pass  # the answer says that it is done
            case _:
                assert_never(command)
        return CommandAnswered(command_id=command.command_id, outcome="done")

    async def _start(self, agent: FakeAgent, command: StartAllocation) -> CommandAnswered:
        key = (AllocationId(command.allocation_id), command.epoch)
        if any(known[0] == key[0] and known[1] > key[1] for known in agent.phases):
            return CommandAnswered(
                command_id=command.command_id, outcome="refused", code="epoch_stale"
            )
        if key not in agent.phases:
            self.starts[key] += 1
            await self._report(agent, key, "ready")
        return CommandAnswered(command_id=command.command_id, outcome="done")

    async def _report(self, agent: FakeAgent, key: tuple[AllocationId, int], phase: str) -> None:
        agent.phases[key] = phase
        if self._server is not None:
            fact = agent.fact(*key)
            await self._server.observe(AllocationReported(node_id=agent.node_id, fact=fact))

    def dismiss(self, node_id: NodeId, reason: str) -> None:  # noqa: ARG002 - as the port says
        """Forget the agent of a retired node; see `AgentGateway.dismiss`."""
        self.by_node.pop(node_id, None)
