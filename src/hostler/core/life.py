"""Lives: to whose life an event belongs, and the phases that a row of events tells.

Each event belongs to the life of one thing at most, the most particular one that it is about, so
that what happens to a bundle's thousand replicas does not push out what happened to the bundle.
Leases have no life of events: theirs are as many as those of everything else together, and the
lease itself knows its instants.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from hostler.core.events import EventKind
from hostler.model import Lease
from hostler.model.lease import LeasePhase

NOUNS: Final = ("replica", "node", "bundle", "pool")
"""What has a life, the most particular first."""

_NOT_KEPT: Final = frozenset(
    (
        EventKind.LEASE_WAITING,
        EventKind.LEASE_GRANTED,
        EventKind.LEASE_REFUSED,
        EventKind.LEASE_SETTLED,
        EventKind.LEASE_RETIRING,
    )
)


def subject_of(kind: EventKind, about: Mapping[str, str]) -> str | None:
    """Return to whose life an event belongs, `node/n-000001`; `None` to nobody's."""
    if kind in _NOT_KEPT:
        return None
    for noun in NOUNS:
        found = about.get(noun)
        if found:
            return f"{noun}/{found}"
    return None


class Span(msgspec.Struct, frozen=True, kw_only=True):
    """One phase of a life."""

    phase: str
    since_at_ms: int
    until_at_ms: int | None
    """`None`: it lasts."""


class Happening(msgspec.Struct, frozen=True, kw_only=True):
    """What of an event its phase depends on."""

    kind: str
    at_ms: int
    allocation: str = ""


_ENTERED: Final[dict[str, str]] = {
    EventKind.NODE_REQUESTED: "requested",
    EventKind.NODE_LAUNCHED: "starting",
    EventKind.NODE_READY: "ready",
    EventKind.NODE_DRAIN_STARTED: "draining",
    EventKind.NODE_STOPPING: "stopping",
    EventKind.NODE_RETIRED: "retired",
    EventKind.REPLICA_PLACED: "placed",
    EventKind.REPLICA_READY: "ready",
    EventKind.REPLICA_MIGRATED: "ready",
    EventKind.REPLICA_RECOVERING: "recovering",
    EventKind.REPLICA_PREEMPTED: "preempted",
    EventKind.REPLICA_STOPPED_FIRST: "moving",
    EventKind.REPLICA_BROKEN: "broken",
    EventKind.REPLICA_DROPPED: "dropped",
    EventKind.BUNDLE_SUBMITTED: "active",
    EventKind.ROLLOUT_BEGUN: "rolling out",
    EventKind.ROLLOUT_PAUSED: "rollout paused",
    EventKind.ROLLOUT_RESUMED: "rolling out",
    EventKind.ROLLOUT_FINISHED: "active",
    EventKind.BUNDLE_DELETION_REQUESTED: "deleting",
    EventKind.BUNDLE_DELETED: "deleted",
    EventKind.POOL_CLOSING: "closing",
    EventKind.POOL_CLOSED: "closed",
    EventKind.POOL_REOPENED: "open",
}

_OVERLAID: Final[dict[str, str]] = {
    EventKind.NODE_SUSPECTED: "suspect",
    EventKind.NODE_LOST: "lost",
    EventKind.NODE_QUARANTINED: "quarantined",
    EventKind.NODE_ON_PROBATION: "on probation",
}
"""Beside the node's phase, and shown in its place."""

_UNCOVERED: Final = frozenset(
    (EventKind.NODE_HEARD_AGAIN, EventKind.NODE_TRUSTED, EventKind.NODE_UNCORDONED)
)
"""What shows the node's own phase again."""


def phases(happenings: Iterable[Happening]) -> list[Span]:
    """Return the phases that events tell, the oldest first; the last one lasts."""
    found: list[tuple[str, int]] = []
    base, allocation = "", ""
    for one in happenings:
        phase = _ENTERED.get(one.kind)
        if phase is not None:
            base = phase
            allocation = one.allocation or allocation
        elif one.kind in _OVERLAID:
            phase = _OVERLAID[one.kind]
        elif one.kind in _UNCOVERED:
            is_taken_back = one.kind == EventKind.NODE_UNCORDONED and base == "draining"
            base = "ready" if is_taken_back else base
            phase = base
        elif one.kind == EventKind.ALLOCATION_ENDED and one.allocation == allocation:
            phase = base = "ended"
        if phase and (not found or found[-1][0] != phase):
            found.append((phase, one.at_ms))
    return _spans(found)


def lease_phases(lease: Lease) -> list[Span]:
    """Return the phases of a lease, which it knows by itself."""
    found = [(LeasePhase.WAITING.value, lease.requested_at_ms)]
    if lease.granted_at_ms is not None:
        found.append((LeasePhase.HELD.value, lease.granted_at_ms))
    if lease.phase in (LeasePhase.SETTLED, LeasePhase.REFUSED):
        found.append((lease.phase.value, lease.phase_since_at_ms))
    return _spans(found)


def _spans(found: Sequence[tuple[str, int]]) -> list[Span]:
    ends = [at_ms for _, at_ms in found[1:]]
    return [
        Span(phase=phase, since_at_ms=at_ms, until_at_ms=end)
        for (phase, at_ms), end in zip(found, [*ends, None], strict=True)
    ]
