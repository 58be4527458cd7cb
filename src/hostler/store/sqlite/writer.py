"""The one connection that writes, and what it can prove when a commit fails.

Everything here runs on the store's writer thread. Until `COMMIT` is sent, a failure means that the
commit surely did not happen. When `COMMIT` itself fails, its frames may lie in the WAL although no
reader sees them, and a later start could find them there. A write after it, through a fresh
connection, takes the place of those frames: once that is durable, what it reads is the truth.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from sqlalchemy import Column, Connection, delete, func, select, update
from sqlalchemy.exc import DBAPIError

from hostler.base.errors import HostlerError
from hostler.ports.store import (
    Change,
    Commit,
    CommitDoubtful,
    CommitFailed,
    Keep,
    LeadershipLost,
    Loaded,
    StoreFull,
)
from hostler.store.contract import Position, check_shape, refusal
from hostler.store.sqlite import tables
from hostler.store.sqlite.connection import connect, driver
from hostler.store.sqlite.failures import commit_failed, told
from hostler.store.sqlite.schema import Layout, prepare
from hostler.store.sqlite.tables import EVENTS, JOURNAL, LIVES, META

PRUNE_ROWS: Final = 2_000
"""How much one transaction forgets; about 10 ms, so that commits do not wait long behind it."""


PRUNE_LIVES: Final = 200
"""Lives that one transaction cuts back; each costs a look into an index."""

FAILURES: Final = (DBAPIError, sqlite3.Error)
"""What a failing SQLite raises, through SQLAlchemy and below it."""


class Writer:
    """Commits, one after another."""

    def __init__(self, path: Path, layout: Layout) -> None:
        """Open the file, creating or upgrading it.

        Raises:
            HostlerError: It cannot be used; the message says why.
        """
        self._path = path
        self._connection: Connection | None = None
        self._grown: set[str] = set()
        """Whose lives have grown since they were last cut back."""
        self.is_doubtful = False
        """Whether a commit may or may not have happened; `load` settles it."""
        try:
            prepare(self._connected(), path, layout)
        except (*FAILURES, OSError) as error:
            self.close()
            raise told(error, path) from error
        except BaseException:
            self.close()
            raise

    def load(self) -> Loaded:
        """Return the present state; see `Store.load`."""
        if self.is_doubtful:
            self._fence()
            self.is_doubtful = False
        records: dict[str, dict[str, bytes]] = {}
        with self._transaction() as connection:
            position = _position(driver(connection))
            rows = driver(connection).execute(tables.RECORDS_ALL).fetchall()
        # Sorting here is several times faster than letting SQLite follow its index row by row.
        for kind, key, body in sorted(rows):
            records.setdefault(kind, {})[key] = body
        return Loaded(
            position.revision, position.now_ms, position.event_seq, position.leader_epoch, records
        )

    def claim(self) -> int:
        """Raise the leader epoch; see `Store.claim`."""
        with self._transaction() as connection:
            connection.execute(update(META).values(leader_epoch=META.c.leader_epoch + 1))
            return _position(driver(connection)).leader_epoch

    def commit(self, commit: Commit) -> None:
        """Make a commit durable; see `Store.commit`."""
        check_shape(commit)
        if self.is_doubtful:
            raise CommitFailed(
                "store_doubtful", "an earlier commit is still in doubt: load the store first"
            )
        try:
            # Straight to the driver: SQLAlchemy's own work for these few statements would take half
            # as long again as SQLite's, disk included (measured).
            connection = driver(self._connected())
            connection.execute("BEGIN IMMEDIATE")
            refused = _write(connection, commit)
        except FAILURES as error:
            self._disconnect()
            raise commit_failed(error, self._path) from error
        if refused is not None:
            connection.rollback()
            raise refused
        self._grown.update(row.subject for row in commit.lives)
        try:
            connection.commit()
        except sqlite3.Error as error:
            self._disconnect()
            self._settle(commit, error)

    def prune(self, keep: Keep) -> bool:
        """Forget some of what is too old; return whether there is more of it."""
        grown = [self._grown.pop() for _ in range(min(len(self._grown), PRUNE_LIVES))]
        with self._transaction() as connection:
            position = _position(driver(connection))
            events_floor = position.event_seq - keep.events
            connection.execute(
                update(META).values(events_floor=func.max(META.c.events_floor, events_floor))
            )
            has_more_events = _forget(connection, EVENTS.c.seq, events_floor)
            has_more_journal = _forget(
                connection, JOURNAL.c.revision, position.revision - keep.journal
            )
            for subject in grown:
                _shorten(connection, subject, keep.life)
            newest = connection.execute(select(func.max(LIVES.c.id))).scalar() or 0
            has_more_lives = _forget(connection, LIVES.c.id, newest - keep.lives)
        return has_more_events or has_more_journal or has_more_lives or bool(self._grown)

    def close(self) -> None:
        """Let go of the file."""
        self._disconnect()

    def _settle(self, commit: Commit, error: sqlite3.Error) -> None:
        """Return if a commit happened although `COMMIT` failed, and raise what is known if not."""
        failure = commit_failed(error, self._path)
        try:
            # A full disk has not taken the last frame, without which the others are nothing; and it
            # would not take our proof either.
            revision = self._revision() if isinstance(failure, StoreFull) else self._fence()
        except HostlerError:
            self.is_doubtful = True
            raise CommitDoubtful(revision=commit.revision, path=str(self._path)) from error
        if revision < commit.revision:
            raise failure from error

    def _revision(self) -> int:
        with self._transaction() as connection:
            return _position(driver(connection)).revision

    def _fence(self) -> int:
        """Write over whatever a failed `COMMIT` has left, and return the revision that stands."""
        with self._transaction() as connection:
            connection.execute(update(META).values(fence=META.c.fence + 1))
            return _position(driver(connection)).revision

    @contextmanager
    def _transaction(self) -> Iterator[Connection]:
        try:
            connection = self._connected()
            with connection.begin():
                yield connection
        except FAILURES as error:
            self._disconnect()
            raise told(error, self._path) from error

    def _connected(self) -> Connection:
        if self._connection is None:
            self._connection = connect(self._path, "BEGIN IMMEDIATE")
        return self._connection

    def _disconnect(self) -> None:
        """Drop the connection, and with it whatever transaction was open."""
        connection, self._connection = self._connection, None
        if connection is not None:
            # Closing rolls back first, which fails on the disk that has just failed.
            with suppress(DBAPIError):
                connection.invalidate()
            connection.close()


def _position(connection: sqlite3.Connection) -> Position:
    return Position(*connection.execute(tables.POSITION).fetchone())


def _write(connection: sqlite3.Connection, commit: Commit) -> CommitFailed | LeadershipLost | None:
    position = _position(connection)
    if (refused := refusal(commit, position)) is not None:
        return refused
    after = position.after(commit)
    connection.execute(tables.ADVANCE, (after.revision, after.now_ms, after.event_seq))
    puts, removals = _net(commit.changes)
    connection.executemany(tables.PUT, puts)
    connection.executemany(tables.REMOVE, removals)
    events = ((event.seq, event.at_ms, event.body) for event in commit.events)
    connection.executemany(tables.ADD_EVENT, events)
    if commit.lives:
        lives = ((row.subject, row.seq, row.at_ms, row.body) for row in commit.lives)
        connection.executemany(tables.ADD_LIFE, lives)
    if (row := commit.journal) is not None:
        connection.execute(tables.ADD_JOURNAL, (row.revision, row.now_ms, row.body))
    return None


def _net(
    changes: Sequence[Change],
) -> tuple[list[tuple[str, str, bytes]], list[tuple[str, str]]]:
    """Return the rows to put and to remove: the last change of each record."""
    last = {(change.kind, change.key): change.body for change in changes}
    puts = [(kind, key, body) for (kind, key), body in last.items() if body is not None]
    removals = [at for at, body in last.items() if body is None]
    return puts, removals


def _shorten(connection: Connection, subject: str, keep: int) -> None:
    """Keep the newest events of one life."""
    mine = LIVES.c.subject == subject
    newest_too_old = (
        select(LIVES.c.seq).where(mine).order_by(LIVES.c.seq.desc()).limit(1).offset(keep)
    ).scalar_subquery()
    connection.execute(delete(LIVES).where(mine, LIVES.c.seq <= newest_too_old))


def _forget(connection: Connection, column: Column[int], floor: int) -> bool:
    """Delete rows up to `floor` (inclusive), oldest first; return whether some are left."""
    oldest: int | None = connection.execute(select(func.min(column))).scalar()
    if oldest is None or oldest > floor:
        return False
    up_to = min(floor, oldest + PRUNE_ROWS)
    connection.execute(delete(column.table).where(column <= up_to))
    return up_to < floor
