"""Tells the server what has changed, then answers its commands.

Reports are the difference between what is and what this session's server was told, so nothing
piles up while there is no session. While a session waits to be resumed its memory takes them.
"""

from __future__ import annotations

from typing import Final

from hostler.agent.core.effects import TellNotice
from hostler.agent.core.inputs import InventoryRead, NoticeRead
from hostler.agent.core.state import LinkPhase, Notice
from hostler.agent.core.turn import Turn
from hostler.wire.agent import AllocationReported, InventoryReported, NoticeReported

NOTICE_JITTER_MS: Final = 1_000
"""The same end, read again, may seem to be earlier by so much."""


def machine_read(turn: Turn, each: InventoryRead | NoticeRead) -> None:
    """Take in what was read of the machine."""
    match each:
        case InventoryRead():
            turn.state.inventory = each.inventory
        case NoticeRead():
            _noticed(turn, each)


def _noticed(turn: Turn, read: NoticeRead) -> None:
    """Remember that the machine is wanted back; a worse notice or an earlier end is told anew."""
    state = turn.state
    known = state.notice
    notice = Notice(kind=read.kind, ends_at_ms=turn.now_ms + read.left_ms)
    is_news = known is None or (known.kind == "rebalance" and notice.kind == "terminate")
    if known is not None and known.kind == notice.kind == "terminate":
        is_news = notice.ends_at_ms < known.ends_at_ms - NOTICE_JITTER_MS
    if is_news:
        state.notice = notice
        state.link.is_notice_told = False
        turn.do(TellNotice(kind=notice.kind, ends_at_ms=notice.ends_at_ms))


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
    if state.notice is not None and not state.link.is_notice_told:
        state.link.is_notice_told = True
        left_ms = max(0, state.notice.ends_at_ms - turn.now_ms)
        turn.send(NoticeReported(kind=state.notice.kind, left_ms=left_ms))
    for _, allocation in sorted(state.allocations.items()):
        report = allocation.report()
        if report != allocation.reported:
            allocation.reported = report
            turn.send(AllocationReported(report=report))
    for answer in state.answers:
        turn.send(answer)
    state.answers.clear()
