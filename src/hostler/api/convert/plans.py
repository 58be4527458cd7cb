"""Plans."""

from __future__ import annotations

from hostler.api.convert.bundles import protection
from hostler.api.convert.timetables import local_text
from hostler.api.convert.traces import decision
from hostler.core.planning import Plan, PlannedReplica
from hostler.core.replies import Refused
from hostler.wire import http as wire


def plan(made: Plan, time_zone: str) -> wire.PlanView:
    """Show a plan."""
    return wire.PlanView(
        bundle_id=made.bundle_id,
        revision=made.revision,
        is_accepted=not isinstance(made.result, Refused),
        errors=_errors(made.result) if isinstance(made.result, Refused) else [],
        change=made.change,
        replicas=[_replica(one) for one in made.replicas],
        launch_count=made.launch_count,
        launch_microusd_per_hour=made.launch_microusd_per_hour,
        protection=None if made.protection is None else protection(made.protection),
        collisions=[
            wire.CollisionView(
                pool=one.pool,
                resource=one.resource,
                from_at_ms=one.from_at_ms,
                local=local_text(one.from_at_ms, time_zone),
                needed=one.needed,
                available=one.available,
                bundles=list(one.bundles),
            )
            for one in made.collisions
        ],
    )


def _errors(refused: Refused) -> list[wire.ProblemError]:
    if not refused.problems:
        return [wire.ProblemError(path="", code=refused.code, message=refused.message)]
    return [
        wire.ProblemError(path=one.path, code=one.code, message=one.message)
        for one in refused.problems
    ]


def _replica(one: PlannedReplica) -> wire.PlannedReplica:
    return wire.PlannedReplica(
        replica_id=one.replica_id,
        role=one.role,
        change=one.change,
        outcome=one.outcome,
        node_id=one.node_id,
        pool=one.pool,
        tier=one.tier,
        offer=one.offer,
        reason=one.reason,
        reason_detail=one.reason_detail,
        degraded_by=list(one.degraded_by),
        trace=one.trace,
        decision=None if one.decision is None else decision(one.decision),
    )
