"""Older files are backed up and brought up to date; newer and foreign ones are left alone."""

import shutil
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory

import hostler.store.sqlite.migrations
from hostler.ports.store import (
    Change,
    Commit,
    JournalRow,
    LifeRow,
    StoredEvent,
    StoreNewer,
    StoreRefused,
)
from hostler.store.codec import RecordFormat
from hostler.store.sqlite.backup import BACKUPS_KEPT, backups
from hostler.store.sqlite.connection import connect
from hostler.store.sqlite.schema import SCHEMA_VERSION, Layout
from hostler.store.sqlite.store import SqliteStore
from hostler.store.sqlite.tables import METADATA
from tests.store import raw

OURS, NEXT = f"{SCHEMA_VERSION:04d}", f"{SCHEMA_VERSION + 1:04d}"

ADDS_A_COLUMN = f"""
import sqlalchemy as sa
from alembic import op

revision = "{NEXT}"
down_revision = "{OURS}"


def upgrade():
    op.add_column("events", sa.Column("audience", sa.Text))
"""

STUMBLES = ADDS_A_COLUMN + "    raise RuntimeError('a migration that does not get through')\n"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "hostler.db"


async def make_store(path: Path, layout: Layout | None = None) -> None:
    """Leave a closed store with two records and a journal row."""
    store = await SqliteStore.open(path, layout or Layout())
    changes = [Change("node", "n-1", b'{"old":1}'), Change("whim", "w-1", b"{}")]
    await store.commit(Commit(1, 1_000, 0, changes, (), JournalRow(1, 1_000, b"step")))
    await store.close()


def next_layout(folder: Path, migration: str) -> Layout:
    """Return the layout of a Hostler that has one more migration."""
    shutil.copytree(Path(hostler.store.sqlite.migrations.__file__).parent, folder)
    (folder / "versions" / f"v{NEXT}_next.py").write_text(migration)
    return Layout(schema_version=SCHEMA_VERSION + 1, migrations=str(folder), written_by="0.2.0")


def test_the_schema_version_is_the_newest_migration() -> None:
    config = Config()
    config.set_main_option("script_location", Layout().migrations)
    assert ScriptDirectory.from_config(config).get_current_head() == f"{SCHEMA_VERSION:04d}"


async def test_the_migrations_make_the_tables_that_the_store_uses(path: Path) -> None:
    await make_store(path)
    connection = connect(path, "BEGIN")
    with connection.begin():
        differences = compare_metadata(MigrationContext.configure(connection), METADATA)
    engine = connection.engine
    connection.close()
    engine.dispose()
    assert differences == []


async def test_an_older_schema_is_backed_up_and_migrated(path: Path, tmp_path: Path) -> None:
    await make_store(path)
    before = raw.everything(path)
    store = await SqliteStore.open(path, next_layout(tmp_path / "next", ADDS_A_COLUMN))
    assert (await store.load()).records["node"] == {"n-1": b'{"old":1}'}
    await store.close()
    assert raw.run(path, "SELECT version_num FROM alembic_version") == [(NEXT,)]
    assert raw.run(path, "SELECT audience FROM events") == []
    [backup] = backups(path)
    assert backup.name.startswith(f"hostler.db.schema-{OURS}-format-1.20")
    assert backup.stat().st_mode & 0o777 == 0o600
    assert raw.everything(backup) == before


async def test_a_store_of_the_first_schema_gets_lives(path: Path, tmp_path: Path) -> None:
    folder = tmp_path / "first"
    shutil.copytree(Path(hostler.store.sqlite.migrations.__file__).parent, folder)
    for newer in folder.glob("versions/v*.py"):
        if newer.name > "v0002":
            newer.unlink()
    first = await SqliteStore.open(path, Layout(schema_version=1, migrations=str(folder)))
    await first.commit(Commit(1, 1_000, 0, [Change("node", "n-1", b"{}")]))
    await first.close()
    store = await SqliteStore.open(path)
    row = LifeRow("node/n-1", 1, 2_000, b"{}")
    events = [StoredEvent(1, 2_000, b"{}")]
    await store.commit(Commit(2, 2_000, 0, events=events, lives=[row]))
    assert await store.life("node/n-1", None, 10) == [row]
    await store.close()
    assert len(backups(path)) == 1


async def test_a_file_up_to_date_is_not_backed_up(path: Path) -> None:
    await make_store(path)
    store = await SqliteStore.open(path)
    await store.close()
    assert backups(path) == []


async def test_a_migration_that_fails_leaves_the_file_as_it_was(path: Path, tmp_path: Path) -> None:
    await make_store(path)
    before = raw.everything(path)
    with pytest.raises(RuntimeError):
        await SqliteStore.open(path, next_layout(tmp_path / "next", STUMBLES))
    assert raw.everything(path) == before
    store = await SqliteStore.open(path)
    assert (await store.load()).revision == 1
    await store.close()


async def test_bodies_of_an_older_format_are_rewritten_once(path: Path) -> None:
    await make_store(path)
    newer = RecordFormat(
        version=3,
        upcasts={
            1: {"node": lambda body: {"new": body["old"]}, "whim": lambda _: None},
            2: {"node": lambda body: {"newest": body["new"]}},
        },
    )
    for _ in range(2):
        store = await SqliteStore.open(path, Layout(record_format=newer))
        assert (await store.load()).records == {"node": {"n-1": b'{"newest":1}'}}
        # The steps before spoke of records as they were.
        assert await store.journal(0, 10) == []
        await store.close()
    [backup] = backups(path)
    assert raw.run(backup, "SELECT body FROM records WHERE kind = 'node'") == [(b'{"old":1}',)]


async def test_only_the_newest_backups_are_kept(path: Path) -> None:
    await make_store(path)
    unrelated = path.with_name("hostler.db.mine.backup.txt")
    unrelated.touch()
    for version in range(2, 4 + BACKUPS_KEPT):
        layout = Layout(record_format=RecordFormat(version=version))
        await (await SqliteStore.open(path, layout)).close()
    kept = [backup.name.split(".")[2] for backup in backups(path)]
    assert kept == [f"schema-{OURS}-format-{number}" for number in range(3, 3 + BACKUPS_KEPT)]
    assert unrelated.exists()


@pytest.mark.parametrize(
    "layout",
    [
        Layout(schema_version=0, written_by="0.0.9"),
        Layout(record_format=RecordFormat(version=0), written_by="0.0.9"),
    ],
    ids=["schema", "records"],
)
async def test_a_newer_file_is_refused_and_not_touched(path: Path, layout: Layout) -> None:
    await make_store(path)
    before = path.read_bytes()
    with pytest.raises(StoreNewer) as refused:
        await SqliteStore.open(path, layout)
    said = str(refused.value)
    assert "written by Hostler 0.1.0, which is newer than this one (0.0.9)" in said
    assert "start that Hostler again" in said
    assert path.read_bytes() == before


async def test_a_schema_of_the_far_future_is_refused_too(path: Path) -> None:
    await make_store(path)
    raw.run(path, "UPDATE alembic_version SET version_num = '0099'")
    raw.run(path, "ALTER TABLE meta DROP COLUMN written_by")
    with pytest.raises(StoreNewer) as refused:
        await SqliteStore.open(path)
    assert refused.value.fields["file_schema"] == 99
    assert refused.value.fields["our_schema"] == SCHEMA_VERSION


async def test_a_refusal_names_the_backup_to_go_back_to(path: Path, tmp_path: Path) -> None:
    await make_store(path)
    store = await SqliteStore.open(path, next_layout(tmp_path / "next", ADDS_A_COLUMN))
    await store.close()
    with pytest.raises(StoreNewer, match="put the backup in the file's place") as refused:
        await SqliteStore.open(path)
    assert refused.value.fields["backup"] == str(backups(path)[0])


async def test_somebody_elses_database_is_refused_and_not_touched(path: Path) -> None:
    raw.run(path, "CREATE TABLE songs (title TEXT)")
    path.chmod(0o644)
    before = path.read_bytes()
    with pytest.raises(StoreRefused, match="database of something else"):
        await SqliteStore.open(path)
    assert path.read_bytes() == before
    assert path.stat().st_mode & 0o777 == 0o644
