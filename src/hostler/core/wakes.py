"""When each record wants to be looked at again, computed from the record and the settings.

A deadline is never stored as a timer: it follows from what is in the record, so that a restart
cannot lose it. A deadline that has passed and was acted upon must not be returned again by the
record that the action left behind; each branch below goes by the phase for that reason. A node has
several deadlines at once, and one that passed without consequence (idle, but needed) must not hide
the next one: there only what is still to come counts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from hostler.core import aging, limits, silence
from hostler.core.readiness import booted_by_at_ms, ready_try_at_ms
from hostler.core.spend_days import day_at
from hostler.model import (
    Allocation,
    AuditEntry,
    Breaker,
    Consolidation,
    Cooldown,
    Lease,
    Maintenance,
    Meter,
    Node,
    OutboxEntry,
    ProviderState,
    Receipt,
    Replica,
    Shift,
    Sizes,
)
from hostler.model.allocation import AllocationPhase
from hostler.model.lease import LeasePhase
from hostler.model.node import NodePhase, Origin
from hostler.model.record import Record
from hostler.model.replica import ReplicaPhase
from hostler.model.settings import Settings

if TYPE_CHECKING:
    from hostler.core.fleet import Fleet

_DEFAULTS = Settings(fleet_id="")


def wake_at_ms(fleet: Fleet, record: Record, from_ms: int) -> int | None:
    """Return the next instant at which the record wants attention, or `None`.

    What was due before `from_ms` was looked at then, or is looked at now because of what changed.
    """
    find = _BY_KIND.get(record.KIND)
    return None if find is None else find(fleet, record, from_ms)


def _ended_ms(fleet: Fleet) -> int:
    settings = fleet.settings or _DEFAULTS
    return settings.retention.ended_ms


def _lease(fleet: Fleet, lease: Lease, _from_ms: int) -> int | None:
    match lease.phase:
        case LeasePhase.WAITING:
            if not lease.is_pinned or lease.is_affinity_required:
                return lease.wait_deadline_at_ms
            return min(lease.wait_deadline_at_ms, lease.requested_at_ms + lease.affinity_wait_ms)
        case LeasePhase.HELD:
            at_ms = lease.expires_at_ms
            if lease.ends_at_ms is not None and (at_ms is None or lease.ends_at_ms < at_ms):
                at_ms = lease.ends_at_ms
            if lease.retiring_at_ms is not None and (at_ms is None or lease.retiring_at_ms < at_ms):
                at_ms = lease.retiring_at_ms
            return at_ms
        case LeasePhase.SETTLED | LeasePhase.REFUSED:
            return lease.phase_since_at_ms + _ended_ms(fleet)


def _node(fleet: Fleet, node: Node, from_ms: int) -> int | None:
    settings = fleet.settings or _DEFAULTS
    match node.phase:
        case NodePhase.REQUESTED:
            return None  # the outbox keeps at it
        case NodePhase.STOPPING:
            is_told = node.is_stuck or node.is_foreign
            return None if is_told else node.phase_since_at_ms + limits.STUCK_AFTER_MS
        case NodePhase.STARTING:
            check_at_ms = (node.checked_at_ms or node.phase_since_at_ms) + limits.BOOT_CHECK_MS
            return _earliest(
                from_ms, booted_by_at_ms(fleet, node), check_at_ms, ready_try_at_ms(node)
            )
        case NodePhase.RETIRED:
            return node.phase_since_at_ms + settings.retention.ended_ms
        case NodePhase.READY if (
            node.silent_since_at_ms is None and node.drain is None and node.quarantine is None
        ):
            idle_at_ms = _idle(fleet, node)  # nearly every node, nearly always
            if node.ages_out_at_ms is None:
                return None if idle_at_ms is None or idle_at_ms < from_ms else idle_at_ms
            return _earliest(from_ms, idle_at_ms, aging.look_at_ms(node))
        case NodePhase.READY | NodePhase.DRAINING:
            return _earliest(
                from_ms,
                silence.judge_at_ms(settings, node),
                silence.check_at_ms(settings, node),
                _drain(node),
                _idle(fleet, node),
                aging.look_at_ms(node),
                _quarantine(settings, node),
            )


def _earliest(from_ms: int, *deadlines: int | None) -> int | None:
    """Return the next of several instants that is still to come."""
    return min((at for at in deadlines if at is not None and at >= from_ms), default=None)


def _drain(node: Node) -> int | None:
    drain = node.drain
    return None if drain is None or drain.is_overdue or drain.is_done else drain.deadline_at_ms


def _quarantine(settings: Settings, node: Node) -> int | None:
    """Probation begins, or what is over is forgotten; a trial has no deadline of its own."""
    quarantine = node.quarantine
    if quarantine is None or (quarantine.is_on_probation and not quarantine.is_over):
        return None
    if quarantine.over_at_ms is not None:
        return quarantine.over_at_ms + settings.quarantine.forget_ms
    return quarantine.until_at_ms


def _idle(fleet: Fleet, node: Node) -> int | None:
    """Only what we launched is let go for standing idle, and only while it is nobody's spare."""
    if node.idle_since_at_ms is None or node.is_spare or node.origin is not Origin.LAUNCHED:
        return None
    pool = fleet.pools.get(node.pool)
    return None if pool is None else node.idle_since_at_ms + pool.idle_ms


def _allocation(fleet: Fleet, allocation: Allocation, _from_ms: int) -> int | None:
    settings = fleet.settings or _DEFAULTS
    if allocation.phase is AllocationPhase.ENDED:
        return allocation.phase_since_at_ms + settings.retention.ended_ms
    if allocation.phase is AllocationPhase.RESERVED:
        return allocation.start_at_ms  # for what is reserved ahead of its shift
    if allocation.phase is AllocationPhase.READY and allocation.ready_at_ms is not None:
        return allocation.ready_at_ms + settings.recovery.healthy_after_ms
    return None


def _command(_fleet: Fleet, entry: OutboxEntry, _from_ms: int) -> int | None:
    return entry.next_at_ms


def _replica(fleet: Fleet, replica: Replica, _from_ms: int) -> int | None:
    at_ms = replica.retry_at_ms if replica.phase is ReplicaPhase.BACKING_OFF else None
    if replica.claim is None and replica.preempted is None and replica.debt is None:
        return at_ms
    deadlines = [at_ms]
    if replica.debt is not None:
        deadlines.append(replica.debt.look_at_ms)
    if replica.claim is not None:
        deadlines.append(replica.claim.until_at_ms)
    if replica.preempted is not None:
        settings = fleet.settings or _DEFAULTS
        deadlines.append(replica.preempted.at_ms + settings.preemption.window_ms)
    return min(at for at in deadlines if at is not None)


def _shift(_fleet: Fleet, shift: Shift, _from_ms: int) -> int | None:
    return shift.to_at_ms if shift.is_on or shift.is_skipped else shift.place_at_ms


def _provider(_fleet: Fleet, provider: ProviderState, from_ms: int) -> int | None:
    launch_at_ms = provider.launch_next_at_ms
    if launch_at_ms is None or launch_at_ms < from_ms:
        return provider.next_list_at_ms
    return min(launch_at_ms, provider.next_list_at_ms)


def _breaker(_fleet: Fleet, breaker: Breaker, from_ms: int) -> int | None:
    at_ms = breaker.trial_at_ms
    return None if at_ms is None or at_ms < from_ms else at_ms


def _consolidation(_fleet: Fleet, record: Consolidation, _from_ms: int) -> int | None:
    return record.look_at_ms if record.node_id is None else record.deadline_at_ms


def _maintenance(_fleet: Fleet, record: Maintenance, _from_ms: int) -> int | None:
    return record.look_at_ms


def _cooldown(_fleet: Fleet, cooldown: Cooldown, _from_ms: int) -> int | None:
    return cooldown.until_at_ms + (limits.COOLDOWN_MEMORY_MS if cooldown.is_over else 0)


def _sizes(_fleet: Fleet, sizes: Sizes, _from_ms: int) -> int | None:
    return sizes.until_at_ms


def _receipt(_fleet: Fleet, receipt: Receipt, _from_ms: int) -> int | None:
    return receipt.expires_at_ms


def _audit(fleet: Fleet, entry: AuditEntry, _from_ms: int) -> int | None:
    return entry.at_ms + (fleet.settings or _DEFAULTS).retention.audit_ms


def _meter(fleet: Fleet, meter: Meter, _from_ms: int) -> int | None:
    return day_at(fleet, meter.as_of_ms).to_at_ms


_BY_KIND: dict[str, Callable[[Fleet, Any, int], int | None]] = {
    Allocation.KIND: _allocation,
    AuditEntry.KIND: _audit,
    Breaker.KIND: _breaker,
    Consolidation.KIND: _consolidation,
    Cooldown.KIND: _cooldown,
    Lease.KIND: _lease,
    Maintenance.KIND: _maintenance,
    Meter.KIND: _meter,
    Node.KIND: _node,
    OutboxEntry.KIND: _command,
    ProviderState.KIND: _provider,
    Receipt.KIND: _receipt,
    Replica.KIND: _replica,
    Shift.KIND: _shift,
    Sizes.KIND: _sizes,
}
