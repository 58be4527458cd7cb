"""A fleet in this process: all that a client can ask, and what only its owner may."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

import msgspec

from hostler.api.context import Api
from hostler.api.convert import leases as lease_views
from hostler.api.convert import nodes as node_views
from hostler.api.convert import spend as spend_views
from hostler.api.gateway import new_request_id
from hostler.client.client import Client
from hostler.client.errors import ClientError
from hostler.core.fleet import Fleet as State
from hostler.embedded.configuration import Config, GivenConfiguration, reading_of
from hostler.embedded.listeners import Listener, Listening
from hostler.embedded.transport import InProcessTransport
from hostler.model import Node
from hostler.model.node import NodePhase, Origin
from hostler.model.record import Record
from hostler.wire.documents import ConfigDocument, Reading
from hostler.wire.http import BudgetLineView, LeaseView, NodeView, PoolView, ReloadView

STOP_MS: Final = 10_000
"""How long machines may take to be gone once nothing is left on them, before we say that they stay.
Processes and containers are gone in a second or two; a cloud goes on ending its own by itself."""


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """The fleet between two steps: all of it belongs together."""

    revision: int
    event_seq: int
    """Position of the last event that it knows of: `events(after_seq=...)` joins without a gap."""
    pools: list[PoolView]
    nodes: list[NodeView]
    """But for those that are retired."""
    leases: list[LeaseView]
    """Those that are held or wait in line."""
    budgets: list[BudgetLineView]


class Fleet(Client):
    """A fleet that lives in this process. Made by `hostler.embedded.open`.

    It is a `Client`, with the same methods and answers as towards a server.
    """

    def __init__(
        self,
        transport: InProcessTransport,
        api: Api,
        configuration: GivenConfiguration,
        principal: str,
    ) -> None:
        super().__init__(transport=transport)
        self._api = api
        self._engine = api.engine
        self._configuration = configuration
        self._principal = principal
        self._listenings: list[Listening] = []

    # -- configuration ---------------------------------------------------------------------------

    async def reload(self, config: Config | None = None, *, is_dry_run: bool = False) -> ReloadView:
        """Change the configuration, whole or not at all, and say what follows.

        Args:
            config: What shall be; else the file that was given is read again.
            is_dry_run: Change nothing.

        Raises:
            DocumentRejected: It has problems; all of them are told.
            Rejected: The file cannot be read, or the change is not possible.
        """
        given = None if config is None else reading_of(config)
        view = await self._apply(given, is_dry_run=is_dry_run)
        if config is not None and not is_dry_run:
            self._configuration.give(config)
        return view

    async def _apply(
        self, given: Reading[ConfigDocument] | None, *, is_dry_run: bool = False
    ) -> ReloadView:
        return await self._configuration.reload(
            self._engine,
            request_id=new_request_id(),
            principal=self._principal,
            is_dry_run=is_dry_run,
            given=given,
        )

    async def drain(self, *, deadline_ms: int = 30_000) -> list[NodeView]:
        """Close every pool: nothing new begins, and machines go when nothing is left on them.

        Who waits in line is refused. Leases are told how long they may stay, and are revoked then.
        `reload()` opens the pools again, also while this runs.

        Args:
            deadline_ms: How long leases may stay.

        Returns:
            The launched nodes whose machines are not gone yet; the provider is asked on.
        """
        await self._apply(self._configuration.closing(deadline_ms))
        await self._wait_gone(await self._engine.read(_launched), deadline_ms)
        for node_id in await self._engine.read(_held_up):
            with suppress(ClientError):  # it has gone meanwhile, or is about to
                await self.drain_node(node_id, deadline_ms=0, is_forced=True, then_retire=True)
        await self._wait_gone(await self._engine.read(_launched), STOP_MS)
        left = set(await self._engine.read(_launched))
        return [node for node in await self.nodes() if node.node_id in left]

    async def _wait_gone(self, node_ids: Sequence[str], timeout_ms: int) -> None:
        ends_at_ms = self._engine.clock.now_ms() + timeout_ms
        for node_id in node_ids:
            left_ms = ends_at_ms - self._engine.clock.now_ms()
            await self._engine.watch(Node.KIND, node_id, _is_gone, max(0, left_ms))

    # -- looking ---------------------------------------------------------------------------------

    async def snapshot(self) -> Snapshot:
        """Return the fleet as it is between two steps."""
        now_ms, is_connected = self._engine.clock.now_ms(), self._api.links.is_connected

        def read(state: State) -> Snapshot:
            nodes = [node for node in state.nodes.in_order() if node.phase is not NodePhase.RETIRED]
            leases = [
                state.leases[key]
                for pool in sorted(state.pools.rows)
                for key in (
                    *state.index.leases_held.keys(pool),
                    *state.index.leases_waiting.keys(pool),
                )
            ]
            return Snapshot(
                revision=state.revision,
                event_seq=state.event_seq,
                pools=[node_views.pool(state, pool) for pool in state.pools.in_order()],
                nodes=[
                    node_views.node(state, node, is_connected=is_connected(node.node_id))
                    for node in nodes
                ],
                leases=[lease_views.lease(lease, now_ms) for lease in leases],
                budgets=[
                    line
                    for budget in state.budgets.in_order()
                    for line in spend_views.budget_lines(state, budget, max(now_ms, state.now_ms))
                ],
            )

        return await self._engine.read(read)

    def on_event(
        self,
        listener: Listener,
        *,
        kinds: Sequence[str] = (),
        about: str = "",
        after_seq: int | None = None,
    ) -> Listening:
        """Have a function told of committed events, in order, until the fleet or this is closed.

        Args:
            listener: A function, called in a thread where it may block, or a coroutine function.
            kinds: Only these (`EventKind`).
            about: Only those about this id.
            after_seq: Begin after this position, such as a snapshot's; else now.

        Raises:
            Rejected: There is no such kind of event.
        """
        begin = self._engine.subscribe().after_seq if after_seq is None else after_seq
        made = Listening(self._transport, listener, kinds=kinds, about=about, after_seq=begin)
        self._listenings.append(made)
        return made

    async def close(self) -> None:
        """Tell listeners nothing more, and take no more requests."""
        await asyncio.gather(*(each.close() for each in self._listenings))
        await super().close()


def _launched(state: State) -> list[str]:
    """Return the nodes whose machines we launched and that are not gone."""
    return [
        node.node_id
        for node in state.nodes.in_order()
        if node.origin is not Origin.JOINED and node.phase is not NodePhase.RETIRED
    ]


def _held_up(state: State) -> list[str]:
    """Return those of them that something still holds although their pool is closed.

    A pool that the configuration has not any more left its leases a time of its own.
    """
    return [
        node_id
        for node_id in _launched(state)
        if not state.pools[state.nodes[node_id].pool].is_enabled
        and state.nodes[node_id].phase is not NodePhase.STOPPING
    ]


def _is_gone(record: Record | None) -> bool:
    return not isinstance(record, Node) or record.phase is NodePhase.RETIRED
