"""Disruption: whether work that runs well may be disturbed now for the sake of something better.

The one place that answers this for everybody who moves what need not move: drains, rollouts,
rotation, the repayment of debts, consolidation. What is lost is not asked about, nor is who gives
way to more important work: preemption has bounds of its own. A budget counts whoever is away,
whatever the cause, so a failure and a drain together do not take down more than it allows.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
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
    for budget, is_wide in budgets:
        until_at_ms = _until(txn, budget)
        if until_at_ms is not None:
            detail = _exceeded(txn.fleet, budget, allocation, is_wide=is_wide, has_gap=has_gap)
            if detail:
                return Hindrance(
                    Reason.DISRUPTION_BUDGET, f"{budget.name}: {detail}", until_at_ms or None
                )
    return None


def _budgets(fleet: Fleet, bundle: Bundle) -> Iterator[tuple[DisruptionBudget, bool]]:
    """Yield what binds a bundle, and whether it counts over all that it selects."""
    for budget in bundle.disruption_budgets:
        yield budget, False
    settings = fleet.settings
    for budget in () if settings is None else settings.disruption_budgets:
        if _selects(budget, bundle):
            yield budget, True


def _selects(budget: DisruptionBudget, bundle: Bundle | None) -> bool:
    return bundle is not None and budget.labels.items() <= bundle.labels.items()


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
    allocation: Allocation,
    *,
    is_wide: bool,
    has_gap: bool,
) -> str:
    """Say in words how the budget would be exceeded; empty when it would not."""
    most = budget.unavailable_count_max
    if most is not None:
        away = list(islice(_away_under(fleet, budget, allocation, is_wide=is_wide), most))
        if len(away) >= most:
            named = f"; away: {', '.join(away[:3])}" if away else ""
            return f"no more than {most} may be away at once{named}"
    least = budget.ready_count_min
    if least is not None and has_gap:
        ready = _ready_under(fleet, budget, allocation, is_wide=is_wide)
        left = sum(1 for _ in islice(ready, least))
        if left < least:
            return f"at least {least} must stay ready, and without it {left} would be"
    return ""


def _away_under(
    fleet: Fleet, budget: DisruptionBudget, allocation: Allocation, *, is_wide: bool
) -> Iterator[str]:
    """Yield each other replica that the budget counts and that is away."""
    if not is_wide:
        yield from _away(fleet, allocation)
        return
    for bundle_id in _troubled(fleet):
        if _selects(budget, fleet.bundles.get(bundle_id)):
            for key in _away_of(fleet, bundle_id):
                if key != allocation.replica_id:
                    yield key


def _troubled(fleet: Fleet) -> list[str]:
    """Return the bundles of which anything is away: few, whatever the size of the fleet."""
    index = fleet.index
    found = {
        *index.allocations_unready.buckets(),
        *index.replicas_migrating.buckets(),
        *index.replicas_placeable.buckets(),
    }
    for phase in _AWAY:
        if phase is not ReplicaPhase.PENDING:
            keys = index.replicas_by_phase.keys(phase.value)
            found |= {fleet.replicas[key].bundle_id for key in keys}
    return sorted(found)


def _away(fleet: Fleet, allocation: Allocation) -> Iterator[str]:
    """Yield each other replica of the same job that is away."""
    for key in _away_of(fleet, allocation.bundle_id):
        replica = fleet.replicas[key]
        if replica.job == allocation.job and key != allocation.replica_id:
            yield key


def _away_of(fleet: Fleet, bundle_id: str) -> list[str]:
    """Return the replicas of a bundle that are to run and do not serve, or are being moved."""
    index = fleet.index
    keys = set(index.replicas_migrating.keys(bundle_id))
    for phase in _AWAY:
        keys.update(index.replicas_by_bundle_phase.keys(bundle_phase_key(bundle_id, phase)))
    for key in index.allocations_unready.keys(bundle_id):
        keys.add(fleet.allocations[key].replica_id)
    return sorted(key for key in keys if key in fleet.replicas)


def _ready_under(
    fleet: Fleet, budget: DisruptionBudget, allocation: Allocation, *, is_wide: bool
) -> Iterator[str]:
    """Yield each other replica that the budget counts and that serves."""
    wide = fleet.bundles.in_order() if is_wide else iter((fleet.bundles[allocation.bundle_id],))
    for bundle in wide:
        if is_wide and not _selects(budget, bundle):
            continue
        for key in fleet.index.allocations_by_bundle.keys(bundle.bundle_id):
            other = fleet.allocations[key]
            if (
                other.phase is AllocationPhase.READY
                and other.replica_id != allocation.replica_id
                and (is_wide or other.job == allocation.job)
            ):
                yield key


def _by_default(fleet: Fleet, allocation: Allocation) -> Hindrance | None:
    """Say whether another replica of the job is away: one at a time."""
    for key in _away(fleet, allocation):
        if _is_missed(fleet.replicas[key]):
            return Hindrance(Reason.SIBLINGS_UNSETTLED, f"{key} is not ready, or on the move")
    return None


def _is_missed(replica: Replica) -> bool:
    """Say whether a replica that is away will be back: it had a place and is not given up."""
    return replica.epoch > 0 and replica.phase not in (ReplicaPhase.BROKEN, ReplicaPhase.DROPPED)
