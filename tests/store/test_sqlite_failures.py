"""Disks that fill up and fail, for real: what the store then knows about a commit is true."""

import os
import resource
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from hostler.ports.store import (
    Change,
    Commit,
    CommitDoubtful,
    CommitFailed,
    Loaded,
    StoreFailed,
    StoreFull,
)
from hostler.store.codec import RecordFormat
from hostler.store.sqlite import writer as sqlite_writer
from hostler.store.sqlite.connection import driver
from hostler.store.sqlite.schema import Layout
from hostler.store.sqlite.store import SqliteStore
from tests.disks import a_disk_of
from tests.store import raw

LARGE = [Change("bundle", "b-1", os.urandom(4 << 20))]


@contextmanager
def files_no_longer_than(size_bytes: int) -> Iterator[None]:
    """Make every write beyond a size fail, which SQLite takes for a broken disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def wal_bytes(folder: Path) -> int:
    return (folder / "hostler.db-wal").stat().st_size


async def store_with_a_commit(folder: Path) -> tuple[SqliteStore, Loaded]:
    store = await SqliteStore.open(folder / "hostler.db")
    await store.commit(Commit(1, 0, 0, [Change("node", "n-1", b"one")]))
    return store, await store.load()


@pytest.fixture
def small_disk() -> Iterator[Path]:
    """A disk of 2 MiB where we may mount one; else a folder, and the test limits the file."""
    with a_disk_of("2m") as folder:
        yield folder


async def test_a_full_disk_fails_a_commit_and_harms_nothing(small_disk: Path) -> None:
    store, before = await store_with_a_commit(small_disk)
    if not small_disk.is_mount():
        await store._threads.on_writer(
            lambda: driver(store._writer._connected()).execute("PRAGMA max_page_count = 64")
        )
    with pytest.raises(StoreFull, match="disk of the store is full") as refused:
        await store.commit(Commit(2, 0, 0, LARGE))
    assert refused.value.effect == "none"
    assert await store.load() == before
    await store.check()
    await store.commit(Commit(2, 0, 0, [Change("node", "n-2", b"two")]))
    await store.close()
    again = await SqliteStore.open(small_disk / "hostler.db")
    assert (await again.load()).records == {"node": {"n-1": b"one", "n-2": b"two"}}
    await again.close()


async def test_a_full_disk_keeps_a_store_from_being_made(small_disk: Path) -> None:
    if not small_disk.is_mount():
        with files_no_longer_than(0), pytest.raises(StoreFailed):
            await SqliteStore.open(small_disk / "hostler.db")
        return
    with pytest.raises(OSError, match="No space left"):
        (small_disk / "filler").write_bytes(bytes(4 << 20))
    with pytest.raises(StoreFull, match="disk of the store is full"):
        await SqliteStore.open(small_disk / "hostler.db")


async def test_a_failed_write_that_another_write_disproves_is_a_failed_commit(
    tmp_path: Path,
) -> None:
    store, before = await store_with_a_commit(tmp_path)
    # Room for the small write that proves it, not for the large one.
    with files_no_longer_than(wal_bytes(tmp_path) + (1 << 20)):
        with pytest.raises(CommitFailed, match="does not answer as it should"):
            await store.commit(Commit(2, 0, 0, LARGE))
        await store.check()
    assert await store.load() == before
    await store.commit(Commit(2, 0, 0, LARGE))
    assert (await store.load()).revision == 2
    await store.close()


async def test_a_failed_write_without_proof_is_doubtful_until_the_next_load(
    tmp_path: Path,
) -> None:
    store, before = await store_with_a_commit(tmp_path)
    with files_no_longer_than(wal_bytes(tmp_path)):
        with pytest.raises(CommitDoubtful) as doubtful:
            await store.commit(Commit(2, 0, 0, LARGE))
        assert doubtful.value.effect == "unknown"
        with pytest.raises(StoreFailed, match="in doubt"):
            await store.check()
        with pytest.raises(StoreFailed):
            await store.load()
    with pytest.raises(CommitFailed, match="load the store first"):
        await store.commit(Commit(2, 0, 0))
    assert await store.load() == before
    await store.check()
    await store.commit(Commit(2, 0, 0))
    await store.close()


async def test_a_commit_that_happened_although_its_end_failed_has_happened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class LosesTheAnswer:
        """A connection whose first commit works and then says that it did not."""

        def __init__(self, real: sqlite3.Connection) -> None:
            self.execute = real.execute
            self.executemany = real.executemany
            self._real = real

        def commit(self) -> None:
            monkeypatch.undo()
            self._real.commit()
            raise sqlite3.OperationalError("disk I/O error")

    store, _ = await store_with_a_commit(tmp_path)
    monkeypatch.setattr(
        sqlite_writer, "driver", lambda connection: LosesTheAnswer(driver(connection))
    )
    await store.commit(Commit(2, 0, 0, [Change("node", "n-2", b"two")]))
    loaded = await store.load()
    assert (loaded.revision, loaded.records["node"]["n-2"]) == (2, b"two")
    await store.close()


async def test_a_backup_that_does_not_fit_keeps_the_file_from_being_upgraded(
    tmp_path: Path,
) -> None:
    store, _ = await store_with_a_commit(tmp_path)
    await store.commit(Commit(2, 0, 0, [Change("bundle", "b-1", os.urandom(1 << 20))]))
    await store.close()
    path = tmp_path / "hostler.db"
    before = raw.everything(path)
    with files_no_longer_than(128 << 10), pytest.raises(StoreFailed):
        await SqliteStore.open(path, Layout(record_format=RecordFormat(version=2)))
    assert {file.name for file in tmp_path.iterdir()} == {"hostler.db", "hostler.db.lock"}
    assert raw.everything(path) == before


async def test_the_wal_stays_bounded(tmp_path: Path) -> None:
    store, _ = await store_with_a_commit(tmp_path)
    await store.commit(Commit(2, 0, 0, [Change("bundle", "b-1", os.urandom(24 << 20))]))
    for revision in range(3, 40):
        await store.commit(Commit(revision, 0, 0, [Change("node", "n-1", os.urandom(256 << 10))]))
    assert wal_bytes(tmp_path) <= 16 << 20
    await store.close()


async def test_sc_189_cost(tmp_path: Path) -> None:
    """Given 5,000 rows, when one more is written, then the bytes written do not grow with the
    number of rows."""
    written: list[int] = []
    for count in (50, 5_000):
        folder = tmp_path / str(count)
        folder.mkdir()
        store, _ = await store_with_a_commit(folder)
        rows = [Change("node", f"n-{number:06}", os.urandom(200)) for number in range(count)]
        await store.commit(Commit(2, 0, 0, rows))
        await store.close()
        store = await SqliteStore.open(folder / "hostler.db")
        await store.load()
        await store.commit(Commit(3, 0, 0, [Change("node", "n-one-more", os.urandom(200))]))
        written.append(wal_bytes(folder))
        await store.close()
    assert written[1] <= 2 * written[0]
