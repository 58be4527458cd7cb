"""History: one past step, found by an event or a revision, with the fleet as it was before it.

The journal is read backwards from the present, page by page, and no further than must be. What is
built of it is a fleet of its own, so it may be worked on beside the loop, in a thread.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hostler.base.errors import Rejected
from hostler.base.ids import NodeId, ReplicaId
from hostler.core.explain import Explanation, explain_replica
from hostler.core.explain.alterations import Alteration
from hostler.core.explain.rerun import Rerun, step_again
from hostler.engine.batch import changes_of
from hostler.engine.journal import JournaledStep, read_row, result_digest
from hostler.engine.recover import fleet_of
from hostler.engine.replay import PAGE_COUNT, arm, undo
from hostler.ports.store import JournalRow, Loaded, Store


@dataclass(frozen=True)
class Moment:
    """A place in the past: an event's position, or a revision.

    Attributes:
        event_seq: The step that told this event.
        revision: The step that brought this revision about.
    """

    event_seq: int | None = None
    revision: int | None = None


@dataclass(frozen=True)
class PastStep:
    """What is needed to run a past step again.

    Attributes:
        loaded: What the store holds at present.
        rows: The journal from that step to the present, newest first.
        event_seq: Position of the last event before that step.
    """

    loaded: Loaded
    rows: Sequence[tuple[JournalRow, JournaledStep]]
    event_seq: int


@dataclass(frozen=True)
class PastExplanation:
    """A replica as it was after a past step, and what that step decided about it.

    Attributes:
        explanation: Of the fleet after the step.
        rerun: The decision, made again.
        first_event_seq: The step's first event; above the last where it told none.
        last_event_seq: Its last.
        core_version: Of the core that made the step.
    """

    explanation: Explanation
    rerun: Rerun
    first_event_seq: int
    last_event_seq: int
    core_version: int


async def find_step(store: Store, moment: Moment) -> PastStep:
    """Read what is needed to run a past step again.

    Raises:
        Rejected: `journal_too_short`: it is no longer kept. `moment_unknown`: it has not come yet.
    """
    loaded = await store.load()
    if (moment.event_seq or 0) > loaded.event_seq or (moment.revision or 0) > loaded.revision:
        raise Rejected(
            "moment_unknown",
            "that has not happened yet",
            newest_event=loaded.event_seq,
            newest_revision=loaded.revision,
        )
    rows: list[tuple[JournalRow, JournaledStep]] = []
    event_seq, revision = loaded.event_seq, loaded.revision
    while revision > 0:
        first = max(1, revision - PAGE_COUNT + 1)
        page = {row.revision: row for row in await store.journal(first, revision - first + 1)}
        while revision >= first:
            row = page.get(revision)
            if row is None:
                raise _too_short(event_seq, revision)
            done = read_row(row)
            rows.append((row, done))
            event_seq -= done.event_count
            revision -= 1
            is_event = moment.event_seq is not None and event_seq < moment.event_seq
            if is_event or row.revision == moment.revision:
                return PastStep(loaded, rows, event_seq)
    raise _too_short(event_seq, revision)


def _too_short(event_seq: int, revision: int) -> Rejected:
    return Rejected(
        "journal_too_short",
        "the journal does not reach back so far; `retention.journal_max` says how far it does",
        oldest_event=event_seq + 1,
        oldest_revision=revision + 1,
    )


def explain_past(
    past: PastStep,
    replica_id: ReplicaId,
    node_id: NodeId | None = None,
    given: Sequence[Alteration] = (),
) -> PastExplanation:
    """Run a past step again, and explain a replica as it was after it.

    Raises:
        Rejected: There was no such replica or node, or an alteration does not go with what was.
    """
    row, done = past.rows[-1]
    loaded = past.loaded
    for _, later in past.rows:
        undo(loaded, later)
    loaded.revision, loaded.now_ms = row.revision - 1, 0
    fleet = fleet_of(loaded, is_to_stay=False)
    delta, rerun = step_again(
        fleet, done.inputs, row.now_ms, replica_id, given, lambda: arm(fleet, row, done)
    )
    is_same = result_digest(changes_of(delta), delta) == done.result_digest
    fleet.keep(delta)
    if node_id is not None and node_id not in fleet.nodes:
        raise Rejected("node_not_found", f"there was no node {node_id!r} then")
    found = explain_replica(fleet, replica_id, node_id, given, now_ms=row.now_ms)
    if found is None:
        raise Rejected("replica_not_found", f"there was no replica {replica_id!r} then")
    return PastExplanation(
        explanation=found,
        rerun=Rerun(
            revision=rerun.revision,
            at_ms=rerun.at_ms,
            decision=rerun.decision,
            is_reproduced=is_same,
            given=rerun.given,
            altered=rerun.altered,
        ),
        first_event_seq=past.event_seq + 1,
        last_event_seq=past.event_seq + done.event_count,
        core_version=done.core_version,
    )
