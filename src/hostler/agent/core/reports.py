"""Tells the server what has changed, then answers its commands.

Reports are the difference between what is and what this session's server was told, so nothing
piles up while there is no session. While a session waits to be resumed its memory takes them.
"""

from __future__ import annotations

from hostler.agent.core.state import LinkPhase
from hostler.agent.core.turn import Turn
from hostler.wire.agent import AllocationReported, InventoryReported


def advance(turn: Turn) -> None:
    """Send what is new: inventory, reports, and after them the answers."""
    state = turn.state
    if state.link.session_id is None or state.link.phase is LinkPhase.GREETING:
        # Without a session the next hello tells everything; during a greeting it is not yet
        # known in which session to speak.
        return
    if state.link.told_inventory != state.inventory:
        state.link.told_inventory = state.inventory
        turn.send(InventoryReported(inventory=state.inventory))
    for _, allocation in sorted(state.allocations.items()):
        report = allocation.report()
        if report != allocation.reported:
            allocation.reported = report
            turn.send(AllocationReported(report=report))
    for answer in state.answers:
        turn.send(answer)
    state.answers.clear()
