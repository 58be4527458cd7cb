"""Batches: what waits to be stepped, what one step takes, and the commit that comes of it."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hostler.base.encoding import encode_row
from hostler.base.errors import Failed, check
from hostler.core.asking import Request
from hostler.core.delta import Delta
from hostler.core.fleet import Fleet
from hostler.core.inputs import AnyInput, AnyRequest, FullScan
from hostler.core.life import subject_of
from hostler.core.replies import Refused, Reply, Result
from hostler.engine import limits
from hostler.engine.journal import journal_row
from hostler.ports.store import Change, Commit, LifeRow, StoredEvent

Guard = Callable[[Fleet], Refused | None]
"""Says why a request is not to be stepped, since the fleet is not as whoever asked supposed."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One input, and who waits for its answer."""

    input: AnyInput
    answer: asyncio.Future[Result] | None = None
    guard: Guard | None = None
    """Asked right before the step, of which the input is then the only one."""


class Batch:
    """The inputs of one step."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        self.entries = entries
        self.inputs: list[AnyInput] = [entry.input for entry in entries]

    def observations(self) -> list[Entry]:
        """Return the entries that nobody waits for, and that must not be lost."""
        return [entry for entry in self.entries if entry.answer is None]

    def answer(self, replies: Sequence[Reply]) -> None:
        """Hand out the answers.

        Raises:
            Defect: A request got none; every request gets exactly one.
        """
        results = {reply.request_id: reply.result for reply in replies}
        for entry in self.entries:
            if entry.answer is None or not isinstance(entry.input, Request):
                continue
            result = results.get(entry.input.request_id)
            check(
                result is not None,
                "request_unanswered",
                "a request got no answer",
                request_id=entry.input.request_id,
            )
            if result is not None and not entry.answer.done():
                entry.answer.set_result(result)

    def stopped_by_guard(self, fleet: Fleet) -> bool:
        """Answer a guarded request that its guard refuses; say whether that was so."""
        entry = self.entries[0]
        refusal = None if entry.guard is None else entry.guard(fleet)
        if refusal is not None and entry.answer is not None and not entry.answer.done():
            entry.answer.set_result(refusal)
        return refusal is not None

    def fail(self, failure: Failed) -> None:
        """Tell everybody who waits that nothing came of it."""
        for entry in self.entries:
            if entry.answer is not None and not entry.answer.done():
                entry.answer.set_exception(failure)


class Inbox:
    """What waits for the next step, in the order of its coming."""

    def __init__(self) -> None:
        self._entries: deque[Entry] = deque()
        self._request_count = 0
        self._waiting_for_room: deque[asyncio.Future[None]] = deque()
        self.news = asyncio.Event()
        """Set while there is something to look at."""

    def __len__(self) -> int:
        return len(self._entries)

    def put_request(
        self, request: AnyRequest, guard: Guard | None = None
    ) -> asyncio.Future[Result]:
        """Put a request in line and return what will hold its answer.

        Raises:
            Failed: Too many wait already.
        """
        if self._request_count >= limits.REQUEST_COUNT_MAX:
            raise Failed(
                "overloaded",
                "too many requests wait: try again in a moment",
                retry_after_ms=1_000,
            )
        answer: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
        self._entries.append(Entry(request, answer, guard))
        self._request_count += 1
        self.news.set()
        return answer

    async def put_observations(self, inputs: Sequence[AnyInput]) -> None:
        """Put observations in line, once there is room."""
        while len(self._entries) - self._request_count >= limits.OBSERVATION_COUNT_MAX:
            room: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting_for_room.append(room)
            await room
        self._entries.extend(Entry(one) for one in inputs)
        self.news.set()

    def put_back(self, entries: Sequence[Entry]) -> None:
        """Put the observations of a step that was dropped back to the head of the line."""
        self._entries.extendleft(reversed(entries))
        if entries:
            self.news.set()

    def take(self) -> Batch:
        """Take what one step shall absorb. A full scan is alone, so that its finds are its own.

        A guarded request is alone, too, so that nothing comes between its guard and its step.
        """
        taken: list[Entry] = []
        while self._entries and len(taken) < limits.BATCH_COUNT_MAX:
            head = self._entries[0]
            is_alone = isinstance(head.input, FullScan) or head.guard is not None
            if is_alone and taken:
                break
            entry = self._entries.popleft()
            if entry.answer is not None:
                self._request_count -= 1
                if entry.answer.cancelled():
                    continue
            taken.append(entry)
            if is_alone:
                break
        if not self._entries:
            self.news.clear()
        self._make_room()
        return Batch(taken)

    def _make_room(self) -> None:
        while self._waiting_for_room and len(self._entries) < limits.OBSERVATION_COUNT_MAX:
            room = self._waiting_for_room.popleft()
            if not room.done():
                room.set_result(None)

    def fail(self, failure: Failed) -> None:
        """Tell everybody in line that nothing will come of it."""
        Batch(self._entries).fail(failure)
        self._entries.clear()
        while self._waiting_for_room:
            room = self._waiting_for_room.popleft()
            if not room.done():
                room.set_exception(failure)


def changes_of(delta: Delta) -> list[Change]:
    """Return the rows that a step changes."""
    return [
        Change(kind, key, None if record is None else encode_row(record))
        for (kind, key), record in delta.changes.items()
    ]


def commit_of(
    delta: Delta, inputs: Sequence[AnyInput], *, leader_epoch: int, event_seq: int
) -> Commit:
    """Write down everything that a step makes durable.

    Args:
        delta: The step.
        inputs: What it was given.
        leader_epoch: The writer's.
        event_seq: Position of the last event before it.
    """
    changes = changes_of(delta)
    events = [
        StoredEvent(seq, event.at_ms, encode_row(event))
        for seq, event in enumerate(delta.events, start=event_seq + 1)
    ]
    lives = [
        LifeRow(subject, stored.seq, stored.at_ms, stored.body)
        for event, stored in zip(delta.events, events, strict=True)
        if (subject := subject_of(event.kind, event.about)) is not None
    ]
    return Commit(
        revision=delta.revision,
        now_ms=delta.now_ms,
        leader_epoch=leader_epoch,
        changes=changes,
        events=events,
        lives=lives,
        journal=journal_row(delta, inputs, changes),
    )
