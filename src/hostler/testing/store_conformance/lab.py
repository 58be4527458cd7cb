"""What a store under test must offer to the suite, and what the parts of the suite share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import pytest

from hostler.ports.store import (
    Change,
    Commit,
    JournalRow,
    Store,
    StoredEvent,
)


class StoreLab(Protocol):
    """One place where a store can be, which outlives whoever opens it."""

    async def open(self) -> Store:
        """Open the store that is there, or a new one. Nobody else has it open."""
        ...

    async def kill_while_committing(self, *, acknowledged_count: int) -> int:
        """Let a writer die in the middle of its commits, and return the last acknowledged one.

        See `hostler.testing.doomed_writer`, which does it for whatever is opened by url.
        """
        ...


NewLab = Callable[[], StoreLab]


async def commit_next(
    store: Store,
    changes: Sequence[Change] = (),
    *,
    event_count: int = 0,
    has_journal: bool = False,
) -> Commit:
    """Make the commit that comes next, whoever made the last one, and return it."""
    loaded = await store.load()
    revision = loaded.revision + 1
    commit = Commit(
        revision=revision,
        now_ms=revision * 1_000,
        leader_epoch=loaded.leader_epoch,
        changes=changes,
        events=[
            StoredEvent(loaded.event_seq + number, revision * 1_000, b"event %d" % number)
            for number in range(1, event_count + 1)
        ],
        journal=JournalRow(revision, revision * 1_000, b"step %d" % revision)
        if has_journal
        else None,
    )
    await store.commit(commit)
    return commit


@pytest.mark.anyio
class Suite:
    """What the parts of the suite share."""

    @pytest.fixture
    def anyio_backend(self) -> str:
        """Run the suite on asyncio, as the engine is."""
        return "asyncio"

    @pytest.fixture
    def lab(self, new_lab: NewLab) -> StoreLab:
        """Give a test one place of its own."""
        return new_lab()
