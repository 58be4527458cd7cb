"""Log streams: which are open, and for whom."""

from __future__ import annotations

from hostler.agent.core.effects import CloseStream, OpenLogs
from hostler.agent.core.inputs import AllocationKey, LogsFinished
from hostler.agent.core.limits import LOG_STREAMS_MAX
from hostler.agent.core.turn import Turn
from hostler.wire.agent import LogEnded, ReadLogs


def read(turn: Turn, message: ReadLogs) -> None:
    """Open the log of the newest epoch of an allocation."""
    state = turn.state
    if message.request_id in state.log_streams:
        return
    key = AllocationKey(message.allocation_id, state.epoch_known(message.allocation_id))
    if key not in state.allocations:
        turn.send(LogEnded(request_id=message.request_id, error="allocation_unknown"))
        return
    if len(state.log_streams) >= LOG_STREAMS_MAX:
        turn.send(LogEnded(request_id=message.request_id, error="too_many_streams"))
        return
    state.log_streams[message.request_id] = False
    turn.do(
        OpenLogs(
            request_id=message.request_id,
            key=key,
            is_followed=message.follow,
            tail_bytes=message.tail_bytes,
        )
    )


def cancel(turn: Turn, request_id: str) -> None:
    """Nobody reads this one any more."""
    if request_id in turn.state.log_streams:
        turn.do(CloseStream(request_id=request_id))


def disown_all(turn: Turn) -> None:
    """The session that asked for these is over: close them, and tell nobody."""
    for request_id in turn.state.log_streams:
        turn.state.log_streams[request_id] = True
        turn.do(CloseStream(request_id=request_id))


def finished(turn: Turn, each: LogsFinished) -> None:
    """A log was read to its end, or closed."""
    is_disowned = turn.state.log_streams.pop(each.request_id, True)
    if not is_disowned:
        turn.send(LogEnded(request_id=each.request_id, error=each.error))
