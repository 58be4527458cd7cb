"""A control plane in a world that outlives it, and a story that it has to bring to an end.

The world is a cloud and the agents on its machines. The story is told by a client that asks again,
with the same key, whenever it got no answer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hostler.base.errors import Failed
from hostler.base.ids import BundleId, LeaseId
from hostler.core.fleet import Fleet
from hostler.core.fleet_settings import FleetSettings
from hostler.core.inputs import (
    AcquireLease,
    AnyRequest,
    ApplyConfiguration,
    DeleteBundle,
    ReleaseLease,
    SubmitBundle,
)
from hostler.core.replies import Accepted, Result
from hostler.engine.boundaries import Boundary, BoundaryHook, pass_by
from hostler.engine.engine import Engine
from hostler.engine.keys import Keys
from hostler.model import Lease, Pool
from hostler.model.node import NodePhase
from hostler.model.replica import ReplicaPhase
from hostler.model.settings import RecoveryLimits, Retention
from hostler.ports.clock import Clock
from hostler.ports.store import Store
from hostler.providers.registry import Registry
from hostler.testing.builders import a_job, a_pool, an_elastic_tier
from hostler.testing.fake_agents import FakeAgents
from hostler.testing.fake_provider import FakeCloud, fake_provider_kind
from hostler.testing.virtual_time import pass_ms

KEYS = Keys(b"k" * 32)
WITHIN_MS = 60_000
IDLE_MS = 400_000
"""Long enough for nodes that nobody needs to go, and for old history to be pruned."""


def settings(**changes: Any) -> FleetSettings:
    given: dict[str, Any] = {
        "heartbeat_ms": 5_000,
        "suspect_after_ms": 15_000,
        "fence_after_ms": 35_000,
        "lost_after_ms": 60_000,
        "list_every_ms": 60_000,
        "orphan_grace_ms": 120_000,
        "lost_node_count_max": 20,
        "brake_window_ms": 300_000,
        "recovery": RecoveryLimits(),
        "retention": Retention(),
    }
    return FleetSettings(**{**given, **changes})


def configuration(*pools: Pool, **changes: Any) -> ApplyConfiguration:
    return ApplyConfiguration(
        request_id="configure",
        principal="operator",
        fleet_id="f-ours",
        settings=settings(**changes),
        pools=pools,
    )


class World:
    """What is outside: it goes on when the server dies."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.cloud = FakeCloud()
        self.agents = FakeAgents(self.cloud, clock)

    def memory(self) -> tuple[FakeCloud, FakeAgents]:
        """Give what the world remembers, to be pickled."""
        return self.cloud, self.agents

    def remember(self, memory: tuple[FakeCloud, FakeAgents]) -> None:
        """Go on as the world was in another process."""
        self.cloud, self.agents = memory

    def engine(self, store: Store, boundary: BoundaryHook = pass_by) -> Engine:
        engine = Engine(
            store,
            Registry(Path("unused"), self.clock, {"fake": fake_provider_kind(self.cloud)}),
            KEYS,
            self.clock,
            server_url="http://server",
            boundary=boundary,
        )
        engine.attach(self.agents)
        return engine


@dataclass(frozen=True)
class Ending:
    """What must be the same, however often the server died on the way."""

    node_phases: dict[str, int]
    replica_phases: dict[str, str]
    lease_outcomes: dict[str, str]
    outbox: list[str]
    machines_born: int
    machines_existing: int
    starts: dict[str, int]


class Story:
    """A client's story, from a configuration to an idle fleet."""

    def __init__(self, engine_now: Callable[[], Engine], idle_ms: int = IDLE_MS) -> None:
        self._engine_now = engine_now
        self._idle_ms = idle_ms

    async def ask(self, request: AnyRequest) -> Result:
        """Ask until there is an answer."""
        while True:
            try:
                return await self._engine_now().submit(request)
            except Failed:
                await pass_ms(10)

    async def until(self, is_so: Callable[[Fleet], bool], what: str) -> None:
        """Wait until the committed fleet is so."""
        for _ in range(WITHIN_MS // 10):
            try:
                if await self._engine_now().read(is_so):
                    return
            except Failed:
                pass
            await pass_ms(10)
        fleet = await self._engine_now().read(lambda fleet: fleet)
        raise AssertionError(f"never: {what}: {sorted(fleet.commands.rows)} {fleet.notes}")

    async def tell(self) -> None:
        pool = a_pool("p", warm_count=1, tiers=(an_elastic_tier(provider="fake"),))
        await self.ask(configuration(pool))
        await self.ask(
            SubmitBundle(
                request_id="submit",
                principal="operator",
                bundle_id=BundleId("live"),
                pool="p",
                jobs=(a_job("main"),),
                replica_count=2,
            )
        )
        await self.until(lambda fleet: _all_ready(fleet, 2), "both replicas run")
        acquired = await self.ask(
            AcquireLease(
                request_id="acquire",
                principal="lessee",
                pool="p",
                timeout_ms=WITHIN_MS,
                idempotency_key="once",
            )
        )
        assert isinstance(acquired, Accepted), acquired
        lease_id = LeaseId(acquired.subject_id)
        await self.until(lambda fleet: _phase(fleet, lease_id) == "held", "the lease is held")
        await self.ask(ReleaseLease(request_id="release", principal="lessee", lease_id=lease_id))
        await self.ask(
            DeleteBundle(request_id="delete", principal="operator", bundle_id=BundleId("live"))
        )
        await self.until(lambda fleet: not len(fleet.bundles), "the bundle is forgotten")
        await pass_ms(self._idle_ms)
        await self.until(_is_quiet, "nothing is under way")


def _all_ready(fleet: Fleet, count: int) -> bool:
    placed = [r for r in fleet.replicas.rows.values() if r.phase is ReplicaPhase.PLACED]
    return len(placed) == count == fleet.index.allocations_by_phase.count("ready")


def _phase(fleet: Fleet, lease_id: str) -> str:
    lease: Lease | None = fleet.leases.get(lease_id)
    return "" if lease is None else lease.phase.value


def _is_quiet(fleet: Fleet) -> bool:
    starting = (NodePhase.REQUESTED, NodePhase.STARTING, NodePhase.DRAINING, NodePhase.STOPPING)
    return not len(fleet.commands) and not any(
        fleet.index.nodes_by_phase.count(phase.value) for phase in starting
    )


def ending_of(fleet: Fleet, world: World) -> Ending:
    return Ending(
        node_phases=dict(Counter(node.phase.value for node in fleet.nodes.in_order())),
        replica_phases={r.replica_id: r.phase.value for r in fleet.replicas.in_order()},
        lease_outcomes={x.lease_id: str(x.outcome) for x in fleet.leases.in_order()},
        outbox=sorted(fleet.commands.rows),
        machines_born=len(world.cloud.bill),
        machines_existing=len(world.cloud.existing(world.clock.now_ms())),
        starts={f"{key[0]}@{key[1]}": count for key, count in sorted(world.agents.starts.items())},
    )


class Crash(BaseException):
    """The power goes. Not an `Exception`: nothing that handles errors may handle this."""


class PowerSwitch:
    """A boundary hook that counts, and crashes at one passage; after that nothing passes."""

    def __init__(self, at: Boundary | None = None, passage: int = 1) -> None:
        self.counts: Counter[Boundary] = Counter()
        self.is_off = False
        self._at = at
        self._passage = passage

    def __call__(self, boundary: Boundary) -> None:
        self.counts[boundary] += 1
        if boundary is self._at and self.counts[boundary] == self._passage:
            self.is_off = True
        if self.is_off:
            raise Crash(boundary.value)
