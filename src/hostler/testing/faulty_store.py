"""A store whose disk fails on cue, around any real one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from enum import Enum, auto
from typing import assert_never

from hostler.ports.store import (
    Commit,
    CommitDoubtful,
    CommitFailed,
    JournalRow,
    Keep,
    LifeRow,
    Loaded,
    Store,
    StoredEvent,
    StoreFailed,
    StoreFull,
)


class CommitFault(Enum):
    """How one commit goes wrong."""

    FAILED = auto()
    """It does not happen, and the store knows."""
    FULL = auto()
    """It does not happen for want of room."""
    DOUBTFUL_DONE = auto()
    """It happens, and the store does not know."""
    DOUBTFUL_LOST = auto()
    """It does not happen, and the store does not know."""


FaultOf = Callable[[Commit], CommitFault | None]
PauseOf = Callable[[Commit], Awaitable[None]]


class FaultyStore:
    """A `Store` that asks `fault_of` about every commit, and lets everything else through.

    After a doubtful commit it refuses others until `load`, as every real store does. A slow disk is
    a `pause_of` that waits, on whatever clock the test has, before the commit begins.
    """

    def __init__(self, store: Store, fault_of: FaultOf, pause_of: PauseOf | None = None) -> None:
        self._store = store
        self._fault_of = fault_of
        self._pause_of = pause_of
        self._is_doubtful = False

    async def load(self) -> Loaded:
        """Return the present state, which ends any doubt."""
        loaded = await self._store.load()
        self._is_doubtful = False
        return loaded

    async def claim(self) -> int:
        """Take the leadership."""
        return await self._store.claim()

    async def commit(self, commit: Commit) -> None:
        """Make a commit, or fail as `fault_of` says; see `Store.commit`."""
        if self._pause_of is not None:
            await self._pause_of(commit)
        if self._is_doubtful:
            raise CommitFailed(
                "store_doubtful", "an earlier commit is still in doubt: load the store first"
            )
        match fault := self._fault_of(commit):
            case None:
                await self._store.commit(commit)
            case CommitFault.FAILED:
                raise CommitFailed(revision=commit.revision)
            case CommitFault.FULL:
                raise StoreFull(revision=commit.revision)
            case CommitFault.DOUBTFUL_DONE:
                await self._store.commit(commit)
                self._is_doubtful = True
                raise CommitDoubtful(revision=commit.revision)
            case CommitFault.DOUBTFUL_LOST:
                self._is_doubtful = True
                raise CommitDoubtful(revision=commit.revision)
            case _:
                assert_never(fault)

    async def events(self, after_seq: int, limit: int) -> list[StoredEvent]:
        """Return a page of events."""
        return await self._store.events(after_seq, limit)

    async def journal(self, from_revision: int, limit: int) -> list[JournalRow]:
        """Return a page of the journal."""
        return await self._store.journal(from_revision, limit)

    async def life(self, subject: str, before_seq: int | None, limit: int) -> list[LifeRow]:
        """Return a page of a life."""
        return await self._store.life(subject, before_seq, limit)

    async def prune(self, keep: Keep) -> None:
        """Forget old history."""
        await self._store.prune(keep)

    async def check(self) -> None:
        """Return if nothing is in doubt and the store below is well."""
        await self._store.check()
        if self._is_doubtful:
            raise StoreFailed("a commit is in doubt: the store must be loaded again")

    async def close(self) -> None:
        """Close the store below."""
        await self._store.close()


def at_revisions(faults: Mapping[int, CommitFault]) -> FaultOf:
    """Return a `fault_of` for given revisions, each once: the second try of one succeeds."""
    left = dict(faults)
    return lambda commit: left.pop(commit.revision, None)
