"""Commits that a store must refuse, and must leave nothing of."""

from __future__ import annotations

import pytest

from hostler.base.errors import Defect
from hostler.ports.store import (
    Change,
    Commit,
    CommitFailed,
    JournalRow,
    LeadershipLost,
    StoredEvent,
)
from hostler.testing.store_conformance.lab import StoreLab, Suite, commit_next


class RefusalConformance(Suite):
    """Commits that are refused, and leave nothing behind."""

    @pytest.mark.parametrize("revision", [0, 1, 3])
    async def test_only_the_next_revision_is_taken(self, lab: StoreLab, revision: int) -> None:
        store = await lab.open()
        await commit_next(store, [Change("node", "n-1", b"one")], event_count=1)
        before = await store.load()
        with pytest.raises(CommitFailed) as refused:
            await store.commit(
                Commit(
                    revision,
                    9_000,
                    0,
                    [Change("node", "n-1", None)],
                    [StoredEvent(2, 9_000, b"no")],
                    JournalRow(revision, 9_000, b"no"),
                )
            )
        assert refused.value.effect == "none"
        assert await store.load() == before
        assert len(await store.events(0, 10)) == 1
        assert await store.journal(0, 10) == []
        await store.close()

    async def test_a_store_goes_on_after_a_refusal(self, lab: StoreLab) -> None:
        store = await lab.open()
        with pytest.raises(CommitFailed):
            await store.commit(Commit(2, 0, 0))
        await commit_next(store, [Change("node", "n-1", b"one")])
        assert (await store.load()).revision == 1
        await store.close()

    async def test_claims_rise_and_are_kept(self, lab: StoreLab) -> None:
        store = await lab.open()
        assert [await store.claim(), await store.claim()] == [1, 2]
        await store.close()
        again = await lab.open()
        assert await again.claim() == 3
        loaded = await again.load()
        assert (loaded.leader_epoch, loaded.revision) == (3, 0)
        await again.close()

    async def test_a_writer_that_was_replaced_is_refused(self, lab: StoreLab) -> None:
        store = await lab.open()
        old_epoch = await store.claim()
        await store.commit(Commit(1, 0, old_epoch))
        new_epoch = await store.claim()
        with pytest.raises(LeadershipLost):
            await store.commit(Commit(2, 0, old_epoch, [Change("node", "n-1", b"late")]))
        assert (await store.load()).records == {}
        await store.commit(Commit(2, 0, new_epoch))
        await store.close()

    async def test_a_replaced_writer_learns_that_first(self, lab: StoreLab) -> None:
        store = await lab.open()
        await store.claim()
        await commit_next(store)
        with pytest.raises(LeadershipLost):
            await store.commit(Commit(1, 0, leader_epoch=0))
        await store.close()

    async def test_an_epoch_that_nobody_claimed_is_refused(self, lab: StoreLab) -> None:
        store = await lab.open()
        with pytest.raises(CommitFailed):
            await store.commit(Commit(1, 0, leader_epoch=1))
        await store.close()

    async def test_an_event_position_is_used_once(self, lab: StoreLab) -> None:
        store = await lab.open()
        await commit_next(store, event_count=2)
        with pytest.raises(CommitFailed):
            await store.commit(Commit(2, 0, 0, events=[StoredEvent(2, 0, b"again")]))
        await store.close()

    async def test_a_commit_built_wrongly_is_a_defect(self, lab: StoreLab) -> None:
        store = await lab.open()
        twice = [StoredEvent(2, 0, b"b"), StoredEvent(1, 0, b"a")]
        with pytest.raises(Defect):
            await store.commit(Commit(1, 0, 0, events=twice))
        with pytest.raises(Defect):
            await store.commit(Commit(1, 0, 0, journal=JournalRow(2, 0, b"")))
        assert (await store.load()).revision == 0
        await store.close()
