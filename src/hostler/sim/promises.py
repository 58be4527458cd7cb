"""Promises: what was acknowledged stays so, through every crash, until somebody asks otherwise."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from hostler.core.asking import Request
from hostler.core.fleet import Fleet
from hostler.core.inputs import (
    AcquireLease,
    AnyInput,
    AnyRequest,
    ApplyConfiguration,
    CordonNode,
    DeleteBundle,
    DrainNode,
    LabelNode,
    ReleaseLease,
    SubmitBundle,
    UncordonNode,
)
from hostler.core.job_config import EMPTY
from hostler.core.job_inputs import ConfigureJob
from hostler.core.maintenance_inputs import AddMaintenance, RemoveMaintenance
from hostler.core.replies import Accepted, Result
from hostler.model.bundle import BundlePhase, Job
from hostler.model.lease import LeasePhase
from hostler.model.node import NodePhase
from hostler.model.pool import Tier
from hostler.model.shape import Shape
from hostler.sim.world import Violation

Holds = Callable[[Fleet], bool]


class Promises:
    """What the server has acknowledged, by what it is about."""

    def __init__(self) -> None:
        self._by_subject: dict[str, Holds] = {}
        self._last_by_subject: dict[str, str] = {}
        """The last request of a batch about each thing: it overrules those before it."""
        self._kept_ms = 1 << 53
        """The shortest time that anybody wanted what is over to be kept for."""

    def attempted(self, inputs: Sequence[AnyInput]) -> None:
        """Note what is being asked for: until it is answered, either state is right."""
        for one in inputs:
            if isinstance(one, ApplyConfiguration):
                self._kept_ms = min(self._kept_ms, one.settings.retention.ended_ms)
            subject = _subject(one)
            if subject is not None and isinstance(one, Request):
                self._by_subject.pop(subject, None)
                self._last_by_subject[subject] = one.request_id

    def replied(self, fleet: Fleet, request: AnyRequest, result: Result) -> None:
        """Note an acknowledgement."""
        if not isinstance(result, Accepted):
            return
        asked_of = _subject(request)
        if asked_of and self._last_by_subject.get(asked_of) != request.request_id:
            return
        promise = self._promise(fleet, request, result)
        if promise is not None:
            subject, holds = promise
            self._by_subject[subject] = holds
            if not holds(fleet):
                raise Violation("promise_empty", "an answer says what is not so", subject=subject)

    def check(self, fleet: Fleet) -> None:
        """Check every promise.

        Raises:
            Violation: Something that was acknowledged is not so any more.
        """
        for subject, holds in self._by_subject.items():
            if not holds(fleet):
                raise Violation("promise_broken", "what was acknowledged is lost", subject=subject)

    def _promise(
        self, fleet: Fleet, request: AnyInput, result: Accepted
    ) -> tuple[str, Holds] | None:
        subject = _subject(request) or f"lease:{result.subject_id}"
        match request:
            case SubmitBundle():
                return subject, lambda now: _is_submitted(now, request)
            case ConfigureJob():
                return subject, lambda now: _is_job_configured(now, request)
            case AddMaintenance():
                return subject, lambda now: _is_planned(now, request)
            case RemoveMaintenance():
                return subject, lambda now: _is_called_off(now, request)
            case DeleteBundle():
                return subject, lambda now: _is_deleting(now, request)
            case CordonNode() | DrainNode():
                return subject, lambda now: _is_closed(now, request.node_id)
            case AcquireLease():
                lease = fleet.leases.get(result.subject_id)
                at_ms = fleet.now_ms if lease is None else lease.requested_at_ms
                return (
                    subject,
                    lambda now: (
                        result.subject_id in now.leases or (now.now_ms >= at_ms + self._kept_ms)
                    ),
                )
            case ReleaseLease():
                return subject, lambda now: _is_over(now, request.lease_id)
            case ApplyConfiguration():
                return subject, lambda now: _is_configured(now, request)
            case _:
                return None


def _subject(request: AnyInput) -> str | None:
    match request:
        case SubmitBundle() | DeleteBundle() | ConfigureJob():
            return f"bundle:{request.bundle_id}"
        case AddMaintenance():
            return f"maintenance:{request.plan.name}"
        case RemoveMaintenance():
            return f"maintenance:{request.maintenance_name}"
        case ReleaseLease():
            return f"lease:{request.lease_id}"
        case CordonNode() | LabelNode() | UncordonNode() | DrainNode():
            return f"node:{request.node_id}"
        case ApplyConfiguration():
            return "configuration"
        case _:
            return None


def _is_submitted(fleet: Fleet, request: SubmitBundle) -> bool:
    bundle = fleet.bundles.get(request.bundle_id)
    rollout = fleet.rollouts.get(request.bundle_id)
    if bundle is None or bundle.phase is not BundlePhase.ACTIVE:
        return False
    # What failed, or was undone, has given way to what was there before; it is not forgotten.
    turned_back = None if rollout is None else rollout.former
    jobs = _asked_for(request.jobs)
    return any(
        _asked_for(each.jobs) == jobs and each.replica_count == request.replica_count
        for each in (bundle, turned_back)
        if each is not None
    )


def _asked_for(jobs: Sequence[Job]) -> list[Job]:
    """Return jobs without what Hostler adds to them: the number of a configuration."""
    return [replace(job, config=replace(job.config or EMPTY, generation=0)) for job in jobs]


def _is_job_configured(fleet: Fleet, request: ConfigureJob) -> bool:
    bundle = fleet.bundles.get(request.bundle_id)
    rollout = fleet.rollouts.get(request.bundle_id)
    if bundle is None or bundle.phase is not BundlePhase.ACTIVE:
        return False
    wanted = replace(request.config or EMPTY, generation=0)
    return any(
        job.name == request.job and replace(job.config or EMPTY, generation=0) == wanted
        for each in (bundle, None if rollout is None else rollout.former)
        if each is not None
        for job in each.jobs
    )


def _is_planned(fleet: Fleet, request: AddMaintenance) -> bool:
    to_at_ms = request.plan.timetable.to_at_ms or 0
    known = fleet.maintenances.get(request.plan.name)
    is_there = known is not None and known.added is not None and known.plan == request.plan
    return is_there or fleet.now_ms >= to_at_ms


def _is_called_off(fleet: Fleet, request: RemoveMaintenance) -> bool:
    known = fleet.maintenances.get(request.maintenance_name)
    return known is None or known.added is None


def _is_deleting(fleet: Fleet, request: DeleteBundle) -> bool:
    bundle = fleet.bundles.get(request.bundle_id)
    return bundle is None or bundle.phase is not BundlePhase.ACTIVE


def _is_closed(fleet: Fleet, node_id: str) -> bool:
    node = fleet.nodes.get(node_id)
    is_going = node is None or node.phase in (NodePhase.STOPPING, NodePhase.RETIRED)
    return is_going or (node is not None and (node.cordon or node.drain) is not None)


def _is_over(fleet: Fleet, lease_id: str) -> bool:
    lease = fleet.leases.get(lease_id)
    return lease is None or lease.phase in (LeasePhase.SETTLED, LeasePhase.REFUSED)


def _is_configured(fleet: Fleet, request: ApplyConfiguration) -> bool:
    for asked in request.pools:
        pool = fleet.pools.get(asked.name)
        if pool is None or pool.is_enabled != asked.is_enabled:
            return False
        if [_as_asked(tier) for tier in pool.tiers] != [_as_asked(tier) for tier in asked.tiers]:
            return False
        if (pool.warm_count, pool.spare_count) != (asked.warm_count, asked.spare_count):
            return False
    return True


def _as_asked(tier: Tier) -> Tier:
    """Return a tier without what services add to that of which its machines are made."""
    return replace(
        tier, offers=tuple(replace(each, shape=Shape(), provided=()) for each in tier.offers)
    )
