"""What operators say about bundles: submitted, deleted, jobs started or stopped, reset."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from hostler.base.ids import BundleId
from hostler.core import rollout
from hostler.core.absorb.time_zones import keep_time_zones
from hostler.core.admissible import problems_of
from hostler.core.events import EventKind
from hostler.core.inputs import DeleteBundle, ResetBundle, SubmitBundle
from hostler.core.job_config import numbered
from hostler.core.job_inputs import ConfigureJob, StartJob, StopJob
from hostler.core.replies import Refused
from hostler.core.txn import Txn
from hostler.model import Bundle, Replica
from hostler.model.bundle import BundlePhase, BundleTrigger, Job
from hostler.model.replica import ReplicaPhase, ReplicaTrigger

_CLEARED = {
    ReplicaPhase.BACKING_OFF: ReplicaTrigger.RETRY_DUE,
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
    generation = 0 if known is None else known.generation
    if _has_changed(txn, one, generation):
        return
    keep_time_zones(txn, one.time_zones)
    desired = _desired(txn, one, known)
    if desired == known:
        txn.accept(one.request_id, one.bundle_id, is_repeat=True)
        return
    txn.put(desired)
    if known is not None:
        rollout.note_change(txn, known, desired, one.principal)
    txn.emit(
        EventKind.BUNDLE_SUBMITTED if known is None else EventKind.BUNDLE_CHANGED,
        {"bundle": one.bundle_id, "pool": one.pool, "principal": one.principal},
        generation=desired.generation,
    )
    txn.accept(one.request_id, one.bundle_id)


def _has_changed(txn: Txn, one: SubmitBundle | ConfigureJob, generation: int) -> bool:
    """Refuse a change to what is not there any more; say whether that was so."""
    if one.if_generation in (None, generation):
        return False
    txn.refuse(
        one.request_id,
        "bundle_changed",
        f"the bundle is at generation {generation}, not {one.if_generation}: look at what has"
        " changed, and make your change to that",
        is_conflict=True,
    )
    return True


def _desired(txn: Txn, one: SubmitBundle, known: Bundle | None) -> Bundle:
    """Return the bundle as asked for: the known one where that asks for nothing else."""

    def bundle(generation: int, submitted_by: str) -> Bundle:
        return Bundle(
            bundle_id=one.bundle_id,
            pool=one.pool,
            jobs=numbered(one.jobs, known, generation),
            replica_count=one.replica_count,
            fallback_pools=one.fallback_pools,
            fallback=one.fallback,
            is_gang=one.is_gang,
            spread=one.spread,
            is_primary_interruptible=one.is_primary_interruptible,
            is_colocated=one.is_colocated,
            backup_apart=one.backup_apart,
            is_protection_required=one.is_protection_required,
            is_backup_promoted=one.is_backup_promoted,
            disruption_budgets=one.disruption_budgets,
            labels=one.labels,
            rollout=one.rollout,
            timetable=one.timetable,
            switched={} if known is None else _still_named(known, one),
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


def _still_named(known: Bundle, one: SubmitBundle) -> dict[str, bool]:
    names = {job.name for job in one.jobs}
    return {name: word for name, word in known.switched.items() if name in names}


def delete(txn: Txn, one: DeleteBundle) -> None:
    """Write down that nothing of a bundle is desired any more."""
    bundle = _bundle(txn, one.request_id, one.bundle_id)
    if bundle is None:
        return
    if _is_configured(txn, one, bundle):
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
    job = _job(txn, one)
    if job is None:
        return
    bundle = txn.fleet.bundles[one.bundle_id]
    is_new = bundle.switched.get(job.name) is not True
    # What would run anyway needs no word, and a start mode that is changed later has its say.
    is_off_by_itself = job.is_dormant or bundle.timetable is not None
    is_needed = is_new and (is_off_by_itself or job.name in bundle.switched)
    if is_needed:
        word = {job.name: True} if is_off_by_itself else {}
        kept = {name: said for name, said in bundle.switched.items() if name != job.name}
        txn.change(bundle, switched={**kept, **word})
        txn.emit(EventKind.JOB_STARTED, _about(one), job=job.name)
    cleared = [_clear(txn, replica) for replica in _replicas(txn, bundle, job.name)]
    txn.accept(one.request_id, bundle.bundle_id, is_repeat=not (is_needed or any(cleared)))


def stop_job(txn: Txn, one: StopJob) -> None:
    """Write down that an operator wants nothing of a job to run until it is started again."""
    job = _job(txn, one)
    if job is None:
        return
    bundle = txn.fleet.bundles[one.bundle_id]
    if _is_configured(txn, one, bundle):
        return
    is_repeat = bundle.switched.get(job.name) is False
    if not is_repeat:
        txn.change(bundle, switched={**bundle.switched, job.name: False})
        txn.emit(EventKind.JOB_STOPPED, _about(one), job=job.name)
    txn.accept(one.request_id, bundle.bundle_id, is_repeat=is_repeat)


def configure_job(txn: Txn, one: ConfigureJob) -> None:
    """Write down by what one job shall work; by what it works already changes nothing."""
    job = _job(txn, one)
    if job is None:
        return
    bundle = txn.fleet.bundles[one.bundle_id]
    if _is_configured(txn, one, bundle) or _has_changed(txn, one, bundle.generation):
        return
    generation = bundle.generation + 1
    jobs = [replace(each, config=one.config) if each is job else each for each in bundle.jobs]
    desired = replace(bundle, jobs=numbered(jobs, bundle, generation))
    is_repeat = desired == bundle
    if not is_repeat:
        desired = txn.put(replace(desired, generation=generation, submitted_by=one.principal))
        rollout.note_change(txn, bundle, desired, one.principal)
        txn.emit(EventKind.BUNDLE_CHANGED, _about(one), generation=generation, job=job.name)
    txn.accept(one.request_id, one.bundle_id, is_repeat=is_repeat)


def _is_configured(txn: Txn, one: DeleteBundle | StopJob | ConfigureJob, bundle: Bundle) -> bool:
    """Refuse to change what the configuration asks for; say whether that was so."""
    if bundle.service is None:
        return False
    message = "it is a node service; change it in the configuration instead"
    txn.refuse(one.request_id, "service_configured", message, is_conflict=True)
    return True


def reset(txn: Txn, one: ResetBundle) -> None:
    """Forget what counts against a bundle's replicas, or against one of them."""
    bundle = _active(txn, one)
    if bundle is None:
        return
    replicas = _replicas(txn, bundle)
    if one.replica_id is not None:
        replicas = [each for each in replicas if each.replica_id == one.replica_id]
        if not replicas:
            txn.refuse(
                one.request_id,
                "replica_not_found",
                "the bundle has no replica of this name",
                is_missing=True,
            )
            return
    changed = [_clear(txn, replica) for replica in replicas]
    if any(changed):
        about = {"bundle": bundle.bundle_id, "principal": one.principal}
        if one.replica_id is not None:
            about["replica"] = one.replica_id
        txn.emit(EventKind.BUNDLE_RESET, about)
    txn.accept(one.request_id, bundle.bundle_id, is_repeat=not any(changed))


def _clear(txn: Txn, replica: Replica) -> bool:
    """Forget a replica's failures, let it want a place if it was given up; say if that is news."""
    trigger = _CLEARED.get(replica.phase)
    forgotten: dict[str, Any] = {"restarts": (), "avoided": (), "migration_retry_at_ms": 0}
    if trigger is not None:
        txn.touch(Bundle.KIND, replica.bundle_id)  # it may be one whose job is off
        txn.move(
            replica,
            trigger,
            reason=None,
            reason_detail="",
            retry_at_ms=None,
            waiting_since_at_ms=txn.now_ms,
            **forgotten,
        )
        return True
    return txn.change(replica, **forgotten) != replica


def _replicas(txn: Txn, bundle: Bundle, job: str | None = None) -> list[Replica]:
    keys = txn.fleet.index.replicas_by_bundle.keys(bundle.bundle_id)
    found = [txn.fleet.replicas[key] for key in keys]
    return [each for each in found if job is None or each.job == job]


def _about(one: StartJob | StopJob | ConfigureJob) -> dict[str, str]:
    return {"bundle": one.bundle_id, "principal": one.principal}


def _job(txn: Txn, one: StartJob | StopJob | ConfigureJob) -> Job | None:
    """Return the job of a bundle that is not going, or refuse the request and return `None`."""
    bundle = _bundle(txn, one.request_id, one.bundle_id)
    job = None if bundle is None else bundle.job(one.job)
    if bundle is not None and job is None:
        txn.refuse(
            one.request_id, "job_not_found", "the bundle has no job of this name", is_missing=True
        )
    return None if job is None or _active(txn, one) is None else job


def _active(txn: Txn, one: StartJob | StopJob | ConfigureJob | ResetBundle) -> Bundle | None:
    """Return a bundle that is not going, or refuse the request and return `None`."""
    bundle = _bundle(txn, one.request_id, one.bundle_id)
    if bundle is not None and bundle.phase is not BundlePhase.ACTIVE:
        txn.refuse(
            one.request_id, "bundle_deleting", "the bundle is being deleted", is_conflict=True
        )
        return None
    return bundle


def _bundle(txn: Txn, request_id: str, bundle_id: BundleId) -> Bundle | None:
    """Return the bundle, or refuse the request and return `None`."""
    bundle = txn.fleet.bundles.get(bundle_id)
    if bundle is None:
        txn.refuse(
            request_id, "bundle_not_found", "there is no bundle of this name", is_missing=True
        )
    return bundle
