"""Replay: each life of the server once more, from what it loaded and the journal alone.

The rows are those that the disk took; the engine's own `replay_step` runs each again, and it must
decide the same, to the byte.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from hostler.engine.journal import read_row
from hostler.engine.recover import fleet_of
from hostler.engine.replay import replay_step
from hostler.ports.store import JournalRow, Loaded
from hostler.sim.world import Violation


class Life(msgspec.Struct):
    """One life of the server, as the disk has seen it."""

    loaded: Loaded
    rows: list[JournalRow] = []


def replay(lives: Iterable[Life]) -> int:
    """Run every life again and return how many steps that were.

    Raises:
        Violation: A step decides something else than it did.
    """
    count = 0
    for life in lives:
        fleet = fleet_of(life.loaded)
        for row in life.rows:
            if not replay_step(fleet, row, read_row(row)):
                raise Violation(
                    "replay_differs",
                    "a step from the journal decides something else than it did",
                    revision=row.revision,
                )
            count += 1
    return count
