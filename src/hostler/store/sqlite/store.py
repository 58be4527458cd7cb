"""The port's face of the embedded store: two threads, and one hop to them per call."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final, ParamSpec, TypeVar

from hostler.ports.store import (
    Commit,
    JournalRow,
    Keep,
    LifeRow,
    Loaded,
    StoreClosed,
    StoredEvent,
    StoreFailed,
)
from hostler.store.sqlite.failures import told
from hostler.store.sqlite.lock import FileLock
from hostler.store.sqlite.reader import Reader
from hostler.store.sqlite.schema import Layout
from hostler.store.sqlite.threads import Threads
from hostler.store.sqlite.writer import Writer

P = ParamSpec("P")
T = TypeVar("T")

OUR_LAYOUT: Final = Layout()


class SqliteStore:
    """A `Store` in one file. Open it with `SqliteStore.open`."""

    def __init__(
        self, threads: Threads, writer: Writer, reader: Reader, resources: AsyncExitStack
    ) -> None:
        self._threads = threads
        self._writer = writer
        self._reader = reader
        self._resources = resources
        self._closing: asyncio.Future[None] | None = None

    @classmethod
    async def open(cls, path: Path, layout: Layout = OUR_LAYOUT) -> SqliteStore:
        """Open the file at `path`, creating or upgrading it where that is needed.

        Raises:
            StoreBusy: Another server holds it.
            StoreNewer: A newer Hostler has written it.
            StoreRefused: It cannot be used for another reason, which the message names.
            StoreFull: There is no room to create or upgrade it.
            StoreFailed: The disk does not answer as it should.
        """
        async with AsyncExitStack() as resources:
            threads = Threads()
            resources.callback(threads.stop)
            lock = await threads.on_writer(_lock, path)
            resources.callback(lock.release)
            writer = await threads.on_writer(Writer, path, layout)
            # The last connection to close moves the WAL into the file, so that a copy is whole.
            resources.push_async_callback(threads.on_writer, writer.close)
            reader = await threads.on_reader(Reader, path)
            resources.push_async_callback(threads.on_reader, reader.close)
            return cls(threads, writer, reader, resources.pop_all())

    async def load(self) -> Loaded:
        """Return the present state; see `Store.load`."""
        return await self._write(self._writer.load)

    async def claim(self) -> int:
        """Take the leadership; see `Store.claim`."""
        return await self._write(self._writer.claim)

    async def commit(self, commit: Commit) -> None:
        """Make a commit durable; see `Store.commit`."""
        await self._write(self._writer.commit, commit)

    async def events(self, after_seq: int, limit: int) -> list[StoredEvent]:
        """Return a page of events; see `Store.events`."""
        return await self._read(self._reader.events, after_seq, limit)

    async def journal(self, from_revision: int, limit: int) -> list[JournalRow]:
        """Return a page of the journal; see `Store.journal`."""
        return await self._read(self._reader.journal, from_revision, limit)

    async def life(self, subject: str, before_seq: int | None, limit: int) -> list[LifeRow]:
        """Return a page of a life; see `Store.life`."""
        return await self._read(self._reader.life, subject, before_seq, limit)

    async def prune(self, keep: Keep) -> None:
        """Forget old history, letting commits through between two helpings."""
        has_more = True
        while has_more:
            has_more = await self._write(self._writer.prune, keep)

    async def check(self) -> None:
        """Return if the store can be read and nothing is in doubt; see `Store.check`."""
        await self._read(self._reader.check)
        if self._writer.is_doubtful:
            raise StoreFailed("a commit is in doubt: the store must be loaded again")

    async def close(self) -> None:
        """Finish what is under way and let go of the file. May be called again."""
        if self._closing is None:
            self._closing = asyncio.ensure_future(self._resources.aclose())
        await asyncio.shield(self._closing)

    async def _write(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        if self._closing is not None:
            raise StoreClosed
        return await self._threads.on_writer(work, *args, **kwargs)

    async def _read(self, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        if self._closing is not None:
            raise StoreClosed
        return await self._threads.on_reader(work, *args, **kwargs)


def _lock(path: Path) -> FileLock:
    """Make the file if there is none, readable by its owner alone, and take its lock."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = FileLock(path)
    except OSError as error:
        raise told(error, path) from error
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    except OSError as error:
        lock.release()
        raise told(error, path) from error
    return lock
