"""Disruption: whether work that runs well may be disturbed now for the sake of something better.

The one place that answers this for everybody who moves what need not move: drains, rollouts,
rotation, the repayment of debts, consolidation. What is lost is not asked about, nor is who gives
way to more important work: preemption has bounds of its own. A budget counts whoever is away,
whatever the cause, so a failure and a drain together do not take down more than it allows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from hostler.core import calendar
from hostler.core.fleet import Fleet
from hostler.core.keys import bundle_phase_key
from hostler.core.txn import Txn
from hostler.model import Allocation, Bundle, Replica
from hostler.model.allocation import AllocationPhase
from hostler.model.disruption import DisruptionBudget
from hostler.model.reason import Reason
from hostler.model.replica import MigrationCause, ReplicaPhase

_AWAY: Final = (
    ReplicaPhase.PENDING,
    ReplicaPhase.BACKING_OFF,
    ReplicaPhase.BROKEN,
    ReplicaPhase.DROPPED,
)
"""Phases of a replica that is to run and has no place."""


class Hindrance(msgspec.Struct, frozen=True):
    """Why something may not be disturbed now, and when to ask again at the latest."""

    reason: Reason
    detail: str
    until_at_ms: int | None = None
    """When the budget ends to hold; `None`: ask again when replicas or allocations change."""


def hindrance(
    txn: Txn, allocation: Allocation, cause: MigrationCause, *, has_gap: bool
) -> Hindrance | None:
    """Return why an allocation may not be disturbed now, or `None` if it may.

    Args:
        txn: The step.
        allocation: A live one.
        cause: Who wants it. A rollout has its own bound where there is no budget; everybody else
            disturbs one replica of a job at a time then.
        has_gap: It ends before its successor is ready.
    """
    if allocation.phase is AllocationPhase.RESERVED:
        return None  # nothing runs yet that could be disturbed
    bundle = txn.fleet.bundles.get(allocation.bundle_id)
    if bundle is None:
        return None
    budgets = list(_budgets(txn.fleet, bundle))
    if not budgets:
        return None if cause is MigrationCause.ROLLOUT else _by_default(txn.fleet, allocation)
    if allocation.phase is not AllocationPhase.READY:
        return None  # it is away already
    for budget, scope in budgets:
        until_at_ms = _until(txn, budget)
        if until_at_ms is not None:
            detail = _exceeded(txn.fleet, budget, scope, allocation, has_gap=has_gap)
            if detail:
                return Hindrance(
                    Reason.DISRUPTION_BUDGET, f"{budget.name}: {detail}", until_at_ms or None
                )
    return None


Scope = list[tuple[str, str | None]]
"""Bundles, each with the one job that counts or `None` for all of them."""


def _budgets(fleet: Fleet, bundle: Bundle) -> Iterator[tuple[DisruptionBudget, Scope | None]]:
    """Yield what binds a bundle, with whom it counts; `None` stands for the allocation's job."""
    for budget in bundle.disruption_budgets:
        yield budget, None
    settings = fleet.settings
    for budget in () if settings is None else settings.disruption_budgets:
        if _selects(budget, bundle):
            names = sorted(
                other.bundle_id for other in fleet.bundles.rows.values() if _selects(budget, other)
            )
            yield budget, [(name, None) for name in names]


def _selects(budget: DisruptionBudget, bundle: Bundle) -> bool:
    return budget.labels.items() <= bundle.labels.items()


def _until(txn: Txn, budget: DisruptionBudget) -> int | None:
    """Return until when the budget holds, 0 for ever; `None` when it does not hold now."""
    if not budget.windows:
        return 0
    ends: list[int] = []
    for window in budget.windows:
        zone = txn.fleet.time_zones.get(window.time_zone)
        span = None if zone is None else calendar.span_at(window, zone, txn.now_ms)
        if span is not None:
            ends.append(span.to_at_ms)
    return max(ends) if ends else None


def _exceeded(
    fleet: Fleet,
    budget: DisruptionBudget,
    scope: Scope | None,
    allocation: Allocation,
    *,
    has_gap: bool,
) -> str:
    """Say in words how the budget would be exceeded; empty when it would not."""
    counted: Scope = [(allocation.bundle_id, allocation.job)] if scope is None else scope
    most = budget.unavailable_count_max
    if most is not None:
        away: list[str] = []
        for key in _away(fleet, counted, allocation.replica_id):
            away.append(key)
            if len(away) >= most:
                break
        if len(away) >= most:
            named = f", and {', '.join(away[:3])} is or was to be" if away else ""
            return f"no more than {most} may be away at once{named}"
    least = budget.ready_count_min
    if least is not None and has_gap:
        left = 0
        for key in _ready(fleet, counted):
            left += key != allocation.replica_id
            if left >= least:
                return ""
        return f"at least {least} must stay ready, and without it {left} would be"
    return ""


def _away(fleet: Fleet, scope: Scope, left_out: str) -> Iterator[str]:
    """Yield each other replica that is to run and does not serve, or is being moved."""
    index = fleet.index
    for bundle_id, job in scope:
        keys = dict.fromkeys(index.replicas_migrating.keys(bundle_id))
        for phase in _AWAY:
            keys.update(
                dict.fromkeys(
                    index.replicas_by_bundle_phase.keys(bundle_phase_key(bundle_id, phase))
                )
            )
        for key in index.allocations_unready.keys(bundle_id):
            keys[fleet.allocations[key].replica_id] = None
        for key in keys:
            replica = fleet.replicas.get(key)
            if key != left_out and replica is not None and job in (None, replica.job):
                yield key


def _ready(fleet: Fleet, scope: Scope) -> Iterator[str]:
    """Yield each replica that serves."""
    for bundle_id, job in scope:
        for key in fleet.index.allocations_by_bundle.keys(bundle_id):
            allocation = fleet.allocations[key]
            if allocation.phase is AllocationPhase.READY and job in (None, allocation.job):
                yield allocation.replica_id


def _by_default(fleet: Fleet, allocation: Allocation) -> Hindrance | None:
    """Say whether another replica of the job is away: one at a time."""
    scope: Scope = [(allocation.bundle_id, allocation.job)]
    for key in _away(fleet, scope, allocation.replica_id):
        if _is_missed(fleet.replicas[key]):
            return Hindrance(Reason.SIBLINGS_UNSETTLED, f"{key} is not ready, or on the move")
    return None


def _is_missed(replica: Replica) -> bool:
    """Say whether a replica that is away will be back: it had a place and is not given up."""
    return replica.epoch > 0 and replica.phase not in (ReplicaPhase.BROKEN, ReplicaPhase.DROPPED)
