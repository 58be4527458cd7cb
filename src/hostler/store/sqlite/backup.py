"""Consistent copies of a database file, made before anything rewrites it."""

from __future__ import annotations

import os
import sqlite3
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

BACKUPS_KEPT: Final = 3
"""A failed upgrade is noticed within one; three leave room for somebody trying again twice."""


def back_up(connection: sqlite3.Connection, path: Path, label: str) -> Path:
    """Copy the open database to `PATH.LABEL.TIME.backup` and return that path.

    Only the newest `BACKUPS_KEPT` copies beside `path` stay.

    Raises:
        sqlite3.Error: The copy could not be written; nothing has been removed.
        OSError: As above.
    """
    instant = datetime.now(UTC).strftime("%Y%m%dT%H%M%S-%fZ")
    final = path.with_name(f"{path.name}.{label}.{instant}.backup")
    partial = final.with_suffix(".partial")
    fd = os.open(partial, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
    try:
        copy = sqlite3.connect(partial)
        try:
            connection.backup(copy)
        finally:
            copy.close()
        # Another descriptor of the same file writes out what SQLite has written.
        os.fsync(fd)
        partial.rename(final)
        _sync_folder(path.parent)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    finally:
        os.close(fd)
    for outdated in backups(path)[:-BACKUPS_KEPT]:
        outdated.unlink(missing_ok=True)
    return final


def backups(path: Path) -> list[Path]:
    """Return the backups beside `path`, oldest first."""
    found = [
        entry
        for entry in path.parent.iterdir()
        if entry.name.startswith(path.name + ".") and entry.suffix == ".backup"
    ]
    return sorted(found, key=lambda entry: entry.stem.rpartition(".")[2])


def _sync_folder(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
