"""The end of an agent: work first, where it is to be stopped, then the process."""

from __future__ import annotations

from hostler.agent.core import allocations, leases
from hostler.agent.core.effects import Exit
from hostler.agent.core.state import Closing
from hostler.agent.core.turn import Turn
from hostler.wire.work import EndCause


def begin(turn: Turn, *, is_work_stopped: bool, reason: str, code: int = 0) -> None:
    """Begin to end. A second call can only add that work is to be stopped too."""
    closing = turn.state.closing
    if closing is None:
        turn.state.closing = closing = Closing(
            is_work_stopped=is_work_stopped, code=code, reason=reason
        )
    closing.is_work_stopped |= is_work_stopped
    if closing.is_work_stopped:
        cause = EndCause.STOPPED if code == 0 else EndCause.FENCED
        allocations.stop_all(turn, cause, f"the agent ends: {reason}")
    # Leased commands are the agent's children; they cannot go on without it.
    leases.clear_all(turn)


def advance(turn: Turn) -> None:
    """Exit once everything that has to end first has ended."""
    state = turn.state
    closing = state.closing
    if closing is None or closing.is_exit_sent or state.leases:
        return
    if closing.is_work_stopped and any(not each.is_ended for each in state.allocations.values()):
        return
    closing.is_exit_sent = True
    turn.do(Exit(code=closing.code, reason=closing.reason))
