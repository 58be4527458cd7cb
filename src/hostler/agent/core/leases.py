"""Leased commands: they live under one lease and epoch, and never outlive it."""

from __future__ import annotations

from collections.abc import Sequence

from hostler.agent.core import checks
from hostler.agent.core.effects import ClearLease, KillExec, SignalExec, StartExec, WriteExec
from hostler.agent.core.inputs import ExecFinished, LeaseCleared, LeaseKey
from hostler.agent.core.launches import STOP_SIGNALS
from hostler.agent.core.limits import EXECS_MAX
from hostler.agent.core.state import CleanUp, Exec, LeaseWork
from hostler.agent.core.turn import Turn, bury
from hostler.base.units import format_duration
from hostler.wire.agent import EndLease, ExecEnded, ExecInput, ExecSignal, ExecStart


def asked(turn: Turn, message: ExecStart | ExecInput | ExecSignal | EndLease) -> None:
    """Do what a lessee or the server wants."""
    match message:
        case ExecStart():
            _start(turn, message)
        case ExecInput() if _find(turn, message.request_id) is not None:
            turn.do(WriteExec(data=message))
        case ExecSignal() if _find(turn, message.request_id) is not None:
            if message.signal in STOP_SIGNALS:
                turn.do(SignalExec(request_id=message.request_id, signal=message.signal))
        case EndLease():
            _end(turn, message)
        case ExecInput() | ExecSignal():
            # It has ended while this was on its way.
            pass


def work_changed(turn: Turn, each: ExecFinished | LeaseCleared) -> None:
    """Take in what became of leased work."""
    match each:
        case ExecFinished():
            if not checks.finished(turn, each):
                _exec_finished(turn, each)
        case LeaseCleared():
            _cleared(turn, each.key)


def _start(turn: Turn, message: ExecStart) -> None:
    """Take on a leased command; a newer epoch clears away what an older holder left.

    Lease epochs rise from grant to grant on a node, over all of its leases.
    """
    if _find(turn, message.request_id) is not None:
        return
    problem = _problem_of(turn, message)
    if problem is not None:
        turn.send(ExecEnded(request_id=message.request_id, error=problem))
        return
    key = LeaseKey(message.lease_id, message.lease_epoch)
    work = turn.state.leases.setdefault(key, LeaseWork(key=key))
    work.exec_by_request_id[message.request_id] = Exec(start=message)
    for _, other in sorted(turn.state.leases.items()):
        if other.clean_up is not None:
            continue  # it ends by itself, and in time
        if other.key.epoch < message.lease_epoch and _is_over(message, other.key.lease_id):
            _clear(turn, other)
    _launch_waiting(turn)


def _is_over(message: ExecStart, lease_id: str) -> bool:
    """Say whether the server no longer counts an older grant of this lease as held here."""
    if lease_id == message.lease_id:
        return True
    return message.held_lease_ids is not None and lease_id not in message.held_lease_ids


def cancel(turn: Turn, request_id: str) -> None:
    """Kill a command that nobody listens to any more."""
    found = _find(turn, request_id)
    if found is None:
        return
    if found.is_launched:
        turn.do(KillExec(request_id=request_id))
    else:
        _exec_finished(turn, ExecFinished(request_id=request_id, error="cancelled"))


def _end(turn: Turn, command: EndLease) -> None:
    """End this epoch of the lease and all before it; answered once nothing is left."""
    state = turn.state
    if command.node_epoch < state.node_epoch:
        turn.answer(command.command_id, "refused", "node_epoch_stale", "a newer epoch is known")
        return
    state.node_epoch = command.node_epoch
    if command.epoch < max((each.key.epoch for each in _of(turn, command.lease_id)), default=0):
        turn.answer(command.command_id, "refused", "epoch_stale", "a newer epoch is known")
        return
    bury(state.ended_lease_epochs, command.lease_id, command.epoch)
    works = _of(turn, command.lease_id)
    is_clean = command.epoch <= state.cleaned_lease_epochs.get(command.lease_id, -1)
    if not works and (is_clean or not command.clean_up):
        turn.answer(command.command_id)
        return
    if not works:
        key = LeaseKey(command.lease_id, command.epoch)
        works = [turn.state.leases.setdefault(key, LeaseWork(key=key))]
    for work in works:
        if command.command_id not in work.end_command_ids:
            work.end_command_ids.append(command.command_id)
        if work.clean_up is None:
            _clear(turn, work)
    if command.clean_up:
        _intend_clean_up(works[-1], command)


def _intend_clean_up(work: LeaseWork, command: EndLease) -> None:
    """Have a slot cleaned up as soon as nothing of its lease is left; once, however often asked."""
    if work.clean_up is None:
        work.clean_up = CleanUp(argv=command.clean_up, clean_up_ms=command.clean_up_ms)


def advance(turn: Turn) -> None:
    """Kill clean-ups that take too long."""
    for _, work in sorted(turn.state.leases.items()):
        each = work.clean_up
        if each is None or each.kill_at_ms is None or each.is_killed or each.problem is not None:
            continue
        if turn.is_due(each.kill_at_ms):
            each.is_killed = True
            turn.do(KillExec(request_id=each.request_id))


def _begin_clean_up(turn: Turn, work: LeaseWork, each: CleanUp) -> None:
    """Run a clean-up like a command of its lease, with nobody to take its output."""
    work.is_ending = False
    each.kill_at_ms = turn.now_ms + each.clean_up_ms
    each.request_id = f"clean-up:{work.key.lease_id}-{work.key.epoch}@{turn.now_ms}"
    argv = ["/bin/sh", "-c", 'exec "$@" >/dev/null 2>&1', "clean-up", *each.argv]
    start = ExecStart(
        request_id=each.request_id,
        lease_id=work.key.lease_id,
        lease_epoch=work.key.epoch,
        argv=argv,
    )
    turn.do(StartExec(start=start))


def _clean_up_finished(turn: Turn, finished: ExecFinished) -> bool:
    """Take in how a clean-up ended, and clear away what it left; say whether it was one."""
    for work in turn.state.leases.values():
        each = work.clean_up
        if each is None or each.request_id != finished.request_id:
            continue
        if each.is_killed:
            each.problem = f"took longer than {format_duration(each.clean_up_ms)}"
        elif finished.exit_code == 0:
            each.problem = ""
        elif not work.is_ending:
            how = finished.error or finished.signal or f"exit code {finished.exit_code}"
            each.problem = str(how)
        _clear(turn, work)
        return True
    return False


def clear_all(turn: Turn) -> None:
    """End everything under every lease, because the authority for it is gone."""
    for _, work in sorted(turn.state.leases.items()):
        _clear(turn, work)


def clear_found(turn: Turn, found: Sequence[LeaseKey]) -> None:
    """Clear away what an earlier life left; its commands died with it, strays may have not."""
    for key in sorted(found):
        work = turn.state.leases[key] = LeaseWork(key=key)
        _clear(turn, work)


def disown_all(turn: Turn) -> None:
    """The session that asked for these commands is over: kill them, and tell nobody."""
    for _, work in sorted(turn.state.leases.items()):
        for request_id, each in list(work.exec_by_request_id.items()):
            each.is_disowned = True
            cancel(turn, request_id)


def _exec_finished(turn: Turn, each: ExecFinished) -> None:
    """A command is over and all of its output has gone."""
    if _clean_up_finished(turn, each):
        return
    for work in turn.state.leases.values():
        found = work.exec_by_request_id.pop(each.request_id, None)
        if found is not None and not found.is_disowned:
            turn.send(
                ExecEnded(
                    request_id=each.request_id,
                    exit_code=each.exit_code,
                    signal=each.signal,
                    error=each.error,
                )
            )


def _cleared(turn: Turn, key: LeaseKey) -> None:
    """Nothing of the lease and epoch is left."""
    work = turn.state.leases.get(key)
    if work is None:
        return
    if work.clean_up is not None:
        _go_on_cleaning(turn, work, work.clean_up)
        return
    del turn.state.leases[key]
    # The lease itself may go on: after a fence, or a new life of the agent. What was asked for
    # since then has waited for this.
    goes_on = key.epoch > turn.state.ended_lease_epochs.get(key.lease_id, -1)
    waiting = LeaseWork(key=key)
    for request_id, each in work.exec_by_request_id.items():
        if goes_on and not each.is_launched:
            waiting.exec_by_request_id[request_id] = each
        elif not each.is_disowned:
            error = "lease_cleared" if goes_on else "lease_ended"
            turn.send(ExecEnded(request_id=request_id, error=error))
    if waiting.exec_by_request_id and turn.state.closing is None:
        turn.state.leases[key] = waiting
    _answer_end(turn, work)
    _launch_waiting(turn)


def _go_on_cleaning(turn: Turn, work: LeaseWork, clean_up: CleanUp) -> None:
    """Begin the clean-up, or answer how it went.

    One that was cut off begins anew where it may, and otherwise is asked for again. One that went
    well does not, however often it is asked for: the slot may be somebody else's by then.
    """
    for request_id, each in work.exec_by_request_id.items():
        if not each.is_disowned:
            turn.send(ExecEnded(request_id=request_id, error="lease_ended"))
    work.exec_by_request_id = {}
    if clean_up.problem is None and not _is_cut_off(turn):
        _begin_clean_up(turn, work, clean_up)
        return
    del turn.state.leases[work.key]
    if clean_up.problem == "":
        bury(turn.state.cleaned_lease_epochs, work.key.lease_id, work.key.epoch)
    if clean_up.problem is not None:
        _answer_end(turn, work, clean_up.problem)
    _launch_waiting(turn)


def _is_cut_off(turn: Turn) -> bool:
    """Say whether whatever ends now was ended by us, for reasons of our own."""
    return turn.state.closing is not None or turn.state.is_fenced


def _answer_end(turn: Turn, work: LeaseWork, problem: str = "") -> None:
    still = [
        command_id for each in turn.state.leases.values() for command_id in each.end_command_ids
    ]
    for command_id in work.end_command_ids:
        if command_id in still:
            continue
        if problem:
            turn.answer(command_id, "refused", "clean_up_failed", problem)
        else:
            turn.answer(command_id)


def _problem_of(turn: Turn, message: ExecStart) -> str | None:
    state = turn.state
    if state.closing is not None:
        return "agent_stopping"
    if state.is_fenced:
        return "agent_fenced"
    if message.lease_epoch <= state.ended_lease_epochs.get(message.lease_id, -1):
        return "lease_ended"
    if message.lease_epoch < state.lease_epoch_known(message.lease_id):
        return "lease_epoch_stale"
    if not message.argv or any("\0" in text for text in message.argv):
        return "argv_invalid"
    if sum(len(each.exec_by_request_id) for each in state.leases.values()) >= EXECS_MAX:
        return "too_many_commands"
    return None


def _launch_waiting(turn: Turn) -> None:
    """Start what waits, older grants first; nothing starts beside an older holder that is ending.

    Where a slot goes from one lease to the next, the next one's first command is often quicker
    than the clearing away of the last one's.
    """
    for _, work in sorted(turn.state.leases.items(), key=lambda item: (item[0].epoch, item[0])):
        if work.is_ending:
            return
        for each in work.exec_by_request_id.values():
            if not each.is_launched:
                each.is_launched = True
                turn.do(StartExec(start=each.start))


def _clear(turn: Turn, work: LeaseWork) -> None:
    if not work.is_ending:
        work.is_ending = True
        turn.do(ClearLease(key=work.key))


def _of(turn: Turn, lease_id: str) -> list[LeaseWork]:
    return [each for key, each in sorted(turn.state.leases.items()) if key.lease_id == lease_id]


def _find(turn: Turn, request_id: str) -> Exec | None:
    for work in turn.state.leases.values():
        if request_id in work.exec_by_request_id:
            return work.exec_by_request_id[request_id]
    return None
