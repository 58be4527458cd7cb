"""The link to the server, the heartbeat, and the authority that hangs on them.

The authority ends `fence_after_ms` after the *send* time of the last heartbeat that the server
acknowledged, so the server, which counts from the receipt, always waits longer than we do. When it
is told another limit, each heartbeat says which one its authority goes by: the server waits for it.
"""

from __future__ import annotations

from hostler.agent.core import allocations, closing, leases, logs
from hostler.agent.core.effects import Disconnect, Reconnect, RememberAuthority
from hostler.agent.core.inputs import LinkClosed, LinkOpened, SessionLost
from hostler.agent.core.limits import HEARTBEATS_UNANSWERED_MAX, WELCOME_WITHIN_MS
from hostler.agent.core.state import LinkPhase
from hostler.agent.core.turn import Turn
from hostler.wire.agent import Heartbeat, HeartbeatAck, Hello, Refused, Welcome
from hostler.wire.version import LINK_PROTOCOL
from hostler.wire.work import EndCause


def link_changed(turn: Turn, each: LinkOpened | LinkClosed | SessionLost) -> None:
    """Greet the server on a new connection; note that one is gone."""
    link = turn.state.link
    match each:
        case LinkOpened():
            _greet(turn, each)
        case LinkClosed():
            link.phase = LinkPhase.DOWN
        case SessionLost():
            link.session_id = None
            turn.do(Reconnect(reason="session_overflow"))


def heard(turn: Turn, message: Welcome | Refused | HeartbeatAck) -> None:
    """Take in what the server says about us."""
    match message:
        case Welcome():
            _welcomed(turn, message)
        case Refused(is_final=True):
            turn.do(Disconnect(reason=message.code))
            closing.begin(turn, is_work_stopped=True, reason=message.message, code=1)
        case Refused():
            turn.do(Reconnect(reason=message.code))
        case HeartbeatAck():
            if turn.state.link.phase is LinkPhase.UP:
                _take_limits(turn, message)
                _grant(turn, message.sent_at_ms)


def advance(turn: Turn) -> None:
    """Beat, doubt a silent connection, and fence when the authority has run out."""
    link = turn.state.link
    if link.phase is LinkPhase.GREETING and turn.is_due(link.hello_sent_at_ms + WELCOME_WITHIN_MS):
        link.phase = LinkPhase.DOWN
        turn.do(Reconnect(reason="no_welcome"))
    if link.phase is LinkPhase.UP:
        silence_ms = HEARTBEATS_UNANSWERED_MAX * link.heartbeat_ms
        if turn.is_due(link.answered_at_ms + silence_ms):
            link.phase = LinkPhase.DOWN
            turn.do(Reconnect(reason="heartbeats_unanswered"))
        elif turn.is_due(link.next_heartbeat_at_ms):
            link.next_heartbeat_at_ms = turn.now_ms + link.heartbeat_ms
            turn.is_due(link.next_heartbeat_at_ms)
            turn.send(Heartbeat(sent_at_ms=turn.now_ms, fence_after_ms=link.fence_kept_ms))
    _fence(turn)
    _end_when_forgotten(turn)


def _welcomed(turn: Turn, message: Welcome) -> None:
    """Take the grant, and find out whether the old session goes on."""
    state = turn.state
    link = state.link
    if link.phase is not LinkPhase.GREETING:
        return
    if message.node_epoch < state.node_epoch:
        turn.do(Reconnect(reason="node_epoch_stale"))
        return
    state.node_epoch = message.node_epoch
    is_new_session = message.session_id != link.hello_session_id
    link.phase = LinkPhase.UP
    link.session_id = message.session_id
    link.heartbeat_ms = max(1, message.heartbeat_ms)
    link.fence_after_ms = message.fence_after_ms
    link.next_heartbeat_at_ms = turn.now_ms + link.heartbeat_ms
    if is_new_session:
        for key, allocation in state.allocations.items():
            allocation.reported = link.hello_report_by_key.get(key)
        leases.disown_all(turn)
        logs.disown_all(turn)
    link.hello_report_by_key = {}
    _grant(turn, link.hello_sent_at_ms)


def _take_limits(turn: Turn, message: HeartbeatAck) -> None:
    """Go by other limits from now on, when the server names some."""
    link = turn.state.link
    if message.fence_after_ms > 0:
        link.fence_after_ms = message.fence_after_ms
    if message.heartbeat_ms > 0:
        link.heartbeat_ms = message.heartbeat_ms
        link.next_heartbeat_at_ms = min(link.next_heartbeat_at_ms, turn.now_ms + link.heartbeat_ms)


def _fence(turn: Turn) -> None:
    state = turn.state
    if state.authority_until_at_ms is None or not turn.is_due(state.authority_until_at_ms):
        return
    if state.is_fenced:
        return
    state.is_fenced = True
    message = "the server did not answer for too long"
    allocations.stop_all(turn, EndCause.FENCED, message, is_kept_spared=True)
    leases.clear_all(turn)


def _end_when_forgotten(turn: Turn) -> None:
    """End, on a machine that is there for this agent alone, when the server is gone for good."""
    state = turn.state
    silence_ms_max = state.settings.exit_when_silent_ms
    if silence_ms_max is None or state.closing is not None:
        return
    if turn.is_due(max(state.link.answered_at_ms, state.started_at_ms) + silence_ms_max):
        reason = "the server was silent for too long"
        closing.begin(turn, is_work_stopped=True, reason=reason, code=1)


def _grant(turn: Turn, sent_at_ms: int) -> None:
    state = turn.state
    state.link.answered_at_ms = turn.now_ms
    until_at_ms = sent_at_ms + state.link.fence_after_ms
    if state.authority_until_at_ms is not None and until_at_ms <= state.authority_until_at_ms:
        return
    state.authority_until_at_ms = until_at_ms
    state.link.fence_kept_ms = state.link.fence_after_ms
    state.is_fenced = False
    turn.do(RememberAuthority(until_at_ms=until_at_ms))


def _greet(turn: Turn, opened: LinkOpened) -> None:
    state = turn.state
    link = state.link
    link.phase = LinkPhase.GREETING
    link.hello_sent_at_ms = turn.now_ms
    link.hello_session_id = opened.session_id
    link.told_inventory = state.inventory
    link.is_notice_told = False
    link.hello_report_by_key = {key: each.report() for key, each in state.allocations.items()}
    turn.send(
        Hello(
            protocol=LINK_PROTOCOL,
            agent_version=state.settings.agent_version,
            node_id=state.settings.node_id,
            machine_id=state.settings.machine_id,
            incarnation=state.settings.incarnation,
            session_id=opened.session_id,
            received_seq=opened.received_seq,
            sent_at_ms=turn.now_ms,
            inventory=state.inventory,
            allocations=[each for _, each in sorted(link.hello_report_by_key.items())],
            fence_after_ms=link.fence_kept_ms,
        )
    )
