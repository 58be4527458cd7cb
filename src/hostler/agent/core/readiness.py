"""Readiness: when a running job becomes ready, and when it stops being so."""

from __future__ import annotations

from typing import assert_never

from hostler.agent.core.effects import Probe, RememberReady
from hostler.agent.core.inputs import ProbeAnswered
from hostler.agent.core.limits import PROBE_FAILURES_MAX, PROBE_SLACK_MS
from hostler.agent.core.state import ALLOCATION_LIFECYCLE, Allocation, AllocationTrigger
from hostler.agent.core.turn import Turn
from hostler.wire.work import (
    AllocationPhase,
    DelayReadiness,
    ExecReadiness,
    HttpReadiness,
    NoReadiness,
    SdNotifyReadiness,
    TcpReadiness,
)

_PROBED_PHASES = (AllocationPhase.RUNNING, AllocationPhase.READY, AllocationPhase.UNREADY)


def probe_answered(turn: Turn, each: ProbeAnswered) -> None:
    """Count the result of a probe, unless it came too late to count."""
    allocation = turn.state.allocations.get(each.key)
    if allocation is None or allocation.phase not in _PROBED_PHASES:
        return
    if allocation.probe.probe_id != each.probe_id or allocation.probe.answer_due_at_ms is None:
        return
    _count(turn, allocation, is_success=each.is_success)


def advance(turn: Turn) -> None:
    """Move allocations whose readiness follows from the time, and send probes that are due."""
    for _, allocation in sorted(turn.state.allocations.items()):
        if allocation.phase not in _PROBED_PHASES:
            continue
        readiness = allocation.start.launch.readiness
        match readiness:
            case NoReadiness():
                set_ready(turn, allocation, is_ready=True)
            case DelayReadiness():
                if turn.is_due(allocation.running_since_at_ms + readiness.delay_ms):
                    set_ready(turn, allocation, is_ready=True)
            case SdNotifyReadiness():
                set_ready(turn, allocation, is_ready=allocation.probe.is_notified)
            case HttpReadiness() | TcpReadiness() | ExecReadiness():
                _probe(turn, allocation, readiness)
            case _:
                assert_never(readiness)


def set_ready(turn: Turn, allocation: Allocation, *, is_ready: bool) -> None:
    """Move the allocation if that is news."""
    trigger = AllocationTrigger.BECAME_READY if is_ready else AllocationTrigger.BECAME_UNREADY
    if not ALLOCATION_LIFECYCLE.allows(allocation.phase, trigger):
        return
    allocation.phase = ALLOCATION_LIFECYCLE.next(allocation.phase, trigger)
    allocation.phase_since_at_ms = turn.now_ms
    if is_ready and not allocation.was_ready:
        allocation.was_ready = True
        turn.do(RememberReady(key=allocation.key))


def _probe(
    turn: Turn, allocation: Allocation, readiness: HttpReadiness | TcpReadiness | ExecReadiness
) -> None:
    probe = allocation.probe
    if probe.answer_due_at_ms is not None:
        if not turn.is_due(probe.answer_due_at_ms):
            return
        _count(turn, allocation, is_success=False)
    if not turn.is_due(probe.next_at_ms):
        return
    probe.probe_id += 1
    probe.next_at_ms = turn.now_ms + max(1, readiness.interval_ms)
    probe.answer_due_at_ms = turn.now_ms + readiness.timeout_ms + PROBE_SLACK_MS
    turn.is_due(probe.answer_due_at_ms)
    turn.do(Probe(key=allocation.key, probe_id=probe.probe_id, readiness=readiness))


def _count(turn: Turn, allocation: Allocation, *, is_success: bool) -> None:
    allocation.probe.answer_due_at_ms = None
    if is_success:
        allocation.probe.failure_count = 0
        set_ready(turn, allocation, is_ready=True)
        return
    allocation.probe.failure_count += 1
    if allocation.probe.failure_count >= PROBE_FAILURES_MAX:
        set_ready(turn, allocation, is_ready=False)
