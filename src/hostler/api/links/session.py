"""One agent's session: what is under way with it, across the breaks of its connection."""

from __future__ import annotations

import asyncio
import secrets
from collections import deque
from dataclasses import dataclass

from hostler.api.links.streams import AgentStream, StreamBroken
from hostler.base.errors import Failed
from hostler.base.ids import NodeId
from hostler.ports.agents import AgentCommand, AgentSessionLost
from hostler.wire.agent import CommandAnswered, ExecStart, ReadLogs, ServerMessage
from hostler.wire.link import LinkOverflow, LinkSession


class Connection:
    """What waits to be written to one WebSocket, and why it shall end."""

    def __init__(self) -> None:
        self._texts: deque[str] = deque()
        self._news = asyncio.Event()
        self.ending: str | None = None
        """Why it shall be closed, once what waits is written."""

    def put(self, text: str) -> None:
        """Have a text written."""
        self._texts.append(text)
        self._news.set()

    def begin(self, texts: list[str]) -> None:
        """Have texts written before anything that waits already."""
        self._texts.extendleft(reversed(texts))
        self._news.set()

    def end(self, why: str) -> None:
        """Have it closed."""
        if self.ending is None:
            self.ending = why
        self._news.set()

    async def take(self) -> str | None:
        """Return the next text, or `None` when it is to be closed."""
        while not self._texts:
            if self.ending is not None:
                return None
            self._news.clear()
            await self._news.wait()
        return self._texts.popleft()


@dataclass(frozen=True)
class LinkLimits:
    """What an agent is told about heartbeats."""

    heartbeat_ms: int
    fence_after_ms: int


class AgentSession:
    """The conversation with one life of one node's agent.

    Attributes:
        node_epoch: The node's when the session began; when it has risen, the session is over.
        connection: `None` while the link is down.
        heard_at_ms: When anything last came in.
        is_silent: The core has been told that nothing is heard.
        parted_at_ms: Since when the link is down.
        limits_told: What its agent was told last, or is told next.
    """

    def __init__(self, node_id: NodeId, node_epoch: int, incarnation: int, *, now_ms: int) -> None:
        self.node_id = node_id
        self.node_epoch = node_epoch
        self.incarnation = incarnation
        self.link = LinkSession(secrets.token_hex(8))
        self.connection: Connection | None = None
        self.heard_at_ms = now_ms
        self.is_silent = False
        self.parted_at_ms: int | None = None
        self.limits_told = LinkLimits(0, 0)
        self._answers: dict[str, list[asyncio.Future[CommandAnswered]]] = {}
        self._streams: dict[str, AgentStream] = {}

    def send(self, message: ServerMessage) -> None:
        """Number a message and have it written, now or after the link is back."""
        try:
            text = self.link.send(message)
        except LinkOverflow as overflow:
            # The agent is too far behind to be caught up; it says hello anew and is told anew.
            self.end(overflow)
            if self.connection is not None:
                self.connection.end(overflow.message)
            return
        if self.connection is not None:
            self.connection.put(text)

    # -- commands ----------------------------------------------------------------------------

    async def deliver(self, command: AgentCommand) -> CommandAnswered:
        """Send a command and return its answer.

        Raises:
            AgentSessionLost: The session ended first.
        """
        answer: asyncio.Future[CommandAnswered] = asyncio.get_running_loop().create_future()
        waiting = self._answers.setdefault(command.command_id, [])
        waiting.append(answer)
        try:
            self.send(command)
            return await answer
        finally:
            waiting.remove(answer)
            if not waiting:
                self._answers.pop(command.command_id, None)

    def settle(self, answered: CommandAnswered) -> None:
        """Hand an answer to whoever waits for it; nobody may, after a time-out."""
        for answer in self._answers.get(answered.command_id, ()):
            if not answer.done():
                answer.set_result(answered)

    # -- streams -----------------------------------------------------------------------------

    def open(self, first: ReadLogs | ExecStart) -> AgentStream:
        """Begin a stream."""
        stream = AgentStream(first.request_id, self.send, self._forget)
        self._streams[first.request_id] = stream
        self.send(first)
        return stream

    def stream(self, request_id: str) -> AgentStream | None:
        """Return a stream that is still read."""
        return self._streams.get(request_id)

    def _forget(self, request_id: str) -> None:
        self._streams.pop(request_id, None)

    def end(self, failure: Failed) -> None:
        """Let everybody who waits for this agent know that nothing will come."""
        for waiting in list(self._answers.values()):
            for answer in waiting:
                if not answer.done():
                    answer.set_exception(AgentSessionLost(self.node_id))
        for stream in list(self._streams.values()):
            stream.fail(StreamBroken(failure.code, failure.message, node_id=self.node_id))
        self._streams.clear()
