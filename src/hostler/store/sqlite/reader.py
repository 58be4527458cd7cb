"""A second connection that reads pages while commits go on."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from sqlalchemy import Connection, select
from sqlalchemy.exc import DBAPIError

from hostler.ports.store import EventsGone, JournalRow, LifeRow, StoredEvent, StoreFailed
from hostler.store.sqlite.connection import connect
from hostler.store.sqlite.failures import told
from hostler.store.sqlite.tables import EVENTS, JOURNAL, LIVES, META


class Reader:
    """Reads events and the journal. Everything here runs on the store's reader thread."""

    def __init__(self, path: Path) -> None:
        """Connect to a file that the writer has prepared.

        Raises:
            HostlerError: SQLite cannot.
        """
        self._path = path
        self._file = _identity(path)
        self._connection: Connection | None = None
        self.check()

    def events(self, after_seq: int, limit: int) -> list[StoredEvent]:
        """Return a page of events; see `Store.events`."""
        with self._transaction() as connection:
            floor = connection.execute(select(META.c.events_floor)).scalar_one()
            if after_seq < floor:
                raise EventsGone(floor + 1)
            rows = connection.execute(
                select(EVENTS.c.seq, EVENTS.c.at_ms, EVENTS.c.body)
                .where(EVENTS.c.seq > after_seq)
                .order_by(EVENTS.c.seq)
                .limit(limit)
            )
            return [StoredEvent(*row) for row in rows]

    def journal(self, from_revision: int, limit: int) -> list[JournalRow]:
        """Return a page of the journal; see `Store.journal`."""
        with self._transaction() as connection:
            rows = connection.execute(
                select(JOURNAL.c.revision, JOURNAL.c.now_ms, JOURNAL.c.body)
                .where(JOURNAL.c.revision >= from_revision)
                .order_by(JOURNAL.c.revision)
                .limit(limit)
            )
            return [JournalRow(*row) for row in rows]

    def life(self, subject: str, before_seq: int | None, limit: int) -> list[LifeRow]:
        """Return a page of a life; see `Store.life`."""
        wanted = select(LIVES.c.subject, LIVES.c.seq, LIVES.c.at_ms, LIVES.c.body).where(
            LIVES.c.subject == subject
        )
        if before_seq is not None:
            wanted = wanted.where(LIVES.c.seq < before_seq)
        with self._transaction() as connection:
            rows = connection.execute(wanted.order_by(LIVES.c.seq.desc()).limit(limit))
            return [LifeRow(*row) for row in rows]

    def check(self) -> None:
        """Read one row, and see that the file is still where it was.

        Raises:
            HostlerError: One of the two does not hold.
        """
        with self._transaction() as connection:
            connection.execute(select(META.c.revision)).scalar_one()
        if _identity(self._path) != self._file:
            raise StoreFailed(
                "the store's file was moved or replaced while it was open: stop the server and "
                "put it back",
                path=str(self._path),
            )

    def close(self) -> None:
        """Let go of the file."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(DBAPIError):
                connection.invalidate()
            connection.close()

    @contextmanager
    def _transaction(self) -> Iterator[Connection]:
        try:
            if self._connection is None:
                self._connection = connect(self._path, "BEGIN")
            with self._connection.begin():
                yield self._connection
        except DBAPIError as error:
            self.close()
            raise told(error, self._path) from error


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino
