"""A store in memory: for tests, the simulator, and fleets that need not outlive their process.

`MemoryDisk` is the disk, with plain methods for callers that do not await. `MemoryStore` is a
process's view of it: open a second one on the same disk and that is a restart.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from operator import attrgetter

from hostler.ports.store import (
    Change,
    Commit,
    EventsGone,
    JournalRow,
    Keep,
    LifeRow,
    Loaded,
    StoreClosed,
    StoredEvent,
)
from hostler.store.contract import Position, check_shape, refusal

_seq_of = attrgetter("seq")
_revision_of = attrgetter("revision")


class MemoryDisk:
    """What would be on the disk. Every method does all of its work or raises and does none."""

    def __init__(self) -> None:
        self._position = Position()
        self._records: dict[str, dict[str, bytes]] = {}
        self._events: list[StoredEvent] = []
        self._events_floor = 0
        self._journal: list[JournalRow] = []
        self._lives: dict[str, list[LifeRow]] = {}

    def load(self) -> Loaded:
        """Return a copy of the present state."""
        position = self._position
        records = {
            kind: dict(sorted(bodies.items()))
            for kind, bodies in sorted(self._records.items())
            if bodies
        }
        return Loaded(
            position.revision, position.now_ms, position.event_seq, position.leader_epoch, records
        )

    @property
    def event_count(self) -> int:
        """How many events are kept."""
        return len(self._events)

    @property
    def journal_count(self) -> int:
        """How many journal rows are kept."""
        return len(self._journal)

    def body(self, kind: str, key: str) -> bytes | None:
        """Return one record's body, or `None`; for those who check what is durable."""
        return self._records.get(kind, {}).get(key)

    def claim(self) -> int:
        """Raise the leader epoch and return it."""
        now = self._position
        self._position = Position(
            now.revision, now.now_ms, now.event_seq, leader_epoch=now.leader_epoch + 1
        )
        return self._position.leader_epoch

    def commit(self, commit: Commit) -> None:
        """Take a commit.

        Raises:
            CommitFailed: It does not fit on the last one; drop the step.
            LeadershipLost: Somebody has claimed the disk since; stop writing.
        """
        check_shape(commit)
        if (refused := refusal(commit, self._position)) is not None:
            raise refused
        self._apply(commit.changes)
        self._events.extend(commit.events)
        for row in commit.lives:
            self._lives.setdefault(row.subject, []).append(row)
        if commit.journal is not None:
            self._journal.append(commit.journal)
        self._position = self._position.after(commit)

    def _apply(self, changes: Iterable[Change]) -> None:
        for change in changes:
            bodies = self._records.setdefault(change.kind, {})
            if change.body is None:
                bodies.pop(change.key, None)
            else:
                bodies[change.key] = change.body

    def events(self, after_seq: int, limit: int) -> list[StoredEvent]:
        """Return a page of events after `after_seq`.

        Raises:
            EventsGone: They are no longer kept; take a snapshot.
        """
        if after_seq < self._events_floor:
            raise EventsGone(self._events_floor + 1)
        start = bisect_right(self._events, after_seq, key=_seq_of)
        return self._events[start : start + limit]

    def journal(self, from_revision: int, limit: int) -> list[JournalRow]:
        """Return a page of the journal from `from_revision` on."""
        start = bisect_left(self._journal, from_revision, key=_revision_of)
        return self._journal[start : start + limit]

    def life(self, subject: str, before_seq: int | None, limit: int) -> list[LifeRow]:
        """Return a page of a life, the newest first."""
        rows = self._lives.get(subject, [])
        end = len(rows) if before_seq is None else bisect_left(rows, before_seq, key=_seq_of)
        return rows[max(0, end - limit) : end][::-1]

    @property
    def life_count(self) -> int:
        """How many events of lives are kept."""
        return sum(map(len, self._lives.values()))

    def prune(self, keep: Keep) -> None:
        """Forget all but the newest of the history."""
        self._prune_lives(keep)
        self._events_floor = max(self._events_floor, self._position.event_seq - keep.events)
        del self._events[: bisect_right(self._events, self._events_floor, key=_seq_of)]
        journal_floor = self._position.revision - keep.journal
        del self._journal[: bisect_right(self._journal, journal_floor, key=_revision_of)]

    def _prune_lives(self, keep: Keep) -> None:
        for rows in self._lives.values():
            del rows[: max(0, len(rows) - keep.life)]
        excess = self.life_count - keep.lives
        if excess > 0:
            floor = sorted(row.seq for rows in self._lives.values() for row in rows)[excess - 1]
            for rows in self._lives.values():
                del rows[: bisect_right(rows, floor, key=_seq_of)]
        self._lives = {subject: rows for subject, rows in self._lives.items() if rows}


class MemoryStore:
    """A `Store` on a `MemoryDisk`. No call of it ever waits."""

    def __init__(self, disk: MemoryDisk | None = None) -> None:
        self.disk = MemoryDisk() if disk is None else disk
        self._is_closed = False

    def _open_disk(self) -> MemoryDisk:
        if self._is_closed:
            raise StoreClosed
        return self.disk

    async def load(self) -> Loaded:
        """Return the present state."""
        return self._open_disk().load()

    async def claim(self) -> int:
        """Raise the leader epoch and return it."""
        return self._open_disk().claim()

    async def commit(self, commit: Commit) -> None:
        """Take a commit; see `Store.commit`."""
        self._open_disk().commit(commit)

    async def events(self, after_seq: int, limit: int) -> list[StoredEvent]:
        """Return a page of events; see `Store.events`."""
        return self._open_disk().events(after_seq, limit)

    async def journal(self, from_revision: int, limit: int) -> list[JournalRow]:
        """Return a page of the journal; see `Store.journal`."""
        return self._open_disk().journal(from_revision, limit)

    async def life(self, subject: str, before_seq: int | None, limit: int) -> list[LifeRow]:
        """Return a page of a life; see `Store.life`."""
        return self._open_disk().life(subject, before_seq, limit)

    async def prune(self, keep: Keep) -> None:
        """Forget old history; see `Store.prune`."""
        self._open_disk().prune(keep)

    async def check(self) -> None:
        """Return, unless the store is closed."""
        self._open_disk()

    async def close(self) -> None:
        """Let go of the disk, which keeps what it has."""
        self._is_closed = True
