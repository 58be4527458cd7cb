"""Streams: committed events, resumed after a break without loss or repeat, and logs."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing

import msgspec

from hostler.client.errors import ClientError, Unreachable
from hostler.client.transport import Pauses, Streamed, Transport
from hostler.wire.http import EventView


class EventStream:
    """A place in the stream of events, and a filter.

    Attributes:
        position: Position of the last event that was taken or passed over; `None` before the first.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        after_seq: int | None,
        tail: int,
        kinds: Sequence[str],
        about: str,
        follow: bool,
    ) -> None:
        self.position = after_seq
        self._transport = transport
        self._follow = follow
        self._tail = tail
        self._params = {"follow": "true" if follow else "false"}
        if kinds:
            self._params["kind"] = ",".join(kinds)
        if about:
            self._params["about"] = about
        self._pauses = Pauses(transport.retry_ms)

    async def __aiter__(self) -> AsyncIterator[EventView]:
        """Yield events, going on after breaks.

        Raises:
            ClientError: Refused; code `events_gone` when the position is no longer kept.
            Unreachable: The server was away for longer than the transport has patience.
        """
        while True:
            try:
                async with aclosing(self._connection()) as events:
                    async for event in events:
                        yield event
            except Unreachable:
                if not await self._pauses.pause():
                    raise
                continue
            except ClientError as error:
                if error.status != 503 or not await self._pauses.pause():
                    raise
                continue
            if not self._follow:
                return

    async def _connection(self) -> AsyncGenerator[EventView]:
        """Yield the events of one connection until it ends."""
        params, headers = dict(self._params), {"Accept": "text/event-stream"}
        if self.position is not None:
            headers["Last-Event-ID"] = str(self.position)
        elif self._tail:
            params["tail"] = str(self._tail)
        async with (
            self._transport.stream("/v1/events", params, headers) as answer,
            aclosing(_read(answer)) as read,
        ):
            async for seq, event in read:
                self._pauses = Pauses(self._transport.retry_ms)
                self.position = seq
                if event is not None:
                    yield event


async def _read(answer: Streamed) -> AsyncGenerator[tuple[int, EventView | None]]:
    """Read server-sent events (WHATWG HTML 9.2.6): positions, and the event where there is one.

    An id without data moves the position past events that the filter leaves out.
    """
    position: int | None = None
    data: list[str] = []
    async for line in answer.aiter_lines():
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        match name:
            case "id":
                position = int(value)
            case "data":
                data.append(value)
            case "" if not line and position is not None:
                text = "\n".join(data)
                yield position, msgspec.json.decode(text, type=EventView) if text else None
                position, data = None, []
            case _:
                pass


async def logs(
    transport: Transport, path: str, *, follow: bool, tail_bytes: int | None
) -> AsyncIterator[bytes]:
    """Yield a log as it is; it ends with the log, or at once where there is nothing to follow.

    Raises:
        ClientError: Refused, or the node cannot be asked.
        Unreachable: The connection broke. A log has no positions, so it is not resumed.
    """
    params = {"follow": "true" if follow else "false"}
    if tail_bytes is not None:
        params["tail_bytes"] = str(tail_bytes)
    async with transport.stream(path, params, {}) as answer:
        async for chunk in answer.aiter_raw():
            yield chunk
