"""The transaction: the one door through which a step changes the fleet.

Writes are in place and logged for undoing, so a controller always reads what was just written. The
log of changed keys is what wakes controllers; each has its own position in it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, TypeVar

from msgspec.structs import replace

from hostler.base.errors import Defect, check
from hostler.base.ids import CommandId, numbered
from hostler.base.lifecycle import Lifecycle
from hostler.core import limits
from hostler.core.change_log import ChangeLog
from hostler.core.delta import Delta, Dispatch
from hostler.core.events import Event, EventKind
from hostler.core.fleet import Fleet, Note
from hostler.core.indexes import STEADY_NODE_FIELDS
from hostler.core.replies import Accepted, Refused, Reply, Result
from hostler.core.scratch import Mark, Scratch
from hostler.core.wakes import wake_at_ms
from hostler.model import Allocation, Bundle, Counter, Lease, Node, OutboxEntry, Replica, Rollout
from hostler.model.allocation import ALLOCATION_LIFECYCLE
from hostler.model.bundle import BUNDLE_LIFECYCLE
from hostler.model.command import Command, OutboxPhase
from hostler.model.lease import LEASE_LIFECYCLE
from hostler.model.node import NODE_LIFECYCLE
from hostler.model.reason import Reason
from hostler.model.record import FLOOR, Record
from hostler.model.replica import REPLICA_LIFECYCLE
from hostler.model.rollout import ROLLOUT_LIFECYCLE

R = TypeVar("R", bound=Record)

_LIFECYCLES: dict[type[Record], Lifecycle[Any, Any]] = {
    Allocation: ALLOCATION_LIFECYCLE,
    Bundle: BUNDLE_LIFECYCLE,
    Lease: LEASE_LIFECYCLE,
    Node: NODE_LIFECYCLE,
    Replica: REPLICA_LIFECYCLE,
    Rollout: ROLLOUT_LIFECYCLE,
}

_ASKED = "\x00"
"""Between a record's key and the controller that asked for an instant beside the record's own."""

_NO_READERS: Mapping[str, int] = {}


class Txn:
    """One step in the making."""

    def __init__(self, fleet: Fleet, now_ms: int, readers: Mapping[str, int] = _NO_READERS) -> None:
        """Open a step.

        Args:
            fleet: The fleet, with no step open.
            now_ms: The step's instant.
            readers: By kind of record, a bit for each controller that its change wakes.
        """
        check(fleet.open_delta is None, "step_open", "the last step was neither kept nor dropped")
        self.fleet = fleet
        self.now_ms = max(now_ms, fleet.now_ms)
        self._delta = Delta(revision=fleet.revision, now_ms=self.now_ms, now_before_ms=fleet.now_ms)
        self.pending = 0
        """A bit for each controller that has something new to look at."""
        self._readers = readers
        self._logs: dict[str, ChangeLog] = {}
        """Changed keys by kind."""
        self._place = 0
        """How many changes there have been, of whatever kind."""
        self._seen: dict[str, int] = {}
        """How many of them each controller had seen when its last turn ended."""
        self._seen_now = 0
        """The same of the running one."""
        self._minted: dict[str, int] = {}
        self._rewritten: set[tuple[str, str]] = set()
        """What was written more than once, and so may be as it was before."""
        self._events: list[Event] = []
        self._dispatches: list[Dispatch] = []
        self._replies: list[Reply] = []
        self._notes: dict[tuple[str, str], Note | None] = {}
        self._fired: list[tuple[str, str, int]] = []
        self._scratch: Scratch | None = None
        """What was written since the first mark, while there is one."""
        self._controller = ""
        self.is_scan = False
        """True: everything is looked at although nothing need have changed."""
        fleet.open_delta = self._delta
        fleet.now_ms = self.now_ms

    # -- writing -----------------------------------------------------------------------------

    def put(self, record: R) -> R:
        """Write a record, new or changed, and return it. Writing an equal value is no write."""
        kind, key = record.KIND, record.key
        if self.fleet.tables[kind].rows.get(key) == record:
            return record
        self._write(kind, key, record)
        return record

    def remove(self, record: Record) -> None:
        """Forget a record."""
        self._write(record.KIND, record.key, None)

    def _write(self, kind: str, key: str, new: Record | None, *, is_steady: bool = False) -> None:
        # Every change passes here, so `Fleet.write` is written out.
        fleet, name = self.fleet, (kind, key)
        rows = fleet.tables[kind].rows
        old = rows.get(key)
        if self._scratch is not None:
            self._scratch.note(name, old)
        if new is not None:
            rows[key] = new
        elif old is not None:
            del rows[key]
        else:
            return
        fleet.index.update(kind, key, old, new, is_steady=is_steady)
        delta = self._delta
        if name in delta.changes:
            self._rewritten.add(name)
        else:
            delta.before[name] = old
        delta.changes[name] = new
        self.touch(kind, key)

    def change(self, record: R, **changes: Any) -> R:
        """Write a record with some fields changed; its phase changes only by `move`."""
        if "phase" in changes:
            raise Defect("phase_by_change", "a phase changes by move only")
        kind, key = record.KIND, record.key
        new, old = replace(record, **changes), self.fleet.tables[kind].rows.get(key)
        if new != old:
            is_steady = (
                kind == Node.KIND and old is record and STEADY_NODE_FIELDS.isdisjoint(changes)
            )
            self._write(kind, key, new, is_steady=is_steady)
        return new

    def move(self, record: R, trigger: StrEnum, **changes: Any) -> R:
        """Move a record along its lifecycle, with other fields changed in the same write.

        Raises:
            IllegalTransition: The arrow is not in the table; nothing has changed.
        """
        phase = _LIFECYCLES[type(record)].next(record.phase, trigger)  # type: ignore[attr-defined]  # records with a lifecycle have a phase
        new = replace(record, phase=phase, phase_since_at_ms=self.now_ms, **changes)
        self._write(record.KIND, record.key, new)
        return new

    def mint(self, prefix: str) -> str:
        """Return an id that was never given out."""
        value = self._minted.get(prefix)
        if value is None:
            counter = self.fleet.counters.get(prefix)
            if counter is None:
                counter = self.fleet.counters.get(FLOOR)
            value = 0 if counter is None else counter.value
        self._minted[prefix] = value + 1
        return numbered(prefix, value + 1)

    def send(self, command_id: str, command: Command) -> None:
        """Put a command into the outbox, with its first attempt; the same id is the same command.

        The attempt leaves after the commit, unless the command is withdrawn within the step.
        """
        if command_id in self.fleet.commands:
            return
        entry = OutboxEntry(
            command_id=CommandId(command_id),
            command=command,
            phase=OutboxPhase.SENT,
            created_at_ms=self.now_ms,
            attempt_count=1,
            next_at_ms=self.now_ms + limits.patience_ms(command),
        )
        self.dispatch(self.put(entry))

    def dispatch(self, entry: OutboxEntry) -> None:
        """Let one attempt leave after the commit. Only `send` and the outbox call this."""
        patience_ms = entry.next_at_ms - self.now_ms
        self._dispatches.append(
            Dispatch(entry.command_id, entry.command, entry.attempt_count, patience_ms)
        )

    def emit(self, kind: EventKind, about: dict[str, str], **data: str | int | bool | None) -> None:
        """Tell people a fact, once it is committed."""
        self._events.append(Event(kind=kind, at_ms=self.now_ms, about=about, data=data))

    def reply(self, request_id: str, result: Result) -> None:
        """Answer a request, once the step is durable."""
        self._replies.append(Reply(request_id=request_id, result=result))

    def answer_to(self, request_id: str) -> Result | None:
        """Return what this step answers a request, or `None` while it has not."""
        found = (r.result for r in reversed(self._replies) if r.request_id == request_id)
        return next(found, None)

    def accept(self, request_id: str, subject_id: str = "", *, is_repeat: bool = False) -> None:
        """Answer yes."""
        self.reply(request_id, Accepted(subject_id=subject_id, is_repeat=is_repeat))

    def refuse(
        self,
        request_id: str,
        code: str,
        message: str,
        *,
        is_missing: bool = False,
        is_conflict: bool = False,
    ) -> None:
        """Answer no, with what to change."""
        self.reply(
            request_id,
            Refused(code=code, message=message, is_missing=is_missing, is_conflict=is_conflict),
        )

    def written(self) -> dict[tuple[str, str], Record | None]:
        """Return what the step has written so far."""
        return self._delta.changes.copy()

    # -- taking back -------------------------------------------------------------------------

    def mark(self) -> Mark:
        """Remember how things are, so that a plan can be tried by carrying it out.

        What may be taken back writes, sends and emits; it does not note or wake.
        """
        if self._scratch is None:
            self._scratch = Scratch(self._delta)
        return Mark(
            write_count=len(self._scratch),
            place=self._place,
            minted=self._minted.copy(),
            event_count=len(self._events),
            dispatch_count=len(self._dispatches),
        )

    def rewind(self, mark: Mark) -> None:
        """Take back everything since a mark."""
        if self._scratch is None:
            raise Defect("no_mark", "there is nothing to go back to")
        self._scratch.undo(self.fleet, mark.write_count)
        for log in self._logs.values():
            log.cut(mark.place)
        self._place = mark.place
        self._minted = mark.minted.copy()
        del self._events[mark.event_count :], self._dispatches[mark.dispatch_count :]

    def forget_marks(self) -> None:
        """Let what was written since any mark stand."""
        self._scratch = None

    # -- explaining --------------------------------------------------------------------------

    def note(self, key: str, reason: Reason, detail: str = "") -> None:
        """Say why the running controller does not (yet) act on a record."""
        self._notes[(key, self._controller)] = Note(reason, detail, self.now_ms)

    def clear_note(self, key: str) -> None:
        """Say that the running controller has no more reason to wait about a record."""
        if self._controller in self.fleet.notes.get(key, {}) or (
            (key, self._controller) in self._notes
        ):
            self._notes[(key, self._controller)] = None

    # -- waking ------------------------------------------------------------------------------

    def wake(self, record: Record, at_ms: int) -> None:
        """Have a record looked at again at an instant that its own timer does not cover.

        The running controller has one such instant a record; it is not durable, and need not be:
        after a restart every controller looks at everything and asks again.
        """
        self._set_timer(record.KIND, f"{record.key}{_ASKED}{self._controller}", at_ms)

    def touch(self, kind: str, key: str) -> None:
        """Make controllers look at a record, although it may not have been written."""
        log = self._logs.get(kind)
        if log is None:
            log = self._logs[kind] = ChangeLog()
        self._place += 1
        log.keys.append(key)
        log.places.append(self._place)
        log.last = self._place
        self.pending |= self._readers.get(kind, 0)

    def touch_all(self) -> None:
        """Make controllers look at every record."""
        self.is_scan = True
        for kind, table in self.fleet.tables.items():
            for key in sorted(table.rows):
                self.touch(kind, key)

    def retime(self, kind: str) -> None:
        """Compute the timers of a kind again, after a setting that they depend on has changed."""
        for key, record in self.fleet.tables[kind].rows.items():
            self._set_timer(kind, key, wake_at_ms(self.fleet, record, self.now_ms))

    def _set_timer(self, kind: str, key: str, at_ms: int | None) -> None:
        before = self.fleet.timers.set(kind, key, at_ms)
        if before != at_ms:
            self._delta.timers_before.setdefault((kind, key), before)

    def fire_timers(self) -> None:
        """Touch every record whose instant has come and was not put off within this step."""
        for kind, key, at_ms in self.fleet.timers.pop_due(self.now_ms):
            name = (kind, key)
            self._delta.timers_before.setdefault(name, at_ms)
            self._rearm(kind, key)
            new = self._delta.changes.get(name)
            if (
                new is not None
                and (wake_at_ms(self.fleet, new, self.now_ms) or at_ms) > self.now_ms
            ):
                continue
            self._fired.append((kind, key, at_ms))
            self.touch(kind, key.partition(_ASKED)[0])

    def _rearm(self, kind: str, key: str) -> None:
        """Set the timer of a record's next deadline, if it has one that is still to come."""
        record = self.fleet.tables[kind].get(key)
        at_ms = None if record is None else wake_at_ms(self.fleet, record, self.now_ms + 1)
        if at_ms is not None and at_ms > self.now_ms:
            self.fleet.timers.set(kind, key, at_ms)

    # -- controllers -------------------------------------------------------------------------

    def enter(self, controller: str) -> None:
        """Make a controller the running one."""
        self._controller = controller
        self._seen_now = self._seen.get(controller, 0)

    def changed_keys(self, kind: type[Record]) -> Sequence[str]:
        """Return the keys that changed since the running controller last ran, removed ones too."""
        log = self._logs.get(kind.KIND)
        if log is None or log.last <= self._seen_now:
            return ()
        return log.after(self._seen_now)

    def changed(self, kind: type[R]) -> Sequence[R]:
        """Return the records of a kind that changed since the running controller last ran.

        Each once, in the order of their first change; removed ones are left out.
        """
        log = self._logs.get(kind.KIND)
        if log is None or log.last <= self._seen_now:
            return ()
        return log.records_after(self._seen_now, self.fleet.tables[kind.KIND])

    def leave(self, bit: int) -> None:
        """End a controller's turn: what it saw, and what it wrote itself, is behind it."""
        self._seen[self._controller] = self._place
        self._controller = ""
        self.pending &= ~bit

    # -- closing -----------------------------------------------------------------------------

    def close(self) -> Delta:
        """End the step. The fleet stays ahead until the delta is kept or dropped."""
        for prefix, value in self._minted.items():
            counter = self.fleet.counters.get(prefix) or Counter(name=prefix, value=0)
            self.put(replace(counter, value=max(counter.value, value)))
        delta = self._delta
        fleet, now_ms, timers_before = self.fleet, self.now_ms, delta.timers_before
        for name, new in list(delta.changes.items()):
            if name in self._rewritten and new == delta.before[name]:
                del delta.changes[name], delta.before[name]
            else:
                # Once for each record, and not once for each write; `_set_timer` is written out.
                at_ms = None if new is None else wake_at_ms(fleet, new, now_ms)
                before = fleet.timers.set(*name, at_ms)
                if before != at_ms:
                    timers_before.setdefault(name, before)
        delta.events = self._events
        delta.dispatches = [each for each in self._dispatches if self._is_current(each)]
        delta.replies = self._replies
        delta.notes = [(key, who, note) for (key, who), note in self._notes.items()]
        delta.timers_fired = self._fired
        delta.next_wake_at_ms = self.fleet.timers.next_at_ms()
        if delta.is_durable:
            delta.revision = self.fleet.revision + 1
        return delta

    def _is_current(self, dispatch: Dispatch) -> bool:
        """Say whether a command still stands and no later attempt leaves with this step."""
        entry = self.fleet.commands.get(dispatch.command_id)
        return entry is not None and entry.attempt_count == dispatch.attempt

    def abandon(self) -> None:
        """Undo everything, because a defect was found half way."""
        self.fleet.drop(self._delta)
