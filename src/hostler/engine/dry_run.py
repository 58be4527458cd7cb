"""Dry runs: a step that is made and undone, to say what would follow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hostler.core import invariants
from hostler.core.events import Event
from hostler.core.fleet import Fleet
from hostler.core.inputs import AnyInput
from hostler.core.replies import Result
from hostler.core.step import step
from hostler.model.command import Command
from hostler.model.record import Record


@dataclass(frozen=True)
class DryRun:
    """What a step would have done, had it been made.

    Attributes:
        revision: The fleet's revision that the answer is about.
        results: The answer to each request, by request id.
        changes: The new value of each record that would change, `None` for removed.
        events: What would have been told.
        commands: What would have been sent, by command id.
    """

    revision: int
    results: dict[str, Result]
    changes: dict[tuple[str, str], Record | None]
    events: Sequence[Event]
    commands: dict[str, Command]


def dry_run(fleet: Fleet, inputs: Sequence[AnyInput], now_ms: int) -> DryRun:
    """Make a step on a fleet that has none open, and undo it.

    Raises:
        Defect: The step would have been wrong; the fleet is as before.
    """
    delta = step(fleet, inputs, now_ms)
    try:
        invariants.check_changed(fleet, delta)
    finally:
        fleet.drop(delta)
    return DryRun(
        revision=fleet.revision,
        results={reply.request_id: reply.result for reply in delta.replies},
        changes=dict(delta.changes),
        events=delta.events,
        commands={one.command_id: one.command for one in delta.dispatches},
    )
