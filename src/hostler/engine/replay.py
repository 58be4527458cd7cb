"""Replaying: a kept revision is rebuilt backwards from the present, and run forward again.

Each step of the journal is given what it was given then, and must decide the same, byte for byte.
Run by hand on a store that no server has open (or on a copy of it):

    python -m hostler.engine.replay sqlite:///hostler.db [FROM_REVISION]
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass

from hostler.base.errors import Rejected
from hostler.core.fleet import Fleet
from hostler.core.step import step
from hostler.core.version import CORE_VERSION
from hostler.engine.batch import changes_of
from hostler.engine.journal import ABSENT, JournaledStep, read_row, result_digest
from hostler.engine.recover import fleet_of
from hostler.ports.store import JournalRow, Loaded, Store
from hostler.store.open import open_store

PAGE_COUNT = 500
"""Rows of the journal read at once."""


@dataclass(frozen=True)
class ReplayReport:
    """What came of a replay.

    Attributes:
        from_revision: The fleet's revision before the first step that was run again.
        to_revision: Its revision after the last one.
        diverged_at: The first revision that came out differently; `None`: all came out the same.
        is_end_equal: Whether the fleet at the end is the one in the store.
        foreign_versions: Versions of the core, other than ours, that made some of the steps.
    """

    from_revision: int
    to_revision: int
    diverged_at: int | None
    is_end_equal: bool
    foreign_versions: frozenset[int]

    @property
    def is_same(self) -> bool:
        """True when every step decided what it had decided then."""
        return self.diverged_at is None and self.is_end_equal


async def rows_from(store: Store, revision: int) -> AsyncIterator[JournalRow]:
    """Yield the kept rows of the journal from a revision on."""
    while rows := await store.journal(revision, PAGE_COUNT):
        for row in rows:
            yield row
        revision = rows[-1].revision + 1


async def rebuild(store: Store, revision: int) -> Fleet:
    """Return the fleet as it was at a revision.

    Raises:
        Rejected: The journal does not reach back so far.
    """
    loaded = await store.load()
    kept = [row async for row in rows_from(store, revision + 1)]
    # A server that works meanwhile may have added some since.
    rows = [row for row in kept if row.revision <= loaded.revision]
    if [row.revision for row in rows] != list(range(revision + 1, loaded.revision + 1)):
        raise Rejected(
            "journal_too_short",
            "the journal does not reach back to that revision",
            revision=revision,
            oldest=rows[0].revision - 1 if rows else loaded.revision,
        )
    for row in reversed(rows):
        undo(loaded, read_row(row))
    loaded.revision = revision
    # The clock only has to be no later than the first step's, which brings its own.
    loaded.now_ms = 0 if rows else loaded.now_ms
    return fleet_of(loaded)


def undo(loaded: Loaded, done: JournaledStep) -> None:
    """Put back what one step replaced; the latest step first."""
    loaded.event_seq -= done.event_count
    for before in done.before:
        bodies = loaded.records.setdefault(before.kind, {})
        if bytes(before.body) == bytes(ABSENT):
            bodies.pop(before.key, None)
        else:
            bodies[before.key] = bytes(before.body)


async def replay(store: Store, from_revision: int | None = None) -> ReplayReport:
    """Run the journal again, from a revision or from as far back as it reaches.

    Raises:
        Rejected: The journal does not reach back so far.
    """
    if from_revision is None:
        oldest = await store.journal(0, 1)
        from_revision = oldest[0].revision - 1 if oldest else (await store.load()).revision
    fleet = await rebuild(store, from_revision)
    diverged_at: int | None = None
    versions: set[int] = set()
    async for row in rows_from(store, from_revision + 1):
        done = read_row(row)
        versions.add(done.core_version)
        if not replay_step(fleet, row, done):
            diverged_at = row.revision
            break
    present = fleet_of(await store.load())
    return ReplayReport(
        from_revision=from_revision,
        to_revision=fleet.revision,
        diverged_at=diverged_at,
        is_end_equal=fleet.digest() == present.digest(),
        foreign_versions=frozenset(versions - {CORE_VERSION}),
    )


def replay_step(fleet: Fleet, row: JournalRow, done: JournaledStep) -> bool:
    """Run one step again; say whether it decided the same."""
    arm(fleet, row, done)
    delta = step(fleet, done.inputs, row.now_ms)
    is_same = result_digest(changes_of(delta), delta) == done.result_digest
    fleet.keep(delta)
    return is_same and delta.revision == row.revision


def arm(fleet: Fleet, row: JournalRow, done: JournaledStep) -> None:
    """Let the timers ring that rang in a step."""
    # Which ones is part of what the step was given: one that rang in a step without changes is not
    # in the journal, and one that a controller asked for does not follow from a record.
    fleet.timers.pop_due(row.now_ms)
    for kind, key, at_ms in done.timers_fired:
        fleet.timers.set(kind, key, at_ms)


async def _main(url: str, from_revision: int | None) -> int:
    store = await open_store(url)
    try:
        report = await replay(store, from_revision)
    finally:
        await store.close()
    told = f"revisions {report.from_revision + 1} to {report.to_revision}"
    if report.foreign_versions:
        told += f" (some by core version {sorted(report.foreign_versions)}, ours is {CORE_VERSION})"
    if report.is_same:
        print(f"{told}: the same")  # noqa: T201 - run by hand
        return 0
    where = f"differently at {report.diverged_at}" if report.diverged_at else "to another end"
    print(f"{told}: came out {where}")  # noqa: T201 - run by hand
    return 1


if __name__ == "__main__":
    sys.exit(asyncio.run(_main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else None)))
