"""All deputies of a server: one for each node whose machine runs no agent of ours."""

from __future__ import annotations

import asyncio
from typing import Final

import structlog

from hostler.api import limits
from hostler.api.deputies.deputy import Deputy
from hostler.api.deputies.wire import local_dial
from hostler.api.links.links import AgentLinks
from hostler.base.errors import HostlerError
from hostler.base.ids import MachineId, NodeId
from hostler.core.provided import without_provided
from hostler.engine.keys import NodeCredential
from hostler.engine.translate import inventory_of
from hostler.model import Node
from hostler.model.node import NodePhase, Origin
from hostler.ports.commands import CommandProvider
from hostler.ports.provider import RequestInvalid

LOG: Final = structlog.get_logger(__name__)

_LIVING: Final = (NodePhase.STARTING, NodePhase.READY, NodePhase.DRAINING)


class Deputies:
    """Follows the nodes, and gives each that needs one a deputy."""

    def __init__(self, links: AgentLinks) -> None:
        self._links = links
        self._engine = links.engine
        self._tasks: dict[NodeId, asyncio.Task[None]] = {}
        self._is_agentless: dict[str, bool] = {}
        self._fleet_id = ""

    async def start(self) -> None:
        """Begin with the nodes that there are; what changes later is told to us."""
        self._engine.follow_nodes(self._changed)
        for node in await self._engine.read(lambda fleet: list(fleet.nodes.rows.values())):
            self._changed(node)

    async def close(self) -> None:
        """End them all. Machines stay, and so does what runs in them until the next server."""
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _changed(self, node: Node) -> None:
        task = self._tasks.get(node.node_id)
        is_wanted = node.phase in _LIVING and node.machine_id is not None
        if task is not None:
            if not is_wanted:
                task.cancel()
        elif is_wanted and node.origin is Origin.LAUNCHED and self._needs_one(node.provider):
            task = asyncio.create_task(self._serve(node, MachineId(node.machine_id or "")))
            self._tasks[node.node_id] = task
            task.add_done_callback(lambda _: self._tasks.pop(node.node_id, None))

    def _needs_one(self, provider: str) -> bool:
        if provider not in self._is_agentless:
            try:
                self._is_agentless[provider] = not self._engine.registry.kind(provider).has_agents
            except HostlerError:
                return False  # it is not installed at present; its commands say so
        return self._is_agentless[provider]

    async def _serve(self, node: Node, machine_id: MachineId) -> None:
        """Let one deputy after the other look after a node, until the server wants none."""
        pause_ms = limits.MACHINE_RETRY_MS_MIN
        fleet_id = await self._engine.read(
            lambda fleet: "" if fleet.settings is None else fleet.settings.fleet_id
        )
        while self._is_wanted(node.node_id):
            try:
                await self._deputy(node, machine_id, fleet_id).run()
            except Exception:
                # A defect of a provider is the trouble of its own nodes alone.
                LOG.exception("deputy_failed", node_id=node.node_id)
            await asyncio.sleep(pause_ms / 1_000)
            pause_ms = min(pause_ms * 2, limits.MACHINE_RETRY_MS_MAX)

    def _is_wanted(self, node_id: NodeId) -> bool:
        node = self._engine.peek(Node.KIND, node_id)
        return isinstance(node, Node) and node.phase in _LIVING

    def _deputy(self, node: Node, machine_id: MachineId, fleet_id: str) -> Deputy:
        """Make a deputy.

        Raises:
            Failed: The provider cannot be opened, or cannot run commands after all.
        """
        provider = self._engine.registry.opened(node.provider, fleet_id)
        if not isinstance(provider, CommandProvider):
            raise RequestInvalid(
                "the provider says that its machines have no agents, and runs no commands",
                provider=node.provider,
            )
        return Deputy(
            provider,
            machine_id,
            node.node_id,
            inventory_of(without_provided(node.shape, node.provided)),
            # Larger than that of any deputy before, on whatever host its server was.
            incarnation=self._engine.clock.now_ms(),
            dial=local_dial(self._links, NodeCredential(node.node_id, node.epoch)),
        )
