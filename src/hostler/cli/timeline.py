"""A life as people read it: phases with how long each lasted, and what happened when."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from hostler.base.units import format_duration
from hostler.cli.event_lines import event_line, recent_events
from hostler.cli.output import Column, age, table

if TYPE_CHECKING:
    from hostler.client import SyncClient
    from hostler.wire.http import EventView, LifeView, PhaseView

HISTORY_COUNT: Final = 20
"""Events shown of a thing's history; `-o json` has all that are remembered."""


def life_of(client: SyncClient, noun: str, thing_id: str) -> LifeView | None:
    """Return the life of a thing, or `None` where none is kept of its kind, or of it."""
    from hostler.client import ClientError

    if noun not in ("node", "replica", "bundle", "pool", "lease"):
        return None
    try:
        return client.life(f"{noun}/{thing_id}")
    except ClientError as error:
        if error.status == 404:
            return None
        raise


def timeline(client: SyncClient, life: LifeView | None, thing_id: str, now_ms: int) -> list[str]:
    """Describe a life, and the latest events about it that belong to others, such as its leases."""
    lines = []
    if life is not None and life.phases:
        columns = _columns(now_ms)
        lines += ["Phases:", *(f"  {row}" for row in table(life.phases, columns, now_ms=now_ms))]
    events = _latest(life, recent_events(client, HISTORY_COUNT, about=thing_id))
    lines.append("History:" if events else "History: nothing is remembered")
    for event in events:
        ago = f"{age(event.at_ms, now_ms)} ago"
        lines.append(f"  {ago:>8}  {event_line(event, has_day=True)}")
    return lines


def _latest(life: LifeView | None, recent: Sequence[EventView]) -> list[EventView]:
    """Put the events of a life together with others about it, as far as those are still there."""
    by_seq = {event.seq: event for event in (*(life.events if life else ()), *recent)}
    return [by_seq[seq] for seq in sorted(by_seq)[-HISTORY_COUNT:]]


def _columns(now_ms: int) -> tuple[Column[PhaseView], ...]:
    return (
        Column("PHASE", lambda view: view.phase, is_state=True),
        Column("SINCE", lambda view: _when(view.since_at_ms)),
        Column("AGO", lambda view: age(view.since_at_ms, now_ms)),
        Column("FOR", _lasted),
    )


def _when(at_ms: int) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at_ms / 1_000))


def _lasted(view: PhaseView) -> str:
    lasted_ms = view.lasted_ms if view.lasted_ms < 10_000 else view.lasted_ms // 1_000 * 1_000
    told = format_duration(lasted_ms)
    return told if view.until_at_ms is not None else f"{told} so far"
