"""A cable between a box and the server that can be pulled.

A box dials the cable, which dials the server. While it is pulled nothing goes through, either way,
and no end is told: as when a switch dies, and unlike a connection that is closed.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Final

CHUNK_BYTES: Final = 65_536


class Cable:
    """One cable; it is whole when it is made."""

    def __init__(self, server_port: int) -> None:
        self._server_port = server_port
        self._whole = asyncio.Event()
        self._whole.set()
        self._listener: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._none_left = asyncio.Event()
        self._none_left.set()

    async def plug_in(self) -> str:
        """Begin to carry; return the address to dial."""
        self._listener = await asyncio.start_server(self._carry, "127.0.0.1", 0)
        return f"http://127.0.0.1:{self._listener.sockets[0].getsockname()[1]}"

    def pull(self) -> None:
        """Let nothing through any more."""
        self._whole.clear()

    def mend(self) -> None:
        """Let everything through again, first what was held up."""
        self._whole.set()

    async def unplug(self) -> None:
        """End every connection, and take no more."""
        if self._listener is not None:
            self._listener.close()
        self.mend()
        for writer in [*self._writers]:
            writer.close()
        await self._none_left.wait()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await self._whole.wait()
        try:
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._server_port)
        except OSError:
            writer.close()  # the server is away, and the box hears that nobody is there
            return
        ends = (writer, far_writer)
        self._writers.update(ends)
        self._none_left.clear()
        await asyncio.gather(self._pump(reader, far_writer), self._pump(far_reader, writer))
        self._writers.difference_update(ends)
        if not self._writers:
            self._none_left.set()

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):  # an end was killed: the other hears of it
            while data := await reader.read(CHUNK_BYTES):
                await self._whole.wait()
                writer.write(data)
                await writer.drain()
            await self._whole.wait()
        writer.close()
