"""Looks into a closed store's file, and into it only: no code of the store is used."""

import sqlite3
from contextlib import closing
from pathlib import Path


def run(path: Path, sql: str, *parameters: object) -> list[tuple[object, ...]]:
    """Run one statement on the file and return its rows."""
    with closing(sqlite3.connect(path)) as connection, connection:
        return connection.execute(sql, parameters).fetchall()


def everything(path: Path) -> list[tuple[object, ...]]:
    """Return all that a store's file holds, to be compared with what it holds later."""
    tables = [name for (name,) in run(path, "SELECT name FROM sqlite_master WHERE type = 'table'")]
    return [
        (table, *row)
        for table in sorted(str(name) for name in tables)
        for row in run(path, f"SELECT * FROM {table}")
    ]
