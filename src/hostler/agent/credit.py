"""Makes a producer wait until the reader at the far end has room."""

from __future__ import annotations

import asyncio

from hostler.wire.agent import STREAM_CHUNK_BYTES_MAX
from hostler.wire.stream import SendWindow


class CreditGate:
    """A stream's send window that can be waited on."""

    def __init__(self) -> None:
        self._window = SendWindow()
        self._room = asyncio.Event()
        self._room.set()
        self.is_abandoned = False
        """Nobody reads any more: data is to be thrown away, and nobody need wait."""

    @property
    def has_room(self) -> bool:
        """Say whether something may be sent now."""
        return self._room.is_set()

    async def reserve(self) -> int:
        """Wait until something may be sent, and keep room for so many bytes."""
        while True:
            await self._room.wait()
            bytes_count = (
                STREAM_CHUNK_BYTES_MAX if self.is_abandoned else self._window.chunk_bytes()
            )
            if bytes_count:
                self._window.sent(bytes_count)
                self._note_room()
                return bytes_count

    def credited(self, bytes_count: int) -> None:
        """Give room back: the reader's, or what was reserved and not used."""
        self._window.credited(bytes_count)
        self._note_room()

    def abandon(self) -> None:
        """Let the producer run to its end without a reader."""
        self.is_abandoned = True
        self._room.set()

    def _note_room(self) -> None:
        if self.is_abandoned or self._window.chunk_bytes():
            self._room.set()
        else:
            self._room.clear()
