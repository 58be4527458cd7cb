"""One step of the agent: every input to the part that knows about it, then what is due."""

from __future__ import annotations

from collections.abc import Sequence
from typing import assert_never

from hostler.agent.core import (
    allocations,
    authority,
    checks,
    closing,
    configs,
    leases,
    logs,
    readiness,
    reports,
)
from hostler.agent.core.effects import GiveCredit
from hostler.agent.core.inputs import (
    ConfigWritten,
    ExecFinished,
    Input,
    InventoryRead,
    LeaseCleared,
    LinkClosed,
    LinkOpened,
    LogsFinished,
    MessageReceived,
    NoticeRead,
    ProbeAnswered,
    ProcessSeen,
    RoleWritten,
    SessionLost,
    Started,
    StopAsked,
    SupervisorFailed,
    SupervisorLost,
    SupervisorStarted,
)
from hostler.agent.core.state import AgentState
from hostler.agent.core.turn import Answer, Turn
from hostler.wire.agent import (
    AssignRole,
    CancelStream,
    CheckReady,
    ConfigureAllocation,
    EndLease,
    ExecInput,
    ExecSignal,
    ExecStart,
    HeartbeatAck,
    ReadLogs,
    Refused,
    ServerMessage,
    Shutdown,
    StartAllocation,
    StopAllocation,
    StreamCredit,
    Welcome,
)


def step(state: AgentState, inputs: Sequence[Input], now_ms: int) -> Answer:
    """Take in what happened and decide what to do. See the package's docstring for the contract."""
    turn = Turn(state, now_ms)
    for each in inputs:
        _absorb(turn, each)
    authority.advance(turn)
    allocations.advance(turn)
    configs.advance(turn)
    readiness.advance(turn)
    leases.advance(turn)
    checks.advance(turn)
    reports.advance(turn)
    allocations.forget(turn)
    closing.advance(turn)
    return turn.finished()


def _absorb(turn: Turn, each: Input) -> None:
    match each:
        case Started():
            turn.state.started_at_ms = turn.now_ms
            turn.state.inventory = each.inventory
            turn.state.authority_until_at_ms = each.authority_until_at_ms
            allocations.adopt(turn, each.found)
            leases.clear_found(turn, each.found_leases)
        case MessageReceived():
            _absorb_message(turn, each.message)
        case LinkOpened() | LinkClosed() | SessionLost():
            authority.link_changed(turn, each)
        case InventoryRead() | NoticeRead():
            reports.machine_read(turn, each)
        case (
            SupervisorStarted()
            | SupervisorFailed()
            | SupervisorLost()
            | ProcessSeen()
            | ConfigWritten()
            | RoleWritten()
        ):
            allocations.process_changed(turn, each)
        case ProbeAnswered():
            readiness.probe_answered(turn, each)
        case ExecFinished() | LeaseCleared():
            leases.work_changed(turn, each)
        case LogsFinished():
            logs.finished(turn, each)
        case StopAsked():
            closing.begin(turn, is_work_stopped=each.is_work_stopped, reason="stop asked")
        case _:
            assert_never(each)


def _absorb_message(turn: Turn, message: ServerMessage) -> None:
    match message:
        case Welcome() | Refused() | HeartbeatAck():
            authority.heard(turn, message)
        case StartAllocation() | ConfigureAllocation() | AssignRole() | StopAllocation():
            allocations.asked(turn, message)
        case ExecStart() | ExecInput() | ExecSignal() | EndLease():
            leases.asked(turn, message)
        case CheckReady():
            checks.asked(turn, message)
        case ReadLogs():
            logs.read(turn, message)
        case CancelStream():
            leases.cancel(turn, message.request_id)
            logs.cancel(turn, message.request_id)
        case StreamCredit():
            turn.do(GiveCredit(request_id=message.request_id, bytes_count=message.bytes_count))
        case Shutdown():
            closing.begin(turn, is_work_stopped=True, reason=message.reason or "the server said so")
        case _:
            assert_never(message)
