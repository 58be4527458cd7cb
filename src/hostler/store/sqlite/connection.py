"""How a connection to the file is made: durable, in WAL mode, and with explicit transactions."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Final, Literal, cast

from sqlalchemy import Connection, create_engine, event
from sqlalchemy.pool import NullPool

BUSY_TIMEOUT_S: Final = 5.0
"""Somebody looking at the file with a shell may hold it for a moment; longer is a mistake."""

WAL_PAGES: Final = 1_000
"""SQLite's default: the commit that finds more pages than these (4 MB) in the WAL moves them into
the file, which bounds both the WAL and what a start has to read."""

WAL_BYTES_KEPT: Final = 16 << 20
"""One large commit may make the WAL longer; it is cut back to this afterwards."""

CACHE_KIB: Final = 16 << 10
"""Enough for the inner pages of a store of 110,000 records; the rest is in the system's cache."""


def connect(path: Path, begin: Literal["BEGIN", "BEGIN IMMEDIATE"]) -> Connection:
    """Connect to an existing file; every transaction starts with `begin`.

    The file's journal mode is left as it is (see `use_wal`), so that looking at a file which turns
    out to be somebody else's does not change it.

    Raises:
        sqlalchemy.exc.DBAPIError: SQLite cannot open it.
    """

    def open_file() -> sqlite3.Connection:
        # Without an isolation level the driver starts no transactions of its own.
        connection = sqlite3.connect(path, timeout=BUSY_TIMEOUT_S, isolation_level=None)
        try:
            for pragma in (
                "synchronous = FULL",
                f"wal_autocheckpoint = {WAL_PAGES}",
                f"journal_size_limit = {WAL_BYTES_KEPT}",
                f"cache_size = -{CACHE_KIB}",
                "temp_store = MEMORY",
            ):
                connection.execute(f"PRAGMA {pragma}")
        except BaseException:
            connection.close()
            raise
        return connection

    engine = create_engine("sqlite://", creator=open_file, poolclass=NullPool)

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        connection.exec_driver_sql(begin)

    return engine.connect()


def driver(connection: Connection) -> sqlite3.Connection:
    """Return the driver's connection below SQLAlchemy's."""
    return cast("sqlite3.Connection", connection.connection.driver_connection)


def use_wal(connection: Connection) -> None:
    """Put the file into WAL mode for good.

    Raises:
        sqlite3.Error: SQLite cannot.
    """
    driver(connection).execute("PRAGMA journal_mode = WAL")
