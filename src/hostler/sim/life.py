"""One life of the server's process: the engine's loop without asyncio.

It loads what is on the disk, steps the real core on batches, commits with the engine's own
`commit_of`, and lets replies and commands out only after that. It may end at every boundary that
the engine knows.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final, assert_never

import msgspec

from hostler.api.limits import LINK_WATCH_EVERY_MS
from hostler.core.asking import Request
from hostler.core.delta import Delta, Dispatch
from hostler.core.fleet import Fleet
from hostler.core.inputs import (
    AlarmRang,
    AnyInput,
    CommandSettled,
    Outcome,
    ServerStarted,
)
from hostler.core.replies import Reply, Result
from hostler.core.step import step
from hostler.engine.batch import commit_of
from hostler.engine.boundaries import Boundary
from hostler.engine.recover import fleet_of
from hostler.engine.upkeep import keep_of
from hostler.model import Node
from hostler.model.command import (
    AssignRole,
    CheckMachine,
    CheckReady,
    ConfigureAllocation,
    EndLease,
    LaunchMachine,
    ListMachines,
    StartAllocation,
    StopAllocation,
    StopMachine,
)
from hostler.model.lease import LeasePhase
from hostler.model.node import Health, NodePhase
from hostler.sim.disk import CommitResult
from hostler.sim.link import AgentLinks
from hostler.wire import agent as wire

if TYPE_CHECKING:
    from hostler.sim.server import Server

BATCH_COUNT_MAX: Final = 64
"""Inputs of one step; small, so that there are many steps to crash between."""

_RETRY_COMMIT_MS: Final = 200
_PRUNE_EVERY_MS: Final = 60_000
_ALARM_MS_MAX: Final = 30_000


class PowerLost(Exception):
    """The process has ended in the middle of what it did."""


class Waiting(msgspec.Struct):
    """One input in line, and who wants to know what."""

    input: AnyInput
    answer: Callable[[Result | None], None] | None = None
    """For a request: called with its result, or with `None` when nothing came of it."""


class ServerProcess:
    """One life of the server.

    Attributes:
        fleet: What it believes.
        is_dead: It does nothing any more.
    """

    def __init__(self, server: Server, incarnation: int) -> None:
        self.server = server
        self.world = server.world
        self.incarnation = incarnation
        self.is_dead = False
        self.fleet = Fleet()
        self.links = AgentLinks(self)
        self._epoch = 0
        self._inbox: deque[Waiting] = deque()
        self._readers: list[Callable[[], None]] = []
        self._is_pumped = False
        self._is_busy = False
        self._alarm_at_ms: int | None = None
        self._request_count = 0
        self._rng = self.world.stream("server", str(incarnation))

    def guard(self, call: Callable[[], None]) -> None:
        """Do something that may be cut short by the end of this life."""
        if self.is_dead:
            return
        with suppress(PowerLost):
            call()

    def pass_by(self, boundary: Boundary) -> None:
        """Go past a boundary, or end there.

        Raises:
            PowerLost: This life is over.
        """
        if self.server.doomed_at is boundary:
            self.server.doomed_at = None
            self.world.probe(f"server.crashed_{boundary.value}")
            self.server.crash(boundary.value)
            raise PowerLost

    def clock_ms(self) -> int:
        """Return the wall clock, which may jump, but not behind the last step."""
        return max(self.world.now_ms + self.server.clock_offset_ms, self.fleet.now_ms)

    def request_id(self) -> str:
        """Return a new id for a request."""
        self._request_count += 1
        return f"q{self.incarnation}-{self._request_count}"

    # -- beginning ---------------------------------------------------------------------------

    def begin(self) -> None:
        """Claim the disk, load what is on it, and say that we started."""
        rows = self.server.disk.rows
        self._epoch = rows.claim()
        self.pass_by(Boundary.AFTER_CLAIM_BEFORE_LOAD)
        loaded = self.server.disk.load()
        self.pass_by(Boundary.DURING_LOAD)
        self.fleet = fleet_of(loaded)
        self.server.checkers.loaded(self.fleet, loaded)
        self.pass_by(Boundary.AFTER_LOAD_BEFORE_START)
        self.observe(ServerStarted(version="sim"))
        self.world.after(_PRUNE_EVERY_MS, self._prune)

    # -- inbox -------------------------------------------------------------------------------

    def observe(self, one: AnyInput) -> None:
        """Put an observation in line."""
        self._inbox.append(Waiting(one))
        self._pump()

    def submit(self, request: AnyInput, answer: Callable[[Result | None], None]) -> None:
        """Put a request in line."""
        self._inbox.append(Waiting(request, answer))
        self._pump()

    def when_readable(self, reader: Callable[[], None]) -> None:
        """Read the committed fleet: now, or when the step under way is decided."""
        if self.fleet.open_delta is None:
            reader()
        else:
            self._readers.append(reader)

    def _pump(self) -> None:
        if not self._is_pumped and not self._is_busy and not self.is_dead:
            self._is_pumped = True
            self.world.after(self._rng.below(3), self.guard, self._step)

    # -- the step ----------------------------------------------------------------------------

    def _step(self) -> None:
        self._is_pumped = False
        if self._is_busy:
            return
        batch = [self._inbox.popleft() for _ in range(min(len(self._inbox), BATCH_COUNT_MAX))]
        inputs = [each.input for each in batch] or [AlarmRang()]
        checkers = self.server.checkers
        delta = step(self.fleet, inputs, self.clock_ms())
        checkers.stepped(self.fleet, delta, inputs)
        if not delta.is_durable:
            self._keep(delta, batch)
            return
        commit = commit_of(delta, inputs, leader_epoch=self._epoch, event_seq=self.fleet.event_seq)
        self.pass_by(Boundary.BEFORE_COMMIT)
        self._is_busy = True

        def decided(result: CommitResult) -> None:
            self.guard(lambda: self._committed(result, delta, batch))

        self.server.disk.commit(commit, decided)

    def _committed(self, result: CommitResult, delta: Delta, batch: list[Waiting]) -> None:
        self._is_busy = False
        match result:
            case CommitResult.DONE:
                self.pass_by(Boundary.AFTER_COMMIT_BEFORE_KEEP)
                self._keep(delta, batch)
            case CommitResult.FAILED:
                self._undo(delta, batch)
            case CommitResult.DOUBTFUL:
                # As the engine does: nothing else happens until the store can say where it stands.
                self._is_busy = True
                self.world.after(self._rng.between(100, 2_000), self._resolve, delta, batch)

    def _resolve(self, delta: Delta, batch: list[Waiting]) -> None:
        is_done = self.server.disk.revision == delta.revision
        result = CommitResult.DONE if is_done else CommitResult.FAILED
        self.guard(lambda: self._committed(result, delta, batch))

    def _undo(self, delta: Delta, batch: list[Waiting]) -> None:
        """Make a step that did not become durable undone, and pause before the next."""
        self.fleet.drop(delta)
        self.server.checkers.dropped(self.fleet)
        self._inbox.extendleft(reversed([each for each in batch if each.answer is None]))
        self._is_pumped = True
        self.world.after(_RETRY_COMMIT_MS, self.guard, self._step)
        self._read()
        for each in batch:
            if each.answer is not None:
                each.answer(None)

    def _keep(self, delta: Delta, batch: list[Waiting]) -> None:
        self.fleet.keep(delta)
        self.server.checkers.kept(self.fleet, delta)
        self.pass_by(Boundary.AFTER_KEEP_BEFORE_REPLY)
        self._reply(delta.replies, batch)
        self.pass_by(Boundary.AFTER_REPLY_BEFORE_PUBLISH)
        self.pass_by(Boundary.AFTER_PUBLISH_BEFORE_DISPATCH)
        self._end_links(delta)
        for dispatch in delta.dispatches:
            self._dispatch(dispatch)
            self.pass_by(Boundary.AFTER_DISPATCH_BEFORE_CALL)
        self._set_alarm()
        self._read()
        if self._inbox:
            self._pump()

    def _read(self) -> None:
        readers, self._readers = self._readers, []
        for reader in readers:
            reader()

    def _reply(self, replies: Sequence[Reply], batch: list[Waiting]) -> None:
        result_by_id = {reply.request_id: reply.result for reply in replies}
        for each in batch:
            if each.answer is not None and isinstance(each.input, Request):
                result = result_by_id.get(each.input.request_id)
                self.server.checkers.replied(self.fleet, each.input, result)
                each.answer(result)

    # -- effects -----------------------------------------------------------------------------

    def _dispatch(self, dispatch: Dispatch) -> None:
        self.server.checkers.dispatched(self.fleet, dispatch)
        command = dispatch.command
        match command:
            case LaunchMachine() | StopMachine() | CheckMachine() | ListMachines():
                self.server.cloud.call(dispatch.command_id, command, self._settles(dispatch))
            case (
                StartAllocation()
                | ConfigureAllocation()
                | AssignRole()
                | StopAllocation()
                | CheckReady()
                | EndLease()
            ):
                self.links.deliver(dispatch.command_id, command)
            case _:
                assert_never(command)

    def _settles(self, dispatch: Dispatch) -> Callable[[Outcome], None]:
        def settle(outcome: Outcome) -> None:
            if not self.is_dead:
                self.guard(lambda: self.pass_by(Boundary.AFTER_CALL_BEFORE_SETTLE))
                self.observe(CommandSettled(command_id=dispatch.command_id, outcome=outcome))

        return settle

    def _end_links(self, delta: Delta) -> None:
        """A retired node's agent is refused for good; a lost one's must say hello anew."""
        for (kind, key), record in delta.changes.items():
            if kind != Node.KIND:
                continue
            if not isinstance(record, Node) or record.phase is NodePhase.RETIRED:
                self.links.dismiss(key)
            elif record.health is Health.LOST:
                # Looked for every second, like silence.
                self.world.after(self._rng.below(LINK_WATCH_EVERY_MS), self._look_at_link, key)

    def _look_at_link(self, node_id: str) -> None:
        self.when_readable(lambda: self.links.look_at(node_id))

    def exec(self, lease_id: str, epoch: int, request_id: str) -> None:
        """Pass a lessee's command on, if the lease is held as its holder believes."""
        lease = self.fleet.leases.get(lease_id)
        if lease is None or lease.phase is not LeasePhase.HELD or lease.epoch != epoch:
            return
        self.links.exec(
            str(lease.node_id),
            wire.ExecStart(
                request_id=request_id,
                lease_id=lease_id,
                lease_epoch=epoch,
                argv=["work"],
                held_lease_ids=self.fleet.index.leases_by_node.keys(str(lease.node_id)),
            ),
        )

    # -- time --------------------------------------------------------------------------------

    def clock_jumped(self) -> None:
        """Look at the clock again."""
        self._alarm_at_ms = None
        self._set_alarm()

    def _set_alarm(self) -> None:
        at_ms = self.fleet.timers.next_at_ms()
        if at_ms is None or (self._alarm_at_ms is not None and self._alarm_at_ms <= at_ms):
            return
        self._alarm_at_ms = at_ms
        # The wall clock may lag behind the last step's: what counts is when it gets there.
        delay_ms = at_ms - self.world.now_ms - self.server.clock_offset_ms
        self.world.after(min(max(delay_ms, 1), _ALARM_MS_MAX), self.guard, self._alarm_rang)

    def _alarm_rang(self) -> None:
        self._alarm_at_ms = None
        at_ms = self.fleet.timers.next_at_ms()
        if at_ms is not None and at_ms <= self.clock_ms():
            self._pump()
        else:
            self._set_alarm()

    def _prune(self) -> None:
        settings = self.fleet.settings
        if self.is_dead:
            return
        self.guard(lambda: self.pass_by(Boundary.BEFORE_PRUNE))
        if settings is not None and not self.is_dead:
            self.server.disk.rows.prune(keep_of(settings.retention))
        self.world.after(_PRUNE_EVERY_MS, self._prune)
