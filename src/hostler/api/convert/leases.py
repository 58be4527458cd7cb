"""Leases."""

from __future__ import annotations

import msgspec

from hostler.api.convert.shapes import requirement
from hostler.core.books import lease_units
from hostler.core.fleet import Fleet
from hostler.core.lease_planning import LeasePlan
from hostler.core.waiting import why_waiting
from hostler.model import Lease
from hostler.model.lease import LeasePhase
from hostler.model.selector import selector_text
from hostler.model.shape import NOTHING_REQUIRED
from hostler.model.spend import UNITS_PER_MICRO
from hostler.wire.http import LeasePlanView, LeaseView, RequirementView

_NOTHING = RequirementView()


def lease(record: Lease, now_ms: int, position: int | None = None) -> LeaseView:
    """Show a lease."""
    cost_units = lease_units(record, now_ms)
    needs_nothing = record.requirement == NOTHING_REQUIRED
    return LeaseView(
        lease_id=record.lease_id,
        pool=record.pool,
        holder=record.holder,
        key=record.fairness_key,
        requires=_NOTHING if needs_nothing else requirement(record.requirement),
        selector=selector_text(record.requirement.node_labels),
        labels=record.labels,
        priority=record.priority,
        affinity_node_id=record.affinity_node_id,
        affinity_wait_ms=record.affinity_wait_ms,
        is_affinity_required=record.is_affinity_required,
        excluded_node_ids=list(record.excluded_node_ids),
        share=record.share,
        ack_ms=record.ack_ms,
        is_acknowledged=record.is_acknowledged,
        phase=record.phase,
        phase_since_at_ms=record.phase_since_at_ms,
        requested_at_ms=record.requested_at_ms,
        wait_deadline_at_ms=record.wait_deadline_at_ms,
        position=position,
        reason=record.reason,
        reason_detail=record.reason_detail,
        node_id=record.node_id,
        epoch=record.epoch,
        granted_at_ms=record.granted_at_ms,
        heartbeat_at_ms=record.heartbeat_at_ms,
        lease_ms=record.lease_ms,
        expires_at_ms=record.expires_at_ms,
        ends_at_ms=record.ends_at_ms,
        retiring_at_ms=record.retiring_at_ms,
        retiring_at_ms_max=record.retiring_at_ms_max,
        outcome=record.outcome,
        outcome_detail=record.outcome_detail,
        cost_micros=None if cost_units is None else cost_units // UNITS_PER_MICRO,
    )


def waiting_lease(fleet: Fleet, record: Lease, now_ms: int, position: int | None) -> LeaseView:
    """Show a lease that waits, with what it waits for now rather than when it was last told."""
    why = why_waiting(fleet, record)
    shown = lease(record, now_ms, position)
    return msgspec.structs.replace(shown, reason=why.reason, reason_detail=why.detail)


def plan(made: LeasePlan) -> LeasePlanView:
    """Show what would become of a request."""
    return LeasePlanView(
        revision=made.revision,
        can_acquire=made.can_acquire,
        phase=made.phase,
        code=made.code,
        detail=made.detail,
        node_id=made.node_id,
        position=made.position,
        launch_count=made.launch_count,
    )


def position(fleet: Fleet, record: Lease) -> int | None:
    """Return a lease's place in line, from 0; costs a sort of the line."""
    if record.phase is not LeasePhase.WAITING:
        return None
    line = fleet.index.leases_waiting.keys(record.pool)
    return line.index(record.lease_id) if record.lease_id in line else None
