"""Recovery: what becomes of a replica whose place has ended, by its band.

Reads:    allocations, replicas, settings.
Writes:   replicas (placed to pending, backing off, broken or dropped; their restart history).
Sends:    nothing (placing finds the next place).
Keeps:    INV-REPLICA-1, INV-REPLICA-2.
Waits on: BACKING_OFF, RESTART_CEILING, BAND_DROPPED, PREEMPTED.

A planned end, or a machine that never came, is no failure: the replica wants a place at once. What
its agent ended because it heard nothing of us is none either: nobody there is to blame, and it is a
recovery that is not counted, bronze included. Who is not to run now, wants no place. A
place that its agent refused is no failure either, but that node is left alone and refusals in a
row are spaced. A failure of gold or silver counts: one more than the ceiling inside the window
breaks it, and recoveries of one replica keep their distance, measured between recoveries and not
from failures (spec/placement.md G-066). A failed bronze is dropped. What has been ready for long
enough has its history erased.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

from hostler.base.units import format_duration
from hostler.core.assigning import is_broken
from hostler.core.desired import why_not_its_turn
from hostler.core.events import EventKind
from hostler.core.limits import (
    AVOIDED_COUNT_MAX,
    REJECTION_BACKOFF_MS_MIN,
    RETRY_MS_MAX,
)
from hostler.core.txn import Txn
from hostler.model import Allocation, Replica, Settings
from hostler.model.allocation import AllocationPhase, EndCause
from hostler.model.pool import Band
from hostler.model.reason import Reason
from hostler.model.replica import Avoided, ReplicaPhase, ReplicaTrigger, Restart
from hostler.model.settings import BronzeVictims, RecoveryLimits

READS: Final = (Allocation, Replica, Settings)

_DEFAULTS = RecoveryLimits()
_CRASHES = (EndCause.EXITED, EndCause.START_FAILED)
"""Ends for which the job itself is to blame."""

_NO_FAILURE = (EndCause.STOPPED, EndCause.CANCELLED, EndCause.LAUNCH_FAILED)


def reconcile(txn: Txn) -> None:
    """Follow what became of allocations; let go whoever has waited long enough."""
    for allocation in txn.changed(Allocation):
        replica = txn.fleet.replicas.get(allocation.replica_id)
        if replica is None or replica.phase is not ReplicaPhase.PLACED:
            continue
        if allocation.phase is AllocationPhase.READY:
            _follow_health(txn, replica, allocation)
        elif _was_its_place(txn, replica, allocation):
            _follow_end(txn, replica, allocation)
    for replica in txn.changed(Replica):
        if replica.phase is ReplicaPhase.BACKING_OFF:
            _let_go_when_due(txn, replica)


def _was_its_place(txn: Txn, replica: Replica, allocation: Allocation) -> bool:
    """Say whether this was the replica's latest place: older ends have been dealt with.

    While a second place is there (a migration), the end of the first is no loss.
    """
    is_its_place = not allocation.is_live and allocation.allocation_id == replica.place_id
    return is_its_place and not txn.fleet.index.allocations_by_replica.count(replica.replica_id)


def _limits(txn: Txn) -> RecoveryLimits:
    settings = txn.fleet.settings
    return _DEFAULTS if settings is None else settings.recovery


def _follow_health(txn: Txn, replica: Replica, allocation: Allocation) -> None:
    """Forget that this was a recovery, and in time all recoveries before it."""
    since_at_ms = allocation.ready_at_ms
    is_healthy = (
        since_at_ms is not None and txn.now_ms >= since_at_ms + _limits(txn).healthy_after_ms
    )
    restarts = () if is_healthy else replica.restarts
    if replica.is_recovery or restarts != replica.restarts:
        txn.change(replica, is_recovery=False, restarts=restarts)


def _follow_end(txn: Txn, replica: Replica, allocation: Allocation) -> None:
    cause = EndCause.STOPPED if allocation.ended is None else allocation.ended.cause
    unwanted = why_not_its_turn(txn.fleet, replica)
    if unwanted is not None:
        txn.move(replica, ReplicaTrigger.STOPPED, reason=unwanted, reason_detail="")
    elif cause is EndCause.FENCED:
        _displace(txn, replica, is_recovery=True)
    elif _is_given_up(txn, replica, allocation):
        _give_up(txn, replica, allocation)
    elif allocation.stop_reason or cause in _NO_FAILURE:
        _displace(txn, replica)
    elif cause is EndCause.REJECTED:
        _follow_rejection(txn, replica, allocation)
    elif allocation.band is Band.BRONZE:
        _drop(txn, replica, allocation, cause)
    else:
        _recover(txn, replica, allocation, cause)


def _is_given_up(txn: Txn, replica: Replica, allocation: Allocation) -> bool:
    """Say whether it was bronze that gave way, where such bronze is not placed again."""
    preempted, settings = replica.preempted, txn.fleet.settings
    return (
        preempted is not None
        and preempted.allocation_id == allocation.allocation_id
        and allocation.band is Band.BRONZE
        and settings is not None
        and settings.preemption.bronze_victims is BronzeVictims.DROP
    )


def _give_up(txn: Txn, replica: Replica, allocation: Allocation) -> None:
    told = allocation.stop_reason
    txn.move(replica, ReplicaTrigger.GAVE_UP, reason=Reason.PREEMPTED, reason_detail=told)
    txn.emit(EventKind.REPLICA_DROPPED, _about(replica, allocation), cause="preempted")


def _displace(txn: Txn, replica: Replica, *, is_recovery: bool = False) -> None:
    txn.move(
        replica,
        ReplicaTrigger.DISPLACED,
        is_recovery=replica.is_recovery or is_recovery,
        reason=None,
        reason_detail="",
        waiting_since_at_ms=txn.now_ms,
    )


def _follow_rejection(txn: Txn, replica: Replica, allocation: Allocation) -> None:
    avoided = _avoid(txn, replica, allocation, is_rejection=True)
    rejection_count = sum(each.is_rejection for each in avoided)
    pause_ms = 0
    if rejection_count > 1:
        pause_ms = min(REJECTION_BACKOFF_MS_MIN << (rejection_count - 2), RETRY_MS_MAX)
    _back_off(txn, replica, txn.now_ms + pause_ms, "its agent refused it", avoided=avoided)


def _drop(txn: Txn, replica: Replica, allocation: Allocation, cause: EndCause) -> None:
    told = f"{_how_it_ended(allocation, cause)}; bronze is not recovered"
    txn.move(replica, ReplicaTrigger.GAVE_UP, reason=Reason.BAND_DROPPED, reason_detail=told)
    txn.emit(EventKind.REPLICA_DROPPED, _about(replica, allocation), cause=cause.value)


def _recover(txn: Txn, replica: Replica, allocation: Allocation, cause: EndCause) -> None:
    limits = _limits(txn)
    avoided = _avoid(txn, replica, allocation, is_rejection=False)
    if is_broken(txn, replica.bundle_id):
        _back_off(txn, replica, txn.now_ms, "its bundle is broken", avoided=avoided)
        return
    window_at_ms = txn.now_ms - limits.restart_window_ms
    restarts = tuple(each for each in replica.restarts if each.at_ms > window_at_ms)
    over = _over_ceiling(txn, replica, cause, restarts, window_at_ms)
    if over is not None:
        told = f"{over}, then {_how_it_ended(allocation, cause)}"
        _break(txn, replica, allocation, restarts, told)
        return
    retry_at_ms = txn.now_ms
    if restarts:
        retry_at_ms = max(retry_at_ms, restarts[-1].at_ms + limits.spacing_ms)
    txn.emit(
        EventKind.REPLICA_RECOVERING,
        _about(replica, allocation),
        cause=cause.value,
        retry_at_ms=retry_at_ms,
        restart_count=len(restarts) + 1,
    )
    _back_off(
        txn,
        replica,
        retry_at_ms,
        _how_it_ended(allocation, cause),
        avoided=avoided,
        restarts=(*restarts, Restart(at_ms=retry_at_ms, cause=cause)),
    )


def _over_ceiling(
    txn: Txn, replica: Replica, cause: EndCause, restarts: tuple[Restart, ...], window_at_ms: int
) -> str | None:
    """Say which ceiling one more recovery would break, its own or its bundle's."""
    limits = _limits(txn)
    within = f"within {format_duration(limits.restart_window_ms)}"
    if len(restarts) >= limits.restart_count_max:
        return f"recovered {len(restarts)} times {within} ({_by_cause(restarts)})"
    if cause not in _CRASHES:
        return None
    keys = txn.fleet.index.replicas_by_bundle.keys(replica.bundle_id)
    crash_count = sum(
        each.cause in _CRASHES and each.at_ms > window_at_ms
        for key in keys
        for each in txn.fleet.replicas[key].restarts
    )
    if crash_count < limits.bundle_restart_count_max:
        return None
    return f"replicas of the bundle crashed {crash_count} times {within}"


def _by_cause(restarts: tuple[Restart, ...]) -> str:
    counts = Counter(each.cause.value for each in restarts)
    return ", ".join(f"{count} {cause}" for cause, count in sorted(counts.items()))


def _break(
    txn: Txn,
    replica: Replica,
    allocation: Allocation,
    restarts: tuple[Restart, ...],
    told: str,
) -> None:
    txn.move(
        replica,
        ReplicaTrigger.CEILING_REACHED,
        reason=Reason.RESTART_CEILING,
        reason_detail=told,
        restarts=restarts,
    )
    txn.emit(EventKind.REPLICA_BROKEN, _about(replica, allocation), restart_count=len(restarts))


def _how_it_ended(allocation: Allocation, cause: EndCause) -> str:
    """Say what a person would look for in the log: the cause, where, and the agent's own words."""
    ended, told = allocation.ended, f"{cause.value} on {allocation.node_id}"
    if ended is None:
        return told
    if ended.exit_code is not None:
        told += f" with {ended.exit_code}"
    elif ended.signal is not None:
        told += f" by signal {ended.signal}"
    return f"{told}: {ended.message}" if ended.message else told


def _back_off(
    txn: Txn,
    replica: Replica,
    retry_at_ms: int,
    detail: str,
    *,
    avoided: tuple[Avoided, ...],
    restarts: tuple[Restart, ...] | None = None,
) -> None:
    """Let a replica wait until an instant, which may be now."""
    waiting = txn.move(
        replica,
        ReplicaTrigger.FAILED,
        reason=Reason.BACKING_OFF,
        reason_detail=detail,
        retry_at_ms=retry_at_ms,
        is_recovery=replica.is_recovery or restarts is not None,
        avoided=avoided,
        restarts=replica.restarts if restarts is None else restarts,
    )
    _let_go_when_due(txn, waiting)


def _let_go_when_due(txn: Txn, replica: Replica) -> None:
    if replica.retry_at_ms is not None and replica.retry_at_ms <= txn.now_ms:
        txn.move(
            replica,
            ReplicaTrigger.RETRY_DUE,
            reason=None,
            reason_detail="",
            retry_at_ms=None,
            waiting_since_at_ms=txn.now_ms,
        )


def _avoid(
    txn: Txn, replica: Replica, allocation: Allocation, *, is_rejection: bool
) -> tuple[Avoided, ...]:
    """Return the nodes to stay away from, with the one just left as the last."""
    kept = [
        each
        for each in replica.avoided
        if each.until_at_ms >= txn.now_ms and each.node_id != allocation.node_id
    ]
    left = Avoided(
        node_id=allocation.node_id,
        until_at_ms=txn.now_ms + _limits(txn).exclusion_ms,
        is_rejection=is_rejection,
    )
    return (*kept, left)[-AVOIDED_COUNT_MAX:]


def _about(replica: Replica, allocation: Allocation) -> dict[str, str]:
    return {
        "replica": replica.replica_id,
        "bundle": replica.bundle_id,
        "allocation": allocation.allocation_id,
        "node": allocation.node_id,
    }
