"""A WebSocket from the server's side, in the few words that links and commands need."""

from __future__ import annotations

from typing import Any, Final, Protocol

import msgspec
from litestar import WebSocket

from hostler.api.errors import problem_of
from hostler.base.errors import HostlerError
from hostler.wire.http import PROBLEM_MEDIA_TYPE

AnySocket = WebSocket[Any, Any, Any]

CLOSE_NORMAL: Final = 1000
CLOSE_PROTOCOL: Final = 1002
CLOSE_POLICY: Final = 1008
CLOSE_TRY_AGAIN: Final = 1013
"""RFC 6455 7.4.1, and IANA's registry for 1013."""

REASON_BYTES_MAX: Final = 120
"""Of the 123 that a close frame has room for (RFC 6455 5.5)."""


class SocketClosed(Exception):
    """The peer has gone."""


class LinkSocket(Protocol):
    """What an agent's link is carried by: a `Socket`, or what does as much within one process."""

    async def accept(self) -> None:
        """See `Socket.accept`."""
        ...

    async def receive(self) -> str | bytes:
        """See `Socket.receive`."""
        ...

    async def send(self, text: str) -> None:
        """See `Socket.send`."""
        ...

    async def close(self, code: int = ..., reason: str = ...) -> None:
        """See `Socket.close`."""
        ...


class Socket:
    """One connection. Text in, text out."""

    def __init__(self, socket: AnySocket) -> None:
        self._receive = socket.receive
        self._send = socket.send
        self._is_closed = False

    async def accept(self) -> None:
        """Complete the handshake.

        Raises:
            SocketClosed: The peer has gone already.
        """
        event: Any = await self._receive()
        if event["type"] != "websocket.connect":
            raise SocketClosed
        await self._send({"type": "websocket.accept", "subprotocol": None, "headers": []})

    async def deny(self, error: HostlerError) -> None:
        """Answer the handshake with a problem (ASGI extension `websocket.http.response`)."""
        told = problem_of(error)
        start: Any = {
            "type": "websocket.http.response.start",
            "status": told.status,
            "headers": [(b"content-type", PROBLEM_MEDIA_TYPE.encode())],
        }
        body: Any = {
            "type": "websocket.http.response.body",
            "body": msgspec.json.encode(told),
            "more_body": False,
        }
        await self._receive()
        await self._send(start)
        await self._send(body)
        self._is_closed = True

    async def receive(self) -> str | bytes:
        """Return the next message.

        Raises:
            SocketClosed: The peer has gone.
        """
        event: Any = await self._receive()
        if event["type"] != "websocket.receive":
            self._is_closed = True
            raise SocketClosed
        text = event.get("text")
        return text if text is not None else (event.get("bytes") or b"")

    async def send(self, text: str) -> None:
        """Write a message; waits while the peer does not take it.

        Raises:
            SocketClosed: The peer has gone.
        """
        if self._is_closed:
            raise SocketClosed
        event: Any = {"type": "websocket.send", "text": text, "bytes": None}
        try:
            await self._send(event)
        except (OSError, RuntimeError) as error:
            # What ASGI servers raise for a send after the peer's close, each in its own way.
            self._is_closed = True
            raise SocketClosed from error

    async def close(self, code: int = CLOSE_NORMAL, reason: str = "") -> None:
        """Say goodbye; nothing happens if the peer has gone."""
        if self._is_closed:
            return
        self._is_closed = True
        short = reason.encode()[:REASON_BYTES_MAX].decode(errors="ignore")
        event: Any = {"type": "websocket.close", "code": code, "reason": short}
        try:
            await self._send(event)
        except (OSError, RuntimeError):
            return  # as in send: it is closed, which is what was wanted
