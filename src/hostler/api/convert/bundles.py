"""Bundles, replicas and allocations."""

from __future__ import annotations

from collections import Counter

import msgspec

from hostler.api.convert.shapes import match, requirement
from hostler.base.encoding import encode
from hostler.core.disruption import standings
from hostler.core.explain.waiting import why_pending
from hostler.core.fleet import Fleet
from hostler.core.holds import configure_command_id
from hostler.core.protection import Protection, protection_of
from hostler.core.rollout import config_of
from hostler.core.waiting import why_in_line
from hostler.model import Allocation, Bundle, Replica, Rollout
from hostler.model.allocation import AllocationPhase
from hostler.model.constraint import Affinity, NodeRule, SpreadRule
from hostler.model.launch import JobConfig
from hostler.model.replica import Claim, ReplicaPhase
from hostler.wire.http import (
    AffinityView,
    AllocationView,
    BudgetStateView,
    BundleView,
    ClaimView,
    EndedView,
    HurtView,
    JobConfigProgressView,
    JobConfigView,
    JobView,
    NodeRuleView,
    PreemptedView,
    ProtectionView,
    ReplicaView,
    RolloutView,
    SpreadView,
)

_DESIRED_NOT = (ReplicaPhase.DORMANT, ReplicaPhase.STOPPING, ReplicaPhase.ENDED)


def _budgets(fleet: Fleet, record: Bundle) -> list[BudgetStateView]:
    return [
        BudgetStateView(
            name=each.budget.name,
            job=each.job,
            is_in_force=each.is_in_force,
            unavailable_count_max=each.budget.unavailable_count_max,
            ready_count_min=each.budget.ready_count_min,
            away=list(each.away),
            ready_count=each.ready_count,
        )
        for each in standings(fleet, record, fleet.now_ms)
    ]


def bundle(fleet: Fleet, record: Bundle, *, is_protection_told: bool = False) -> BundleView:
    """Show a bundle, with its replicas counted."""
    replicas = [
        fleet.replicas[key] for key in fleet.index.replicas_by_bundle.keys(record.bundle_id)
    ]
    phases = [replica.phase for replica in replicas]
    return BundleView(
        bundle_id=record.bundle_id,
        pool=record.pool,
        fallback_pools=list(record.fallback_pools),
        fallback=record.fallback,
        is_gang=record.is_gang,
        replica_count=record.replica_count,
        spread=[_spread(one) for one in record.spread],
        is_primary_interruptible=record.is_primary_interruptible,
        backup_apart=None if record.backup_apart is None else _spread(record.backup_apart),
        is_colocated=record.is_colocated,
        is_protection_required=record.is_protection_required,
        is_backup_promoted=record.is_backup_promoted,
        protection=(
            protection(protection_of(fleet, record.bundle_id, fleet.now_ms))
            if is_protection_told
            else None
        ),
        disruption_budgets=_budgets(fleet, record) if is_protection_told else None,
        labels=dict(record.labels),
        generation=record.generation,
        phase=record.phase,
        phase_since_at_ms=record.phase_since_at_ms,
        submitted_by=record.submitted_by,
        jobs=[
            JobView(
                name=job.name,
                band=job.band,
                is_dormant=job.is_dormant,
                can_overlap=job.can_overlap,
                is_switched_on=record.switched.get(job.name),
                requires=requirement(job.requirement),
                labels=dict(job.labels),
                node_rules=[_node_rule(one) for one in job.node_rules],
                affinities=[_affinity(one) for one in job.affinities],
                argv=list(job.launch.argv),
                readiness=str(type(job.launch.readiness).__struct_config__.tag),
                disconnect=job.launch.disconnect,
                config=None if job.config is None else _config(job.config),
            )
            for job in record.jobs
        ],
        desired_count=sum(phase not in _DESIRED_NOT for phase in phases),
        placed_count=phases.count(ReplicaPhase.PLACED),
        ready_count=sum(
            found is not None and found.phase is AllocationPhase.READY
            for found in (allocation_of(fleet, replica) for replica in replicas)
        ),
        pending_count=phases.count(ReplicaPhase.PENDING) + phases.count(ReplicaPhase.BACKING_OFF),
        failed_count=phases.count(ReplicaPhase.BROKEN) + phases.count(ReplicaPhase.DROPPED),
    )


def _config(record: JobConfig) -> JobConfigView:
    return JobConfigView(
        generation=record.generation,
        size_bytes=len(encode((record.values_json, record.files))),
        files=sorted(record.files),
        signal=record.signal,
    )


def _config_progress(fleet: Fleet, placed: Allocation) -> JobConfigProgressView | None:
    config = config_of(fleet, placed)
    wanted = placed.config_written if config is None else config.generation
    if not wanted:
        return None
    command = fleet.commands.get(configure_command_id(placed))
    failure = "" if command is None else command.last_message or command.last_code
    return JobConfigProgressView(
        wanted=wanted,
        written=placed.config_written,
        applied=placed.config_applied,
        problem=failure,
    )


def protection(found: Protection) -> ProtectionView:
    """Show which losses would hurt."""
    return ProtectionView(
        is_protected=found.is_protected,
        hurts=[
            HurtView(
                kind=one.kind,
                name=one.name,
                replicas={key: reason.value for key, reason in one.replicas},
            )
            for one in found.hurts
        ],
        unplaced=list(found.unplaced),
    )


def _spread(one: SpreadRule) -> SpreadView:
    return SpreadView(
        over=one.over, label=one.label, is_required=one.is_required, skew_max=one.skew_max
    )


def _node_rule(one: NodeRule) -> NodeRuleView:
    return NodeRuleView(match=match(one.match), is_apart=one.is_apart, is_required=one.is_required)


def _affinity(one: Affinity) -> AffinityView:
    return AffinityView(
        over=one.over,
        label=one.label,
        is_apart=one.is_apart,
        is_required=one.is_required,
        bundle_id=one.peers.bundle_id,
        job=one.peers.job,
        replica_index=one.peers.replica_index,
        labels=dict(one.peers.labels),
    )


def allocation_of(fleet: Fleet, record: Replica) -> Allocation | None:
    """Return the live allocation that is a replica's place, not the target of a migration."""
    keys = fleet.index.allocations_by_replica.keys(record.replica_id)
    key = record.place_id if record.place_id in keys else next(iter(keys), None)
    return fleet.allocations.get(key)


def rollout(fleet: Fleet, record: Rollout) -> RolloutView:
    """Show a rollout."""
    bundle = fleet.bundles[record.bundle_id]
    return RolloutView(
        bundle_id=record.bundle_id,
        phase=record.phase,
        phase_since_at_ms=record.phase_since_at_ms,
        is_paused=record.is_paused,
        generation=record.generation,
        former_generation=None if record.former is None else record.former.generation,
        begun_at_ms=record.begun_at_ms,
        begun_by=record.begun_by,
        progress_at_ms=record.progress_at_ms,
        progress_deadline_at_ms=record.progress_at_ms + bundle.rollout.progress_within_ms,
        settled_count=record.settled_count,
        replica_count=record.replica_count,
        waits_for=record.waits_for,
        evidence=record.evidence,
    )


def replica(fleet: Fleet, record: Replica) -> ReplicaView:
    """Show a replica and the place that it has."""
    placed = allocation_of(fleet, record)
    migration = record.migration
    waits = why_in_line(fleet, record)
    return ReplicaView(
        replica_id=record.replica_id,
        bundle_id=record.bundle_id,
        job=record.job,
        index=record.index,
        role=record.role,
        band=record.band,
        generation=record.generation,
        phase=record.phase,
        phase_since_at_ms=record.phase_since_at_ms,
        reason=None if waits is None else waits.reason,
        reason_detail=record.reason_detail if waits is None else waits.detail,
        is_recovery=record.is_recovery,
        retry_at_ms=record.retry_at_ms,
        restart_count=len(record.restarts),
        restart_causes=dict(sorted(Counter(each.cause.value for each in record.restarts).items())),
        migrating_to=None if migration is None else migration.target_id or "",
        allocation_id=placed.allocation_id if placed else None,
        allocation_phase=placed.phase if placed else None,
        node_id=placed.node_id if placed else None,
        config=None if placed is None else _config_progress(fleet, placed),
        degraded_by=list(placed.degraded_by) if placed else [],
        claim=None if record.claim is None else _claim(record.claim),
        preempted=None
        if record.preempted is None
        else PreemptedView(at_ms=record.preempted.at_ms, by=record.preempted.by),
    )


def _claim(record: Claim) -> ClaimView:
    return ClaimView(
        node_id=record.node_id,
        allocation_ids=list(record.allocation_ids),
        at_ms=record.at_ms,
        until_at_ms=record.until_at_ms,
    )


def replica_now(fleet: Fleet, record: Replica, now_ms: int) -> ReplicaView:
    """Show a replica, with what it waits for as things are and not as of when it was last tried."""
    view = replica(fleet, record)
    present = why_pending(fleet, record, now_ms=now_ms)
    if present is None:
        return view
    return msgspec.structs.replace(view, reason=present.reason, reason_detail=present.detail)


def allocation(record: Allocation) -> AllocationView:
    """Show an allocation."""
    return AllocationView(
        allocation_id=record.allocation_id,
        replica_id=record.replica_id,
        bundle_id=record.bundle_id,
        job=record.job,
        replica_index=record.replica_index,
        role=record.role,
        band=record.band,
        node_id=record.node_id,
        epoch=record.epoch,
        requires=requirement(record.requirement),
        devices={kind: list(ids) for kind, ids in record.devices.items()},
        degraded_by=list(record.degraded_by),
        phase=record.phase,
        phase_since_at_ms=record.phase_since_at_ms,
        created_at_ms=record.created_at_ms,
        started_at_ms=record.started_at_ms,
        ready_at_ms=record.ready_at_ms,
        config_written=record.config_written,
        config_applied=record.config_applied,
        stop_reason=record.stop_reason,
        ended=None
        if record.ended is None
        else EndedView(
            cause=record.ended.cause,
            exit_code=record.ended.exit_code,
            signal=record.ended.signal,
            message=record.ended.message,
        ),
    )
