"""The journal runs again, backwards and forwards, and says where it comes out differently."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from hostler.base.encoding import encode
from hostler.base.errors import Rejected
from hostler.engine.journal import read_row
from hostler.engine.recover import fleet_of
from hostler.engine.replay import rebuild, replay
from hostler.ports.store import Commit, JournalRow, Keep, Store
from hostler.store.memory import MemoryDisk, MemoryStore
from hostler.store.open import open_store
from hostler.testing.virtual_time import VirtualClock, run_virtually
from tests.engine.lab import Story, World


async def tell(store: Store) -> None:
    world = World(VirtualClock())
    engine = world.engine(store)
    await engine.start()
    world.agents.attach(engine)
    await Story(lambda: engine).tell()
    await engine.stop()


@pytest.fixture
def disk() -> MemoryDisk:
    disk = MemoryDisk()
    run_virtually(tell(MemoryStore(disk)))
    return disk


async def test_everything_comes_out_the_same(disk: MemoryDisk) -> None:
    report = await replay(MemoryStore(disk))
    assert report.is_same
    assert (report.from_revision, report.to_revision) == (0, disk.load().revision)


async def test_any_revision_can_be_rebuilt(disk: MemoryDisk) -> None:
    """Backwards from the present is the same as forwards from nothing."""
    store = MemoryStore(disk)
    assert fleet_of(disk.load()).digest() == (await rebuild(store, disk.load().revision)).digest()
    empty = await rebuild(store, 0)
    assert all(not len(table) for table in empty.tables.values())
    for revision in range(0, disk.load().revision, 7):
        assert (await replay(store, revision)).is_same


async def test_a_pruned_journal_runs_from_where_it_begins(disk: MemoryDisk) -> None:
    store = MemoryStore(disk)
    last = disk.load().revision
    await store.prune(Keep(events=10, journal=5))
    report = await replay(store)
    assert (report.from_revision, report.to_revision, report.is_same) == (last - 5, last, True)
    with pytest.raises(Rejected, match="reach back"):
        await rebuild(store, last - 6)


async def test_a_decision_that_comes_out_differently_is_named() -> None:
    disk = MemoryDisk()

    class Forger(MemoryStore):
        """Remembers a step as if it had decided something else."""

        async def commit(self, commit: Commit) -> None:
            if commit.revision == 4 and commit.journal is not None:
                row = commit.journal
                step = msgspec.structs.replace(read_row(row), result_digest="forged")
                forged = JournalRow(row.revision, row.now_ms, encode(step))
                commit = msgspec.structs.replace(commit, journal=forged)
            await super().commit(commit)

    await asyncio.to_thread(run_virtually, tell(Forger(disk)))
    report = await replay(MemoryStore(disk))
    assert (report.diverged_at, report.is_same) == (4, False)


@pytest.mark.slow
async def test_a_file_runs_again_under_any_hash_seed(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'hostler.db'}"
    copy = await open_store(url)
    await copy.claim()
    commits: list[Commit] = []
    await asyncio.to_thread(run_virtually, tell(Copying(commits)))
    for commit in commits:
        await copy.commit(commit)
    await copy.close()
    for seed in ("1", "2"):
        done = await asyncio.to_thread(
            subprocess.run,
            [sys.executable, "-m", "hostler.engine.replay", url],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stdout.rpartition(": ")[2]) == (0, "the same\n"), done


class Copying(MemoryStore):
    """Hands every commit to somebody else, too."""

    def __init__(self, commits: list[Commit]) -> None:
        super().__init__()
        self._commits = commits

    async def commit(self, commit: Commit) -> None:
        await super().commit(commit)
        self._commits.append(commit)
