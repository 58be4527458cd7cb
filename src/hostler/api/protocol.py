"""HTTP/1.1 as uvicorn speaks it, but for one thing: the head of an answer leaves with its body.

uvicorn writes the two one after the other, and the event loop writes at once: two calls of the
kernel, two packets, and a client that is woken twice.
"""

from __future__ import annotations

import asyncio
from typing import Final, cast

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_HEAD: Final = b"HTTP/1.1 "
"""How every head begins. A body that begins so is held for a moment too, and is none the worse."""


class WholeAnswers(HttpToolsProtocol):
    """The protocol of one connection."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's own
        """Begin, with heads held back."""
        super().connection_made(HeadsHeld(transport, self.loop))

    def handle_websocket_upgrade(self) -> None:
        """Give the connection to the protocol of WebSockets, as it came to us."""
        self.transport = cast("HeadsHeld", self.transport).transport
        super().handle_websocket_upgrade()


class HeadsHeld(asyncio.Transport):
    """A transport that holds the head of an answer until something follows or the loop goes on.

    Pieces of a stream leave at once.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self.transport = transport
        self._loop = loop
        self._head: bytes = b""

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Write, or hold a head."""
        if self._head:
            head, self._head = self._head, b""
            self.transport.writelines((head, data))
        elif data[: len(_HEAD)] == _HEAD:
            self._head = bytes(data)
            self._loop.call_soon(self._flush)
        else:
            self.transport.write(data)

    def _flush(self) -> None:
        if self._head:
            self.write(b"")

    def close(self) -> None:
        """Close once all is written."""
        self._flush()
        self.transport.close()

    def is_closing(self) -> bool:
        """Say whether it closes or is closed."""
        return self.transport.is_closing()

    def pause_reading(self) -> None:
        """Take nothing in."""
        self.transport.pause_reading()

    def resume_reading(self) -> None:
        """Take in again."""
        self.transport.resume_reading()

    def get_extra_info(self, name: str, default: object = None) -> object:
        """Tell of the connection."""
        return self.transport.get_extra_info(name, default)
