"""The engine on a file: restarting with a large fleet, growing one, and leasing durably."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from itertools import count
from pathlib import Path
from typing import Final

from bench.large_fleet import REPLICAS_PER_BUNDLE, node_id_of, url, write_large_fleet
from bench.registry import at_least, at_most, benchmark, stopwatch
from hostler.base.ids import LeaseId
from hostler.core.fleet_settings import FleetSettings
from hostler.core.inputs import AcquireLease, ApplyConfiguration, ReleaseLease, SilenceNoticed
from hostler.core.replies import Accepted
from hostler.engine.clock import SystemClock
from hostler.engine.engine import Engine
from hostler.engine.keys import Keys
from hostler.model import Node, Pool, Record, Replica
from hostler.model.settings import Preemption, RecoveryLimits, Retention
from hostler.model.shape import Shape
from hostler.providers.registry import Registry
from hostler.store.open import open_store
from hostler.testing.builders import a_pool, an_elastic_tier
from hostler.testing.fake_agents import FakeAgents
from hostler.testing.fake_provider import FakeCloud, fake_provider_kind

NODES: Final = 10_000
ALLOCATIONS: Final = 100_000
GROWN: Final = 1_000
LEASES: Final = 2_000
CLIENTS: Final = 64
LOST_NODES: Final = 5_000
LOST_REPLICAS: Final = 100


# -- restarting ----------------------------------------------------------------------------------


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
    await engine.watch(Node.KIND, node_id_of(0), _is_listened_to, 60_000)
    await engine.stop()


def _is_listened_to(node: Record | None) -> bool:
    return isinstance(node, Node) and node.silent_since_at_ms is not None


async def _restarted(folder: Path) -> tuple[float, float]:
    """Restart in a process of its own; return seconds and bytes of memory at the most."""
    await write_large_fleet(
        folder,
        NODES,
        ALLOCATIONS // REPLICAS_PER_BUNDLE,
        lambda number, copy: (number * REPLICAS_PER_BUNDLE + copy) % NODES,
    )
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


# -- losing a node ---------------------------------------------------------------------------------


@benchmark("engine_lost_node_100_replicas", unit="ms", budget=at_most(250), runs=3)
async def lost_node(scratch: Path) -> float:
    """One of 5,000 nodes is lost, and its 100 replicas have places on others, all durable."""
    lost = node_id_of(0)

    def node_of(number: int, copy: int) -> int:
        """Put the first copy of the first hundred on one node, and all others elsewhere."""
        is_lost = number < LOST_REPLICAS and copy == 0
        return 0 if is_lost else 1 + (number * REPLICAS_PER_BUNDLE + copy) % (LOST_NODES - 1)

    await write_large_fleet(
        scratch, LOST_NODES, 1_000, node_of, shape=Shape(capacity=LOST_REPLICAS)
    )
    engine = await _engine(scratch, FakeCloud())
    engine.attach(FakeAgents(FakeCloud(), engine.clock))
    await engine.start()
    await engine.watch(Node.KIND, lost, _is_listened_to, 60_000)
    displaced = [f"bundle-{number:05d}/main/0" for number in range(LOST_REPLICAS)]
    with stopwatch() as watch:
        await engine.observe(SilenceNoticed(node_id=lost, since_at_ms=1))
        for name in displaced:
            await engine.watch(Replica.KIND, name, _is_placed_again, 60_000)
    await engine.stop()
    return watch.seconds * 1e3


def _is_placed_again(replica: Record | None) -> bool:
    return isinstance(replica, Replica) and replica.epoch > 1


# -- growing and leasing -------------------------------------------------------------------------


async def _engine(folder: Path, cloud: FakeCloud) -> Engine:
    clock = SystemClock()
    return Engine(
        await open_store(url(folder)),
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
