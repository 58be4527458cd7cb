"""A large fleet in which everything runs, as records for a store."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from hostler.base.encoding import digest, encode
from hostler.base.ids import (
    AllocationId,
    BundleId,
    NodeId,
    ReplicaId,
    numbered,
    replica_id,
    role_of,
)
from hostler.core.placement.demand import demand_digest
from hostler.model import Allocation, Bundle, Counter, Record, Replica, Settings, Trace
from hostler.model.allocation import AllocationPhase
from hostler.model.replica import ReplicaPhase
from hostler.model.trace import Attempt, Candidate, Decision
from hostler.ports.store import Commit
from hostler.store.codec import put
from hostler.store.open import open_store
from hostler.testing.builders import a_fixed_tier, a_job, a_node, a_pool

REPLICAS_PER_BUNDLE: Final = 10


async def write_large_fleet(
    folder: Path,
    node_count: int,
    bundle_count: int,
    node_of: Callable[[int, int], int],
    **node: object,
) -> None:
    """Write a fleet to a file; copy `c` of bundle `b` is on the node of number `node_of(b, c)`."""
    records = _records(node_count, bundle_count, node_of, **node)
    store = await open_store(url(folder))
    await store.commit(Commit(1, 1, 0, [put(record) for record in records]))
    await store.close()


def url(folder: Path) -> str:
    """Return where the store is."""
    return f"sqlite:///{folder}/hostler.db"


def node_id_of(number: int) -> NodeId:
    """Return a node's id."""
    return NodeId(numbered("n", number + 1))


def _records(
    node_count: int, bundle_count: int, node_of: Callable[[int, int], int], **node: Any
) -> Iterator[Record]:
    """Yield the records, with the traces of how it all came so."""
    job = a_job(capacity=1)
    yield Settings(fleet_id="f-bench")
    yield a_pool("p", tiers=(a_fixed_tier("own"),))
    yield Counter(name="a", value=bundle_count * REPLICAS_PER_BUNDLE)
    copies = range(REPLICAS_PER_BUNDLE)
    counts = [0] * node_count
    for number in range(bundle_count):
        for copy in copies:
            counts[node_of(number, copy)] += 1
    for number, count in enumerate(counts):
        yield a_node(
            node_id_of(number),
            incarnation=1,
            allocation_count=count,
            idle_since_at_ms=None if count else 0,
            **node,
        )
    for number in range(bundle_count):
        bundle = Bundle(
            bundle_id=BundleId(f"bundle-{number:05d}"),
            pool="p",
            jobs=(job,),
            replica_count=REPLICAS_PER_BUNDLE,
            observed_generation=1,
            phase_since_at_ms=0,
        )
        yield bundle
        for copy in copies:
            index = number * REPLICAS_PER_BUNDLE + copy
            yield from _running(bundle, copy, index, node_id_of(node_of(number, copy)))


def _running(bundle: Bundle, copy: int, index: int, node_id: NodeId) -> Iterator[Record]:
    (job,) = bundle.jobs
    name, allocation_id = replica_id(bundle.bundle_id, job.name, copy), numbered("a", index)
    yield Replica(
        replica_id=name,
        bundle_id=bundle.bundle_id,
        job=job.name,
        index=copy,
        role=role_of(copy),
        band=job.band,
        generation=1,
        spec=digest(encode((job.launch, job.requirement))),
        demand=demand_digest(bundle, job, role_of(copy)),
        phase=ReplicaPhase.PLACED,
        phase_since_at_ms=0,
        epoch=1,
        place_id=AllocationId(allocation_id),
    )
    yield Allocation(
        allocation_id=AllocationId(allocation_id),
        replica_id=name,
        bundle_id=bundle.bundle_id,
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


def _trace(name: ReplicaId, node_id: NodeId) -> Trace:
    scored = Candidate(node_id=node_id, score=(0, 1, 2, 3))
    attempt = Attempt(
        pool="p",
        tier="own",
        candidate_count=10_000,
        filtered_count=9_995,
        scored_count=5,
        filtered_by_reason={"capacity": 9_995},
        scored=(scored,) * 5,
        outcome="placed",
    )
    decision = Decision(
        at_ms=0, is_recovery=False, outcome="placed", node_id=node_id, attempts=(attempt,)
    )
    return Trace(replica_id=name, decisions=(decision,))
