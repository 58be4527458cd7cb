"""The server's end of the link, as small as it can be: enough to command a real agent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Self, TypeVar

from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.exceptions import ConnectionClosed

from hostler.wire.agent import (
    AgentMessage,
    AllocationReported,
    CommandAnswered,
    ExecEnded,
    ExecOutput,
    Heartbeat,
    HeartbeatAck,
    Hello,
    LogChunk,
    ServerMessage,
    StreamCredit,
    Welcome,
)
from hostler.wire.link import LinkSession, decode_opening_from_agent, opening_frame
from hostler.wire.work import AllocationReport

M = TypeVar("M")
WITHIN_S = 30.0


class TinyServer:
    """Speaks with one agent; `is_deaf` cuts it off."""

    def __init__(self, *, heartbeat_ms: int = 200, fence_after_ms: int = 60_000) -> None:
        self.heartbeat_ms = heartbeat_ms
        self.fence_after_ms = fence_after_ms
        self.is_deaf = False
        self.gives_credit = True
        self.hellos: list[Hello] = []
        self.heard: list[AgentMessage] = []
        self.session: LinkSession | None = None
        self.port = 0
        self._session_count = 0
        self._connection: ServerConnection | None = None
        self._changed = asyncio.Condition()
        self._server: Server | None = None

    async def __aenter__(self) -> Self:
        self._server = await serve(self._serve, "127.0.0.1", 0, compression=None)
        self.port = next(iter(self._server.sockets)).getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        await self._server.wait_closed()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def cut_off(self) -> None:
        self.is_deaf = True
        if self._connection is not None:
            self._connection.transport.abort()

    async def forget(self) -> None:
        """Lose the session, as a server does that was started again."""
        self.session = None
        if self._connection is not None:
            self._connection.transport.abort()

    async def break_link(self) -> None:
        assert self._connection is not None
        self._connection.transport.abort()

    async def say(self, message: ServerMessage) -> None:
        assert self.session is not None
        text = self.session.send(message)
        if self._connection is not None:
            try:
                await self._connection.send(text)
            except ConnectionClosed:
                return

    async def hears(self, kind: type[M], when: Callable[[M], bool] = lambda _: True) -> M:
        """Wait until such a message was heard, now or before."""
        return await self._until(
            lambda: next((e for e in self.heard if isinstance(e, kind) and when(e)), None),
            f"{kind.__name__}; heard {self.heard}",
        )

    async def greeted(self, count: int) -> Hello:
        return await self._until(
            lambda: self.hellos[count - 1] if len(self.hellos) >= count else None, "a hello"
        )

    async def reported(self, allocation_id: str, phase: str) -> AllocationReport:
        heard = await self.hears(
            AllocationReported,
            lambda e: e.report.allocation_id == allocation_id and e.report.phase == phase,
        )
        return heard.report

    async def answered(self, command_id: str) -> CommandAnswered:
        return await self.hears(CommandAnswered, lambda e: e.command_id == command_id)

    def output(self, request_id: str) -> bytes:
        return b"".join(
            each.data
            for each in self.heard
            if isinstance(each, ExecOutput | LogChunk) and each.request_id == request_id
        )

    async def output_of(self, request_id: str, count: int) -> bytes:
        """Wait for so many bytes of a stream."""
        return await self._until(
            lambda: out if len(out := self.output(request_id)) >= count else None,
            f"{count} bytes of {request_id}",
        )

    async def exec_ended(self, request_id: str) -> ExecEnded:
        return await self.hears(ExecEnded, lambda e: e.request_id == request_id)

    async def _until(self, probe: Callable[[], M | None], what: str) -> M:
        async with self._changed:
            try:
                async with asyncio.timeout(WITHIN_S):
                    while (found := probe()) is None:
                        await self._changed.wait()
                    return found
            except TimeoutError as error:
                raise AssertionError(f"not within {WITHIN_S:g} s: {what}") from error

    async def _serve(self, connection: ServerConnection) -> None:
        if self.is_deaf:
            connection.transport.abort()
            return
        try:
            await self._converse(connection)
        except ConnectionClosed:
            return

    async def _converse(self, connection: ServerConnection) -> None:
        hello = decode_opening_from_agent(await connection.recv())
        assert isinstance(hello, Hello)
        session = self.session
        frames: list[str] = []
        if session is not None and session.can_resume(hello.session_id, hello.received_seq):
            frames = session.resume(hello.received_seq)
        else:
            self._session_count += 1
            session = self.session = LinkSession(f"s-{self._session_count}")
        welcome = Welcome(
            protocol=1,
            node_id=hello.node_id,
            node_epoch=1,
            session_id=session.session_id,
            received_seq=session.received_seq,
            heartbeat_ms=self.heartbeat_ms,
            fence_after_ms=self.fence_after_ms,
        )
        await connection.send(opening_frame(welcome))
        for text in frames:
            await connection.send(text)
        self._connection = connection
        await self._note(lambda: self.hellos.append(hello))
        try:
            async for said in connection:
                message = session.receive_from_agent(said)
                if message is not None:
                    await self._take(message)
        finally:
            if self._connection is connection:
                self._connection = None

    async def _take(self, message: AgentMessage) -> None:
        match message:
            case Heartbeat():
                if not self.is_deaf:
                    await self.say(HeartbeatAck(sent_at_ms=message.sent_at_ms))
                return
            case ExecOutput() | LogChunk() if self.gives_credit:
                count = len(message.data)
                await self.say(StreamCredit(request_id=message.request_id, bytes_count=count))
            case _:
                pass
        await self._note(lambda: self.heard.append(message))

    async def _note(self, change: Callable[[], None]) -> None:
        async with self._changed:
            change()
            self._changed.notify_all()
