"""Publishing: committed events to whoever follows, and single records to whoever waits for them.

Followers pull. The newest events are kept in memory, older ones come out of the store; so a slow
follower costs nobody anything: it falls back to the store, and if it falls behind what the store
keeps, `EventsGone` tells it to take a new snapshot.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Final

from hostler.base.errors import Failed
from hostler.model.record import Record
from hostler.ports.store import Store, StoredEvent

RECENT_COUNT_MAX: Final = 10_000
"""Events kept in memory: some ten seconds of the busiest fleet, a few megabytes."""

PAGE_COUNT_MAX: Final = 500
"""Most events in one answer of a subscription."""


class Publisher:
    """The newest committed events, and who waits for the next."""

    def __init__(self, store: Store, recent_count_max: int = RECENT_COUNT_MAX) -> None:
        self._store = store
        self._recent: deque[StoredEvent] = deque(maxlen=recent_count_max)
        self._waiting: list[asyncio.Future[None]] = []
        self._ended: Failed | None = None
        self.last_seq = 0
        """Position of the last committed event."""

    def begin_after(self, last_seq: int) -> None:
        """Say where the store stands when the engine starts."""
        self.last_seq = last_seq

    def publish(self, events: Sequence[StoredEvent]) -> None:
        """Let followers have what was just committed."""
        if not events:
            return
        self._recent.extend(events)
        self.last_seq = events[-1].seq
        self._wake()

    def end(self, failure: Failed) -> None:
        """No event will follow: followers get this when they have read what there is."""
        self._ended = failure
        self._wake()

    def _wake(self) -> None:
        waiting, self._waiting = self._waiting, []
        for future in waiting:
            if not future.done():
                future.set_result(None)

    async def page_after(self, seq: int, limit: int) -> Sequence[StoredEvent]:
        """Return the events after a position that are there, from memory or from the store.

        Raises:
            EventsGone: They are no longer kept.
        """
        if seq >= self.last_seq:
            return ()
        if self._recent and self._recent[0].seq <= seq + 1:
            # Positions have no gaps, so the place in memory follows from the number.
            start = seq + 1 - self._recent[0].seq
            return list(islice(self._recent, start, start + limit))
        return await self._store.events(seq, limit)

    async def wait_beyond(self, seq: int) -> None:
        """Return when there is an event after a position.

        Raises:
            Failed: There never will be: the engine has stopped.
        """
        while seq >= self.last_seq:
            if self._ended is not None:
                raise self._ended
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(future)
            await future


class Subscription:
    """One follower's place in the stream of committed events.

    Attributes:
        after_seq: Position of the last event that was taken; subscribe after it to go on.
    """

    def __init__(self, publisher: Publisher, after_seq: int) -> None:
        self._publisher = publisher
        self.after_seq = after_seq

    async def take(
        self, *, limit: int = PAGE_COUNT_MAX, timeout_ms: int | None = None
    ) -> Sequence[StoredEvent]:
        """Return the next events, oldest first; none if there were none until the timeout.

        Raises:
            EventsGone: This follower has fallen too far behind: take a snapshot and begin anew.
            Failed: The engine has stopped.
        """
        try:
            async with asyncio.timeout(None if timeout_ms is None else timeout_ms / 1000):
                await self._publisher.wait_beyond(self.after_seq)
        except TimeoutError:
            return ()
        events = await self._publisher.page_after(self.after_seq, limit)
        if events:
            self.after_seq = events[-1].seq
        return events


Until = Callable[[Record | None], bool]


class Watches:
    """Who waits for which record, and until what."""

    def __init__(self) -> None:
        self._by_name: dict[tuple[str, str], dict[asyncio.Future[Record | None], Until]] = {}

    def add(self, name: tuple[str, str], until: Until) -> asyncio.Future[Record | None]:
        """Return what will hold the record once it is as wanted."""
        future: asyncio.Future[Record | None] = asyncio.get_running_loop().create_future()
        self._by_name.setdefault(name, {})[future] = until
        return future

    def remove(self, name: tuple[str, str], future: asyncio.Future[Record | None]) -> None:
        """Wait no longer."""
        waiting = self._by_name.get(name, {})
        waiting.pop(future, None)
        if not waiting:
            self._by_name.pop(name, None)

    def changed(self, changes: Iterable[tuple[tuple[str, str], Record | None]]) -> None:
        """Answer whoever waited for one of these committed values."""
        if not self._by_name:
            return
        for name, record in changes:
            for future, until in list(self._by_name.get(name, {}).items()):
                if not future.done() and until(record):
                    future.set_result(record)

    def end(self, failure: Failed) -> None:
        """Nothing will change any more: tell everybody who waits."""
        for waiting in self._by_name.values():
            for future in waiting:
                if not future.done():
                    future.set_exception(failure)
