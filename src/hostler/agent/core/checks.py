"""Ready checks: the server has a command tried on this node, to learn whether work may come here.

A try runs as a leased command of no lease would, with nobody to take its output; of that the end is
kept, and told when the try has failed.
"""

from __future__ import annotations

from hostler.agent.core.effects import ClearLease, KillExec, StartExec
from hostler.agent.core.inputs import ExecFinished, LeaseKey
from hostler.agent.core.limits import CHECK_TAIL_BYTES, CHECKS_MAX
from hostler.agent.core.state import Check
from hostler.agent.core.turn import Turn
from hostler.base.redact import redacted
from hostler.base.units import format_duration
from hostler.wire.agent import CheckReady, ExecStart

FOLDER = "ready-check"
"""In the place of a lease's id; the server gives no lease such a name."""


def asked(turn: Turn, message: CheckReady) -> None:
    """Begin a try, unless it is under way already."""
    state = turn.state
    if message.command_id in state.checks:
        return
    if message.node_epoch < state.node_epoch:
        turn.answer(message.command_id, "refused", "node_epoch_stale", "a newer epoch is known")
        return
    state.node_epoch = message.node_epoch
    if state.closing is not None or state.is_fenced or len(state.checks) >= CHECKS_MAX:
        turn.answer(message.command_id, "refused", "not_now", "the agent runs no checks now")
        return
    state.check_count += 1
    request_id = f"{FOLDER}-{state.check_count}"  # names a file on machines without an agent
    key = LeaseKey(FOLDER, state.check_count)
    state.checks[message.command_id] = Check(
        request_id=request_id,
        key=key,
        timeout_ms=message.timeout_ms,
        kill_at_ms=turn.now_ms + message.timeout_ms,
    )
    start = ExecStart(
        request_id=request_id, lease_id=key.lease_id, lease_epoch=key.epoch, argv=message.argv
    )
    turn.do(StartExec(start=start, tail_bytes=CHECK_TAIL_BYTES))


def advance(turn: Turn) -> None:
    """Kill tries that take too long."""
    for _, check in sorted(turn.state.checks.items()):
        if not check.is_killed and turn.is_due(check.kill_at_ms):
            check.is_killed = True
            turn.do(KillExec(request_id=check.request_id))


def finished(turn: Turn, each: ExecFinished) -> bool:
    """Answer how a try went, and clear away what it left; say whether it was one."""
    for command_id, check in turn.state.checks.items():
        if check.request_id != each.request_id:
            continue
        del turn.state.checks[command_id]
        turn.do(ClearLease(key=check.key))
        if each.exit_code == 0 and not check.is_killed:
            turn.answer(command_id)
            return True
        how = each.error or each.signal or f"exit code {each.exit_code}"
        if check.is_killed:
            how = f"took longer than {format_duration(check.timeout_ms)}"
        tail = redacted(each.tail).strip()
        turn.answer(command_id, "refused", "not_ready", f"{how}: {tail}" if tail else how)
        return True
    return False
