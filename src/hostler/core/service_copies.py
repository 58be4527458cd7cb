"""The copies of a node service: begun on one node, ended there, and renewed when it has changed."""

from __future__ import annotations

from collections.abc import Iterator

from hostler.base.ids import AllocationId
from hostler.core import holds
from hostler.core.events import EventKind
from hostler.core.placement.feasible import standing_of
from hostler.core.placement.room import pick_devices, shortage
from hostler.core.services import missing_service, service_replica_id
from hostler.core.txn import Txn
from hostler.model import Allocation, Bundle, Node, Replica
from hostler.model.allocation import AllocationPhase
from hostler.model.replica import ReplicaPhase, ReplicaTrigger


def create(txn: Txn, node: Node, bundle: Bundle) -> Replica:
    """Write down that a service wants its copy on a node."""
    job = bundle.jobs[0]
    return txn.put(
        Replica(
            replica_id=service_replica_id(bundle, node.node_id),
            bundle_id=bundle.bundle_id,
            job=job.name,
            index=0,
            role="service",
            node_id=node.node_id,
            band=job.band,
            generation=bundle.generation,
            phase=ReplicaPhase.PENDING,
            phase_since_at_ms=txn.now_ms,
            waiting_since_at_ms=txn.now_ms,
        )
    )


def place(txn: Txn, node: Node, bundle: Bundle, replica: Replica) -> None:
    """Give a copy its place if the node has room for it, or write down why not."""
    job = bundle.jobs[0]
    room = txn.fleet.index.places.of(txn.fleet, node.node_id).room
    reason = standing_of(node) or shortage(job.requirement, room)
    if reason:
        txn.change(replica, reason=reason, reason_detail=f"on {node.node_id}")
        return
    missing = missing_service(node, job.requirement)
    allocation = Allocation(
        allocation_id=AllocationId(txn.mint("a")),
        replica_id=replica.replica_id,
        bundle_id=bundle.bundle_id,
        job=job.name,
        replica_index=0,
        role=replica.role,
        is_service=True,
        band=job.band,
        node_id=node.node_id,
        epoch=replica.epoch + 1,
        requirement=job.requirement,
        launch=job.launch,
        devices={} if missing else pick_devices(job.requirement, room),
        phase=AllocationPhase.RESERVED,
        phase_since_at_ms=txn.now_ms,
        created_at_ms=txn.now_ms,
    )
    allocation = holds.reserve(txn, allocation, node)
    if missing is None:
        holds.start(txn, allocation, txn.fleet.nodes[node.node_id])
    txn.move(
        replica,
        ReplicaTrigger.PLACED,
        epoch=allocation.epoch,
        place_id=allocation.allocation_id,
        generation=bundle.generation,
        reason=None,
        reason_detail="",
    )
    txn.emit(
        EventKind.REPLICA_PLACED,
        {
            "replica": replica.replica_id,
            "bundle": bundle.bundle_id,
            "allocation": allocation.allocation_id,
            "node": node.node_id,
            "pool": node.pool,
        },
        role=replica.role,
        tier=node.tier,
        epoch=allocation.epoch,
        is_recovery=replica.is_recovery,
        degraded_by="",
    )


def end(txn: Txn, replica: Replica) -> bool:
    """Bring a copy that is not wanted nearer to its end; return whether it is gone."""
    if replica.phase is not ReplicaPhase.STOPPING:
        replica = txn.move(replica, ReplicaTrigger.DELETED, reason=None, retry_at_ms=None)
    copy = live(txn, replica)
    if copy is not None and holds.request_stop(txn, copy, "it is not wanted here").is_live:
        return False
    txn.remove(txn.move(replica, ReplicaTrigger.EMPTIED))
    return True


def live(txn: Txn, replica: Replica) -> Allocation | None:
    """Return the copy itself, while it is there."""
    keys = txn.fleet.index.allocations_by_replica.keys(replica.replica_id)
    return txn.fleet.allocations[keys[0]] if keys else None


def renew(txn: Txn, bundle: Bundle) -> None:
    """Replace copies of an old launch, one after the other over the whole fleet."""
    job = bundle.jobs[0]
    outdated: list[Allocation] = []
    is_steady = True
    for replica in _copies(txn, bundle):
        copy = live(txn, replica)
        if replica.phase in (ReplicaPhase.BROKEN, ReplicaPhase.STOPPING):
            continue
        if copy is None:
            is_steady = is_steady and replica.epoch == 0
        elif copy.launch != job.launch or copy.requirement != job.requirement:
            outdated.append(copy)
        else:
            is_steady = is_steady and copy.phase is AllocationPhase.READY
    idle = [each for each in outdated if each.phase is not AllocationPhase.READY]
    for copy in idle or (outdated[:1] if is_steady else []):
        holds.request_stop(txn, copy, f"generation {bundle.generation} replaces it")
    if not outdated:
        _give_new_chance(txn, bundle)
        txn.change(bundle, observed_generation=bundle.generation)


def _give_new_chance(txn: Txn, bundle: Bundle) -> None:
    """Let copies be tried again that broke before the service was changed."""
    for replica in _copies(txn, bundle):
        if replica.phase is ReplicaPhase.BROKEN and replica.generation != bundle.generation:
            txn.move(
                replica,
                ReplicaTrigger.CLEARED,
                generation=bundle.generation,
                restarts=(),
                reason=None,
                waiting_since_at_ms=txn.now_ms,
            )


def _copies(txn: Txn, bundle: Bundle) -> Iterator[Replica]:
    for key in txn.fleet.index.replicas_by_bundle.keys(bundle.bundle_id):
        yield txn.fleet.replicas[key]
