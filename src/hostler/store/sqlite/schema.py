"""Creates, upgrades and refuses files.

A file has a schema version (the number of its last Alembic migration) and a record format (see
`hostler.store.codec`). Older ones are backed up and brought up to date in one transaction; if
either is newer than ours, the file is refused before anything in it changes.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec
from sqlalchemy import Connection, delete, insert, select, text, update
from sqlalchemy.exc import DBAPIError

import hostler
from hostler.ports.store import StoreNewer, StoreRefused
from hostler.store.codec import RECORD_FORMAT, RecordFormat
from hostler.store.sqlite.backup import back_up, backups
from hostler.store.sqlite.connection import driver, use_wal
from hostler.store.sqlite.tables import JOURNAL, META, RECORDS

SCHEMA_VERSION: Final = 2
"""Number of the newest migration in `migrations/versions`; a test compares them."""


class Layout(msgspec.Struct, frozen=True):
    """What the running Hostler writes. Tests put other numbers in to be older or newer."""

    schema_version: int = SCHEMA_VERSION
    record_format: RecordFormat = RECORD_FORMAT
    migrations: str = "hostler.store.sqlite:migrations"
    """Where Alembic finds the migrations: `package:folder`, or a path."""
    written_by: str = hostler.__version__
    """The version of Hostler, for messages."""


class _Found(msgspec.Struct, frozen=True):
    """What a file says about itself."""

    schema_version: int
    record_format: int
    written_by: str


_EMPTY: Final = _Found(schema_version=0, record_format=0, written_by="nobody")


def prepare(connection: Connection, path: Path, layout: Layout) -> None:
    """Make the file at `path` one of `layout`.

    Raises:
        StoreRefused: It is not ours, or a newer Hostler wrote it.
        sqlalchemy.exc.DBAPIError: SQLite failed; the file is as it was.
        sqlite3.Error: As above.
        OSError: The backup could not be written; the file is as it was.
    """
    with connection.begin():
        found = _look(connection, path)
    _refuse_newer(found, path, layout)
    if path.stat().st_mode & 0o077:
        path.chmod(0o600)
    use_wal(connection)
    is_older = (
        found.schema_version < layout.schema_version
        or found.record_format < layout.record_format.version
    )
    if is_older and found is not _EMPTY:
        label = f"schema-{found.schema_version:04d}-format-{found.record_format}"
        back_up(driver(connection), path, label)
    if is_older or found.written_by != layout.written_by:
        with connection.begin():
            _upgrade(connection, found, layout)


def _look(connection: Connection, path: Path) -> _Found:
    tables = connection.execute(text("SELECT name FROM sqlite_master WHERE type = 'table'"))
    names = set(tables.scalars())
    if not names:
        return _EMPTY
    if not {"alembic_version", "meta"} <= names:
        raise StoreRefused(
            "store_foreign",
            "the file is a database of something else: give the store another path",
            path=str(path),
        )
    version = connection.execute(text("SELECT version_num FROM alembic_version")).scalar_one()
    record_format, written_by = 0, "unknown"
    # A schema of the future may have moved these; its number alone is enough to refuse it.
    with suppress(DBAPIError):
        row = connection.execute(select(META.c.record_format, META.c.written_by)).one()
        record_format, written_by = row.record_format, row.written_by
    return _Found(int(version), record_format, written_by)


def _refuse_newer(found: _Found, path: Path, layout: Layout) -> None:
    if (
        found.schema_version <= layout.schema_version
        and found.record_format <= layout.record_format.version
    ):
        return
    kept = backups(path)
    advice = "start that Hostler again, or stop and put the backup in the file's place"
    raise StoreNewer(
        "store_newer",
        f"the store was written by Hostler {found.written_by}, which is newer than this one "
        f"({layout.written_by}): {advice if kept else 'start that Hostler again'}",
        path=str(path),
        file_schema=found.schema_version,
        our_schema=layout.schema_version,
        file_format=found.record_format,
        our_format=layout.record_format.version,
        **({"backup": str(kept[-1])} if kept else {}),
    )


def _upgrade(connection: Connection, found: _Found, layout: Layout) -> None:
    if found.schema_version < layout.schema_version:
        _migrate(connection, layout)
    if found is _EMPTY:
        connection.execute(insert(META).values(_new_meta(layout)))
        return
    if found.record_format < layout.record_format.version:
        _rewrite_bodies(connection, found.record_format, layout.record_format)
    connection.execute(
        update(META).values(
            record_format=layout.record_format.version, written_by=layout.written_by
        )
    )


def _migrate(connection: Connection, layout: Layout) -> None:
    # Deferred, because most starts find their file up to date, and Alembic is slow to load.
    from alembic import command  # noqa: PLC0415  # see the comment above
    from alembic.config import Config  # noqa: PLC0415  # as above

    # Without a file and with its output thrown away, Alembic neither reads nor prints anything.
    with Path(os.devnull).open("w") as nowhere:
        config = Config(stdout=nowhere, attributes={"connection": connection})
        config.set_main_option("script_location", layout.migrations)
        config.set_main_option("path_separator", "os")
        command.upgrade(config, "head")


def _rewrite_bodies(connection: Connection, from_version: int, to: RecordFormat) -> None:
    for kind, key, body in connection.execute(
        select(RECORDS.c.kind, RECORDS.c.key, RECORDS.c.body)
    ).all():
        newer = to.upgrade(kind, key, body, from_version=from_version)
        if newer == body:
            continue
        here = (RECORDS.c.kind == kind, RECORDS.c.key == key)
        if newer is None:
            connection.execute(delete(RECORDS).where(*here))
        else:
            connection.execute(update(RECORDS).where(*here).values(body=newer))
    # Steps of the past spoke of records as they were; the backup still has them.
    connection.execute(delete(JOURNAL))


def _new_meta(layout: Layout) -> dict[str, object]:
    return {
        "id": 1,
        "revision": 0,
        "now_ms": 0,
        "event_seq": 0,
        "leader_epoch": 0,
        "events_floor": 0,
        "fence": 0,
        "record_format": layout.record_format.version,
        "written_by": layout.written_by,
    }
