"""Placing in the core: what one decision costs, and what follows a change.

A decision is everything from a replica's demand to the verdict with its trace: every filter on
every node of the tier, counts per reason, the best candidates. Nodes have four named GPUs each,
work is of eight kinds, half of them with shares of GPUs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any, Final

import msgspec

from bench.registry import at_least, at_most, benchmark, percentile, stopwatch
from hostler.base.ids import AllocationId, BundleId, replica_id
from hostler.core.fleet import Fleet
from hostler.core.inputs import FullScan, InventoryReported, SubmitBundle
from hostler.core.placement.demand import demand_of
from hostler.core.placement.room import pick_devices
from hostler.core.placement.walk import Verdict, decide
from hostler.core.step import step
from hostler.core.txn import Txn
from hostler.model import Allocation, Node, Replica, Settings
from hostler.model.allocation import AllocationPhase
from hostler.model.constraint import Affinity, Peers, SpreadOver, SpreadRule
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

    def __init__(
        self, node_count: int, more: Callable[[int], dict[str, Any]] = lambda _: {}
    ) -> None:
        self.more = more
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
            request_id=f"r{number}",
            principal="bench",
            pool="p",
            **{**given, **self.more(number), **fields},
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

    def take(self, txn: Txn, number: int, like: Replica) -> None:
        """Decide for a new replica of a bundle of its own, and put it where that says."""
        bundle_id = BundleId(f"taken-{number}")
        replica = msgspec.structs.replace(
            like, replica_id=replica_id(bundle_id, like.job, 0), bundle_id=bundle_id
        )
        bundle = msgspec.structs.replace(self.fleet.bundles[like.bundle_id], bundle_id=bundle_id)
        (job,) = bundle.jobs
        demand = demand_of(self.fleet, bundle, job, replica, self.now_ms)
        option = decide(demand, self.fleet, lambda *_: None).option
        assert option is not None
        assert option.place is not None
        node = option.place.node
        allocation = Allocation(
            allocation_id=AllocationId(f"taken-{number}"),
            replica_id=replica.replica_id,
            bundle_id=bundle_id,
            job=job.name,
            replica_index=0,
            role=replica.role,
            band=job.band,
            node_id=node.node_id,
            epoch=1,
            requirement=job.requirement,
            launch=job.launch,
            devices=pick_devices(job.requirement, option.place.room),
            phase=AllocationPhase.STARTING,
            phase_since_at_ms=txn.now_ms,
            created_at_ms=txn.now_ms,
        )
        txn.put(allocation)
        txn.change(node, allocation_count=node.allocation_count + 1)


def decision_us(
    node_count: int, more: Callable[[int], dict[str, Any]] = lambda _: {}, **fields: Any
) -> float:
    """Return the median of decisions; before every eighth, a step takes places on the fleet.

    Args:
        node_count: Size of the fleet.
        more: Fields of the submission of each number.
        fields: Fields of every submission.
    """
    yard = Yard(node_count, more)
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


@benchmark("core_placement_decision_10k_nodes_apart", unit="us", budget=at_most(200), runs=3)
def decision_apart(_scratch: Path) -> float:
    """The same, and each apart from three other bundles, by node."""

    def fields(number: int) -> dict[str, Any]:
        peers = Peers(labels={"service": f"s{number // 4}"})
        wish = Affinity(over=SpreadOver.NODE, is_apart=True, is_required=True, peers=peers)
        job = a_job(requirement=a_requirement(number % KINDS), affinities=(wish,))
        return {"jobs": (job,), "labels": peers.labels}

    rule = SpreadRule(over=SpreadOver.ZONE, is_required=True)
    return decision_us(10_000, fields, replica_count=3, spread=(rule,))


@benchmark("core_placement_decision_rate", unit="1/s", runs=3)
def decision_rate(_scratch: Path) -> float:
    """Decisions in a row on 10,000 nodes, nothing changing between them: the least one costs."""
    yard = Yard(10_000)
    yard.fill(400)
    replicas = list(yard.fleet.replicas.rows.values())
    with stopwatch() as watch:
        for _ in range(10):
            for replica in replicas:
                yard.decide(replica)
    return 10 * len(replicas) / watch.seconds


@benchmark("core_placement_sustained_rate", unit="1/s", budget=at_least(8_000), runs=3)
def sustained_rate(_scratch: Path) -> float:
    """Decisions of eight kinds in turn on 10,000 nodes, each taking its place before the next.

    Its place means the allocation with its devices and the node's count, with all indexes; left out
    is what a step does beside: submission, replica, trace, command, events (`..._step_rate`).
    """
    yard = Yard(10_000)
    yard.fill(400)
    replicas = list(yard.fleet.replicas.rows.values())
    txn = Txn(yard.fleet, yard.now_ms)
    with stopwatch() as watch:
        for number in range(DECISIONS * 2):
            yard.take(txn, number, replicas[number % len(replicas)])
    yard.fleet.keep(txn.close())
    return DECISIONS * 2 / watch.seconds


@benchmark("core_placement_step_rate", unit="1/s", runs=3)
def step_rate(_scratch: Path) -> float:
    """Replicas placed in whole steps of a hundred, from the submission to the command."""
    yard = Yard(10_000)
    yard.fill(400)
    seconds = [yard.run(*(yard.submission() for _ in range(100))) for _ in range(10)]
    return 1_000 / sum(seconds)


@benchmark("core_placement_pending_ratio", unit="", budget=at_most(1.5), runs=3)
def pending_ratio(_scratch: Path) -> float:
    """Cost of a placement while 10,000 replicas wait that fit nowhere, over that while 10 do."""
    many, few = _yard_with_waiting(10_000), _yard_with_waiting(10)
    # In turn, so that both see the same machine.
    times = [(many.run(many.submission()), few.run(few.submission())) for _ in range(400)]
    beside_many, beside_few = (percentile(each, 50) for each in zip(*times, strict=True))
    return beside_many / beside_few


def _yard_with_waiting(waiting_count: int) -> Yard:
    yard = Yard(1_000)
    huge = a_job(requirement=Requirement(capacity=101))
    for start in range(0, waiting_count, 1_000):
        few = min(1_000, waiting_count - start)
        yard.run(*(yard.submission(jobs=(huge,)) for _ in range(few)))
    yard.fill(100)
    return yard


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
