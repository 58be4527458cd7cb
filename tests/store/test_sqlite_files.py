"""What can be wrong with a file or its place: one clear message each."""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from hostler.base.errors import HostlerError
from hostler.ports.store import (
    Change,
    Commit,
    CommitFailed,
    StoreBusy,
    StoreCorrupt,
    StoreFailed,
    StoreRefused,
)
from hostler.store.memory import MemoryStore
from hostler.store.open import open_store
from hostler.store.sqlite import connection as sqlite_connection
from hostler.store.sqlite.store import SqliteStore

NOBODY = 65_534


@contextmanager
def as_nobody() -> Iterator[None]:
    """Drop root's privilege to open everything; whoever is not root has none to drop."""
    user = os.geteuid()
    if user == 0:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(user)


async def test_a_second_server_is_told_who_holds_the_file(tmp_path: Path) -> None:
    path = tmp_path / "hostler.db"
    first = await SqliteStore.open(path)
    with pytest.raises(StoreBusy, match="another server holds the store") as refused:
        await SqliteStore.open(path)
    assert refused.value.fields["pid"] == str(os.getpid())
    await first.close()
    second = await SqliteStore.open(path)
    await second.close()


async def test_the_files_are_for_their_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "state" / "hostler.db"
    store = await SqliteStore.open(path)
    await store.commit(Commit(1, 0, 0))
    modes = {file.name: file.stat().st_mode & 0o777 for file in path.parent.iterdir()}
    assert modes == {
        "hostler.db": 0o600,
        "hostler.db-wal": 0o600,
        "hostler.db-shm": 0o600,
        "hostler.db.lock": 0o600,
    }
    assert path.parent.stat().st_mode & 0o777 == 0o700
    await store.close()


async def test_a_file_open_to_others_is_closed_to_them(tmp_path: Path) -> None:
    path = tmp_path / "hostler.db"
    await (await SqliteStore.open(path)).close()
    path.chmod(0o644)
    await (await SqliteStore.open(path)).close()
    assert path.stat().st_mode & 0o777 == 0o600


async def test_a_closed_store_is_one_file_that_can_be_copied(tmp_path: Path) -> None:
    path = tmp_path / "hostler.db"
    store = await SqliteStore.open(path)
    await store.commit(Commit(1, 0, 0, [Change("node", "n-1", b"one")]))
    await store.close()
    assert {file.name for file in tmp_path.iterdir()} == {"hostler.db", "hostler.db.lock"}


async def test_a_file_that_may_not_be_written_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "hostler.db"
    await (await SqliteStore.open(path)).close()
    for folder in (tmp_path, *list(tmp_path.parents)[:2]):
        folder.chmod(0o755)
    path.chmod(0o400)
    with as_nobody(), pytest.raises(StoreRefused, match="may not read and write"):
        await SqliteStore.open(path)


async def test_a_folder_is_no_store(tmp_path: Path) -> None:
    with pytest.raises(StoreRefused, match="cannot be a file"):
        await SqliteStore.open(tmp_path)


async def test_a_file_is_no_folder_for_a_store(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreRefused, match="cannot be a file"):
        await SqliteStore.open(tmp_path / "file" / "hostler.db")


async def test_a_file_that_is_no_database_is_refused_and_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "hostler.db"
    path.write_text("These are not the rows you are looking for.\n" * 100)
    before = path.read_bytes()
    with pytest.raises(StoreCorrupt, match="is damaged or is no database"):
        await SqliteStore.open(path)
    assert path.read_bytes() == before


async def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "hostler.db"
    store = await SqliteStore.open(path)
    changes = [Change("node", f"n-{number}", b"x" * 500) for number in range(200)]
    await store.commit(Commit(1, 0, 0, changes))
    await store.close()
    # Everything behind the first pages, which say what the file is.
    with path.open("r+b") as file:
        file.seek(32_768)
        file.write(b"\xa5" * (path.stat().st_size - 32_768))
    store = await SqliteStore.open(path)
    with pytest.raises(StoreCorrupt, match="restore the newest backup"):
        await store.load()
    await store.close()


async def test_a_failed_opening_lets_go_of_everything(tmp_path: Path) -> None:
    path = tmp_path / "hostler.db"
    path.write_text("no database" * 1_000)
    for _ in range(2):
        with pytest.raises(StoreCorrupt):
            await SqliteStore.open(path)
    path.unlink()
    await (await SqliteStore.open(path)).close()


async def test_a_file_that_was_replaced_makes_the_store_unready(tmp_path: Path) -> None:
    path = tmp_path / "hostler.db"
    store = await SqliteStore.open(path)
    path.rename(tmp_path / "elsewhere.db")
    with pytest.raises(StoreFailed, match="moved or replaced"):
        await store.check()
    (tmp_path / "elsewhere.db").rename(path)
    await store.check()
    await store.close()


async def test_a_program_that_holds_the_file_delays_commits_and_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_connection, "BUSY_TIMEOUT_S", 0.01)
    path = tmp_path / "hostler.db"
    store = await SqliteStore.open(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as shell:
        shell.execute("BEGIN IMMEDIATE")
        with pytest.raises(CommitFailed, match="another program"):
            await store.commit(Commit(1, 0, 0))
        shell.execute("ROLLBACK")
    await store.commit(Commit(1, 0, 0))
    await store.close()


async def test_urls_choose_the_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert isinstance(await open_store("memory:"), MemoryStore)
    for url in ("sqlite:///a%20b.db", f"sqlite:///{tmp_path}/c.db"):
        await (await open_store(url)).close()
    assert (tmp_path / "a b.db").exists()
    assert (tmp_path / "c.db").exists()


@pytest.mark.parametrize("url", ["", "sqlite:", "sqlite:///", "/var/lib/x.db", "postgres://x"])
async def test_a_url_of_no_store_is_refused(url: str) -> None:
    with pytest.raises(StoreRefused, match="memory: or sqlite:///PATH") as refused:
        await open_store(url)
    assert isinstance(refused.value, HostlerError)
    assert refused.value.code == "store_url_invalid"
