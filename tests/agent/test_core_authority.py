"""The link, the heartbeat and the fence in the agent's core."""

from hostler.agent.core.effects import (
    ClearLease,
    Disconnect,
    Exit,
    Reconnect,
    RememberAuthority,
    StopProcess,
)
from hostler.agent.core.inputs import (
    FoundAllocation,
    InventoryRead,
    LeaseKey,
    LinkClosed,
    LinkOpened,
    MessageReceived,
    SessionLost,
    Started,
)
from hostler.wire.agent import (
    AllocationReported,
    ExecStart,
    Heartbeat,
    HeartbeatAck,
    Hello,
    InventoryReported,
    Refused,
)
from hostler.wire.work import EndCause, Inventory
from tests.agent.bench import (
    FENCE_AFTER_MS,
    HEARTBEAT_MS,
    Bench,
    a_launch,
    a_process,
    a_start,
    a_welcome,
    answers,
    of,
    phases,
    reports,
    sent,
)


def test_the_hello_tells_all_and_the_welcome_grants_from_its_send_time() -> None:
    bench = Bench()
    hello = sent(bench.feed(LinkOpened(session_id=None, received_seq=0)))[0]
    assert isinstance(hello, Hello)
    assert hello.sent_at_ms == bench.now_ms
    bench.now_ms += 700
    granted = bench.hear(a_welcome())
    until = RememberAuthority(until_at_ms=1_000_000 + FENCE_AFTER_MS)
    assert of(granted, RememberAuthority) == [until]


def test_heartbeats_go_out_in_their_rhythm_and_say_when_to_wake() -> None:
    bench = Bench()
    bench.connect()
    assert bench.next_wake_at_ms == bench.now_ms + HEARTBEAT_MS
    assert sent(bench.later(HEARTBEAT_MS - 1)) == []
    assert sent(bench.later(1)) == [
        Heartbeat(sent_at_ms=bench.now_ms, fence_after_ms=FENCE_AFTER_MS)
    ]
    assert sent(bench.feed()) == []


def test_a_shorter_limit_is_said_to_hold_once_the_longer_authority_is_used_up() -> None:
    bench = Bench()
    bench.connect()
    granted_at_ms = bench.now_ms
    shorter_ms = FENCE_AFTER_MS // 4
    said: list[tuple[int, int]] = []
    for _ in range(2 * FENCE_AFTER_MS // HEARTBEAT_MS):
        for beat in sent(bench.later(HEARTBEAT_MS)):
            assert isinstance(beat, Heartbeat)
            said.append((beat.sent_at_ms, beat.fence_after_ms))
            bench.hear(HeartbeatAck(sent_at_ms=beat.sent_at_ms, fence_after_ms=shorter_ms))
    over_at_ms = granted_at_ms + FENCE_AFTER_MS - shorter_ms
    assert said == [
        (at_ms, FENCE_AFTER_MS if at_ms - HEARTBEAT_MS <= over_at_ms else shorter_ms)
        for at_ms, _ in said
    ]
    assert said[-1][1] == shorter_ms


def test_other_heartbeats_are_kept_to_at_once() -> None:
    bench = Bench()
    bench.connect()
    (beat,) = sent(bench.later(HEARTBEAT_MS))
    assert isinstance(beat, Heartbeat)
    bench.hear(HeartbeatAck(sent_at_ms=beat.sent_at_ms, heartbeat_ms=HEARTBEAT_MS // 2))
    assert len(sent(bench.later(HEARTBEAT_MS // 2))) == 1


def test_an_acknowledged_heartbeat_extends_the_authority_from_its_send_time() -> None:
    bench = Bench()
    bench.connect()
    bench.later(HEARTBEAT_MS)
    beat_at_ms = bench.now_ms
    bench.now_ms += 300
    effects = bench.hear(HeartbeatAck(sent_at_ms=beat_at_ms))
    assert of(effects, RememberAuthority) == [
        RememberAuthority(until_at_ms=beat_at_ms + FENCE_AFTER_MS)
    ]
    assert of(bench.hear(HeartbeatAck(sent_at_ms=beat_at_ms - 500)), RememberAuthority) == []


def test_a_silent_connection_is_left() -> None:
    bench = Bench()
    bench.connect()
    for _ in range(2):
        assert of(bench.later(HEARTBEAT_MS), Reconnect) == []
    assert of(bench.later(HEARTBEAT_MS), Reconnect) == [Reconnect(reason="heartbeats_unanswered")]


def test_a_server_without_a_welcome_is_left() -> None:
    bench = Bench()
    bench.feed(LinkOpened(session_id=None, received_seq=0))
    assert of(bench.later(10_000), Reconnect) == [Reconnect(reason="no_welcome")]


def test_a_cut_off_agent_stops_what_must_stop_and_keeps_what_may_stay() -> None:
    bench = Bench()
    bench.connect()
    stops = bench.run("a-1")
    keeps = bench.run("a-2", launch=a_launch(disconnect="keep"))
    bench.hear(ExecStart(request_id="r", lease_id="l", lease_epoch=1, argv=["x"]))
    bench.cut_off()
    assert of(bench.later(FENCE_AFTER_MS - 1), StopProcess) == []
    fenced = bench.later(1)
    assert [each.key for each in of(fenced, StopProcess)] == [stops]
    assert of(fenced, ClearLease) == [ClearLease(key=LeaseKey("l", 1))]
    assert bench.phase(keeps) == "ready"
    ended = reports(bench.ends(stops, signal="SIGTERM"))[-1].ended
    assert ended is not None
    assert ended.cause is EndCause.FENCED


def test_a_start_that_comes_after_the_fence_is_refused() -> None:
    bench = Bench()
    bench.connect()
    bench.later(FENCE_AFTER_MS)
    assert answers(bench.hear(a_start())) == [("a-1/start/1", "refused", "agent_fenced")]
    assert bench.state.allocations == {}
    bench.connect()
    assert answers(bench.hear(a_start())) == [("a-1/start/1", "refused", "allocation_ended")]
    assert bench.state.allocations == {}, "its refusal may have been heard"


def test_work_begun_after_a_fence_is_fenced_again() -> None:
    bench = Bench()
    bench.connect()
    bench.ends(bench.run("a-1"), signal="SIGTERM")
    bench.cut_off()
    bench.later(FENCE_AFTER_MS)
    bench.connect()
    second = bench.run("a-2")
    bench.cut_off()
    assert [each.key for each in of(bench.later(FENCE_AFTER_MS), StopProcess)] == [second]


def test_a_new_life_is_bound_by_the_authority_of_the_last_one() -> None:
    found = FoundAllocation(
        start=a_start(), process=a_process(), is_supervised=True, was_ready=True
    )
    bench = Bench(Started(inventory=Inventory(), found=[found], authority_until_at_ms=1_002_000))
    assert of(bench.last, StopProcess) == []
    assert len(of(bench.later(2_000), StopProcess)) == 1


def test_a_resumed_session_is_told_only_what_it_has_not_heard() -> None:
    bench = Bench()
    bench.connect()
    key = bench.run()
    bench.cut_off()
    ended = bench.ends(key, exit_code=0)
    assert phases(ended) == ["ended"]
    assert reports(bench.connect(resumes=True)) == []


def test_nothing_is_said_while_it_is_open_which_session_goes_on() -> None:
    bench = Bench()
    bench.connect()
    key = bench.run()
    bench.cut_off()
    bench.feed(LinkOpened(session_id="s-1", received_seq=3))
    assert sent(bench.ends(key, exit_code=0)) == []
    assert phases(bench.hear(a_welcome("s-1"))) == ["ended"]


def test_a_new_session_is_told_what_changed_since_the_hello() -> None:
    bench = Bench()
    bench.connect()
    key = bench.run()
    bench.cut_off()
    bench.feed(LinkOpened(session_id="s-1", received_seq=3))
    bench.ends(key, exit_code=0)
    assert phases(bench.hear(a_welcome("s-2"))) == ["ended"]
    bench.cut_off()
    hello = sent(bench.feed(LinkOpened(session_id="s-2", received_seq=0)))[0]
    assert isinstance(hello, Hello)
    assert [str(each.phase) for each in hello.allocations] == ["ended"]
    assert not [e for e in sent(bench.hear(a_welcome("s-3"))) if isinstance(e, AllocationReported)]


def test_a_lost_session_is_replaced() -> None:
    bench = Bench()
    bench.connect()
    assert of(bench.feed(SessionLost()), Reconnect) == [Reconnect(reason="session_overflow")]
    bench.cut_off()
    hello = sent(bench.feed(LinkOpened(session_id=None, received_seq=0)))[0]
    assert isinstance(hello, Hello)
    assert hello.session_id is None


def test_a_welcome_of_an_earlier_node_epoch_grants_nothing() -> None:
    bench = Bench()
    bench.feed(LinkOpened(session_id=None, received_seq=0))
    bench.hear(a_welcome(node_epoch=7))
    bench.cut_off()
    bench.feed(LinkOpened(session_id=None, received_seq=0))
    stale = bench.hear(a_welcome("s-2", node_epoch=6))
    assert of(stale, RememberAuthority) == []
    assert of(stale, Reconnect) == [Reconnect(reason="node_epoch_stale")]


def test_a_refusal_is_tried_again_and_a_final_one_ends_work_and_agent() -> None:
    bench = Bench()
    bench.connect()
    keeps = bench.run(launch=a_launch(disconnect="keep"))
    bench.cut_off()
    bench.feed(LinkOpened(session_id=None, received_seq=0))
    again = bench.hear(Refused(code="not_leader", message="ask the other", is_final=False))
    assert of(again, Reconnect) == [Reconnect(reason="not_leader")]
    final = bench.hear(Refused(code="node_retired", message="it is retired", is_final=True))
    assert of(final, Disconnect) == [Disconnect(reason="node_retired")]
    assert [each.key for each in of(final, StopProcess)] == [keeps]
    ended = of(bench.ends(keeps, signal="SIGTERM"), Exit)
    assert ended == [Exit(code=1, reason="it is retired")]


def test_a_changed_inventory_is_told_once() -> None:
    bench = Bench()
    bench.connect()
    inventory = Inventory(capacity=4)
    assert sent(bench.feed(InventoryRead(inventory=inventory))) == [
        InventoryReported(inventory=inventory)
    ]
    assert sent(bench.feed(InventoryRead(inventory=inventory))) == []


def test_a_late_welcome_of_a_connection_that_was_given_up_is_ignored() -> None:
    bench = Bench()
    bench.feed(LinkOpened(session_id=None, received_seq=0))
    bench.later(10_000)
    effects = bench.feed(MessageReceived(message=a_welcome()))
    assert of(effects, RememberAuthority) == []


def test_a_machines_own_agent_ends_with_its_work_when_the_server_is_gone_for_good() -> None:
    bench = Bench(exit_when_silent_ms=60_000)
    bench.connect()
    bench.feed(LinkClosed())
    assert of(bench.later(59_999), Exit) == []
    assert [each.code for each in of(bench.later(1), Exit)] == [1]


def test_an_agent_that_never_hears_the_server_counts_from_its_start() -> None:
    bench = Bench(exit_when_silent_ms=60_000)
    assert bench.next_wake_at_ms == bench.now_ms + 60_000
    assert [each.code for each in of(bench.later(60_000), Exit)] == [1]
