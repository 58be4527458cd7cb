"""Placing in the core: what one decision costs, and what follows a change.

A decision is everything from a replica's demand to the verdict with its trace: every filter on
every node of the tier, counts per reason, the best candidates. Nodes have four named GPUs each,
work is of eight kinds, half of them with shares of GPUs.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any, Final

import msgspec

from bench.registry import at_least, at_most, benchmark, percentile, stopwatch
from hostler.base.ids import BundleId
from hostler.core.fleet import Fleet
from hostler.core.inputs import FullScan, InventoryReported, SubmitBundle
from hostler.core.placement.demand import demand_of
from hostler.core.placement.walk import Verdict, decide
from hostler.core.step import step
from hostler.model import Node, Replica, Settings
from hostler.model.constraint import SpreadOver, SpreadRule
from hostler.model.replica import ReplicaPhase
from hostler.model.shape import Capability, CapabilityRequest, Device, Requirement, Shape
from hostler.testing.builders import a_fixed_tier, a_job, a_node, a_pool

DECISIONS: Final = 1_000
KINDS: Final = 8
GIB: Final = 2**30


def a_shape(number: int) -> Shape:
    """Return a node's shape; every third has other GPUs."""
    model = "l4" if number % 3 == 0 else "a10"
    return Shape(
        capacity=100,
        cores_milli=64_000,
        memory_bytes=256 * GIB,
        capabilities=(Capability(name="gpu", count=4, attributes={"model": model}),),
        devices=tuple(Device(kind="gpu", device_id=str(each)) for each in range(4)),
    )


def a_requirement(kind: int) -> Requirement:
    """Return one of eight kinds of work."""
    share = CapabilityRequest(name="gpu", milli=125 * (kind + 1))
    return Requirement(
        capacity=1,
        cores_milli=1_000 * (kind + 1),
        memory_bytes=GIB,
        capabilities=(share,) if kind % 2 else (),
    )


class Yard:
    """A fleet of one fixed tier, and work for it."""

    def __init__(self, node_count: int) -> None:
        self.fleet = Fleet()
        self.now_ms = 1_000
        self._numbers: Iterator[int] = count()
        nodes: list[Node] = [
            a_node(f"n-{number:06d}", shape=a_shape(number), zone=f"z{number % 7}", incarnation=1)
            for number in range(1, node_count + 1)
        ]
        records = [Settings(fleet_id="f-bench"), a_pool(tiers=(a_fixed_tier(),)), *nodes]
        self.fleet.load(records, revision=1, event_seq=0, now_ms=0)
        self.run(FullScan())

    def run(self, *inputs: Any) -> float:
        """Make a step, keep it, and return how many seconds it took."""
        with stopwatch() as watch:
            delta = step(self.fleet, inputs, self.now_ms)
        self.fleet.keep(delta)
        return watch.seconds

    def submission(self, **fields: Any) -> SubmitBundle:
        """Return the next piece of work."""
        number = next(self._numbers)
        given: dict[str, Any] = {
            "jobs": (a_job(requirement=a_requirement(number % KINDS)),),
            "bundle_id": BundleId(f"b{number}"),
        }
        return SubmitBundle(
            request_id=f"r{number}", principal="bench", pool="p", **{**given, **fields}
        )

    def fill(self, bundle_count: int, **fields: Any) -> None:
        """Place so many bundles."""
        for _ in range(0, bundle_count, 100):
            self.run(*(self.submission(**fields) for _ in range(100)))

    def decide(self, replica: Replica) -> Verdict:
        """Decide for a replica as the placing controller does."""
        bundle = self.fleet.bundles[replica.bundle_id]
        job = bundle.job(replica.job)
        assert job is not None
        demand = demand_of(self.fleet, bundle, job, replica, self.now_ms)
        return decide(demand, self.fleet, lambda *_: None)


def decision_us(node_count: int, **fields: Any) -> float:
    """Return the median of decisions; before every eighth, a step takes places on the fleet."""
    yard = Yard(node_count)
    yard.fill(400, **fields)
    times: list[float] = []
    for _ in range(DECISIONS // 10):
        yard.run(*(yard.submission(**fields) for _ in range(KINDS)))
        for replica in list(yard.fleet.replicas.rows.values())[-KINDS:]:
            asked = msgspec.structs.replace(replica, phase=ReplicaPhase.PENDING)
            began = time.perf_counter()
            yard.decide(asked)
            times.append(time.perf_counter() - began)
    return percentile(times, 50) * 1e6


@benchmark("core_placement_decision_10k_nodes", unit="us", budget=at_most(100), runs=3)
def decision_10k(_scratch: Path) -> float:
    """One decision, 10,000 nodes."""
    return decision_us(10_000)


@benchmark("core_placement_decision_100k_nodes", unit="us", budget=at_most(400), runs=1)
def decision_100k(_scratch: Path) -> float:
    """The same, 100,000 nodes."""
    return decision_us(100_000)


@benchmark("core_placement_decision_10k_nodes_spread", unit="us", budget=at_most(200), runs=3)
def decision_spread(_scratch: Path) -> float:
    """The third of three replicas that are to be in zones of their own."""
    rule = SpreadRule(over=SpreadOver.ZONE, is_required=True)
    return decision_us(10_000, replica_count=3, spread=(rule,))


@benchmark("core_placement_decision_rate", unit="1/s", budget=at_least(8_000), runs=3)
def decision_rate(_scratch: Path) -> float:
    """Decisions in a row on 10,000 nodes."""
    yard = Yard(10_000)
    yard.fill(400)
    replicas = list(yard.fleet.replicas.rows.values())
    with stopwatch() as watch:
        for _ in range(10):
            for replica in replicas:
                yard.decide(replica)
    return 10 * len(replicas) / watch.seconds


@benchmark("core_placement_step_rate", unit="1/s", runs=3)
def step_rate(_scratch: Path) -> float:
    """Replicas placed in whole steps of a hundred, records and commands included."""
    yard = Yard(10_000)
    yard.fill(400)
    seconds = [yard.run(*(yard.submission() for _ in range(100))) for _ in range(10)]
    return 1_000 / sum(seconds)


@benchmark("core_inventory_10k_pending", unit="ms", budget=at_most(2), runs=3)
def inventory(_scratch: Path) -> float:
    """One node's inventory, with 10,000 nodes and 10,000 replicas that fit on none."""
    yard = Yard(10_000)
    huge = a_job(requirement=Requirement(capacity=101))
    for _ in range(10):
        yard.run(*(yard.submission(jobs=(huge,)) for _ in range(1_000)))
    node = yard.fleet.nodes["n-005000"]
    shapes = [msgspec.structs.replace(node.shape, cores_milli=60_000 + n) for n in range(51)]
    times = [yard.run(InventoryReported(node_id=node.node_id, shape=each)) for each in shapes]
    return percentile(times, 50) * 1e3
