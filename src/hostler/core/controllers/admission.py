"""Admission: turns each bundle into the replicas that it asks for, and back into nothing.

Reads:    bundles, replicas, allocations.
Writes:   replicas (made, brought up to date, ended), allocations (band; asked to stop), bundles
          (observed generation; deleted), traces (removed with their replica).
Sends:    StopAllocation, through `holds`.
Keeps:    INV-BUNDLE-1 (a replica's bundle exists), INV-REPLICA-4.
Waits on: DORMANT.

A changed launch or requirement replaces what runs, one replica of a job at a time and the primary
last; anything else is taken over in place. The next one goes only when everything of the job that
had a place is ready again: a bundle that does not come up stays as it is, for the most part. A
bundle is looked at when it changed, and while it is not yet as desired also when its replicas or
allocations did.
"""

from __future__ import annotations

from typing import Any, Final

from hostler.base.encoding import digest, encode
from hostler.base.ids import ReplicaId, replica_id, role_of
from hostler.core import holds
from hostler.core.events import EventKind
from hostler.core.placement.demand import demand_digest, pools_of
from hostler.core.txn import Txn
from hostler.model import Allocation, Bundle, Replica
from hostler.model.allocation import AllocationPhase
from hostler.model.bundle import BundlePhase, BundleTrigger, Job
from hostler.model.reason import Reason
from hostler.model.replica import ReplicaPhase, ReplicaTrigger

READS: Final = (Bundle, Replica, Allocation)

_P = ReplicaPhase
_WAITING = (_P.PENDING, _P.BACKING_OFF)
_GIVEN_UP = (_P.BROKEN, _P.DROPPED)


def reconcile(txn: Txn) -> None:
    """Bring each bundle that may be out of step nearer to what is desired of it."""
    for bundle in _bundles_to_look_at(txn):
        match bundle.phase:
            case BundlePhase.ACTIVE:
                _expand(txn, bundle)
            case BundlePhase.DELETING:
                _dissolve(txn, bundle)
            case BundlePhase.DELETED:
                pass


def _bundles_to_look_at(txn: Txn) -> list[Bundle]:
    changed = {bundle.bundle_id: bundle for bundle in txn.changed(Bundle)}
    ids = [replica.bundle_id for replica in txn.changed(Replica)]
    ids += [allocation.bundle_id for allocation in txn.changed(Allocation)]
    for bundle_id in dict.fromkeys(ids):
        bundle = txn.fleet.bundles.get(bundle_id)
        if bundle is not None and not _is_as_desired(bundle):
            changed[bundle_id] = bundle
    return list(changed.values())


def _is_as_desired(bundle: Bundle) -> bool:
    is_active = bundle.phase is BundlePhase.ACTIVE
    return is_active and bundle.observed_generation == bundle.generation


# -- there ---------------------------------------------------------------------------------------


def _expand(txn: Txn, bundle: Bundle) -> None:
    wanted = {
        replica_id(bundle.bundle_id, job.name, index): (job, index)
        for job in bundle.jobs
        for index in range(bundle.replica_count)
    }
    is_done = True
    for replica in _replicas_of(txn, bundle):
        if replica.replica_id not in wanted or replica.phase is _P.STOPPING:
            is_done = _end(txn, replica) and is_done
    specs = {job.name: _spec_digest(job) for job in bundle.jobs}
    for key, (job, index) in wanted.items():
        known = txn.fleet.replicas.get(key)
        if known is None:
            _create(txn, bundle, job, index, specs[job.name])
        elif known.phase is not _P.STOPPING:
            _bring_up_to_date(txn, bundle, job, known, specs[job.name])
    for job in bundle.jobs:
        is_done = _roll(txn, bundle, job) and is_done
    if is_done:
        txn.change(bundle, observed_generation=bundle.generation)


def _create(txn: Txn, bundle: Bundle, job: Job, index: int, spec: str) -> None:
    txn.put(
        Replica(
            replica_id=ReplicaId(replica_id(bundle.bundle_id, job.name, index)),
            bundle_id=bundle.bundle_id,
            job=job.name,
            index=index,
            role=role_of(index),
            band=job.band,
            generation=bundle.generation,
            phase=_P.DORMANT if job.is_dormant else _P.PENDING,
            phase_since_at_ms=txn.now_ms,
            reason=Reason.DORMANT if job.is_dormant else None,
            waiting_since_at_ms=txn.now_ms,
            spec=spec,
            demand=demand_digest(bundle, job, index),
        )
    )


def _bring_up_to_date(txn: Txn, bundle: Bundle, job: Job, replica: Replica, spec: str) -> None:
    """Take over what can be taken over in place, and give a new spec a new chance."""
    allocation = _live(txn, replica)
    changes: dict[str, Any] = {
        "band": job.band,
        "spec": spec,
        "demand": demand_digest(bundle, job, replica.index),
    }
    if allocation is None or not _is_outdated(txn, bundle, job, allocation):
        changes["generation"] = bundle.generation
    if replica.spec != spec:
        changes |= {"restart_at_ms": (), "avoided": ()}
        if replica.phase is _P.BACKING_OFF:
            changes["retry_at_ms"] = txn.now_ms
    if job.is_dormant and replica.phase is _P.PLACED:
        changes["is_started"] = True
    if allocation is not None and allocation.band is not job.band:
        txn.change(allocation, band=job.band)
    is_renewed = replica.spec != spec
    replica = txn.change(replica, **changes)
    if is_renewed and replica.phase in _GIVEN_UP:
        replica = _let_want(txn, replica, ReplicaTrigger.CLEARED)
    if job.is_dormant and not replica.is_started and replica.phase in _WAITING:
        txn.move(replica, ReplicaTrigger.STOPPED, reason=Reason.DORMANT, retry_at_ms=None)
    elif not job.is_dormant and replica.phase is _P.DORMANT:
        _let_want(txn, replica, ReplicaTrigger.STARTED)


def _let_want(txn: Txn, replica: Replica, trigger: ReplicaTrigger) -> Replica:
    return txn.move(replica, trigger, reason=None, reason_detail="", waiting_since_at_ms=txn.now_ms)


def _roll(txn: Txn, bundle: Bundle, job: Job) -> bool:
    """Replace the next replica of a job that runs an old spec; return whether none does."""
    outdated: list[Allocation] = []
    is_steady = True
    for index in range(bundle.replica_count):
        replica = txn.fleet.replicas[replica_id(bundle.bundle_id, job.name, index)]
        allocation = _live(txn, replica)
        if allocation is None:
            # Who never had a place is not missed; who had one is, unless it was given up.
            had_place = replica.epoch > 0 and replica.phase in (*_WAITING, _P.PLACED)
            is_steady = is_steady and not had_place
        elif replica.phase is _P.PLACED and _is_outdated(txn, bundle, job, allocation):
            outdated.append(allocation)
        else:
            is_steady = is_steady and allocation.phase is AllocationPhase.READY
    serving = [each for each in outdated if each.phase is AllocationPhase.READY]
    for allocation in outdated:
        if allocation not in serving:
            is_steady = False
            holds.request_stop(txn, allocation, f"generation {bundle.generation} replaces it")
    if is_steady and serving:
        holds.request_stop(txn, serving[-1], f"generation {bundle.generation} replaces it")
    return not outdated


def _is_outdated(txn: Txn, bundle: Bundle, job: Job, allocation: Allocation) -> bool:
    node = txn.fleet.nodes.get(allocation.node_id)
    return (
        allocation.launch != job.launch
        or allocation.requirement != job.requirement
        or (node is not None and node.pool not in pools_of(bundle))
    )


def _spec_digest(job: Job) -> str:
    return digest(encode((job.launch, job.requirement)))


# -- and back ------------------------------------------------------------------------------------


def _dissolve(txn: Txn, bundle: Bundle) -> None:
    ended = [_end(txn, replica) for replica in _replicas_of(txn, bundle)]
    if all(ended):
        txn.emit(EventKind.BUNDLE_DELETED, {"bundle": bundle.bundle_id})
        txn.remove(txn.move(bundle, BundleTrigger.EMPTIED))


def _end(txn: Txn, replica: Replica) -> bool:
    """Bring a replica that is no longer wanted nearer to its end; return whether it is gone."""
    if replica.phase is not _P.STOPPING:
        replica = txn.move(
            replica, ReplicaTrigger.DELETED, reason=None, retry_at_ms=None, migration=None
        )
    for key in txn.fleet.index.allocations_by_replica.keys(replica.replica_id):
        holds.request_stop(txn, txn.fleet.allocations[key], "it is no longer desired")
    if txn.fleet.index.allocations_by_replica.count(replica.replica_id):
        return False
    trace = txn.fleet.traces.get(replica.replica_id)
    if trace is not None:
        txn.remove(trace)
    txn.remove(txn.move(replica, ReplicaTrigger.EMPTIED))
    return True


def _replicas_of(txn: Txn, bundle: Bundle) -> list[Replica]:
    keys = txn.fleet.index.replicas_by_bundle.keys(bundle.bundle_id)
    return [txn.fleet.replicas[key] for key in keys]


def _live(txn: Txn, replica: Replica) -> Allocation | None:
    keys = txn.fleet.index.allocations_by_replica.keys(replica.replica_id)
    return txn.fleet.allocations[keys[0]] if keys else None
