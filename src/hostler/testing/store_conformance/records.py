"""Records: what is committed is what is loaded, and a store is a dictionary that survives."""

from __future__ import annotations

import asyncio
from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hostler.ports.store import (
    Change,
    Commit,
    CommitFailed,
    Loaded,
)
from hostler.testing.store_conformance.lab import NewLab, StoreLab, Suite, commit_next

STORES_TRIED: Final = 25
"""Examples of the property test: each makes a store of its own, which takes a database 0.1 s."""

_KINDS = st.sampled_from(["node", "lease", "Ω"])
_KEYS = st.text(max_size=4)
_CHANGES = st.builds(Change, _KINDS, _KEYS, st.none() | st.binary(max_size=64))
_STEPS = st.lists(
    st.lists(_CHANGES, max_size=8) | st.sampled_from(["reopen", "refuse"]), max_size=12
)


class RecordConformance(Suite):
    """Records: what is committed is what is loaded."""

    async def test_a_new_store_is_empty(self, lab: StoreLab) -> None:
        store = await lab.open()
        assert await store.load() == Loaded(0, 0, 0, 0, {})
        assert await store.events(0, 10) == []
        assert await store.journal(0, 10) == []
        await store.check()
        await store.close()

    async def test_what_is_committed_is_loaded(self, lab: StoreLab) -> None:
        store = await lab.open()
        await store.commit(
            Commit(1, 5_000, 0, [Change("node", "n-1", b"one"), Change("pool", "gpu", b"")])
        )
        assert await store.load() == Loaded(
            1, 5_000, 0, 0, {"node": {"n-1": b"one"}, "pool": {"gpu": b""}}
        )
        await store.close()

    async def test_a_record_is_replaced_and_removed(self, lab: StoreLab) -> None:
        store = await lab.open()
        await commit_next(store, [Change("node", "n-1", b"old"), Change("node", "n-2", b"x")])
        await commit_next(store, [Change("node", "n-1", b"new"), Change("node", "n-2", None)])
        assert (await store.load()).records == {"node": {"n-1": b"new"}}
        await store.close()

    async def test_removing_what_is_not_there_is_no_error(self, lab: StoreLab) -> None:
        store = await lab.open()
        await commit_next(store, [Change("node", "n-1", None)])
        assert (await store.load()).records == {}
        await store.close()

    async def test_the_last_change_of_a_record_in_a_commit_wins(self, lab: StoreLab) -> None:
        store = await lab.open()
        put, removed = Change("node", "n-1", b"put"), Change("node", "n-1", None)
        await commit_next(store, [put, removed])
        assert (await store.load()).records == {}
        await commit_next(store, [put, removed, put, Change("node", "n-1", b"last")])
        assert (await store.load()).records == {"node": {"n-1": b"last"}}
        await store.close()

    async def test_records_are_loaded_in_the_order_of_kind_and_key(self, lab: StoreLab) -> None:
        store = await lab.open()
        # UTF-16 would put the second before the first, a language's own order the last first.
        keys = ["\uffee", "\U0001f40e", "Z", "a", "", "a\x00b", "ä", "a b"]
        await commit_next(store, [Change(kind, key, b"x") for kind in "ba" for key in keys])
        records = (await store.load()).records
        assert list(records) == ["a", "b"]
        assert list(records["a"]) == list(records["b"]) == sorted(keys)
        await store.close()

    async def test_large_bodies_come_back_whole(self, lab: StoreLab) -> None:
        store = await lab.open()
        body = bytes(range(256)) * 32_768
        await commit_next(store, [Change("bundle", "b-1", body)])
        assert (await store.load()).records == {"bundle": {"b-1": body}}
        await store.close()

    async def test_what_was_loaded_is_a_copy(self, lab: StoreLab) -> None:
        store = await lab.open()
        await commit_next(store, [Change("node", "n-1", b"one")])
        (await store.load()).records["node"].clear()
        assert (await store.load()).records == {"node": {"n-1": b"one"}}
        await store.close()

    async def test_a_store_opened_again_is_as_it_was(self, lab: StoreLab) -> None:
        store = await lab.open()
        await store.claim()
        commit = await commit_next(
            store, [Change("node", "n-1", b"one")], event_count=2, has_journal=True
        )
        before = await store.load()
        await store.close()
        again = await lab.open()
        assert await again.load() == before
        assert await again.events(0, 10) == list(commit.events)
        assert await again.journal(0, 10) == [commit.journal]
        await again.close()


class PropertyConformance(Suite):
    """A store is a dictionary that survives."""

    @pytest.mark.slow
    def test_a_store_is_a_dictionary_that_survives(self, new_lab: NewLab) -> None:
        # An inner function, because Hypothesis wants each of its tests to belong to one class.
        @given(steps=_STEPS)
        @settings(max_examples=STORES_TRIED, deadline=None)
        def a_store_does_what_a_dictionary_does(steps: list[list[Change] | str]) -> None:
            asyncio.run(_compare_with_dictionary(new_lab(), steps))

        a_store_does_what_a_dictionary_does()


async def _compare_with_dictionary(lab: StoreLab, steps: list[list[Change] | str]) -> None:
    model: dict[tuple[str, str], bytes] = {}
    revision = 0
    store = await lab.open()
    for step in steps:
        if step == "reopen":
            await store.close()
            store = await lab.open()
        elif step == "refuse":
            with pytest.raises(CommitFailed):
                await store.commit(Commit(revision, 0, 0, [Change("node", "", b"refused")]))
        elif isinstance(step, list):
            revision += 1
            await store.commit(Commit(revision, 0, 0, step))
            for change in step:
                model.pop((change.kind, change.key), None)
                if change.body is not None:
                    model[change.kind, change.key] = change.body
        loaded = await store.load()
        assert loaded.revision == revision
        assert [
            ((kind, key), body)
            for kind, bodies in loaded.records.items()
            for key, body in bodies.items()
        ] == sorted(model.items())
    await store.close()
