"""Events and the journal: pages, and forgetting."""

from __future__ import annotations

import pytest

from hostler.ports.store import (
    Change,
    Commit,
    CommitFailed,
    EventsGone,
    JournalRow,
    Keep,
    LifeRow,
    Store,
    StoredEvent,
)
from hostler.testing.store_conformance.lab import StoreLab, Suite, commit_next


async def _live(store: Store, subject: str, count: int) -> None:
    """Let a life have so many events, one a commit."""
    for _ in range(count):
        loaded = await store.load()
        seq, revision = loaded.event_seq + 1, loaded.revision + 1
        row = LifeRow(subject, seq, seq * 1_000, b"event %d" % seq)
        await store.commit(
            Commit(
                revision,
                revision * 1_000,
                loaded.leader_epoch,
                events=[StoredEvent(seq, row.at_ms, row.body)],
                lives=[row],
            )
        )


class HistoryConformance(Suite):
    """Events and the journal: pages, and forgetting."""

    async def test_events_are_read_in_pages(self, lab: StoreLab) -> None:
        store = await lab.open()
        for _ in range(3):
            await commit_next(store, event_count=3)
        pages = [await store.events(after, 4) for after in (0, 4, 8, 9, 50)]
        assert [[event.seq for event in page] for page in pages] == [
            [1, 2, 3, 4],
            [5, 6, 7, 8],
            [9],
            [],
            [],
        ]
        assert pages[1][0] == StoredEvent(5, 2_000, b"event 2")
        await store.close()

    async def test_the_journal_is_read_in_pages(self, lab: StoreLab) -> None:
        store = await lab.open()
        for number in range(1, 7):
            await commit_next(store, has_journal=number != 4)
        pages = [await store.journal(start, 2) for start in (0, 3, 6, 7)]
        assert [[row.revision for row in page] for page in pages] == [[1, 2], [3, 5], [6], []]
        assert pages[0][0] == JournalRow(1, 1_000, b"step 1")
        await store.close()

    async def test_pruning_keeps_the_newest(self, lab: StoreLab) -> None:
        store = await lab.open()
        for _ in range(10):
            await commit_next(store, [Change("node", "n-1", b"one")], event_count=2)
            await commit_next(store, has_journal=True)
        await store.prune(Keep(events=5, journal=4))
        assert [event.seq for event in await store.events(15, 100)] == [16, 17, 18, 19, 20]
        assert [row.revision for row in await store.journal(0, 100)] == [18, 20]
        assert (await store.load()).records == {"node": {"n-1": b"one"}}
        await store.close()

    async def test_events_that_are_gone_are_said_to_be(self, lab: StoreLab) -> None:
        store = await lab.open()
        await commit_next(store, event_count=10)
        await store.prune(Keep(events=4, journal=0))
        with pytest.raises(EventsGone) as gone:
            await store.events(5, 100)
        assert gone.value.oldest_seq == 7
        assert len(await store.events(gone.value.oldest_seq - 1, 100)) == 4
        await store.close()

    async def test_forgetting_all_events_forgets_no_position(self, lab: StoreLab) -> None:
        store = await lab.open()
        await commit_next(store, event_count=3)
        await store.prune(Keep(events=0, journal=0))
        await store.close()
        again = await lab.open()
        assert (await again.load()).event_seq == 3
        assert await again.events(3, 10) == []
        with pytest.raises(EventsGone) as gone:
            await again.events(2, 10)
        assert gone.value.oldest_seq == 4
        with pytest.raises(CommitFailed):
            await again.commit(Commit(2, 0, 0, events=[StoredEvent(3, 0, b"again")]))
        await again.close()

    async def test_pruning_less_than_before_brings_nothing_back(self, lab: StoreLab) -> None:
        store = await lab.open()
        await store.prune(Keep(events=10, journal=10))
        await commit_next(store, event_count=5, has_journal=True)
        await store.prune(Keep(events=1, journal=1))
        await store.prune(Keep(events=10, journal=10))
        assert [event.seq for event in await store.events(4, 10)] == [5]
        with pytest.raises(EventsGone):
            await store.events(0, 10)
        assert len(await store.journal(0, 10)) == 1
        await store.close()

    async def test_a_life_is_read_backwards_in_pages(self, lab: StoreLab) -> None:
        store = await lab.open()
        await _live(store, "node/n-1", 5)
        await _live(store, "node/n-2", 2)
        pages = [await store.life("node/n-1", before, 2) for before in (None, 4, 2, 1)]
        assert [[row.seq for row in page] for page in pages] == [[5, 4], [3, 2], [1], []]
        assert pages[0][0] == LifeRow("node/n-1", 5, 5_000, b"event 5")
        assert [row.seq for row in await store.life("node/n-2", None, 10)] == [7, 6]
        assert await store.life("node/n-3", None, 10) == []
        await store.close()

    async def test_a_life_stays_when_the_stream_of_events_has_moved_on(self, lab: StoreLab) -> None:
        store = await lab.open()
        await _live(store, "node/n-1", 3)
        await commit_next(store, event_count=20)
        await store.prune(Keep(events=5, journal=5, life=2, lives=100))
        assert [row.seq for row in await store.life("node/n-1", None, 10)] == [3, 2]
        await store.close()
        again = await lab.open()
        assert [row.seq for row in await again.life("node/n-1", None, 10)] == [3, 2]
        await again.close()

    async def test_the_oldest_of_all_lives_go_first(self, lab: StoreLab) -> None:
        store = await lab.open()
        await _live(store, "node/n-1", 3)
        await _live(store, "node/n-2", 3)
        await store.prune(Keep(events=5, journal=5, life=10, lives=4))
        assert [row.seq for row in await store.life("node/n-1", None, 10)] == [3]
        assert [row.seq for row in await store.life("node/n-2", None, 10)] == [6, 5, 4]
        await store.close()

    @pytest.mark.slow
    async def test_much_is_forgotten_too(self, lab: StoreLab) -> None:
        store = await lab.open()
        for _ in range(10):
            await commit_next(store, event_count=1_000)
        await store.prune(Keep(events=10, journal=10))
        assert len(await store.events(9_990, 100)) == 10
        await store.close()
