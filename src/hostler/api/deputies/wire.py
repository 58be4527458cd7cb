"""The link between a deputy and the server that it lives in: two queues instead of a WebSocket."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Final

from hostler.agent.link import Dial, Wire
from hostler.api.links.connection import serve_agent
from hostler.api.links.links import AgentLinks
from hostler.api.links.socket import CLOSE_NORMAL, SocketClosed
from hostler.engine.keys import NodeCredential

QUEUE_COUNT_MAX: Final = 64
"""Texts that wait in one direction; then the sender waits, as on a socket."""

_END: Final = None


class _Pair:
    """Both ends of one connection."""

    def __init__(self) -> None:
        self.to_server: asyncio.Queue[str | None] = asyncio.Queue(QUEUE_COUNT_MAX)
        self.to_agent: asyncio.Queue[str | None] = asyncio.Queue(QUEUE_COUNT_MAX)
        self.over = asyncio.Event()

    def end(self) -> None:
        """End the connection: whoever waits at either end learns it."""
        self.over.set()
        for queue in (self.to_server, self.to_agent):
            while queue.full():
                queue.get_nowait()
            queue.put_nowait(_END)


class _AgentEnd:
    """The `Wire` of the deputy."""

    def __init__(self, pair: _Pair) -> None:
        self._pair = pair

    async def __aiter__(self) -> AsyncIterator[str | bytes]:
        while (text := await self._pair.to_agent.get()) is not _END:
            yield text

    async def send(self, text: str) -> None:
        """See `Wire.send`."""
        if self._pair.over.is_set():
            raise ConnectionResetError("the link has ended")
        await self._pair.to_server.put(text)

    def abort(self) -> None:
        """See `Wire.abort`."""
        self._pair.end()


class _ServerEnd:
    """What `serve_agent` has for a socket."""

    def __init__(self, pair: _Pair) -> None:
        self._pair = pair

    async def accept(self) -> None:
        """There is no handshake."""

    async def receive(self) -> str | bytes:
        """See `Socket.receive`."""
        text = await self._pair.to_server.get()
        if text is _END:
            raise SocketClosed
        return text

    async def send(self, text: str) -> None:
        """See `Socket.send`."""
        if self._pair.over.is_set():
            raise SocketClosed
        await self._pair.to_agent.put(text)

    async def close(self, code: int = CLOSE_NORMAL, reason: str = "") -> None:  # noqa: ARG002 - as `Socket.close`
        """See `Socket.close`. What was sent before is still read."""
        if not self._pair.over.is_set():
            self._pair.over.set()
            await self._pair.to_agent.put(_END)


def local_dial(links: AgentLinks, credential: NodeCredential) -> Dial:
    """Return what opens connections to the server that we are in."""

    @contextlib.asynccontextmanager
    async def dial() -> AsyncIterator[Wire]:
        pair = _Pair()
        serving = asyncio.create_task(serve_agent(links, _ServerEnd(pair), credential))
        try:
            yield _AgentEnd(pair)
        finally:
            pair.end()
            await asyncio.gather(serving, return_exceptions=True)

    return dial
