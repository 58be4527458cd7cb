"""Roles of running jobs: the latest that the server has given counts."""

from __future__ import annotations

from hostler.agent.core.effects import WriteRole
from hostler.agent.core.inputs import AllocationKey, RoleWritten
from hostler.agent.core.state import Allocation
from hostler.agent.core.turn import Turn
from hostler.wire.agent import AssignRole


def asked(turn: Turn, command: AssignRole) -> None:
    """Have the role written, unless a later one is; answered once the job can read it."""
    known = turn.state.allocations.get(AllocationKey(command.allocation_id, command.epoch))
    if known is None or known.is_ended:
        turn.answer(command.command_id, "refused", "allocation_ended", "nothing of it runs here")
    elif not known.is_durable:
        turn.answer(command.command_id, "refused", "not_started", "its start is not durable yet")
    elif command.term < known.role_term:
        turn.answer(command.command_id)  # superseded, and its successor is as good
    else:
        known.role_term = command.term
        known.role_command_ids[command.command_id] = command.term
        turn.do(WriteRole(key=known.key, role=command.role, term=command.term))


def written(turn: Turn, allocation: Allocation, each: RoleWritten) -> None:
    """Answer whoever asked for this role or an earlier one."""
    for command_id, term in list(allocation.role_command_ids.items()):
        if term <= each.term:
            del allocation.role_command_ids[command_id]
            if each.problem is None:
                turn.answer(command_id)
            else:
                turn.answer(command_id, "refused", "role_not_written", each.problem)
