"""Streams at agents: a log being read, a command being run. Bounded by windows on both sides."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import TypeAlias

from hostler.api.limits import STREAM_QUEUE_COUNT_MAX
from hostler.base.errors import Failed
from hostler.wire.agent import (
    CancelStream,
    ExecEnded,
    ExecInput,
    ExecOutput,
    ExecSignal,
    LogChunk,
    LogEnded,
    ServerMessage,
    StreamCredit,
)
from hostler.wire.stream import ReceiveWindow, SendWindow

StreamMessage: TypeAlias = LogChunk | LogEnded | ExecOutput | ExecEnded

Send: TypeAlias = Callable[[ServerMessage], None]


class StreamBroken(Failed):
    """The stream ended before what it carries did."""


class AgentStream:
    """What comes from an agent under one request id, in order."""

    def __init__(self, request_id: str, send: Send, forget: Callable[[str], None]) -> None:
        self.request_id = request_id
        self._send = send
        self._forget = forget
        self._queue: asyncio.Queue[StreamMessage | Failed] = asyncio.Queue()
        self._window = ReceiveWindow()
        self._room = SendWindow()
        self._has_room = asyncio.Event()
        self._is_over = False

    # -- from the link -----------------------------------------------------------------------

    def put(self, message: StreamMessage) -> None:
        """Take a message for the reader."""
        if self._queue.qsize() >= STREAM_QUEUE_COUNT_MAX:
            self.fail(StreamBroken("stream_overflow", "the node sends more than it may"))
            self.close()
            return
        self._is_over = isinstance(message, LogEnded | ExecEnded)
        self._queue.put_nowait(message)

    def credit(self, bytes_count: int) -> None:
        """Note that the agent has taken so many bytes of input."""
        self._room.credited(bytes_count)
        self._has_room.set()

    def fail(self, failure: Failed) -> None:
        """End the stream; the reader gets the failure after what has come before it."""
        self._is_over = True
        self._queue.put_nowait(failure)
        self._has_room.set()

    # -- for the reader ----------------------------------------------------------------------

    async def next(self) -> StreamMessage:
        """Return the next message; data is credited as it is taken.

        Raises:
            StreamBroken: Nothing follows, and the end was not seen.
        """
        message = await self._queue.get()
        match message:
            case Failed():
                raise message
            case LogChunk(data=data) | ExecOutput(data=data):
                due_bytes = self._window.taken(len(data))
                if due_bytes and not self._is_over:
                    self._send(StreamCredit(request_id=self.request_id, bytes_count=due_bytes))
            case _:
                pass
        return message

    def close(self) -> None:
        """Nobody reads any more: the agent ends what feeds the stream."""
        self._forget(self.request_id)
        if not self._is_over:
            self._is_over = True
            self._send(CancelStream(request_id=self.request_id))

    async def log(self) -> AsyncIterator[bytes]:
        """Yield the log's bytes to its end.

        Raises:
            StreamBroken: It could not be read to its end.
        """
        while True:
            match await self.next():
                case LogChunk(data=data):
                    yield data
                case LogEnded(error=None):
                    return
                case LogEnded(error=str(why)):
                    raise StreamBroken("log_unreadable", why)
                case _:
                    raise StreamBroken("stream_confused", "the node sent something else than a log")

    # -- to the command ----------------------------------------------------------------------

    async def write(self, data: bytes, *, eof: bool = False) -> None:
        """Hand bytes to the command's input, as fast as it takes them."""
        while data and not self._is_over:
            size = self._room.chunk_bytes()
            if size == 0:
                self._has_room.clear()
                await self._has_room.wait()
                continue
            chunk, data = data[:size], data[size:]
            self._room.sent(len(chunk))
            self._send(ExecInput(request_id=self.request_id, data=chunk))
        if eof and not self._is_over:
            self._send(ExecInput(request_id=self.request_id, eof=True))

    def signal(self, name: str) -> None:
        """Send a signal to the command's process group."""
        if not self._is_over:
            self._send(ExecSignal(request_id=self.request_id, signal=name))
