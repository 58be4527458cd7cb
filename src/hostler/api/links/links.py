"""All links to agents: who is connected, who is silent, and how a node's agent is reached.

Silence is counted only while we listen: a session begins as heard, and when this process itself
was away for a while (stopped, starved, or the clock jumped), everybody counts as heard at its end.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import AsyncIterator

from hostler.api import limits
from hostler.api.links.session import AgentSession, Connection, LinkLimits
from hostler.api.links.streams import AgentStream, StreamBroken
from hostler.base.errors import Failed
from hostler.base.ids import NodeId
from hostler.core.inputs import AnyInput, ContactResumed, FenceLimitKept, SilenceNoticed
from hostler.engine.engine import Engine
from hostler.model import Node, Settings
from hostler.ports.agents import AgentCommand, AgentUnreachable
from hostler.wire.agent import CommandAnswered, ExecStart, ReadLogs, Refused
from hostler.wire.http import RunStart


class AgentLinks:
    """The agents of a fleet, as this server reaches them. The engine's `AgentGateway`."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._sessions: dict[NodeId, AgentSession] = {}
        self._looked_at_ms = 0
        self._awaited: dict[NodeId, list[asyncio.Future[AgentSession]]] = {}

    # -- the engine's side -------------------------------------------------------------------

    async def deliver(self, node_id: NodeId, command: AgentCommand) -> CommandAnswered:
        """Hand a command to a node's agent and return its answer.

        Raises:
            AgentUnreachable: It never left.
            AgentSessionLost: Nobody knows; the same command may be delivered again.
        """
        return await self._connected(node_id).deliver(command)

    def dismiss(self, node_id: NodeId, reason: str) -> None:
        """End the link of a node that is retired; its agent is refused for good from now on."""
        session = self._sessions.pop(node_id, None)
        if session is None:
            return
        session.send(Refused(code="node_retired", message=reason, is_final=True))
        self._part(session, reason)

    # -- streams -----------------------------------------------------------------------------

    @contextlib.asynccontextmanager
    async def logs(
        self, node_id: NodeId, allocation_id: str, *, follow: bool, tail_bytes: int | None
    ) -> AsyncIterator[AgentStream]:
        """Read a log for the time of a block.

        Raises:
            AgentUnreachable: The node is not connected.
        """
        first = ReadLogs(
            request_id=secrets.token_hex(8),
            allocation_id=allocation_id,
            follow=follow,
            tail_bytes=tail_bytes,
        )
        stream = (await self._reached(node_id)).open(first)
        try:
            yield stream
        finally:
            stream.close()

    @contextlib.asynccontextmanager
    async def command(
        self, node_id: NodeId, lease_id: str, lease_epoch: int, start: RunStart
    ) -> AsyncIterator[AgentStream]:
        """Run a command under a lease for the time of a block; at its end it is killed.

        Raises:
            AgentUnreachable: The node is not connected.
            StreamBroken: The lease ended while we waited for the node.
        """
        session = await self._reached(node_id)
        # From here to the sending nothing is waited for: what is told is so when it is told.
        held = await self.engine.read(lambda fleet: fleet.index.leases_by_node.keys(node_id))
        if lease_id not in held:
            raise StreamBroken("lease_ended", "the lease has ended", lease_id=lease_id)
        first = ExecStart(
            request_id=secrets.token_hex(8),
            lease_id=lease_id,
            lease_epoch=lease_epoch,
            argv=start.argv,
            env=start.env,
            cwd=start.cwd,
            has_stdin=start.has_stdin,
            held_lease_ids=held,
        )
        stream = session.open(first)
        try:
            yield stream
        finally:
            stream.close()

    # -- connections -------------------------------------------------------------------------

    def is_connected(self, node_id: str) -> bool:
        """Say whether a node's link is up."""
        session = self._sessions.get(NodeId(node_id))
        return session is not None and session.connection is not None

    @property
    def connected_count(self) -> int:
        """How many links are up."""
        return sum(session.connection is not None for session in self._sessions.values())

    def session_of(self, node_id: NodeId) -> AgentSession | None:
        """Return a node's session, connected or not."""
        return self._sessions.get(node_id)

    def begin(self, session: AgentSession) -> None:
        """Make this the node's session, in place of any other."""
        before = self._sessions.get(session.node_id)
        if before is not None and before is not session:
            self._part(before, "the agent has begun a new session")
        self._sessions[session.node_id] = session

    def connect(self, session: AgentSession, connection: Connection) -> None:
        """Make this the session's connection, in place of any other."""
        if session.connection is not None:
            session.connection.end("the agent has connected again")
        session.connection = connection
        session.parted_at_ms = None
        session.heard_at_ms = self.engine.clock.now_ms()
        for arrival in self._awaited.get(session.node_id, ()):
            if not arrival.done():
                arrival.set_result(session)

    async def disconnected(self, session: AgentSession, connection: Connection) -> None:
        """Note that a connection has ended, and tell the core if the node has no other."""
        if session.connection is not connection:
            return
        session.connection = None
        session.parted_at_ms = self.engine.clock.now_ms()
        if self._sessions.get(session.node_id) is session:
            session.is_silent = True
            await self._observe(
                SilenceNoticed(
                    node_id=session.node_id, since_at_ms=session.heard_at_ms, is_link_down=True
                )
            )

    async def heard(self, session: AgentSession) -> None:
        """Note that something came in."""
        session.heard_at_ms = self.engine.clock.now_ms()
        if session.is_silent:
            session.is_silent = False
            await self._observe(ContactResumed(node_id=session.node_id))

    def is_current(self, session: AgentSession) -> bool:
        """Say whether the session still has the node's authority."""
        node = self.engine.peek(Node.KIND, session.node_id)
        return isinstance(node, Node) and node.epoch == session.node_epoch

    async def has_authority(self, session: AgentSession) -> bool:
        """Say whether the session still has the node's authority, and will at the next step.

        Asked before authority is extended. It waits for a step that is on its way to the store,
        since that may be the one that gives the node up and places its work elsewhere; whatever
        has come in before is taken in by the next step before that one judges anybody's silence.
        """
        node = await self.engine.read(lambda fleet: fleet.nodes.get(session.node_id))
        return node is not None and node.epoch == session.node_epoch

    async def limits_said(self, session: AgentSession, fence_after_ms: int) -> None:
        """Tell the core when the agent goes by another limit; choose what it is told next.

        Args:
            session: Its own.
            fence_after_ms: The limit that it says it goes by; 0 when it does not know.
        """
        told = LinkLimits(self.heartbeat_ms, self.fence_after_ms)
        node = self.engine.peek(Node.KIND, session.node_id)
        if isinstance(node, Node) and fence_after_ms > 0:
            known_ms = node.fence_after_ms
            is_shorter = known_ms > max(fence_after_ms, told.fence_after_ms)
            if is_shorter or fence_after_ms > max(known_ms, told.fence_after_ms):
                await self.engine.observe(
                    FenceLimitKept(node_id=session.node_id, fence_after_ms=fence_after_ms)
                )
        session.limits_told = told

    def _connected(self, node_id: NodeId) -> AgentSession:
        session = self._sessions.get(node_id)
        if session is None or session.connection is None:
            raise AgentUnreachable(node_id)
        return session

    async def _reached(self, node_id: NodeId) -> AgentSession:
        """Return the session of a node, waiting a little for its link to come back."""
        session = self._sessions.get(node_id)
        if session is not None and session.connection is not None:
            return session
        arrival: asyncio.Future[AgentSession] = asyncio.get_running_loop().create_future()
        waiting = self._awaited.setdefault(node_id, [])
        waiting.append(arrival)
        try:
            async with asyncio.timeout(limits.LINK_AWAIT_MS / 1_000):
                return await arrival
        except TimeoutError:
            raise AgentUnreachable(node_id) from None
        finally:
            waiting.remove(arrival)
            if not waiting:
                self._awaited.pop(node_id, None)

    def _part(self, session: AgentSession, why: str) -> None:
        session.end(Failed("session_ended", why))
        if session.connection is not None:
            session.connection.end(why)
            session.connection = None

    # -- watching ----------------------------------------------------------------------------

    async def watch(self) -> None:
        """Look for silence until cancelled."""
        while True:
            await asyncio.sleep(limits.LINK_WATCH_EVERY_MS / 1_000)
            with contextlib.suppress(Failed):  # the engine has stopped; we are about to be
                await self.look()

    async def look(self) -> None:
        """Tell the core who has become silent, and give up what cannot be resumed any more."""
        now_ms = self.engine.clock.now_ms()
        if not 0 <= now_ms - self._looked_at_ms <= 4 * limits.LINK_WATCH_EVERY_MS:
            for session in self._sessions.values():
                session.heard_at_ms = now_ms
        self._looked_at_ms = now_ms
        silent_after_ms = limits.SILENT_AFTER_HEARTBEATS * self.heartbeat_ms
        for session in list(self._sessions.values()):
            if not self.is_current(session):
                self._sessions.pop(session.node_id, None)
                self._part(session, "the node's epoch has risen")
            elif session.parted_at_ms is not None:
                if now_ms - session.parted_at_ms > limits.LINK_SESSION_KEPT_MS:
                    self._sessions.pop(session.node_id, None)
                    self._part(session, "the agent has not come back")
            elif not session.is_silent and now_ms - session.heard_at_ms > silent_after_ms:
                session.is_silent = True
                await self._observe(
                    SilenceNoticed(node_id=session.node_id, since_at_ms=session.heard_at_ms)
                )

    @property
    def heartbeat_ms(self) -> int:
        """How often agents are to say that they live."""
        settings = self.engine.peek(Settings.KIND, Settings.KEY)
        if isinstance(settings, Settings):
            return settings.heartbeat_ms
        return limits.HEARTBEAT_MS_UNCONFIGURED

    @property
    def fence_after_ms(self) -> int:
        """When a cut-off agent is to stop its work."""
        settings = self.engine.peek(Settings.KIND, Settings.KEY)
        if isinstance(settings, Settings):
            return settings.fence_after_ms
        return limits.FENCE_AFTER_MS_UNCONFIGURED

    async def _observe(self, *inputs: AnyInput) -> None:
        with contextlib.suppress(Failed):  # the engine has stopped; its next start counts anew
            await self.engine.observe(*inputs)

    async def close(self) -> None:
        """End all connections; the agents go on working and dial again."""
        for session in list(self._sessions.values()):
            self._part(session, "the server is stopping")
        self._sessions.clear()
