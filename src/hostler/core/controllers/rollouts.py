"""Rollouts: replaces what runs an old launch, a few at a time, and turns back from a bad one.

Reads:    rollouts, bundles, replicas, allocations.
Writes:   rollouts (how far, what for, why it failed), allocations (asked to stop), replicas
          (through migration), bundles (the former one, when it turns back).
Sends:    StopAllocation, through `holds`.
Keeps:    INV-ROLLOUT-1.
Waits on: DISRUPTION_BUDGET. OVERLAP_FORBIDDEN decides how and is no wait; the rest is in
          `Rollout.waits_for`.

A replica is *settled* when it is up to date, ready, and has been for `healthy_after_ms`. At most
`max_parallel` are on their way at once, the primary last; the next goes when one has settled. Where
copies may overlap the new one is ready before the old one ends; where not, the old one ends first,
and a job of several replicas keeps one that is ready. What does not serve is replaced without
waiting. A copy of the new launch that crashes before it has settled, a replica that breaks, or no
progress for `progress_within_ms` is a failure: it turns back, once, or is held.
"""

from __future__ import annotations

from typing import Final

import msgspec

from hostler.base.units import format_duration
from hostler.core import holds, migration, rollout
from hostler.core.disruption import Hindrance, hindrance
from hostler.core.events import EventKind
from hostler.core.txn import Txn
from hostler.model import Allocation, Bundle, Replica, Rollout
from hostler.model.allocation import AllocationPhase, EndCause
from hostler.model.bundle import BundlePhase, Job, OnFailure
from hostler.model.launch import HttpReadiness, TcpReadiness
from hostler.model.reason import Reason
from hostler.model.replica import MigrationCause, ReplicaPhase
from hostler.model.rollout import RolloutTrigger

READS: Final = (Rollout, Bundle, Replica, Allocation)

_CRASHES = (EndCause.EXITED, EndCause.START_FAILED)
_P = ReplicaPhase
_ROLLOUT: Final = MigrationCause.ROLLOUT

_ASK_AGAIN_MS: Final = 10_000
"""When a budget is asked again that counts bundles besides this one, whose changes wake others."""


class _Tally(msgspec.Struct):
    """The replicas of one job, by how far they are."""

    serving: list[Allocation] = []
    """Outdated and ready: replaced when it is their turn."""
    idle: list[Allocation] = []
    """Outdated and not ready: nobody misses them."""
    moving: dict[str, str] = {}
    """On their way: by replica, what it waits for."""
    settled_count: int = 0
    ready_count: int = 0
    """Ready and not asked to stop, up to date or not."""
    settle_at_ms: list[int] = []
    hindered: list[Hindrance] = []
    """What keeps some of those that serve from being replaced now."""
    """When those that are ready will have been so for long enough."""


def reconcile(txn: Txn) -> None:
    """Go on with every rollout for which something has changed or come due."""
    ids = dict.fromkeys(each.bundle_id for each in txn.changed(Rollout))
    ids.update(dict.fromkeys(each.bundle_id for each in txn.changed(Bundle)))
    ids.update(dict.fromkeys(each.bundle_id for each in txn.changed(Replica)))
    crashed: dict[str, list[Allocation]] = {}
    for allocation in txn.changed(Allocation):
        ids[allocation.bundle_id] = None
        # Only what ends in this very step: an older end that is looked at again says nothing new.
        is_new = allocation.phase_since_at_ms == txn.now_ms
        if is_new and allocation.ended is not None and allocation.ended.cause in _CRASHES:
            crashed.setdefault(allocation.bundle_id, []).append(allocation)
    for bundle_id in ids:
        under_way = txn.fleet.rollouts.get(bundle_id)
        bundle = txn.fleet.bundles.get(bundle_id)
        if under_way is None or bundle is None or not under_way.is_under_way:
            continue
        if bundle.phase is BundlePhase.ACTIVE:
            _go_on(txn, under_way, bundle, crashed.get(bundle_id, []))


def _go_on(txn: Txn, under_way: Rollout, bundle: Bundle, crashed: list[Allocation]) -> None:
    tallies = {job.name: _count(txn, bundle, job) for job in bundle.jobs}
    if _is_held_by_budget(txn, under_way, bundle, list(tallies.values())):
        under_way = txn.change(under_way, progress_at_ms=txn.now_ms)
    evidence = _evidence(txn, under_way, bundle, crashed)
    if evidence is not None:
        _fail(txn, under_way, bundle, evidence)
        return
    for job in bundle.jobs:
        if _replace_some(txn, under_way, bundle, job, tallies[job.name]):
            tallies[job.name] = _count(txn, bundle, job)
    _tell(txn, under_way, bundle, list(tallies.values()))


# -- looking -------------------------------------------------------------------------------------


def _count(txn: Txn, bundle: Bundle, job: Job) -> _Tally:
    tally = _Tally()
    fleet = txn.fleet
    for key in fleet.index.replicas_by_bundle.keys(bundle.bundle_id):
        replica = fleet.replicas[key]
        if replica.job != job.name or replica.index >= bundle.replica_count:
            continue
        _drop_stale_target(txn, bundle, job, replica)
        replica = fleet.replicas[key]
        keys = fleet.index.allocations_by_replica.keys(key)
        live = [fleet.allocations[each] for each in keys]
        tally.ready_count += any(each.phase is AllocationPhase.READY for each in live)
        if replica.migration is not None:
            tally.moving[key] = "its second copy is not ready"
        elif live:
            _count_placed(txn, bundle, job, live[0], tally)
        elif replica.epoch > 0 and replica.phase in (_P.PENDING, _P.BACKING_OFF):
            # Who never had a place is not missed; who had one is, unless it was given up.
            tally.moving[key] = replica.reason or "it wants a place"
    return tally


def _count_placed(txn: Txn, bundle: Bundle, job: Job, place: Allocation, tally: _Tally) -> None:
    key, is_ready = place.replica_id, place.phase is AllocationPhase.READY
    if place.phase is AllocationPhase.STOPPING:
        tally.moving[key] = f"{place.allocation_id} is stopping"
    elif rollout.is_outdated(txn.fleet, bundle, job, place):
        (tally.serving if is_ready else tally.idle).append(place)
    elif not is_ready or place.ready_at_ms is None:
        tally.moving[key] = f"{place.allocation_id} is {place.phase.value}, not ready"
    elif txn.now_ms < (settle_at_ms := place.ready_at_ms + bundle.rollout.healthy_after_ms):
        tally.moving[key] = f"{place.allocation_id} must stay ready for a while"
        tally.settle_at_ms.append(settle_at_ms)
    else:
        tally.settled_count += 1


def _drop_stale_target(txn: Txn, bundle: Bundle, job: Job, replica: Replica) -> None:
    """Give up a second copy that was superseded before it took over."""
    under_way = replica.migration
    target = None if under_way is None else txn.fleet.allocations.get(under_way.target_id)
    if target is not None and rollout.is_outdated(txn.fleet, bundle, job, target):
        migration.cancel(txn, replica, "what it was to run was superseded")


def _is_held_by_budget(txn: Txn, under_way: Rollout, bundle: Bundle, tallies: list[_Tally]) -> bool:
    """Say whether its time is up and it was a budget that let nobody go: that is no failure."""
    if txn.now_ms < under_way.progress_at_ms + bundle.rollout.progress_within_ms:
        return False
    if any(each.moving or each.idle for each in tallies):
        return False
    serving = [place for each in tallies for place in each.serving]
    return any(hindrance(txn, each, _ROLLOUT, has_gap=False) is not None for each in serving)


def _evidence(
    txn: Txn, under_way: Rollout, bundle: Bundle, crashed: list[Allocation]
) -> str | None:
    """Say by what the rollout has failed, if it has."""
    for allocation in crashed:
        if _is_against(txn, under_way, bundle, allocation):
            return _how_it_ended(allocation)
    broken = txn.fleet.index.replicas_by_bundle_phase.keys(f"{bundle.bundle_id}/{_P.BROKEN.value}")
    for key in broken:
        if txn.fleet.replicas[key].phase_since_at_ms >= under_way.progress_at_ms:
            return f"{key} is broken: {txn.fleet.replicas[key].reason_detail}"
    deadline_at_ms = under_way.progress_at_ms + bundle.rollout.progress_within_ms
    if not under_way.is_paused and txn.now_ms >= deadline_at_ms:
        within = format_duration(bundle.rollout.progress_within_ms)
        return f"no progress within {within}; {under_way.waits_for or 'nothing is ready'}"
    return None


def _is_against(txn: Txn, under_way: Rollout, bundle: Bundle, allocation: Allocation) -> bool:
    """Say whether a crash speaks against the new launch: one of its copies, before it settled."""
    job = bundle.job(allocation.job)
    if job is None or allocation.stop_reason or allocation.created_at_ms < under_way.begun_at_ms:
        return False
    if rollout.is_outdated(txn.fleet, bundle, job, allocation):
        return False
    ready_at_ms = allocation.ready_at_ms
    is_settled = (
        ready_at_ms is not None
        and allocation.phase_since_at_ms >= ready_at_ms + bundle.rollout.healthy_after_ms
    )
    return not is_settled


def _how_it_ended(allocation: Allocation) -> str:
    ended = allocation.ended
    told = f"{allocation.replica_id} ({allocation.allocation_id} on {allocation.node_id})"
    if ended is None:
        return f"{told} ended"
    code = "" if ended.exit_code is None else f" with {ended.exit_code}"
    signal = "" if ended.signal is None else f" by signal {ended.signal}"
    message = f": {ended.message}" if ended.message else ""
    return f"{told} {ended.cause.value}{code}{signal}{message}"


# -- acting --------------------------------------------------------------------------------------


def _replace_some(txn: Txn, under_way: Rollout, bundle: Bundle, job: Job, tally: _Tally) -> bool:
    """Replace as many as may be on their way; return whether any was."""
    if under_way.is_paused:
        return False
    why = f"generation {bundle.generation} replaces it"
    for place in tally.idle:
        holds.request_stop(txn, place, why)
    moving_count = len(tally.moving) + len(tally.idle)
    room = bundle.rollout.max_parallel - moving_count
    # The primary goes last, and one that is ready stays where there are two or will be again.
    is_pair = tally.ready_count > 1 or moving_count > 0
    spare_count = tally.ready_count - (1 if is_pair else 0)
    is_any = len(tally.idle) > 0
    for place in sorted(tally.serving, key=lambda each: -each.replica_index)[: max(0, room)]:
        replica = txn.fleet.replicas[place.replica_id]
        hindered = hindrance(txn, place, _ROLLOUT, has_gap=not job.can_overlap)
        if hindered is not None:
            tally.hindered.append(hindered)
            continue
        refused = migration.begin(
            txn,
            replica,
            _ROLLOUT,
            within_ms=bundle.rollout.progress_within_ms,
            may_stay=not isinstance(job.launch.readiness, HttpReadiness | TcpReadiness),
        )
        if refused is Reason.OVERLAP_FORBIDDEN and spare_count > 0:
            spare_count -= 1
            holds.request_stop(txn, place, why)
            refused = None
        is_any = is_any or refused is None
    return is_any


def _tell(txn: Txn, under_way: Rollout, bundle: Bundle, tallies: list[_Tally]) -> None:
    """Write down how far it is, and when to look again."""
    settled_count = sum(each.settled_count for each in tallies)
    moving = [f"{key}: {why}" for tally in tallies for key, why in tally.moving.items()]
    hindered = [each for tally in tallies for each in tally.hindered]
    moving += [f"budget {each.detail}" for each in hindered[:1]]
    waits_for = "; ".join(moving[:3]) + (f" and {len(moving) - 3} more" if len(moving) > 3 else "")
    left = {key: None for tally in tallies for key in tally.moving}
    for place in (each for tally in tallies for each in (*tally.serving, *tally.idle)):
        left[place.replica_id] = None
    progress_at_ms = under_way.progress_at_ms
    if settled_count > under_way.settled_count:
        progress_at_ms = txn.now_ms
    told = txn.change(
        under_way,
        settled_count=settled_count,
        replica_count=settled_count + len(left),
        waits_for=waits_for,
        progress_at_ms=progress_at_ms,
    )
    if not left:
        txn.move(told, RolloutTrigger.FINISHED, waits_for="")
        txn.emit(
            EventKind.ROLLOUT_FINISHED,
            {"bundle": bundle.bundle_id},
            generation=bundle.generation,
            is_back=told.is_back,
        )
        return
    due = [at_ms for tally in tallies for at_ms in tally.settle_at_ms]
    due += [min(each.until_at_ms or 1 << 60, txn.now_ms + _ASK_AGAIN_MS) for each in hindered]
    if not told.is_paused:
        due.append(told.progress_at_ms + bundle.rollout.progress_within_ms)
    if due:
        txn.wake(told, min(due))


def _fail(txn: Txn, under_way: Rollout, bundle: Bundle, evidence: str) -> None:
    is_turning = (
        bundle.rollout.on_failure is OnFailure.ROLL_BACK
        and not under_way.is_back
        and under_way.former is not None
    )
    txn.emit(
        EventKind.ROLLOUT_FAILED,
        {"bundle": bundle.bundle_id},
        generation=bundle.generation,
        evidence=evidence,
        is_turning_back=is_turning,
    )
    if is_turning:
        rollout.turn_back(txn, under_way, "hostler", evidence)
        # Admission is next, with the replicas; where it has nothing to change, nobody calls us.
        txn.wake(under_way, txn.now_ms)
    else:
        txn.move(under_way, RolloutTrigger.FAILED, evidence=evidence)
