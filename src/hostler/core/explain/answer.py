"""What an explanation consists of, and how its reasons are put together."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from hostler.base.ids import NodeId
from hostler.core.explain.alterations import Alteration
from hostler.core.fleet import Fleet
from hostler.core.placement.demand import Demand
from hostler.core.placement.feasible import Place, detail_of
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


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """One thing to change."""

    alteration: Alteration
    text: str
    until_at_ms: int | None = None
    """When it comes about by itself."""


class Way(msgspec.Struct, frozen=True, kw_only=True):
    """Changes that together make the node do."""

    changes: tuple[Change, ...]


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """How a node that would do compares with the place that is, or would be, chosen."""

    other_node_id: NodeId | None
    """`None`: a new machine would be chosen, or the node itself."""
    score: tuple[int, ...]
    other_score: tuple[int, ...] = ()
    """Empty where scores decide nothing, as between tiers."""
    decided_by: str
    """The part of the score, `tier_order`, `rule`, or `node_id` for a tie; empty: it is chosen."""
    text: str
    """One sentence."""


class Fit(msgspec.Struct, frozen=True, kw_only=True):
    """All about one node for one replica."""

    node_id: NodeId
    checks: tuple[Check, ...] = ()
    ways: tuple[Way, ...] = ()
    """The smallest changes after which every check passes, fewest first."""
    comparison: Comparison | None = None


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
    fit: Fit | None = None
    """All about the node that was named, where one was."""


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


def check_of(reason: Reason, demand: Demand, place: Place) -> Check:
    """Return a check that failed, with its figures and words."""
    meaning, advice = SENTENCES[reason]
    return Check(
        reason=reason, detail=detail_of(reason, demand, place), meaning=meaning, advice=advice
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
