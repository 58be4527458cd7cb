"""Admission: turns each bundle into the replicas that it asks for, and back into nothing.

Reads:    bundles, replicas, allocations, shifts.
Writes:   replicas (made, brought up to date, ended), allocations (band; asked to stop), bundles
          (observed generation; deleted), traces and rollouts (removed with their subject).
Sends:    StopAllocation, through `holds`.
Keeps:    INV-BUNDLE-1 (a replica's bundle exists), INV-REPLICA-4.
Waits on: DORMANT, OUTSIDE_TIMETABLE, STOPPED_BY_OPERATOR.

What can be taken over in place is taken over here; what runs a changed launch or requirement is
for `rollouts` to replace. A bundle is looked at when it changed, and while it is not yet as desired
also when its replicas or allocations did.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from typing import Any, Final

from hostler.base.ids import ReplicaId, replica_id, role_of
from hostler.core import claims, holds, migration
from hostler.core.desired import why_unwanted
from hostler.core.events import EventKind
from hostler.core.placement.demand import demand_digest
from hostler.core.rollout import is_outdated, spec_digest
from hostler.core.txn import Txn
from hostler.model import Allocation, Bundle, Replica, Shift
from hostler.model.bundle import BundlePhase, BundleTrigger, Job
from hostler.model.replica import ReplicaPhase, ReplicaTrigger

READS: Final = (Bundle, Replica, Allocation, Shift)

_P = ReplicaPhase
_WAITING = (_P.PENDING, _P.BACKING_OFF)
_GIVEN_UP = (_P.BROKEN, _P.DROPPED)


def reconcile(txn: Txn) -> None:
    """Bring each bundle that may be out of step nearer to what is desired of it."""
    for bundle in _bundles_to_look_at(txn):
        match bundle.phase:
            case BundlePhase.ACTIVE if bundle.service is None:
                _expand(txn, bundle)
            case BundlePhase.ACTIVE:
                pass  # node services have a controller of their own
            case BundlePhase.DELETING:
                _dissolve(txn, bundle)
            case BundlePhase.DELETED:
                pass


def _bundles_to_look_at(txn: Txn) -> list[Bundle]:
    changed = {bundle.bundle_id: bundle for bundle in txn.changed(Bundle)}
    for shift in txn.changed(Shift):
        changed[shift.bundle_id] = txn.fleet.bundles[shift.bundle_id]
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
    specs = {job.name: spec_digest(job) for job in bundle.jobs}
    roles = {job.name: _free_roles(txn, bundle, job) for job in bundle.jobs}
    for key, (job, index) in wanted.items():
        known = txn.fleet.replicas.get(key)
        if known is None:
            _create(txn, bundle, job, index, specs[job.name], next(roles[job.name]))
        elif known.phase is not _P.STOPPING:
            _bring_up_to_date(txn, bundle, job, known, specs[job.name])
    if is_done and not _has_outdated(txn, bundle):
        txn.change(bundle, observed_generation=bundle.generation)


def _free_roles(txn: Txn, bundle: Bundle, job: Job) -> Iterator[str]:
    """Give the roles that no copy has, from the first on; who is on the way out has none."""
    keys = (replica_id(bundle.bundle_id, job.name, n) for n in range(bundle.replica_count))
    known = (txn.fleet.replicas.get(key) for key in keys)
    taken = {each.role for each in known if each is not None and each.phase is not _P.STOPPING}
    return (role for index in count() if (role := role_of(index)) not in taken)


def _create(txn: Txn, bundle: Bundle, job: Job, index: int, spec: str, role: str) -> None:
    unwanted = why_unwanted(txn.fleet, bundle, job, None)
    txn.put(
        Replica(
            replica_id=ReplicaId(replica_id(bundle.bundle_id, job.name, index)),
            bundle_id=bundle.bundle_id,
            job=job.name,
            index=index,
            role=role,
            band=job.band,
            generation=bundle.generation,
            phase=_P.PENDING if unwanted is None else _P.DORMANT,
            phase_since_at_ms=txn.now_ms,
            reason=unwanted,
            waiting_since_at_ms=txn.now_ms,
            spec=spec,
            demand=demand_digest(bundle, job, role),
        )
    )


def _bring_up_to_date(txn: Txn, bundle: Bundle, job: Job, replica: Replica, spec: str) -> None:
    """Take over what can be taken over in place, and give a new spec a new chance."""
    allocation = _live(txn, replica)
    changes: dict[str, Any] = {
        "band": job.band,
        "spec": spec,
        "demand": demand_digest(bundle, job, replica.role),
    }
    if allocation is None or not is_outdated(txn.fleet, bundle, job, allocation):
        changes["generation"] = bundle.generation
    if replica.spec != spec:
        changes |= {"restarts": (), "avoided": (), "migration_retry_at_ms": 0}
        if replica.phase is _P.BACKING_OFF:
            changes["retry_at_ms"] = txn.now_ms
    if not job.is_dormant:
        changes["is_kept"] = False
    elif replica.phase is _P.PLACED and job.name not in bundle.switched:
        changes["is_kept"] = True
    for key in txn.fleet.index.allocations_by_replica.keys(replica.replica_id):
        txn.change(txn.fleet.allocations[key], band=job.band)  # while it is moved, of both
    is_renewed = replica.spec != spec
    replica = txn.change(replica, **changes)
    if is_renewed and replica.phase in _GIVEN_UP:
        replica = _let_want(txn, replica, ReplicaTrigger.CLEARED)
    _switch(txn, bundle, job, replica)


def _switch(txn: Txn, bundle: Bundle, job: Job, replica: Replica) -> None:
    """Let a replica want a place, or want none, as is desired of it now."""
    unwanted = why_unwanted(txn.fleet, bundle, job, replica)
    if unwanted is None:
        if replica.phase is _P.DORMANT:
            _let_want(txn, replica, ReplicaTrigger.STARTED)
        return
    if replica.phase in _WAITING:
        txn.move(
            replica, ReplicaTrigger.STOPPED, reason=unwanted, reason_detail="", retry_at_ms=None
        )
    elif replica.phase is _P.DORMANT:
        txn.change(replica, reason=unwanted, reason_detail="")
    elif replica.phase is _P.PLACED:
        migration.cancel(txn, replica, f"its job is off: {unwanted}")
        for key in txn.fleet.index.allocations_by_replica.keys(replica.replica_id):
            holds.request_stop(txn, txn.fleet.allocations[key], f"its job is off: {unwanted}")


def _let_want(txn: Txn, replica: Replica, trigger: ReplicaTrigger) -> Replica:
    return txn.move(replica, trigger, reason=None, reason_detail="", waiting_since_at_ms=txn.now_ms)


def _has_outdated(txn: Txn, bundle: Bundle) -> bool:
    """Say whether anything still runs, or is about to, that the bundle asks for no more."""
    fleet = txn.fleet
    if any(each.generation != bundle.generation for each in _replicas_of(txn, bundle)):
        return True  # also when what was outdated has ended within this very look
    for key in fleet.index.allocations_by_bundle.keys(bundle.bundle_id):
        allocation = fleet.allocations[key]
        job = bundle.job(allocation.job)
        if job is not None and is_outdated(fleet, bundle, job, allocation):
            return True
    return False


# -- and back ------------------------------------------------------------------------------------


def _dissolve(txn: Txn, bundle: Bundle) -> None:
    ended = [_end(txn, replica) for replica in _replicas_of(txn, bundle)]
    if all(ended):
        rollout = txn.fleet.rollouts.get(bundle.bundle_id)
        if rollout is not None:
            txn.remove(rollout)
        txn.emit(EventKind.BUNDLE_DELETED, {"bundle": bundle.bundle_id})
        txn.remove(txn.move(bundle, BundleTrigger.EMPTIED))


def _end(txn: Txn, replica: Replica) -> bool:
    """Bring a replica that is no longer wanted nearer to its end; return whether it is gone."""
    if replica.phase is not _P.STOPPING:
        claims.end(txn, replica, "it is no longer desired")
        replica = claims.let_go(txn, txn.fleet.replicas[replica.replica_id])
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
