"""The engine's face: what the API, the simulator and an embedding program may do with it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TypeVar

import structlog

import hostler
from hostler.base.errors import Failed, check
from hostler.base.ids import NodeId, ReplicaId
from hostler.core.delta import Delta
from hostler.core.explain.alterations import Alteration
from hostler.core.fleet import Fleet
from hostler.core.inputs import AnyInput, AnyRequest, ServerStarted, SubmitBundle
from hostler.core.planning import Plan, plan
from hostler.core.replies import Refused, Result
from hostler.engine import limits
from hostler.engine.boundaries import Boundary, BoundaryHook, pass_by
from hostler.engine.dispatch import Dispatcher
from hostler.engine.dry_run import DryRun, dry_run
from hostler.engine.gauges import Gauges
from hostler.engine.history import Moment, PastExplanation, explain_past, find_step
from hostler.engine.keys import Keys
from hostler.engine.loop import Loop
from hostler.engine.provider_calls import ProviderCalls
from hostler.engine.publish import Publisher, Subscription, Watches
from hostler.engine.recover import recover
from hostler.engine.time_zones import read_time_zones
from hostler.engine.upkeep import prune_now_and_then, scan_now_and_then
from hostler.model import Node, Settings, Token
from hostler.model.node import NodePhase
from hostler.model.record import Record
from hostler.ports.agents import AgentGateway, Nobody
from hostler.ports.clock import Clock
from hostler.ports.store import LifeRow, Store, StoredEvent
from hostler.providers.registry import Registry

T = TypeVar("T")

_log = structlog.get_logger(__name__)


class Engine:
    """One running control plane. Built by `hostler.engine.assemble.assemble`.

    Attributes:
        clock: What time it is for this fleet.
        keys: The server's key, for credentials.
        gauges: What the engine counts of itself.
        registry: The providers that there are.
    """

    def __init__(
        self,
        store: Store,
        registry: Registry,
        keys: Keys,
        clock: Clock,
        *,
        server_url: str,
        boundary: BoundaryHook = pass_by,
    ) -> None:
        self.clock = clock
        self.keys = keys
        self.gauges = Gauges()
        self.registry = registry
        self._store = store
        self._server_url = server_url
        self._boundary = boundary
        self._agents: AgentGateway = Nobody()
        self._publisher = Publisher(store)
        self._watches = Watches()
        self._loop: Loop | None = None
        self._dispatcher: Dispatcher | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._node_followers: list[Callable[[Node], None]] = []
        self._ended: asyncio.Future[BaseException | None] | None = None
        self._looking_back = asyncio.Lock()

    def attach(self, agents: AgentGateway) -> None:
        """Tell the engine who reaches agents; before `start`. Without it nobody is reached."""
        check(self._loop is None, "engine_started", "attach the agents before the start")
        self._agents = agents

    def follow_nodes(self, follower: Callable[[Node], None]) -> None:
        """Have somebody told of every node that has changed, once that is durable."""
        self._node_followers.append(follower)

    # -- starting and stopping ---------------------------------------------------------------

    async def start(self) -> None:
        """Recover from the store, claim it, and begin to work.

        Raises:
            StoreRefused: The store cannot be used as it stands; tell the operator.
        """
        check(self._loop is None, "engine_started", "an engine starts once")
        self._ended = asyncio.get_running_loop().create_future()
        recovered = await recover(self._store, self._boundary)
        self.gauges.started_at_ms = self.clock.now_ms()
        self.gauges.tally.begin(recovered.fleet)
        self._publisher.begin_after(recovered.fleet.event_seq)
        self._boundary(Boundary.AFTER_LOAD_BEFORE_START)
        self._loop = Loop(
            recovered.fleet,
            self._store,
            self.clock,
            self,
            leader_epoch=recovered.leader_epoch,
            gauges=self.gauges,
            boundary=self._boundary,
        )
        self._dispatcher = Dispatcher(
            ProviderCalls(self.registry, self.keys, self._server_url),
            self._agents,
            self.observe,
            gauges=self.gauges,
            on_defect=self._end,
            boundary=self._boundary,
        )
        zones = read_time_zones(recovered.fleet.time_zones.rows, self.clock.now_ms())
        await self._loop.inbox.put_observations(
            [ServerStarted(version=hostler.__version__, time_zones=zones)]
        )
        for work in (
            self._loop.run(),
            prune_now_and_then(self._store, self._settings, self._boundary),
            scan_now_and_then(self.observe),
        ):
            task = asyncio.create_task(work)
            task.add_done_callback(self._on_task_end)
            self._tasks.append(task)

    def _on_task_end(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (error := task.exception()) is not None:
            self._end(error)

    def _end(self, error: BaseException | None) -> None:
        """Accept nothing more, and tell everybody who waits."""
        if self._ended is None or self._ended.done():
            return
        self._ended.set_result(error)
        stopped = _stopped(error)
        if self._loop is not None:
            self._loop.stop()
            self._loop.fail(stopped)
        self._publisher.end(stopped)
        self._watches.end(stopped)
        if error is not None:
            _log.error("engine_failed", error=str(error), exc_info=error)

    async def stop(self) -> None:
        """Finish the step under way, settle nothing more, close store and providers."""
        if self._loop is not None:
            self._loop.stop()
            await asyncio.wait(self._tasks[:1], timeout=limits.STOP_MS_MAX / 1_000)
        await self._end_tasks()
        await self.registry.close()
        await self._store.close()

    async def abandon(self) -> None:
        """Stop where it stands, as a kill would; whoever has the store may start another engine."""
        await self._end_tasks()

    async def _end_tasks(self) -> None:
        self._end(None)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._dispatcher is not None:
            await self._dispatcher.close()

    async def wait_stopped(self) -> None:
        """Return when the engine has been stopped.

        Raises:
            Defect: It stopped itself; the process must exit, and the restart recovers.
            Failed: It lost its leadership, or the store for good; likewise.
        """
        check(self._ended is not None, "engine_not_started", "start the engine first")
        if self._ended is not None:
            error = await asyncio.shield(self._ended)
            if error is not None:
                raise error

    # -- asking ------------------------------------------------------------------------------

    async def plan(self, submission: SubmitBundle) -> Plan:
        """Return what would follow from submitting a bundle, and remember that it was said.

        Raises:
            Failed: The engine has stopped.
        """
        loop = self._working()
        made = await loop.read(lambda fleet: plan(fleet, submission, self.clock.now_ms()))
        loop.recent.remember(submission, made)
        return made

    async def submit_planned(self, submission: SubmitBundle, revision: int) -> Result:
        """As `submit`, if what was planned at a revision is still what would happen."""
        loop = self._working()

        def guard(fleet: Fleet) -> Refused | None:
            return loop.recent.stale(fleet, submission, revision, self.clock.now_ms())

        return await loop.inbox.put_request(submission, guard)

    async def submit(self, request: AnyRequest) -> Result:
        """Return the answer to a request, once it is durable. `request_id` must be new.

        Raises:
            Failed: Not accepted (`overloaded`, `store_full`, `engine_stopped`, ...): the effect is
                none, except where the error says that it is unknown.
        """
        return await self._working().inbox.put_request(request)

    async def observe(self, *inputs: AnyInput) -> None:
        """Take note of what was seen; returns when there is room for it, before it is durable.

        Raises:
            Failed: The engine has stopped.
        """
        await self._working().inbox.put_observations(inputs)

    async def read(self, reader: Callable[[Fleet], T]) -> T:
        """Run a reader on the committed fleet, between two steps. It must neither wait nor write.

        Raises:
            Failed: The engine has stopped.
        """
        return await self._working().read(reader)

    def peek(self, kind: str, key: str) -> Record | None:
        """Return one committed record at once, also while a step is on its way to the store.

        Raises:
            Failed: The engine has stopped.
        """
        return self._working().fleet.committed(kind, key)

    def tokens(self) -> list[Token]:
        """Return all committed tokens, in no order; as `peek`."""
        found = [self.peek(Token.KIND, key) for key in self._working().fleet.tokens.rows]
        return [token for token in found if isinstance(token, Token)]

    def token_of(self, sha256: str) -> Token | None:
        """Return the token whose secret has this hash; as `peek`."""
        for key in self._working().fleet.index.tokens_by_hash.keys(sha256):
            found = self.peek(Token.KIND, key)
            if isinstance(found, Token):
                return found
        return None

    async def _settings(self) -> Settings | None:
        return await self.read(lambda fleet: fleet.settings)

    async def dry_run(self, *inputs: AnyInput) -> DryRun:
        """Say what would follow from these inputs now, without doing it.

        Raises:
            Failed: The engine has stopped.
        """
        return await self.read(lambda fleet: dry_run(fleet, inputs, self.clock.now_ms()))

    async def explain_past(
        self,
        moment: Moment,
        replica_id: ReplicaId,
        node_id: NodeId | None = None,
        given: Sequence[Alteration] = (),
    ) -> PastExplanation:
        """Make the decision of a past step about a replica again, beside the loop.

        Raises:
            Rejected: The journal does not reach back so far, there was no such replica or node, or
                an altered fact does not go with what was.
            Failed: The engine has stopped, or the store cannot be read.
        """
        self._working()
        # One at a time: each is a second fleet in memory.
        async with self._looking_back:
            past = await find_step(self._store, moment)
            return await asyncio.to_thread(explain_past, past, replica_id, node_id, given)

    async def life(self, subject: str, before_seq: int | None, limit: int) -> Sequence[LifeRow]:
        """Return events of the life of one thing, `node/n-000001`, the newest first.

        Raises:
            Failed: The engine has stopped, or the store cannot be read.
        """
        self._working()
        return await self._store.life(subject, before_seq, limit)

    def subscribe(self, after_seq: int | None = None) -> Subscription:
        """Follow committed events after a position; `None`: from now on.

        A snapshot and the stream join without a gap: take `fleet.event_seq` in the same `read` as
        the snapshot, and subscribe after it.
        """
        return Subscription(
            self._publisher, self._publisher.last_seq if after_seq is None else after_seq
        )

    async def watch(
        self,
        kind: str,
        key: str,
        until: Callable[[Record | None], bool],
        timeout_ms: int,
    ) -> Record | None:
        """Return a record once its committed value is as wanted, else as it is at the timeout.

        Costs nothing while nothing changes; `until` sees `None` for a record that is not there.

        Raises:
            Failed: The engine has stopped.
        """
        name = (kind, key)

        def look(fleet: Fleet) -> asyncio.Future[Record | None] | Record | None:
            found: Record | None = fleet.tables[kind].get(key)
            return found if until(found) else self._watches.add(name, until)

        seen = await self.read(look)
        if not isinstance(seen, asyncio.Future):
            return seen
        try:
            async with asyncio.timeout(timeout_ms / 1_000):
                return await seen
        except TimeoutError:
            return await self.read(lambda fleet: fleet.tables[kind].get(key))
        finally:
            self._watches.remove(name, seen)

    async def check(self) -> None:
        """Return if the engine works and its store answers: the readiness probe.

        Raises:
            HostlerError: It does not, and the message says why.
        """
        self._working()
        await self._store.check()

    def _working(self) -> Loop:
        if self._loop is None or self._ended is None:
            raise Failed("engine_not_started", "the server has not started yet", retry_after_ms=500)
        if self._ended.done():
            raise _stopped(self._ended.result())
        return self._loop

    # -- what follows from a durable step ----------------------------------------------------

    def tell(self, delta: Delta, events: Sequence[StoredEvent]) -> None:
        """Let followers and watchers know; called by the loop."""
        self._watches.changed(delta.changes.items())
        self._publisher.publish(events)

    def dispatch(self, fleet: Fleet, delta: Delta) -> None:
        """Let commands leave; called by the loop."""
        if self._dispatcher is not None:
            self._dispatcher.send(fleet, delta.dispatches)
        for (kind, _), record in delta.changes.items():
            if kind == Node.KIND and isinstance(record, Node):
                self._dismiss_if_retired(record)
                for follower in self._node_followers:
                    follower(record)

    def _dismiss_if_retired(self, node: Node) -> None:
        if node.phase is NodePhase.RETIRED:
            self._agents.dismiss(node.node_id, "the node is retired")


def _stopped(error: BaseException | None) -> Failed:
    """Say to whoever still asks that there is no engine any more."""
    if error is None:
        return Failed("engine_stopped", "the server is stopping", retry_after_ms=2_000)
    return Failed("engine_failed", "the server has stopped itself", retry_after_ms=2_000)
