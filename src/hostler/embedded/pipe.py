"""A bounded queue that can end: what one side of a connection within this process writes."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final, Generic, TypeVar

T = TypeVar("T")

ITEMS_MAX: Final = 16
"""Items that wait; then the writer waits, as on a socket. Each is some ten kilobytes at most."""


class PipeEnded(OSError):
    """Nobody reads any more. An `OSError`, as that is what ASGI servers raise for it."""


class Pipe(Generic[T]):
    """One direction of a connection."""

    def __init__(self) -> None:
        self._items: deque[T] = deque()
        self._has_items = asyncio.Event()
        self._has_room = asyncio.Event()
        self._is_over = False

    async def put(self, item: T) -> None:
        """Add an item; waits while there is no room.

        Raises:
            PipeEnded: It has ended.
        """
        while len(self._items) >= ITEMS_MAX and not self._is_over:
            self._has_room.clear()
            await self._has_room.wait()
        if self._is_over:
            raise PipeEnded("the connection is closed")
        self._items.append(item)
        self._has_items.set()

    async def get(self) -> T | None:
        """Return the next item; after the end what was there before, and then nothing."""
        while not self._items:
            if self._is_over:
                return None
            self._has_items.clear()
            await self._has_items.wait()
        self._has_room.set()
        return self._items.popleft()

    def end(self) -> None:
        """Take nothing more."""
        self._is_over = True
        self._has_items.set()
        self._has_room.set()
