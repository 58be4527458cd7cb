"""What SQLite and the operating system say, in the words of the store port.

By code, never by text: SQLite's primary result code is the low byte of its extended one
(https://www.sqlite.org/rescode.html, checked 2026-11-30).
"""

from __future__ import annotations

import errno
import sqlite3
from pathlib import Path

from sqlalchemy.exc import DBAPIError

from hostler.base.errors import HostlerError
from hostler.ports.store import (
    CommitFailed,
    StoreBusy,
    StoreCorrupt,
    StoreFailed,
    StoreFull,
    StoreRefused,
)


def told(error: DBAPIError | sqlite3.Error | OSError, path: Path) -> HostlerError:
    """Return our error for one of SQLite's or of the operating system's."""
    if isinstance(error, OSError):
        return _told_by_system(error, path)
    cause = error.orig if isinstance(error, DBAPIError) else error
    code: int = getattr(cause, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
    match code & 0xFF:
        case sqlite3.SQLITE_FULL:
            return StoreFull(path=str(path))
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
            return StoreCorrupt(
                "store_corrupt",
                "the store's file is damaged or is no database: restore the newest backup that "
                "lies beside it",
                path=str(path),
            )
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_PERM:
            return _not_permitted(path)
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return StoreBusy(
                "store_locked",
                "another program is writing to the store's file: close it",
                path=str(path),
            )
        case _:
            return StoreFailed(
                "the store's disk does not answer as it should",
                path=str(path),
                sqlite_error=getattr(cause, "sqlite_errorname", type(cause).__name__),
            )


def commit_failed(error: DBAPIError | sqlite3.Error, path: Path) -> CommitFailed:
    """Return the `CommitFailed` for a commit that `error` surely prevented."""
    told_error = told(error, path)
    if isinstance(told_error, CommitFailed):
        return told_error
    return CommitFailed(told_error.code, told_error.message, **told_error.fields)


def _told_by_system(error: OSError, path: Path) -> HostlerError:
    match error.errno:
        case errno.ENOSPC | errno.EDQUOT:
            return StoreFull(path=str(path))
        case errno.EACCES | errno.EPERM | errno.EROFS:
            return _not_permitted(path)
        case errno.EISDIR | errno.ENOTDIR | errno.EEXIST | errno.ENAMETOOLONG:
            return StoreRefused(
                "store_path_invalid", "the store's path cannot be a file", path=str(path)
            )
        case _:
            return StoreFailed(
                "the store's file cannot be opened",
                path=str(path),
                system_error=error.strerror or str(error.errno),
            )


def _not_permitted(path: Path) -> StoreRefused:
    return StoreRefused(
        "store_not_permitted",
        "this user may not read and write the store's file and its folder",
        path=str(path),
    )
