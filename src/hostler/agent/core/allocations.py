"""Allocations: started once, stopped with patience and then without, forgotten in time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from hostler.agent.core import configs, roles
from hostler.agent.core.effects import (
    KillProcess,
    KillSupervisor,
    RemoveFolder,
    StartSupervisor,
    StopProcess,
)
from hostler.agent.core.inputs import (
    AllocationKey,
    ConfigWritten,
    FoundAllocation,
    ProcessSeen,
    ProcessView,
    RoleWritten,
    SupervisorFailed,
    SupervisorLost,
    SupervisorStarted,
)
from hostler.agent.core.launches import problem_of
from hostler.agent.core.limits import KILL_WITHIN_MS, SUPERVISOR_START_WITHIN_MS
from hostler.agent.core.state import (
    ALLOCATION_LIFECYCLE,
    Allocation,
    AllocationTrigger,
    ConfigState,
    ProbeState,
    Stop,
)
from hostler.agent.core.turn import Turn, bury
from hostler.base.units import format_duration
from hostler.wire.agent import (
    AssignRole,
    ConfigureAllocation,
    StartAllocation,
    StopAllocation,
)
from hostler.wire.work import AllocationPhase, EndCause, Ended


def asked(
    turn: Turn, command: StartAllocation | ConfigureAllocation | AssignRole | StopAllocation
) -> None:
    """Obey, unless the one who asks has been superseded."""
    if command.node_epoch < turn.state.node_epoch:
        turn.answer(command.command_id, "refused", "node_epoch_stale", "a newer epoch is known")
        return
    turn.state.node_epoch = command.node_epoch
    match command:
        case StartAllocation():
            _start(turn, command)
        case ConfigureAllocation():
            configs.asked(turn, command)
        case AssignRole():
            roles.asked(turn, command)
        case StopAllocation():
            _stop(turn, command)


def _start(turn: Turn, command: StartAllocation) -> None:
    """Take on an allocation, unless it is known or its time is over."""
    state = turn.state
    key = AllocationKey(command.allocation_id, command.epoch)
    known = state.allocations.get(key)
    if known is not None:
        if known.is_durable or known.is_ended:
            turn.answer(command.command_id)
        elif command.command_id not in known.start_command_ids:
            known.start_command_ids.append(command.command_id)
        return
    if command.epoch < state.epoch_known(command.allocation_id):
        turn.answer(command.command_id, "refused", "epoch_stale", "a newer epoch is known")
        return
    if command.epoch <= state.ended_allocation_epochs.get(command.allocation_id, -1):
        turn.answer(command.command_id, "refused", "allocation_ended", "it was ended before")
        return
    # What is refused must not run when the same start comes once more, after its refusal was heard.
    if state.closing is not None:
        bury(state.ended_allocation_epochs, command.allocation_id, command.epoch)
        turn.answer(command.command_id, "refused", "agent_stopping", "the agent is about to end")
        return
    if state.is_fenced:
        # It was under way when the authority ran out; by now it may be somebody else's.
        bury(state.ended_allocation_epochs, command.allocation_id, command.epoch)
        turn.answer(command.command_id, "refused", "agent_fenced", "the authority has run out")
        return
    allocation = Allocation(
        key=key,
        start=command,
        phase_since_at_ms=turn.now_ms,
        probe=ProbeState(),
        config=ConfigState(),
        start_command_ids=[command.command_id],
    )
    state.allocations[key] = allocation
    problem = problem_of(command.launch)
    if problem is not None:
        _end(turn, allocation, Ended(cause=EndCause.REJECTED, message=problem))


def _stop(turn: Turn, command: StopAllocation) -> None:
    """Stop this epoch and all before it; answered once nothing of them runs."""
    state = turn.state
    if command.epoch < state.epoch_known(command.allocation_id):
        turn.answer(command.command_id, "refused", "epoch_stale", "a newer epoch is known")
        return
    # A start that was overtaken by its stop must not run when it comes.
    bury(state.ended_allocation_epochs, command.allocation_id, command.epoch)
    running = [each for each in _of(turn, command.allocation_id) if not each.is_ended]
    if not running:
        turn.answer(command.command_id)
    for allocation in running:
        if command.command_id not in allocation.stop_command_ids:
            allocation.stop_command_ids.append(command.command_id)
    for allocation in running:
        begin_stop(turn, allocation, EndCause.STOPPED, command.reason, command.grace_ms)


def stop_all(turn: Turn, cause: EndCause, message: str, *, is_kept_spared: bool = False) -> None:
    """Stop everything, or everything that does not keep running when cut off."""
    for _, allocation in sorted(turn.state.allocations.items()):
        launch = allocation.start.launch
        if is_kept_spared and launch.disconnect == "keep":
            continue
        begin_stop(turn, allocation, cause, message, launch.stop_grace_ms)


def begin_stop(
    turn: Turn, allocation: Allocation, cause: EndCause, message: str, grace_ms: int
) -> None:
    """Begin to stop; in a stop already under way, only a shorter patience changes anything."""
    if allocation.is_ended:
        return
    kill_at_ms = turn.now_ms + grace_ms
    if not allocation.is_launched:
        _end(turn, allocation, Ended(cause=cause, message=message))
        return
    if allocation.stop is None:
        allocation.stop = Stop(cause=cause, message=message, kill_at_ms=kill_at_ms)
    elif kill_at_ms < allocation.stop.kill_at_ms:
        allocation.stop.kill_at_ms = kill_at_ms
    else:
        return
    _move(turn, allocation, AllocationTrigger.STOP_BEGUN)
    turn.do(
        StopProcess(
            key=allocation.key, signal=allocation.start.launch.stop_signal, grace_ms=grace_ms
        )
    )


def adopt(turn: Turn, found: Sequence[FoundAllocation]) -> None:
    """Take over what an earlier life left."""
    for each in sorted(found, key=lambda item: (item.start.allocation_id, item.start.epoch)):
        key = AllocationKey(each.start.allocation_id, each.start.epoch)
        is_launched = each.process is not None or each.is_supervised
        allocation = Allocation(
            key=key,
            start=each.start,
            phase_since_at_ms=turn.now_ms,
            is_launched=is_launched,
            is_durable=True,
            launched_at_ms=turn.now_ms,
            probe=ProbeState(),
            config=ConfigState(written=each.config_written),
        )
        turn.state.allocations[key] = allocation
        if each.process is not None:
            _see(turn, allocation, each.process)
            if each.was_ready and allocation.phase is AllocationPhase.RUNNING:
                allocation.was_ready = True
                _move(turn, allocation, AllocationTrigger.BECAME_READY)
            if not each.is_supervised:
                _lose(turn, allocation)


def process_changed(
    turn: Turn,
    each: SupervisorStarted
    | SupervisorFailed
    | SupervisorLost
    | ProcessSeen
    | ConfigWritten
    | RoleWritten,
) -> None:
    """Take in what is known about a supervised process, and about what it works by."""
    allocation = turn.state.allocations.get(each.key)
    if allocation is None or allocation.is_ended:
        return
    match each:
        case SupervisorStarted():
            _become_durable(turn, allocation)
        case SupervisorFailed():
            cause = EndCause.REJECTED if each.is_refusal else EndCause.START_FAILED
            _end(turn, allocation, Ended(cause=cause, message=each.message))
        case SupervisorLost():
            _lose(turn, allocation)
        case ConfigWritten():
            configs.written(turn, allocation, each)
        case RoleWritten():
            roles.written(turn, allocation, each)
        case ProcessSeen():
            _become_durable(turn, allocation)
            _see(turn, allocation, each.process)


def advance(turn: Turn) -> None:
    """Launch what may be launched now, and lose patience where it is time to."""
    for _, allocation in sorted(turn.state.allocations.items()):
        if allocation.phase is AllocationPhase.STARTING:
            _advance_starting(turn, allocation)
        if allocation.phase is AllocationPhase.RUNNING:
            _advance_unready(turn, allocation)
        if allocation.stop is not None and not allocation.is_ended:
            _advance_stopping(turn, allocation, allocation.stop)


def forget(turn: Turn) -> None:
    """Remove ended allocations that the server knows about and nobody will ask for any more."""
    state = turn.state
    told = [
        each
        for each in state.allocations.values()
        if each.is_ended and each.reported == each.report()
    ]
    told.sort(key=lambda each: (each.phase_since_at_ms, each.key))
    surplus_count = len(told) - state.settings.ended_count_max
    for index, allocation in enumerate(told):
        is_old = turn.is_due(allocation.phase_since_at_ms + state.settings.ended_keep_ms)
        if is_old or index < surplus_count:
            del state.allocations[allocation.key]
            bury(state.ended_allocation_epochs, *allocation.key)
            turn.do(RemoveFolder(key=allocation.key))


def _advance_starting(turn: Turn, allocation: Allocation) -> None:
    if allocation.is_launched:
        if turn.is_due(allocation.launched_at_ms + SUPERVISOR_START_WITHIN_MS):
            message = "its supervisor does not answer"
            begin_stop(turn, allocation, EndCause.START_FAILED, message, 0)
        return
    earlier = [
        each
        for each in _of(turn, allocation.key.allocation_id)
        if each.key.epoch < allocation.key.epoch and not each.is_ended
    ]
    for each in earlier:
        grace_ms = each.start.launch.stop_grace_ms
        begin_stop(turn, each, EndCause.STOPPED, "a newer epoch starts", grace_ms)
    if not all(each.is_ended for each in earlier):
        return
    allocation.is_launched = True
    allocation.launched_at_ms = turn.now_ms
    turn.is_due(turn.now_ms + SUPERVISOR_START_WITHIN_MS)
    turn.do(StartSupervisor(key=allocation.key, start=allocation.start))


def _advance_unready(turn: Turn, allocation: Allocation) -> None:
    launch = allocation.start.launch
    if launch.ready_within_ms is None:
        return
    if turn.is_due(allocation.running_since_at_ms + launch.ready_within_ms):
        message = f"not ready within {format_duration(launch.ready_within_ms)}"
        begin_stop(turn, allocation, EndCause.START_FAILED, message, launch.stop_grace_ms)


def _advance_stopping(turn: Turn, allocation: Allocation, ending: Stop) -> None:
    if not turn.is_due(ending.kill_at_ms):
        return
    if not ending.is_kill_sent:
        ending.is_kill_sent = True
        turn.do(KillProcess(key=allocation.key))
    if turn.is_due(ending.kill_at_ms + KILL_WITHIN_MS) and not ending.is_supervisor_killed:
        ending.is_supervisor_killed = True
        turn.do(KillSupervisor(key=allocation.key))


def _see(turn: Turn, allocation: Allocation, process: ProcessView) -> None:
    allocation.pid = process.pid if process.end is None else None
    allocation.started_at_ms = process.started_at_ms
    allocation.probe.is_notified = process.is_ready
    allocation.config.applied = process.config_applied
    if allocation.phase is AllocationPhase.STARTING and process.pid is not None:
        since_at_ms = turn.now_ms if process.started_at_ms is None else process.started_at_ms
        allocation.running_since_at_ms = min(turn.now_ms, since_at_ms)
        _move(turn, allocation, AllocationTrigger.SPAWNED)
    if process.is_stopping and allocation.stop is None:
        # Begun by an earlier life, or by the supervisor itself when the authority ran out.
        kill_at_ms = turn.now_ms + allocation.start.launch.stop_grace_ms
        allocation.stop = Stop(cause=EndCause.STOPPED, message="", kill_at_ms=kill_at_ms)
        _move(turn, allocation, AllocationTrigger.STOP_BEGUN)
    end = process.end
    if end is None:
        return
    ending = allocation.stop
    if end.start_error is not None:
        ended = Ended(cause=EndCause.START_FAILED, message=end.start_error)
    elif end.is_fenced:
        ended = Ended(cause=EndCause.FENCED, exit_code=end.exit_code, signal=end.signal)
    else:
        ended = Ended(
            cause=EndCause.EXITED if ending is None else ending.cause,
            exit_code=end.exit_code,
            signal=end.signal,
            message="" if ending is None else ending.message,
        )
    _end(turn, allocation, ended)


def _lose(turn: Turn, allocation: Allocation) -> None:
    if not allocation.is_ended:
        cause = EndCause.SUPERVISOR_LOST
        _end(turn, allocation, Ended(cause=cause, message="its supervisor was killed"))


def _end(turn: Turn, allocation: Allocation, ended: Ended) -> None:
    allocation.ended = ended
    allocation.pid = None
    _move(turn, allocation, AllocationTrigger.ENDED)
    _become_durable(turn, allocation)
    still = [
        command_id
        for each in turn.state.allocations.values()
        if not each.is_ended
        for command_id in each.stop_command_ids
    ]
    for command_id in allocation.stop_command_ids:
        if command_id not in still:
            turn.answer(command_id)
    allocation.stop_command_ids = []


def _become_durable(turn: Turn, allocation: Allocation) -> None:
    allocation.is_durable = True
    if allocation.start.config is not None:
        written = max(allocation.config.written, allocation.start.config.number)
        allocation.config.written = written
    for command_id in allocation.start_command_ids:
        turn.answer(command_id)
    allocation.start_command_ids = []


def _move(turn: Turn, allocation: Allocation, trigger: AllocationTrigger) -> None:
    if trigger is AllocationTrigger.STOP_BEGUN and allocation.phase is AllocationPhase.STOPPING:
        return
    allocation.phase = ALLOCATION_LIFECYCLE.next(allocation.phase, trigger)
    allocation.phase_since_at_ms = turn.now_ms


def _of(turn: Turn, allocation_id: str) -> Iterable[Allocation]:
    found = turn.state.allocations.items()
    return [each for key, each in sorted(found) if key.allocation_id == allocation_id]
