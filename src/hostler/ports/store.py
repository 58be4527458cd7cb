"""The store: where records, events and the journal become durable.

One commit is one step of the core: all of it is kept or none of it. The port speaks of bytes only;
`hostler.store.codec` knows records. Every store passes `hostler.testing.store_conformance`.

What each error means to the engine:

* `CommitFailed`: the commit surely did not happen; drop the step and go on.
* `CommitDoubtful`: nobody knows; `load` settles it, and its revision says whether it happened.
* `LeadershipLost`: somebody else has claimed the store; stop.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from hostler.base.errors import Effect, Failed, Rejected


class Change(msgspec.Struct, frozen=True):
    """One row of a commit: a record put or removed."""

    kind: str
    """What sort of record it is, as its class says (`KIND`)."""
    key: str
    """The record's id among its kind; any text."""
    body: bytes | None
    """The encoded record; `None` removes it, and removing what is not there is no error."""


class StoredEvent(msgspec.Struct, frozen=True):
    """One committed fact for people, as it is kept."""

    seq: int
    """Position in the one order of events; starts at 1, only rises, and is never used twice."""
    at_ms: int
    """The `now_ms` of the step that said it."""
    body: bytes
    """The encoded event."""


class LifeRow(msgspec.Struct, frozen=True):
    """One event in the life of one thing, kept for longer than the stream of events goes back."""

    subject: str
    """Whose life, such as `node/n-000001`."""
    seq: int
    """The event's position."""
    at_ms: int
    body: bytes
    """The encoded event."""


class Keep(msgspec.Struct, frozen=True, kw_only=True):
    """How much history a store keeps."""

    events: int
    journal: int
    life: int = 200
    """Events of one life."""
    lives: int = 200_000
    """Events of all lives together."""


class JournalRow(msgspec.Struct, frozen=True):
    """What one step was given, enough to run it again."""

    revision: int
    """The revision of the commit that the row belongs to."""
    now_ms: int
    """The `now_ms` of the step."""
    body: bytes
    """The encoded inputs and before-images."""


class Commit(msgspec.Struct, frozen=True):
    """Everything that one step (or one batch of steps) makes durable, in one transaction."""

    revision: int
    """One more than the store's revision; anything else is refused."""
    now_ms: int
    """The clock of the step; the engine never lets it fall below the one that was loaded."""
    leader_epoch: int
    """What `claim` returned to the writer; a lower one than the store's is refused."""
    changes: Sequence[Change] = ()
    """Applied in order; a later change of the same record wins."""
    events: Sequence[StoredEvent] = ()
    """In rising order of `seq`, all above the store's last."""
    journal: JournalRow | None = None
    """`None` keeps nothing for replay."""
    lives: Sequence[LifeRow] = ()
    """Events again, by whose life they belong to; in rising order of `seq`."""


class Loaded(msgspec.Struct):
    """Everything that a starting engine needs to know."""

    revision: int
    """Number of the last commit; 0 in a new store."""
    now_ms: int
    """The clock of the last commit; 0 in a new store."""
    event_seq: int
    """The last event's position; 0 when there never was one."""
    leader_epoch: int
    """The last one claimed; 0 when nobody has."""
    records: dict[str, dict[str, bytes]]
    """Bodies by kind and key, ordered by both (by code point)."""


class Store(Protocol):
    """Durable memory of one fleet. Commits come from one caller, reads may come meanwhile."""

    async def load(self) -> Loaded:
        """Return the present state, after settling whatever was in doubt."""
        ...

    async def claim(self) -> int:
        """Take the leadership: raise the leader epoch durably and return it."""
        ...

    async def commit(self, commit: Commit) -> None:
        """Make a commit durable. A cancelled call is a doubtful commit.

        Raises:
            CommitFailed: It surely did not happen; drop the step.
            CommitDoubtful: Unknown; `load` before anything else.
            LeadershipLost: It did not happen and never will; stop being the writer.
        """
        ...

    async def events(self, after_seq: int, limit: int) -> list[StoredEvent]:
        """Return at most `limit` events that come after `after_seq` (exclusive), oldest first.

        Raises:
            EventsGone: Events after `after_seq` are no longer kept; take a snapshot and go on from
                there.
        """
        ...

    async def journal(self, from_revision: int, limit: int) -> list[JournalRow]:
        """Return at most `limit` rows from `from_revision` (inclusive) on that are still kept."""
        ...

    async def life(self, subject: str, before_seq: int | None, limit: int) -> list[LifeRow]:
        """Return at most `limit` events of a life, the newest first, before a position if given."""
        ...

    async def prune(self, keep: Keep) -> None:
        """Forget all but the newest of what history there is. Records are never forgotten."""
        ...

    async def check(self) -> None:
        """Return if the store can be read and written; the readiness probe.

        Raises:
            HostlerError: It cannot, and the message says why.
        """
        ...

    async def close(self) -> None:
        """Finish what is under way and let go of everything. May be called again."""
        ...


class CommitFailed(Failed):
    """A commit surely did not happen; the step may be dropped and the engine goes on."""

    def __init__(
        self,
        code: str = "commit_failed",
        message: str = "the store did not take the commit",
        **fields: object,
    ) -> None:
        super().__init__(code, message, effect="none", retry_after_ms=None, **fields)


class StoreFull(CommitFailed):
    """A commit did not happen because there is no room for it."""

    def __init__(self, **fields: object) -> None:
        super().__init__(
            "store_full", "the disk of the store is full: free some room, then try again", **fields
        )


class CommitDoubtful(Failed):
    """Nobody knows whether a commit happened; only `load` can tell."""

    def __init__(self, **fields: object) -> None:
        super().__init__(
            "commit_doubtful",
            "the store cannot say whether the commit happened",
            effect="unknown",
            retry_after_ms=None,
            **fields,
        )


class LeadershipLost(Failed):
    """Another writer has claimed the store since; this one must stop."""

    def __init__(self, *, epoch: int, current_epoch: int) -> None:
        super().__init__(
            "leadership_lost",
            "another server has taken over the store",
            effect="none",
            retry_after_ms=None,
            epoch=epoch,
            current_epoch=current_epoch,
        )


class EventsGone(Rejected):
    """The events asked for are no longer kept.

    Attributes:
        oldest_seq: The first position that is still kept, or the next one to come.
    """

    def __init__(self, oldest_seq: int) -> None:
        self.oldest_seq = oldest_seq
        super().__init__(
            "events_gone",
            "events from that position on are no longer kept: take a snapshot and follow from it",
            oldest_seq=oldest_seq,
        )


class StoreRefused(Rejected):
    """The store cannot be opened as it stands; the message says what to change."""


class StoreNewer(StoreRefused):
    """A newer Hostler has written the store; this one would not understand it."""


class StoreBusy(StoreRefused):
    """Another server holds the store."""


class StoreCorrupt(StoreRefused):
    """What the store holds is damaged; going on would make it worse."""


class StoreFailed(Failed):
    """The store cannot be read or written at the moment."""

    def __init__(self, message: str, *, effect: Effect = "none", **fields: object) -> None:
        super().__init__("store_failed", message, effect=effect, retry_after_ms=None, **fields)


class StoreClosed(Failed):
    """The store was asked for something after `close`."""

    def __init__(self) -> None:
        super().__init__("store_closed", "the store is closed")
