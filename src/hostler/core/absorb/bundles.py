"""What operators say about bundles: submitted, deleted, a job started."""

from __future__ import annotations

from hostler.base.ids import BundleId
from hostler.core.admissible import problems_of
from hostler.core.events import EventKind
from hostler.core.inputs import DeleteBundle, StartJob, SubmitBundle
from hostler.core.replies import Refused
from hostler.core.txn import Txn
from hostler.model import Bundle, Replica
from hostler.model.bundle import BundlePhase, BundleTrigger
from hostler.model.replica import ReplicaPhase, ReplicaTrigger

_STARTS = {
    ReplicaPhase.DORMANT: ReplicaTrigger.STARTED,
    ReplicaPhase.DROPPED: ReplicaTrigger.CLEARED,
    ReplicaPhase.BROKEN: ReplicaTrigger.CLEARED,
}


def submit(txn: Txn, one: SubmitBundle) -> None:
    """Write down what is desired of a bundle, whole; asking for what is desired changes nothing."""
    problems = problems_of(txn.fleet, one)
    if problems:
        message = f"{problems[0].path}: {problems[0].message}"
        if len(problems) > 1:
            message = f"{message} (and {len(problems) - 1} more)"
        txn.reply(
            one.request_id,
            Refused(code="bundle_invalid", message=message, problems=tuple(problems)),
        )
        return
    known = txn.fleet.bundles.get(one.bundle_id)
    if known is not None and known.phase is not BundlePhase.ACTIVE:
        txn.refuse(
            one.request_id,
            "bundle_deleting",
            "a bundle of this name is being deleted; submit it again when it is gone",
            is_conflict=True,
        )
        return
    desired = _desired(txn, one, known)
    if desired == known:
        txn.accept(one.request_id, one.bundle_id, is_repeat=True)
        return
    txn.put(desired)
    txn.emit(
        EventKind.BUNDLE_SUBMITTED if known is None else EventKind.BUNDLE_CHANGED,
        {"bundle": one.bundle_id, "pool": one.pool, "principal": one.principal},
        generation=desired.generation,
    )
    txn.accept(one.request_id, one.bundle_id)


def _desired(txn: Txn, one: SubmitBundle, known: Bundle | None) -> Bundle:
    """Return the bundle as asked for: the known one where that asks for nothing else."""

    def bundle(generation: int, submitted_by: str) -> Bundle:
        return Bundle(
            bundle_id=one.bundle_id,
            pool=one.pool,
            jobs=one.jobs,
            replica_count=one.replica_count,
            fallback_pools=one.fallback_pools,
            fallback=one.fallback,
            is_gang=one.is_gang,
            spread=one.spread,
            is_primary_interruptible=one.is_primary_interruptible,
            disruption_budgets=one.disruption_budgets,
            labels=one.labels,
            generation=generation,
            observed_generation=0 if known is None else known.observed_generation,
            phase=BundlePhase.ACTIVE,
            phase_since_at_ms=txn.now_ms if known is None else known.phase_since_at_ms,
            submitted_by=submitted_by,
        )

    if known is None:
        return bundle(1, one.principal)
    if bundle(known.generation, known.submitted_by) == known:
        return known
    return bundle(known.generation + 1, one.principal)


def delete(txn: Txn, one: DeleteBundle) -> None:
    """Write down that nothing of a bundle is desired any more."""
    bundle = _bundle(txn, one.request_id, one.bundle_id)
    if bundle is None:
        return
    is_repeat = bundle.phase is not BundlePhase.ACTIVE
    if not is_repeat:
        txn.move(bundle, BundleTrigger.DELETION_REQUESTED)
        txn.emit(
            EventKind.BUNDLE_DELETION_REQUESTED,
            {"bundle": bundle.bundle_id, "principal": one.principal},
        )
    txn.accept(one.request_id, bundle.bundle_id, is_repeat=is_repeat)


def start_job(txn: Txn, one: StartJob) -> None:
    """Write down that an operator wants a job's replicas to run, whatever became of them."""
    bundle = _bundle(txn, one.request_id, one.bundle_id)
    if bundle is None:
        return
    job = bundle.job(one.job)
    if job is None:
        txn.refuse(
            one.request_id, "job_not_found", "the bundle has no job of this name", is_missing=True
        )
        return
    if bundle.phase is not BundlePhase.ACTIVE:
        txn.refuse(
            one.request_id, "bundle_deleting", "the bundle is being deleted", is_conflict=True
        )
        return
    replicas = [
        txn.fleet.replicas[key]
        for key in txn.fleet.index.replicas_by_bundle.keys(bundle.bundle_id)
        if txn.fleet.replicas[key].job == job.name
    ]
    started = [_start(txn, replica) for replica in replicas]
    txn.accept(one.request_id, bundle.bundle_id, is_repeat=not any(started))


def _start(txn: Txn, replica: Replica) -> bool:
    trigger = _STARTS.get(replica.phase)
    if trigger is None:
        return False
    txn.move(
        replica,
        trigger,
        is_started=True,
        reason=None,
        reason_detail="",
        restart_at_ms=(),
        avoided=(),
        waiting_since_at_ms=txn.now_ms,
    )
    return True


def _bundle(txn: Txn, request_id: str, bundle_id: BundleId) -> Bundle | None:
    """Return the bundle, or refuse the request and return `None`."""
    bundle = txn.fleet.bundles.get(bundle_id)
    if bundle is None:
        txn.refuse(
            request_id, "bundle_not_found", "there is no bundle of this name", is_missing=True
        )
    return bundle
