"""The link session: nothing lost, nothing twice, in order, whatever breaks."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostler.wire.agent import CommandAnswered, Heartbeat, HeartbeatAck, Shutdown
from hostler.wire.link import (
    LinkBroken,
    LinkOverflow,
    LinkSession,
    decode_opening_from_agent,
    decode_opening_from_server,
    opening_frame,
)
from hostler.wire.stream import ReceiveWindow, SendWindow
from hostler.wire.version import ProtocolRange, negotiate


def an_answer(number: int) -> CommandAnswered:
    return CommandAnswered(command_id=str(number), outcome="done")


class Pair:
    """Both ends of a session and the frames between them."""

    def __init__(self) -> None:
        self.agent = LinkSession("s")
        self.server = LinkSession("s")
        self.up: list[str] = []
        self.down: list[str] = []
        self.heard: list[str] = []
        self.obeyed: list[str] = []

    def deliver(self, count: int) -> None:
        for _ in range(min(count, len(self.up))):
            message = self.server.receive_from_agent(self.up.pop(0))
            if isinstance(message, CommandAnswered):
                self.heard.append(message.command_id)
        for _ in range(min(count, len(self.down))):
            order = self.agent.receive_from_server(self.down.pop(0))
            if isinstance(order, Shutdown):
                self.obeyed.append(order.reason)

    def break_and_resume(self) -> None:
        assert self.server.can_resume("s", self.agent.received_seq)
        self.up = self.agent.resume(self.server.received_seq)
        self.down = self.server.resume(self.agent.received_seq)


@given(
    st.lists(
        st.one_of(
            st.just("agent"),
            st.just("server"),
            st.just("beat"),
            st.just("break"),
            st.integers(min_value=1, max_value=4),
        ),
        max_size=80,
    )
)
def test_every_message_arrives_once_and_in_order(story: list[str | int]) -> None:
    pair = Pair()
    sent: list[str] = []
    ordered: list[str] = []
    for number, event in enumerate(story):
        match event:
            case "agent":
                sent.append(str(number))
                pair.up.append(pair.agent.send(an_answer(number)))
            case "server":
                ordered.append(str(number))
                pair.down.append(pair.server.send(Shutdown(reason=str(number))))
            case "beat":
                pair.up.append(pair.agent.send(Heartbeat(sent_at_ms=number)))
                pair.down.append(pair.server.send(HeartbeatAck(sent_at_ms=number)))
            case "break":
                pair.break_and_resume()
            case count:
                pair.deliver(int(count))
    pair.break_and_resume()
    pair.deliver(len(story))
    assert pair.heard == sent
    assert pair.obeyed == ordered
    # The last heartbeats carry the acknowledgements home, and nothing is kept any more.
    pair.up.append(pair.agent.send(Heartbeat(sent_at_ms=0)))
    pair.down.append(pair.server.send(HeartbeatAck(sent_at_ms=0)))
    pair.deliver(1)
    assert pair.agent.unacknowledged_count == pair.server.unacknowledged_count == 0


def test_what_comes_twice_is_dropped() -> None:
    pair = Pair()
    frame = pair.agent.send(an_answer(1))
    assert pair.server.receive_from_agent(frame) == an_answer(1)
    assert pair.server.receive_from_agent(frame) is None


def test_a_gap_breaks_the_link() -> None:
    pair = Pair()
    pair.agent.send(an_answer(1))
    with pytest.raises(LinkBroken, match="missing"):
        pair.server.receive_from_agent(pair.agent.send(an_answer(2)))


@pytest.mark.parametrize(
    "text",
    ["", "[]", '{"seq":1}x', '{"seq":0,"ack":9,"message":{"type":"heartbeat","sent_at_ms":1}}'],
)
def test_nonsense_breaks_the_link(text: str) -> None:
    with pytest.raises(LinkBroken):
        LinkSession("s").receive_from_agent(text)


def test_a_message_of_a_newer_peer_is_counted_and_passed_over() -> None:
    session = LinkSession("s")
    assert session.receive_from_server('{"seq":1,"message":{"type":"from_the_future"}}') is None
    known = '{"seq":2,"message":{"type":"shutdown","reason":"x","colour":"blue"}}'
    assert session.receive_from_server(known) == Shutdown(reason="x")


def test_a_peer_too_far_behind_costs_a_bounded_memory() -> None:
    session = LinkSession("s", kept_count_max=2)
    session.send(an_answer(1))
    session.send(an_answer(2))
    session.send(Heartbeat(sent_at_ms=1))
    with pytest.raises(LinkOverflow):
        session.send(an_answer(3))
    small = LinkSession("s", kept_bytes_max=10)
    with pytest.raises(LinkOverflow):
        small.send(an_answer(1))


def test_a_session_cannot_be_resumed_from_where_it_never_was() -> None:
    session = LinkSession("s")
    session.send(an_answer(1))
    assert not session.can_resume("other", 0)
    assert not session.can_resume(None, 0)
    assert not session.can_resume("s", 2)
    session.receive_from_server(msgspec.json.encode({"ack": 1}))
    assert not session.can_resume("s", 0)
    with pytest.raises(LinkBroken):
        session.resume(0)


def test_a_listener_with_nothing_to_say_acknowledges_now_and_then() -> None:
    pair = Pair()
    for number in range(64):
        assert pair.server.ack_due() is None
        pair.server.receive_from_agent(pair.agent.send(an_answer(number)))
    bare = pair.server.ack_due()
    assert bare is not None
    assert pair.server.ack_due() is None
    assert pair.agent.receive_from_server(bare) is None
    assert pair.agent.unacknowledged_count == 0


def test_the_first_frame_of_a_connection_needs_no_session() -> None:
    assert decode_opening_from_agent(opening_frame(Heartbeat(sent_at_ms=1))) == Heartbeat(
        sent_at_ms=1
    )
    assert decode_opening_from_server(opening_frame(Shutdown())) == Shutdown()


@pytest.mark.parametrize(
    ("ours", "theirs", "spoken"),
    [((1, 1), (1, 1), 1), ((1, 3), (2, 5), 3), ((2, 5), (1, 3), 3), ((1, 2), (3, 4), None)],
)
def test_peers_speak_the_newest_version_that_both_know(
    ours: tuple[int, int], theirs: tuple[int, int], spoken: int | None
) -> None:
    mine, yours = (ProtocolRange(oldest=low, newest=high) for low, high in (ours, theirs))
    assert negotiate(mine, yours) == spoken


@given(st.lists(st.integers(min_value=1, max_value=9), max_size=50))
def test_a_stream_never_has_more_than_a_window_under_way_and_never_stalls(reads: list[int]) -> None:
    sender, receiver = SendWindow(16), ReceiveWindow(16)
    under_way = 0
    for read in reads:
        chunk = sender.chunk_bytes()
        sender.sent(chunk)
        under_way += chunk
        assert under_way <= 16
        taken = min(read, under_way)
        under_way -= taken
        sender.credited(receiver.taken(taken))
    sender.credited(receiver.taken(under_way))
    assert sender.chunk_bytes() > 0
