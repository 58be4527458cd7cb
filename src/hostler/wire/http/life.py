"""The life of one thing: its phases, and the events that belong to it."""

from __future__ import annotations

import msgspec

from hostler.wire.http.fleet import EventView


class PhaseView(msgspec.Struct, frozen=True, kw_only=True):
    """One phase of a life."""

    phase: str
    """As its record has it; beside that `suspect`, `lost`, `quarantined` and `on probation` of a
    node, `recovering`, `moving` and `preempted` of a replica, `rolling out` of a bundle."""
    since_at_ms: int
    until_at_ms: int | None
    """`null`: it lasts."""
    lasted_ms: int
    """Until now, if it lasts."""


class LifeView(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one thing, from when on it is remembered."""

    about: str
    """Noun and id, `node/n-000001`."""
    phases: list[PhaseView]
    """The oldest first."""
    events: list[EventView]
    """The newest first. Of a lease there are none: its phases are its own."""
    next_cursor: str | None
    """Give it as `cursor` to go further back; `null` where nothing older is remembered."""
