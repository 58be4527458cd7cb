"""Disruption: whether work that runs well may be disturbed now for the sake of something better.

The one place that answers this for everybody who moves what need not move: drains, rollouts,
rotation, the repayment of debts, consolidation. What is lost is not asked about, nor is who gives
way to more important work: preemption has bounds of its own. A budget counts whoever is away,
whatever the cause, so a failure and a drain together do not take down more than it allows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

import msgspec

from hostler.core import calendar
from hostler.core.fleet import Fleet
from hostler.core.keys import bundle_phase_key
from hostler.core.replies import Problem
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


def problems_of_disruption(
    at: str, budgets: Iterable[DisruptionBudget], time_zones: Iterable[str]
) -> Iterator[Problem]:
    """Yield what is wrong with budgets as they are asked for, with its place."""
    known, seen = frozenset(time_zones), set[str]()
    for number, budget in enumerate(budgets):
        path = f"{at}[{number}]"
        if budget.name in seen:
            message = f"another budget above is named {budget.name}"
            yield Problem(path=f"{path}.name", code="duplicate", message=message)
        seen.add(budget.name)
        for name in ("unavailable_count_max", "ready_count_min"):
            if (getattr(budget, name) or 0) < 0:
                message = "must not be negative"
                yield Problem(path=f"{path}.{name}", code="out_of_range", message=message)
        for index, window in enumerate(budget.windows):
            if window.time_zone not in known:
                yield Problem(
                    path=f"{path}.windows[{index}].time_zone",
                    code="unknown_time_zone",
                    message=f"nothing is known of the time zone {window.time_zone!r};"
                    " write it like Europe/Berlin",
                )


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
        until_at_ms = _holds_until(txn.fleet, budget, txn.now_ms)
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


def _holds_until(fleet: Fleet, budget: DisruptionBudget, now_ms: int) -> int | None:
    """Return until when the budget holds, 0 for ever; `None` when it does not hold now."""
    if not budget.windows:
        return 0
    ends: list[int] = []
    for window in budget.windows:
        zone = fleet.time_zones.get(window.time_zone)
        span = None if zone is None else calendar.span_at(window, zone, now_ms)
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


class Standing(msgspec.Struct, frozen=True):
    """How much of a budget is used now."""

    budget: DisruptionBudget
    job: str
    """Over whose replicas it is counted; empty: over all that it selects in the fleet."""
    is_in_force: bool
    away: tuple[str, ...]
    """Replicas that are away, or on the move."""
    ready_count: int


def standings(fleet: Fleet, bundle: Bundle, now_ms: int) -> Iterator[Standing]:
    """Give what binds the moves of a bundle's replicas, and how far it is used."""
    for budget in bundle.disruption_budgets:
        is_in_force = _holds_until(fleet, budget, now_ms) is not None
        away = [fleet.replicas[key] for key in _away_of(fleet, bundle.bundle_id)]
        ready = list(_ready_in(fleet, bundle.bundle_id))
        for job in bundle.jobs:
            names = tuple(each.replica_id for each in away if each.job == job.name)
            count = sum(each.job == job.name for each in ready)
            yield Standing(budget, job.name, is_in_force, names, count)
    settings = fleet.settings
    for budget in () if settings is None else settings.disruption_budgets:
        if _selects(budget, bundle):
            is_in_force = _holds_until(fleet, budget, now_ms) is not None
            meant = [each for each in fleet.bundles.in_order() if _selects(budget, each)]
            names = tuple(
                fleet.replicas[key].replica_id
                for each in meant
                for key in _away_of(fleet, each.bundle_id)
            )
            count = sum(1 for each in meant for _ in _ready_in(fleet, each.bundle_id))
            yield Standing(budget, "", is_in_force, names, count)


def _ready_in(fleet: Fleet, bundle_id: str) -> Iterator[Allocation]:
    for key in fleet.index.allocations_by_bundle.keys(bundle_id):
        if fleet.allocations[key].phase is AllocationPhase.READY:
            yield fleet.allocations[key]


def _by_default(fleet: Fleet, allocation: Allocation) -> Hindrance | None:
    """Say whether another replica of the job is away: one at a time."""
    for key in _away(fleet, allocation):
        if _is_missed(fleet.replicas[key]):
            return Hindrance(Reason.SIBLINGS_UNSETTLED, f"{key} is not ready, or on the move")
    return None


def _is_missed(replica: Replica) -> bool:
    """Say whether a replica that is away will be back: it had a place and is not given up."""
    return replica.epoch > 0 and replica.phase not in (ReplicaPhase.BROKEN, ReplicaPhase.DROPPED)
