"""The server's ends of the agent links: sessions, silence, commands on their way and answers.

One `AgentLinks` belongs to one life of the server: sessions are in memory and end with it. It
decides nothing; what it sees becomes inputs of the core.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from hostler.base.ids import CommandId, NodeId
from hostler.core.inputs import (
    AgentSaidHello,
    AllocationReported,
    AnyInput,
    CommandFailed,
    CommandSettled,
    ContactResumed,
    FenceLimitKept,
    InventoryReported,
    NoticeReported,
    Outcome,
    SilenceNoticed,
    Succeeded,
)
from hostler.engine.translate import (
    agent_command,
    allocation_fact,
    allocation_facts,
    shape_of,
)
from hostler.model import Settings
from hostler.model.command import AnyAgentCommand
from hostler.model.node import NodePhase, NoticeKind
from hostler.sim.network import Connection, Network, Peer
from hostler.wire import agent as wire
from hostler.wire.link import (
    LinkBroken,
    LinkOverflow,
    LinkSession,
    decode_opening_from_agent,
    opening_frame,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from hostler.sim.life import ServerProcess


class Gateway(Protocol):
    """The server's address, as agents see it; behind it a process may run or not."""

    def join(self, request: wire.JoinRequest, answer: Callable[[str | None], None]) -> None:
        """Take a request to become a node. No answer comes from a server that is down."""
        ...

    def accept(self, network: Network, host: str, agent: Peer, node_id: str) -> Connection | None:
        """Take a connection of an agent that has shown its credential; `None`: nobody answers."""
        ...


class _NodeLink:
    """What this life of the server knows of one agent."""

    def __init__(self, node_id: str) -> None:
        self.node_id = node_id
        self.connection: Connection | None = None
        self.session: LinkSession | None = None
        self.incarnation = 0
        self.node_epoch = 0
        """The node's when the session began; when it has risen, the session is over."""
        self.is_welcomed = False
        self.heard_at_ms = 0
        self.is_silent = False
        self.is_watched = False
        self.limits_told = (0, 0)
        """Heartbeat and fence, as its agent was told last, or is told next."""
        self.waiting: dict[str, None] = {}
        """Commands handed over and not answered."""


class AgentLinks:
    """All links of one life of the server."""

    def __init__(self, server: ServerProcess) -> None:
        self._server = server
        self._world = server.world
        self._link_by_node: dict[str, _NodeLink] = {}
        self._node_by_connection: dict[Connection, str] = {}
        self._session_count = 0

    def close(self) -> None:
        """End with the server's process."""
        for link in self._link_by_node.values():
            if link.connection is not None:
                link.connection.close_by_server()

    # -- connections -------------------------------------------------------------------------

    def accept(self, network: Network, host: str, agent: Peer, node_id: str) -> Connection:
        """Take a connection; its first frame is to be a hello."""
        connection = Connection(network, host, agent, self)
        self._node_by_connection[connection] = node_id
        return connection

    def connection_closed(self, connection: Connection) -> None:
        """Notice that a link went down."""
        node_id = self._node_by_connection.pop(connection, None)
        if self._server.is_dead or node_id is None:
            return
        link = self._link_by_node.get(node_id)
        if link is not None and link.connection is connection:
            link.connection = None
            self._fall_silent(link, is_link_down=True)

    def frame_came(self, connection: Connection, text: str) -> None:
        """Take a frame of an agent."""
        node_id = self._node_by_connection.get(connection)
        if self._server.is_dead or node_id is None:
            return
        link = self._link_by_node.get(node_id)
        try:
            if link is None or link.connection is not connection:
                self._opened(connection, node_id, text)
            elif link.session is not None and link.is_welcomed:
                self._take_frame(link, link.session, text)
        except LinkBroken:
            self._world.probe("server.link_broken")
            self._close(connection)

    def _close(self, connection: Connection) -> None:
        node_id = self._node_by_connection.pop(connection, None)
        connection.close_by_server()
        link = self._link_by_node.get(node_id or "")
        if link is not None and link.connection is connection:
            link.connection = None
            self._lose_session(link)
            self._fall_silent(link, is_link_down=True)

    # -- greeting ----------------------------------------------------------------------------

    def _opened(self, connection: Connection, node_id: str, text: str) -> None:
        hello = decode_opening_from_agent(text)
        if not isinstance(hello, wire.Hello) or hello.node_id != node_id:
            raise LinkBroken("link_no_hello", "the first frame is not this agent's hello")
        self._server.when_readable(lambda: self._greet(connection, node_id, hello))

    def _greet(self, connection: Connection, node_id: str, hello: wire.Hello) -> None:
        if not connection.is_server_open:
            return
        node = self._server.fleet.nodes.get(node_id)
        if node is None or node.phase is NodePhase.RETIRED:
            self._refuse(connection, "node_retired", is_final=True)
            return
        link = self._link_by_node.setdefault(node_id, _NodeLink(node_id))
        if hello.incarnation < max(link.incarnation, node.incarnation):
            self._refuse(connection, "incarnation_stale", is_final=False)
            return
        if link.connection is not None:
            self._world.probe("server.link_replaced")
            self._node_by_connection.pop(link.connection, None)
            link.connection.close_by_server()
        link.connection = connection
        link.is_welcomed = False
        self._heard(link)
        session = link.session
        is_same_life = hello.incarnation == link.incarnation
        if (
            session is not None
            and is_same_life
            and link.node_epoch == node.epoch
            and session.can_resume(hello.session_id, hello.received_seq)
        ):
            self._limits_said(link, hello.fence_after_ms)
            self._welcome(link, connection, session, hello.received_seq)
            return
        self._lose_session(link)
        link.incarnation, link.node_epoch = hello.incarnation, node.epoch
        self._session_count += 1
        link.session = LinkSession(f"s-{self._server.incarnation}-{self._session_count}")
        self._server.observe(
            AgentSaidHello(
                node_id=NodeId(node_id),
                incarnation=hello.incarnation,
                hostname=connection.host,
                shape=shape_of(hello.inventory),
                allocations=allocation_facts(hello.allocations),
            ),
        )
        # The welcome gives authority. No step is open, and the next one takes the hello in before
        # it judges anybody's silence.
        self._limits_said(link, hello.fence_after_ms)
        self._welcome(link, connection, link.session, 0)

    def _welcome(
        self, link: _NodeLink, connection: Connection, session: LinkSession, received_seq: int
    ) -> None:
        heartbeat_ms, fence_after_ms = link.limits_told
        link.is_welcomed = True
        connection.send_to_agent(
            session.send(
                wire.Welcome(
                    protocol=1,
                    node_id=link.node_id,
                    node_epoch=link.node_epoch,
                    session_id=session.session_id,
                    received_seq=session.received_seq,
                    heartbeat_ms=heartbeat_ms,
                    fence_after_ms=fence_after_ms,
                )
            )
        )
        for frame in session.resume(received_seq):
            connection.send_to_agent(frame)

    def _refuse(self, connection: Connection, code: str, *, is_final: bool) -> None:
        self._world.probe(f"server.refused_{code}")
        refused = wire.Refused(code=code, message=code, is_final=is_final)
        connection.send_to_agent(opening_frame(refused))
        self._close(connection)

    def dismiss(self, node_id: str) -> None:
        """End the link of a node that is retired."""
        link = self._link_by_node.pop(node_id, None)
        if link is not None and link.connection is not None:
            self._refuse(link.connection, "node_retired", is_final=True)

    def look_at(self, node_id: str) -> None:
        """End the session of a node whose epoch has risen: what it was told counts no more."""
        link = self._link_by_node.get(node_id)
        if self._server.is_dead or link is None or link.session is None or self._is_current(link):
            return
        self._world.probe("server.stale_link_ended")
        if link.connection is not None:
            self._close(link.connection)
        else:
            self._lose_session(link)

    # -- what agents say ---------------------------------------------------------------------

    def _take_frame(self, link: _NodeLink, session: LinkSession, text: str) -> None:
        message = session.receive_from_agent(text)
        self._heard(link)
        if message is not None:
            self._take(link, session, message)
        due = session.ack_due()
        if due is not None and link.connection is not None:
            link.connection.send_to_agent(due)

    def _take(self, link: _NodeLink, session: LinkSession, message: wire.AgentMessage) -> None:
        node_id = NodeId(link.node_id)
        match message:
            case wire.Heartbeat():
                # The answer gives authority: not while a step is open that may take it away.
                self._server.when_readable(lambda: self._acknowledge(link, session, message))
            case wire.InventoryReported():
                self._server.observe(
                    InventoryReported(node_id=node_id, shape=shape_of(message.inventory))
                )
            case wire.NoticeReported():
                self._server.observe(
                    NoticeReported(
                        node_id=node_id, kind=NoticeKind(message.kind), left_ms=message.left_ms
                    )
                )
            case wire.AllocationReported():
                self._server.observe(
                    AllocationReported(node_id=node_id, fact=allocation_fact(message.report))
                )
            case wire.CommandAnswered():
                link.waiting.pop(message.command_id, None)
                outcome: Outcome = Succeeded()
                if message.outcome == "refused":
                    self._world.probe("agent.refused_command")
                    outcome = CommandFailed(code="refused", message=message.message)
                self._settle(message.command_id, outcome)
            case _:
                pass  # streams pass by the core

    def _acknowledge(
        self, link: _NodeLink, session: LinkSession, heartbeat: wire.Heartbeat
    ) -> None:
        if link.session is not session or not self._is_current(link):
            return
        told = link.limits_told
        self._limits_said(link, heartbeat.fence_after_ms)
        is_news = link.limits_told != told
        heartbeat_ms, fence_after_ms = link.limits_told if is_news else (0, 0)
        self._tell(
            link,
            wire.HeartbeatAck(
                sent_at_ms=heartbeat.sent_at_ms,
                heartbeat_ms=heartbeat_ms,
                fence_after_ms=fence_after_ms,
            ),
        )

    def _limits_said(self, link: _NodeLink, kept_ms: int) -> None:
        """Tell the core when an agent goes by another limit; choose what it is told next."""
        settings = self._server.fleet.settings or Settings(fleet_id="")
        node = self._server.fleet.nodes.get(link.node_id)
        if node is not None and kept_ms > 0:
            known_ms, told_ms = node.fence_after_ms, settings.fence_after_ms
            if known_ms > max(kept_ms, told_ms) or kept_ms > max(known_ms, told_ms):
                self._world.probe("agent.kept_another_limit")
                self._server.observe(
                    FenceLimitKept(node_id=NodeId(link.node_id), fence_after_ms=kept_ms)
                )
        link.limits_told = (settings.heartbeat_ms, settings.fence_after_ms)

    def _is_current(self, link: _NodeLink) -> bool:
        node = self._server.fleet.nodes.get(link.node_id)
        return node is not None and node.epoch == link.node_epoch

    def _settle(self, command_id: str, outcome: Outcome) -> None:
        settled: AnyInput = CommandSettled(command_id=CommandId(command_id), outcome=outcome)
        self._server.observe(settled)

    # -- what agents are told ----------------------------------------------------------------

    def deliver(self, command_id: str, command: AnyAgentCommand) -> None:
        """Hand a command to an agent; how it ends comes back as an input."""
        link = self._link_by_node.get(command.node_id)
        if link is None or link.session is None or link.connection is None:
            self._settle(command_id, CommandFailed(code="unreachable"))
            return
        message = agent_command(self._server.fleet, CommandId(command_id), command)
        if message is None:
            self._settle(command_id, CommandFailed(code="refused"))
            return
        link.waiting[command_id] = None
        self._tell(link, message)

    def exec(self, node_id: str, start: wire.ExecStart) -> None:
        """Have a lessee's command run, if its node can be reached."""
        link = self._link_by_node.get(node_id)
        if link is not None and link.connection is not None and link.is_welcomed:
            self._tell(link, start)

    def _tell(self, link: _NodeLink, message: wire.ServerMessage) -> None:
        if link.session is None:
            return
        try:
            frame = link.session.send(message)
        except LinkOverflow:
            self._world.probe("server.link_overflow")
            self._lose_session(link)
            if link.connection is not None:
                self._close(link.connection)
            return
        if link.connection is not None and link.is_welcomed:
            link.connection.send_to_agent(frame)

    def _lose_session(self, link: _NodeLink) -> None:
        link.session = None
        waiting, link.waiting = link.waiting, {}
        for command_id in waiting:
            self._settle(command_id, CommandFailed(code="outcome_unknown"))

    # -- silence -----------------------------------------------------------------------------

    def _heard(self, link: _NodeLink) -> None:
        link.heard_at_ms = self._server.clock_ms()
        if link.is_silent:
            link.is_silent = False
            self._server.observe(ContactResumed(node_id=NodeId(link.node_id)))
        if not link.is_watched:
            link.is_watched = True
            self._world.after(self._patience_ms(), self._watch, link)

    def _patience_ms(self) -> int:
        settings = self._server.fleet.settings
        return 10_000 if settings is None else 2 * settings.heartbeat_ms

    def _watch(self, link: _NodeLink) -> None:
        if self._server.is_dead or self._link_by_node.get(link.node_id) is not link:
            return
        left_ms = link.heard_at_ms + self._patience_ms() - self._server.clock_ms()
        if left_ms > 0:
            self._world.after(left_ms, self._watch, link)
            return
        link.is_watched = False
        self._fall_silent(link, is_link_down=False)

    def _fall_silent(self, link: _NodeLink, *, is_link_down: bool) -> None:
        link.is_silent = True
        self._server.observe(
            SilenceNoticed(
                node_id=NodeId(link.node_id),
                since_at_ms=link.heard_at_ms,
                is_link_down=is_link_down,
            )
        )
