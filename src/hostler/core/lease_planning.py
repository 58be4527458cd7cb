"""Planning a lease: what would become of a request, without making it.

A plan is a real step that is then dropped, so it cannot differ from what asking would lead to on
the same revision. It stands in line behind everybody who is there, so whoever asks whether there
is room does not count on what others will get first.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from hostler.base.ids import NodeId
from hostler.core.delta import Delta
from hostler.core.fleet import Fleet
from hostler.core.inputs import AcquireLease, AnyInput
from hostler.core.replies import Accepted, Refused
from hostler.core.step import step
from hostler.core.waiting import why_waiting
from hostler.model import Lease, Node
from hostler.model.lease import LeasePhase


class LeasePlan(msgspec.Struct, frozen=True, kw_only=True):
    """What would become of a request for a lease, as of one revision."""

    revision: int
    phase: LeasePhase
    """Held, waiting or refused, at once."""
    code: str = ""
    """Why it would wait or be refused."""
    detail: str = ""
    node_id: NodeId | None = None
    """The node that it would be on."""
    position: int | None = None
    """Its place in line, from 0."""
    launch_count: int = 0
    """Machines that would be launched because of it."""

    @property
    def can_acquire(self) -> bool:
        """True when it would be held at once, or a machine would be launched for it."""
        is_growing = self.phase is LeasePhase.WAITING and self.launch_count > 0
        return self.phase is LeasePhase.HELD or is_growing


def plan_lease(fleet: Fleet, request: AcquireLease, now_ms: int) -> LeasePlan:
    """Say what would become of a request. The fleet has no step open, and is left as it is."""
    before_count = _launch_count(fleet, (), now_ms)
    delta = step(fleet, [request], now_ms)
    try:
        results = [each.result for each in delta.replies if each.request_id == request.request_id]
        match results[0]:
            case Refused(code=code, message=message):
                return LeasePlan(
                    revision=fleet.revision, phase=LeasePhase.REFUSED, code=code, detail=message
                )
            case Accepted(subject_id=lease_id):
                launch_count = _new_node_count(delta) - before_count
                return _planned(fleet, fleet.leases[lease_id], launch_count)
    finally:
        fleet.drop(delta)


def _launch_count(fleet: Fleet, inputs: Sequence[AnyInput], now_ms: int) -> int:
    """Count the machines that a step would ask for."""
    delta = step(fleet, inputs, now_ms)
    try:
        return _new_node_count(delta)
    finally:
        fleet.drop(delta)


def _new_node_count(delta: Delta) -> int:
    return sum(name[0] == Node.KIND and delta.before[name] is None for name in delta.changes)


def _planned(fleet: Fleet, lease: Lease, launch_count: int) -> LeasePlan:
    revision = fleet.revision
    match lease.phase:
        case LeasePhase.WAITING:
            why = why_waiting(fleet, lease)
            return LeasePlan(
                revision=revision,
                phase=lease.phase,
                code=why.reason.value,
                detail=why.detail,
                position=fleet.index.leases_waiting.keys(lease.pool).index(lease.lease_id),
                launch_count=launch_count,
            )
        case _:
            return LeasePlan(
                revision=revision,
                phase=lease.phase,
                code="" if lease.reason is None else lease.reason.value,
                detail=lease.reason_detail,
                node_id=lease.node_id,
                launch_count=launch_count,
            )
