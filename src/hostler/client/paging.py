"""Lists of a server, read page after page."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from hostler.client.call import Call
from hostler.client.transport import Transport
from hostler.wire.http import Page

V = TypeVar("V")

PAGE_COUNT: Final = 500
"""Records asked for at once."""


class Paging:
    """A part of a client that asks for lists."""

    _transport: Transport

    async def _all(self, call_of: Callable[[str | None], Call[Page[V]]]) -> list[V]:
        items: list[V] = []
        cursor: str | None = None
        while True:
            page = await self._transport.send(call_of(cursor))
            items += page.items
            cursor = page.next_cursor
            if cursor is None:
                return items
