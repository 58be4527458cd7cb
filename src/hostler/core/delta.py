"""What one step changed and wants: the only thing that leaves the core."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec

from hostler.base.ids import CommandId
from hostler.core.events import Event
from hostler.core.fleet import Note
from hostler.core.replies import Reply
from hostler.model.command import Command
from hostler.model.record import Record


class Dispatch(msgspec.Struct, frozen=True):
    """One attempt at one command, to be made once the step is durable."""

    command_id: CommandId
    command: Command
    attempt: int
    patience_ms: int
    """For how long an answer is waited for."""


@dataclass(slots=True)
class Delta:
    """One step's outcome. Nothing in it may take effect before its changes are durable.

    Attributes:
        revision: The fleet's revision with these changes; unchanged when there are none.
        changes: The new value of each changed record, `None` for removed, in order of first write.
        before: What was there before the step, for each changed record; undoing puts it back.
        timers_before: The instant of each timer that was set or has rung, as it was.
        timers_fired: Instants that came, as (kind, key, instant); a journal needs them, since not
            all of them follow from records.
    """

    revision: int
    now_ms: int
    now_before_ms: int
    changes: dict[tuple[str, str], Record | None] = field(default_factory=dict)
    before: dict[tuple[str, str], Record | None] = field(default_factory=dict)
    events: Sequence[Event] = ()
    dispatches: Sequence[Dispatch] = ()
    replies: Sequence[Reply] = ()
    notes: Sequence[tuple[str, str, Note | None]] = ()
    timers_before: dict[tuple[str, str], int | None] = field(default_factory=dict)
    timers_fired: Sequence[tuple[str, str, int]] = ()
    next_wake_at_ms: int | None = None

    @property
    def is_durable(self) -> bool:
        """True when there is something to commit."""
        return bool(self.changes) or bool(self.events)
