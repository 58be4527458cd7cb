"""The engine on a file: restarting with a large fleet, growing one, and leasing durably."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Final

from bench.registry import at_least, at_most, benchmark, stopwatch
from hostler.base.encoding import digest, encode
from hostler.base.ids import (
    AllocationId,
    BundleId,
    LeaseId,
    NodeId,
    ReplicaId,
    numbered,
    replica_id,
    role_of,
)
from hostler.core.fleet_settings import FleetSettings
from hostler.core.inputs import AcquireLease, ApplyConfiguration, ReleaseLease
from hostler.core.placement.demand import demand_digest
from hostler.core.replies import Accepted
from hostler.engine.clock import SystemClock
from hostler.engine.engine import Engine
from hostler.engine.keys import Keys
from hostler.model import (
    Allocation,
    Bundle,
    Node,
    Pool,
    Record,
    Replica,
    Settings,
    Trace,
)
from hostler.model.allocation import AllocationPhase
from hostler.model.replica import ReplicaPhase
from hostler.model.settings import Preemption, RecoveryLimits, Retention
from hostler.model.trace import Attempt, Candidate, Decision
from hostler.ports.store import Commit
from hostler.providers.registry import Registry
from hostler.store.codec import put
from hostler.store.open import open_store
from hostler.testing.builders import a_fixed_tier, a_job, a_node, a_pool, an_elastic_tier
from hostler.testing.fake_agents import FakeAgents
from hostler.testing.fake_provider import FakeCloud, fake_provider_kind

NODES: Final = 10_000
REPLICAS_PER_BUNDLE: Final = 10
ALLOCATIONS: Final = 100_000
GROWN: Final = 1_000
LEASES: Final = 2_000
CLIENTS: Final = 64


# -- restarting ----------------------------------------------------------------------------------


def _large_fleet() -> Iterator[Record]:
    """Yield the records of a fleet in which everything runs, with the traces of how it came so."""
    job = a_job(capacity=1)
    pool = a_pool("p", tiers=(a_fixed_tier("own"),))
    yield Settings(fleet_id="f-bench")
    yield pool
    per_node = ALLOCATIONS // NODES
    demand = ""
    for index in range(NODES):
        yield a_node(
            _node_id(index),
            incarnation=1,
            allocation_count=per_node,
            idle_since_at_ms=None,
        )
    for index in range(ALLOCATIONS):
        number, copy = divmod(index, REPLICAS_PER_BUNDLE)
        bundle_id = BundleId(f"bundle-{number:05d}")
        if copy == 0:
            bundle = Bundle(
                bundle_id=bundle_id,
                pool="p",
                jobs=(job,),
                replica_count=REPLICAS_PER_BUNDLE,
                observed_generation=1,
                phase_since_at_ms=0,
            )
            demand = demand_digest(bundle, job, 0)
            yield bundle
        name = replica_id(bundle_id, job.name, copy)
        node_id = _node_id(index % NODES)
        yield Replica(
            replica_id=name,
            bundle_id=bundle_id,
            job=job.name,
            index=copy,
            role=role_of(copy),
            band=job.band,
            generation=1,
            spec=digest(encode((job.launch, job.requirement))),
            demand=demand,
            phase=ReplicaPhase.PLACED,
            phase_since_at_ms=0,
            epoch=1,
        )
        yield Allocation(
            allocation_id=AllocationId(numbered("a", index)),
            replica_id=name,
            bundle_id=bundle_id,
            job=job.name,
            replica_index=copy,
            role=role_of(copy),
            band=job.band,
            node_id=node_id,
            epoch=1,
            requirement=job.requirement,
            launch=job.launch,
            phase=AllocationPhase.READY,
            phase_since_at_ms=0,
            created_at_ms=0,
            started_at_ms=1,
            ready_at_ms=None,
        )
        yield _trace(name, node_id)


def _node_id(index: int) -> NodeId:
    return NodeId(numbered("n", index + 1))


def _trace(name: ReplicaId, node_id: NodeId) -> Trace:
    scored = Candidate(node_id=node_id, score=(0, 1, 2, 3))
    attempt = Attempt(
        pool="p",
        tier="own",
        candidate_count=NODES,
        filtered_count=NODES - 5,
        scored_count=5,
        filtered_by_reason={"capacity": NODES - 5},
        scored=(scored,) * 5,
        outcome="placed",
    )
    decision = Decision(
        at_ms=0, is_recovery=False, outcome="placed", node_id=node_id, attempts=(attempt,)
    )
    return Trace(replica_id=name, decisions=(decision,))


async def _write_large_fleet(folder: Path) -> None:
    store = await open_store(_url(folder))
    await store.commit(Commit(1, 1, 0, [put(record) for record in _large_fleet()]))
    await store.close()


def _url(folder: Path) -> str:
    return f"sqlite:///{folder}/hostler.db"


_RESTART: Final = """
import asyncio, json, resource, sys, time
from pathlib import Path
from bench.bench_engine import restart
began_s = time.perf_counter()
asyncio.run(restart(Path(sys.argv[1])))
took_s = time.perf_counter() - began_s
print(json.dumps([took_s, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024]))
"""


async def restart(folder: Path) -> None:
    """Start an engine on a file and return when its start is durable and it answers."""
    engine = await _engine(folder, FakeCloud())
    await engine.start()
    if not await engine.read(lambda fleet: len(fleet.allocations)) == ALLOCATIONS:
        raise AssertionError("the fleet is not whole")
    await engine.watch(Node.KIND, _node_id(0), _is_listened_to, 60_000)
    await engine.stop()


def _is_listened_to(node: Record | None) -> bool:
    return isinstance(node, Node) and node.silent_since_at_ms is not None


async def _restarted(folder: Path) -> tuple[float, float]:
    """Restart in a process of its own; return seconds and bytes of memory at the most."""
    await _write_large_fleet(folder)
    done = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-c", _RESTART, str(folder)],
        cwd=Path(__file__).parent.parent,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    took_s, memory_bytes = json.loads(done.stdout.splitlines()[-1])
    return took_s, memory_bytes


@benchmark("engine_restart_110k_seconds", unit="s", budget=at_most(8), runs=3)
async def restart_seconds(scratch: Path) -> float:
    """From opening the file to a durable start: 10,000 nodes, 100,000 allocations, their traces."""
    return (await _restarted(scratch))[0]


@benchmark("engine_restart_110k_memory", unit="MB", budget=at_most(1_200), runs=1)
async def restart_memory(scratch: Path) -> float:
    """The most memory that the process had by then."""
    return (await _restarted(scratch))[1] / 1e6


# -- growing and leasing -------------------------------------------------------------------------


async def _engine(folder: Path, cloud: FakeCloud) -> Engine:
    clock = SystemClock()
    return Engine(
        await open_store(_url(folder)),
        Registry(folder / "providers", clock, {"fake": fake_provider_kind(cloud)}),
        Keys.ephemeral(),
        clock,
        server_url="http://server",
    )


def _configuration(pool: Pool) -> ApplyConfiguration:
    return ApplyConfiguration(
        request_id="configure",
        principal="bench",
        fleet_id="f-bench",
        settings=FleetSettings(
            heartbeat_ms=5_000,
            suspect_after_ms=15_000,
            fence_after_ms=35_000,
            lost_after_ms=60_000,
            list_every_ms=60_000,
            orphan_grace_ms=120_000,
            lost_node_count_max=20,
            brake_window_ms=300_000,
            ageing_ms=3_600_000,
            preemption=Preemption(),
            recovery=RecoveryLimits(),
            retention=Retention(),
        ),
        pools=(pool,),
    )


async def _grown(folder: Path, node_count: int) -> tuple[Engine, float]:
    """Start an engine and let it grow a warm pool; return it with the seconds that this took."""
    cloud = FakeCloud()
    engine = await _engine(folder, cloud)
    agents = FakeAgents(cloud, engine.clock)
    engine.attach(agents)
    await engine.start()
    agents.attach(engine)
    tier = an_elastic_tier(node_count_max=node_count)
    pool = a_pool("p", tiers=(tier,), warm_count=node_count, launch_count_max=node_count)
    with stopwatch() as watch:
        await engine.submit(_configuration(pool))
        follower = engine.subscribe(0)
        ready = 0
        while ready < node_count:
            ready += sum(b'"node_ready"' in event.body for event in await follower.take())
    return engine, watch.seconds


@benchmark("engine_grow_1000_nodes", unit="s", budget=at_most(1))
async def grow_1000_nodes(scratch: Path) -> float:
    """From a configuration to 1,000 warm nodes whose agents have said hello, all durable."""
    engine, took_s = await _grown(scratch, GROWN)
    await engine.stop()
    return took_s


@benchmark("engine_grow_per_node_ratio", unit="", budget=at_most(1.5), runs=3)
async def grow_is_flat(scratch: Path) -> float:
    """Cost per node of 1,000 at once over that of 250 at once."""
    few, many = GROWN // 4, GROWN
    (scratch / "few").mkdir()
    (scratch / "many").mkdir()
    engine, few_s = await _grown(scratch / "few", few)
    await engine.stop()
    engine, many_s = await _grown(scratch / "many", many)
    await engine.stop()
    return (many_s / many) / (few_s / few)


@benchmark("engine_lease_rate", unit="1/s", budget=at_least(1_000))
async def lease_rate(scratch: Path) -> float:
    """Durable acquire and release by 64 clients at once, without HTTP."""
    engine, _ = await _grown(scratch, CLIENTS)
    numbers = count()

    async def client() -> None:
        while (number := next(numbers)) < LEASES:
            acquired = await engine.submit(
                AcquireLease(request_id=f"a{number}", principal="x", pool="p", timeout_ms=60_000)
            )
            if not isinstance(acquired, Accepted):
                raise AssertionError(acquired)
            await engine.watch("lease", acquired.subject_id, _is_held, 60_000)
            await engine.submit(
                ReleaseLease(
                    request_id=f"r{number}",
                    principal="x",
                    lease_id=LeaseId(acquired.subject_id),
                )
            )

    with stopwatch() as watch:
        await asyncio.gather(*[client() for _ in range(CLIENTS)])
    await engine.stop()
    return LEASES / watch.seconds


def _is_held(record: Record | None) -> bool:
    return getattr(record, "node_id", None) is not None
