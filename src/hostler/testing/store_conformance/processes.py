"""Readers beside the writer, and how a store ends."""

from __future__ import annotations

import asyncio

import pytest

from hostler.ports.store import (
    Commit,
    JournalRow,
    Keep,
    StoreClosed,
    StoredEvent,
)
from hostler.testing.doomed_writer import check_whole
from hostler.testing.store_conformance.lab import StoreLab, Suite


class ProcessConformance(Suite):
    """Readers beside the writer, and how a store ends: by `close`, or by kill -9."""

    async def test_readers_see_whole_pages_while_commits_go_on(self, lab: StoreLab) -> None:
        store = await lab.open()

        async def write() -> None:
            for revision in range(1, 41):
                events = [StoredEvent(revision * 5 + number, revision, b"x") for number in range(5)]
                await store.commit(
                    Commit(revision, revision, 0, events=events, journal=_row(revision))
                )
                await asyncio.sleep(0)

        async def read() -> None:
            seen = 0
            while seen < 40:
                events = await store.events(0, 1_000)
                # A commit's events appear together, and in order.
                assert [event.seq for event in events] == list(range(5, 5 + len(events)))
                assert len(events) % 5 == 0
                rows = await store.journal(1, 1_000)
                assert len(rows) >= len(events) // 5 >= seen
                seen = len(events) // 5
                await asyncio.sleep(0)

        await asyncio.gather(write(), read(), read())
        await store.close()

    async def test_closing_twice_is_closing_once(self, lab: StoreLab) -> None:
        store = await lab.open()
        await asyncio.gather(store.close(), store.close())
        await store.close()
        again = await lab.open()
        await again.close()

    async def test_a_closed_store_says_so(self, lab: StoreLab) -> None:
        store = await lab.open()
        await store.close()
        for call in (
            store.load,
            store.claim,
            store.check,
            lambda: store.commit(Commit(1, 0, 0)),
            lambda: store.events(0, 1),
            lambda: store.journal(0, 1),
            lambda: store.prune(Keep(events=0, journal=0)),
        ):
            with pytest.raises(StoreClosed):
                await call()

    @pytest.mark.slow
    async def test_kill_9_loses_nothing_acknowledged_and_leaves_no_half(
        self, lab: StoreLab
    ) -> None:
        # Three lives on one disk, each killed at another moment and checked by the next.
        for acknowledged_count in (1, 8, 60):
            acknowledged = await lab.kill_while_committing(acknowledged_count=acknowledged_count)
            store = await lab.open()
            await check_whole(store, acknowledged)
            await store.close()


def _row(revision: int) -> JournalRow:
    return JournalRow(revision, revision, b"step")
