"""What an explanation consists of, and how its reasons are put together."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from hostler.base.ids import NodeId
from hostler.core.fleet import Fleet
from hostler.core.sentences import SENTENCES
from hostler.model.reason import Reason
from hostler.model.record import Record
from hostler.model.trace import Decision


class Why(msgspec.Struct, frozen=True, kw_only=True):
    """One reason, in words."""

    by: str
    """The controller that says so, or `record` when the record itself does."""
    reason: Reason
    detail: str
    since_at_ms: int
    meaning: str
    advice: str
    """What a person can do."""


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """One reason why a replica could not be put on a named node now."""

    reason: Reason
    detail: str
    meaning: str
    advice: str


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """Why one thing is as it is."""

    about: str
    kind: str
    phase: str
    summary: str
    """One sentence."""
    reasons: tuple[Why, ...] = ()
    next_at_ms: int | None = None
    """When it is looked at again, whatever happens."""
    commands: tuple[str, ...] = ()
    """Unsettled commands about it."""
    decisions: tuple[Decision, ...] = ()
    """Placement decisions, newest last."""
    node_id: NodeId | None = None
    """The node asked about, where one was named."""
    checks: tuple[Check, ...] = ()
    """Everything that keeps the replica from that node now; empty when nothing does."""


def why(by: str, reason: Reason, detail: str, since_at_ms: int) -> Why:
    """Return a reason with its words."""
    meaning, advice = SENTENCES[reason]
    return Why(
        by=by,
        reason=reason,
        detail=detail,
        since_at_ms=since_at_ms,
        meaning=meaning,
        advice=advice,
    )


def notes(fleet: Fleet, key: str) -> Iterator[Why]:
    """Give what controllers have noted about a record."""
    for controller, note in sorted(fleet.notes.get(key, {}).items()):
        yield why(controller, note.reason, note.detail, note.since_at_ms)


def next_at_ms(fleet: Fleet, record: Record) -> int | None:
    """Return when a record is looked at again, whatever happens."""
    return fleet.timers.get(record.KIND, record.key)


def counted(count: int, noun: str) -> str:
    """Return such as `no leases`, `1 lease` or `2 leases`."""
    return f"{count or 'no'} {noun}{'' if count == 1 else 's'}"
