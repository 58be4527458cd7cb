"""The store that fails on cue does what the port says of each failure."""

import pytest

from hostler.ports.store import Change, Commit, CommitDoubtful, CommitFailed, StoreFailed, StoreFull
from hostler.store.memory import MemoryStore
from hostler.testing.faulty_store import CommitFault, FaultyStore, at_revisions

COMMIT = Commit(1, 0, 0, [Change("node", "n-1", b"one")])


@pytest.mark.parametrize(
    ("fault", "error"), [(CommitFault.FAILED, CommitFailed), (CommitFault.FULL, StoreFull)]
)
async def test_a_commit_that_fails_can_be_made_again(
    fault: CommitFault, error: type[CommitFailed]
) -> None:
    store = FaultyStore(MemoryStore(), at_revisions({1: fault}))
    with pytest.raises(error):
        await store.commit(COMMIT)
    assert (await store.load()).revision == 0
    await store.commit(COMMIT)
    assert (await store.load()).revision == 1


@pytest.mark.parametrize(
    ("fault", "revision"), [(CommitFault.DOUBTFUL_DONE, 1), (CommitFault.DOUBTFUL_LOST, 0)]
)
async def test_a_doubt_lasts_until_the_store_is_loaded(fault: CommitFault, revision: int) -> None:
    store = FaultyStore(MemoryStore(), at_revisions({1: fault}))
    with pytest.raises(CommitDoubtful):
        await store.commit(COMMIT)
    with pytest.raises(StoreFailed):
        await store.check()
    with pytest.raises(CommitFailed, match="load the store first"):
        await store.commit(COMMIT)
    loaded = await store.load()
    assert loaded.revision == revision
    await store.commit(Commit(loaded.revision + 1, 0, 0))


async def test_a_slow_disk_waits_on_the_clock_of_the_test() -> None:
    waits: list[int] = []

    async def wait(commit: Commit) -> None:
        waits.append(commit.revision)

    store = FaultyStore(MemoryStore(), at_revisions({}), wait)
    await store.commit(COMMIT)
    assert waits == [1]
