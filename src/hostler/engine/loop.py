"""The loop: the one writer. Takes a batch, steps, commits, and only then lets anything out.

While the store works at a commit, inputs gather for the next step; that is all there is to group
commit. Readers run between two steps, where the fleet is what the store holds.

What happens when the store does not take a step:

* It surely did not happen: the step is undone, requests are told so, observations wait for the next
  attempt. Deadlines come again by themselves, because they follow from records.
* Nobody knows: the store is asked until it can say. Nothing else is done meanwhile.
* Another server has the leadership, or the step was a defect: the loop ends, and with it the
  process; the restart recovers.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol, TypeVar

import structlog

from hostler.base.errors import Failed, check
from hostler.core import invariants
from hostler.core.delta import Delta
from hostler.core.fleet import Fleet
from hostler.core.inputs import AlarmRang, AnyInput, FullScan
from hostler.core.step import step
from hostler.engine import limits
from hostler.engine.batch import Batch, Inbox, commit_of
from hostler.engine.boundaries import Boundary, BoundaryHook, pass_by
from hostler.engine.gauges import Gauges
from hostler.engine.recent import Recent
from hostler.ports.clock import Clock
from hostler.ports.store import (
    Commit,
    CommitDoubtful,
    CommitFailed,
    LeadershipLost,
    Store,
    StoredEvent,
)

T = TypeVar("T")

_log = structlog.get_logger(__name__)


class Outlet(Protocol):
    """Where the consequences of a durable step go."""

    def tell(self, delta: Delta, events: Sequence[StoredEvent]) -> None:
        """Let followers and watchers know."""
        ...

    def dispatch(self, fleet: Fleet, delta: Delta) -> None:
        """Let commands leave. The fleet may be read until this returns."""
        ...


class Loop:
    """The single writer of one fleet.

    Attributes:
        fleet: The fleet; ahead of the store while a step is open.
        inbox: What waits for the next step.
        recent: The last steps and plans.
    """

    def __init__(
        self,
        fleet: Fleet,
        store: Store,
        clock: Clock,
        outlet: Outlet,
        *,
        leader_epoch: int,
        gauges: Gauges,
        boundary: BoundaryHook = pass_by,
    ) -> None:
        self.fleet = fleet
        self.inbox = Inbox()
        self.recent = Recent()
        self._store = store
        self._clock = clock
        self._outlet = outlet
        self._leader_epoch = leader_epoch
        self._gauges = gauges
        self._boundary = boundary
        self._under_way = Batch([])
        self._waiting_readers: list[asyncio.Future[None]] = []
        self._stopping = asyncio.Event()
        self._commit_retry_ms = limits.COMMIT_RETRY_MS_MIN

    # -- from outside ------------------------------------------------------------------------

    async def read(self, reader: Callable[[Fleet], T]) -> T:
        """Run a reader between two steps: now, unless one is open."""
        while self.fleet.open_delta is not None:
            closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting_readers.append(closed)
            await closed
        return reader(self.fleet)

    def stop(self) -> None:
        """End after the step under way."""
        self._stopping.set()
        self.inbox.news.set()

    def fail(self, failure: Failed) -> None:
        """Tell everybody who still waits that there is no engine any more."""
        self.inbox.fail(failure)
        self._under_way.fail(
            Failed(failure.code, failure.message, effect="unknown", retry_after_ms=2_000)
        )
        waiting, self._waiting_readers = self._waiting_readers, []
        for closed in waiting:
            if not closed.done():
                closed.set_exception(failure)

    # -- the loop ----------------------------------------------------------------------------

    async def run(self) -> None:
        """Step until stopped.

        Raises:
            Defect: A step was wrong; the fleet is as before it and must not be used on.
            LeadershipLost: Somebody else writes now.
            Failed: The store cannot say whether a commit happened.
        """
        while not self._stopping.is_set():
            if self._is_alarm_due() or len(self.inbox):
                await self._turn(self.inbox.take())
                # Readers that were let in run now, and so does everybody else, even if the store
                # never waits. Who waited for a record is told by a task of theirs, so that their
                # answer leaves in the second pass: before the next step, and not behind it.
                await asyncio.sleep(0)
                await asyncio.sleep(0)
            else:
                await self._rest()

    def _is_alarm_due(self) -> bool:
        at_ms = self.fleet.timers.next_at_ms()
        return at_ms is not None and at_ms <= self._now_ms()

    def _now_ms(self) -> int:
        return max(self._clock.now_ms(), self.fleet.now_ms)

    async def _rest(self) -> None:
        at_ms = self.fleet.timers.next_at_ms()
        rest_ms = limits.ALARM_MS_MAX
        if at_ms is not None:
            rest_ms = min(rest_ms, max(at_ms - self._now_ms(), 1))
        self.inbox.news.clear()
        await _wait(self.inbox.news, rest_ms)

    def _let_readers_in(self) -> None:
        waiting, self._waiting_readers = self._waiting_readers, []
        for closed in waiting:
            if not closed.done():
                closed.set_result(None)

    async def _turn(self, batch: Batch) -> None:
        self._under_way = batch
        match batch.inputs:
            case []:
                is_durable = await self._step(batch, [AlarmRang()])
                if not is_durable:
                    await _wait(self._stopping, limits.ALARM_REST_MS)
            case [FullScan()]:
                await self._step(Batch([]), [AlarmRang()])
                await self._step(batch, batch.inputs)
            case _ if batch.stopped_by_guard(self.fleet):
                return
            case inputs:
                await self._step(batch, inputs)

    async def _step(self, batch: Batch, inputs: Sequence[AnyInput]) -> bool:
        """Make one step; say whether it was durable."""
        delta = self._decide(inputs)
        events: Sequence[StoredEvent] = ()
        if delta.is_durable:
            commit = commit_of(
                delta, inputs, leader_epoch=self._leader_epoch, event_seq=self.fleet.event_seq
            )
            events = commit.events
            self._boundary(Boundary.BEFORE_COMMIT)
            failure = await self._commit(commit)
            if failure is not None:
                await self._undo(delta, batch, failure)
                return True
            self._boundary(Boundary.AFTER_COMMIT_BEFORE_KEEP)
        self.fleet.keep(delta)
        if delta.is_durable:
            self.recent.note(delta)
            self._gauges.tally.count(self.fleet, delta)
        self._let_readers_in()
        self._boundary(Boundary.AFTER_KEEP_BEFORE_REPLY)
        batch.answer(delta.replies)
        self._boundary(Boundary.AFTER_REPLY_BEFORE_PUBLISH)
        self._outlet.tell(delta, events)
        self._boundary(Boundary.AFTER_PUBLISH_BEFORE_DISPATCH)
        self._outlet.dispatch(self.fleet, delta)
        return delta.is_durable

    def _decide(self, inputs: Sequence[AnyInput]) -> Delta:
        began_ns = time.perf_counter_ns()
        delta = step(self.fleet, inputs, self._clock.now_ms())
        invariants.check_changed(self.fleet, delta)
        check(
            delta.is_durable or not delta.dispatches,
            "INV-OUTBOX-1",
            "a command would leave that is not in the store",
        )
        self._count_step(inputs, delta, (time.perf_counter_ns() - began_ns) // 1_000)
        return delta

    def _count_step(self, inputs: Sequence[AnyInput], delta: Delta, took_us: int) -> None:
        gauges = self._gauges
        gauges.step_count += 1
        gauges.step_us_total += took_us
        gauges.step_us_max = max(gauges.step_us_max, took_us)
        gauges.step_times.add(took_us)
        gauges.input_counts.update(str(type(one).__struct_config__.tag) for one in inputs)
        if isinstance(inputs[0], FullScan):
            gauges.scan_count += 1
            if delta.changes:
                gauges.scan_find_count += len(delta.changes)
                _log.warning(
                    "full_scan_found",
                    hint="an index or a wake-up was wrong",
                    records=[f"{kind}:{key}" for kind, key in list(delta.changes)[:20]],
                )

    # -- the store's answers -----------------------------------------------------------------

    async def _commit(self, commit: Commit) -> Failed | None:
        """Make a commit durable; return why it surely did not happen, or `None`."""
        began_ns = time.perf_counter_ns()
        try:
            await self._store.commit(commit)
        except CommitFailed as failure:
            self._gauges.commit_failed_count += 1
            return failure
        except CommitDoubtful as doubt:
            self._gauges.commit_doubtful_count += 1
            return None if await self._did_happen(commit) else _did_not_happen(doubt)
        took_us = (time.perf_counter_ns() - began_ns) // 1_000
        self._gauges.commit_count += 1
        self._gauges.commit_us_total += took_us
        self._gauges.commit_us_max = max(self._gauges.commit_us_max, took_us)
        self._gauges.commit_times.add(took_us)
        self._commit_retry_ms = limits.COMMIT_RETRY_MS_MIN
        return None

    async def _did_happen(self, commit: Commit) -> bool:
        """Ask the store until it says where it stands: at this commit, or before it.

        Nobody but us may commit while we have the leadership, so the revision tells.
        """
        for pause_ms in _doubling(limits.DOUBT_MS_MAX):
            try:
                loaded = await self._store.load()
            except Failed as failure:
                _log.warning("store_in_doubt", revision=commit.revision, error=str(failure))
                await _wait(self._stopping, pause_ms)
                continue
            if loaded.leader_epoch != self._leader_epoch:
                raise LeadershipLost(epoch=self._leader_epoch, current_epoch=loaded.leader_epoch)
            check(
                loaded.revision in (commit.revision - 1, commit.revision),
                "revision_strange",
                "the store stands where nobody has left it",
                revision=loaded.revision,
                expected=commit.revision,
            )
            return loaded.revision == commit.revision
        raise Failed(
            "store_in_doubt",
            "the store cannot say whether the last commit happened: restart when it is well",
            effect="unknown",
            revision=commit.revision,
        )

    async def _undo(self, delta: Delta, batch: Batch, failure: Failed) -> None:
        """Make a step that did not become durable undone, and pause before the next."""
        self.fleet.drop(delta)
        batch.fail(failure)
        self.inbox.put_back(batch.observations())
        _log.warning("commit_failed", revision=delta.revision, error=str(failure))
        self._let_readers_in()
        pause_ms = self._commit_retry_ms
        self._commit_retry_ms = min(2 * pause_ms, limits.COMMIT_RETRY_MS_MAX)
        await _wait(self._stopping, pause_ms)


def _did_not_happen(doubt: CommitDoubtful) -> CommitFailed:
    failure = CommitFailed(message="the commit was in doubt, and did not happen")
    failure.__cause__ = doubt
    return failure


def _doubling(total_ms: int) -> Iterator[int]:
    pause_ms = limits.COMMIT_RETRY_MS_MIN
    while total_ms > 0:
        yield pause_ms
        total_ms -= pause_ms
        pause_ms = min(2 * pause_ms, limits.COMMIT_RETRY_MS_MAX)


async def _wait(event: asyncio.Event, timeout_ms: int) -> None:
    """Return when the event is set, or after a while."""
    try:
        async with asyncio.timeout(timeout_ms / 1_000):
            await event.wait()
    except TimeoutError:
        return
