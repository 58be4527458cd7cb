"""What the agent's core keeps under any history: one start, authority, and nothing doubled."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from hostler.agent.core.effects import Effect, StartSupervisor, StopProcess
from hostler.agent.core.inputs import (
    AllocationKey,
    Input,
    LinkClosed,
    LinkOpened,
    MessageReceived,
    ProcessEnd,
    ProcessSeen,
    ProcessView,
    Started,
    SupervisorLost,
    SupervisorStarted,
)
from hostler.agent.core.state import AgentSettings, AgentState
from hostler.agent.core.step import step
from hostler.wire.agent import HeartbeatAck
from hostler.wire.work import AllocationPhase, Inventory
from tests.agent.bench import FENCE_AFTER_MS, a_start, a_stop, a_welcome

IDS = st.sampled_from(["a-1", "a-2"])
EPOCHS = st.integers(min_value=1, max_value=3)
KEYS = st.builds(AllocationKey, IDS, EPOCHS)
RUNNING = ProcessView(pid=7, started_at_ms=1)
OVER = ProcessView(pid=7, started_at_ms=1, end=ProcessEnd(ended_at_ms=2, exit_code=0))

HAPPENINGS = st.one_of(
    st.builds(lambda i, e: MessageReceived(message=a_start(i, e)), IDS, EPOCHS),
    st.builds(lambda i, e: MessageReceived(message=a_stop(i, e)), IDS, EPOCHS),
    st.builds(lambda k: SupervisorStarted(key=k), KEYS),
    st.builds(lambda k: SupervisorLost(key=k), KEYS),
    st.builds(lambda k: ProcessSeen(key=k, process=RUNNING), KEYS),
    st.builds(lambda k: ProcessSeen(key=k, process=OVER), KEYS),
    st.just(LinkClosed()),
    st.builds(lambda s: LinkOpened(session_id=s, received_seq=0), st.sampled_from(["s-1", None])),
    st.builds(lambda s: MessageReceived(message=a_welcome(s)), st.sampled_from(["s-1", "s-2"])),
)
STORIES = st.lists(
    st.tuples(st.lists(HAPPENINGS, max_size=3), st.integers(min_value=0, max_value=4_000)),
    max_size=40,
)


class Life:
    """One life of an agent, and what its shell would have to do."""

    def __init__(self) -> None:
        settings_ = AgentSettings(agent_version="0", node_id="n", machine_id=None, incarnation=1)
        self.state = AgentState(settings=settings_)
        self.now_ms = 1_000_000
        self.effects: list[Effect] = []
        self.feed([Started(inventory=Inventory())])

    def feed(self, inputs: list[Input]) -> None:
        answer = step(self.state, inputs, self.now_ms)
        self.effects.extend(answer.effects)
        # Run again on the same state: it must have nothing more to do.
        again = step(self.state, [], self.now_ms)
        assert again.effects == []
        assert again.next_wake_at_ms is None or again.next_wake_at_ms > self.now_ms
        self.check()

    def check(self) -> None:
        state = self.state
        for name in ("a-1", "a-2"):
            alive = [
                each
                for key, each in state.allocations.items()
                if key.allocation_id == name and each.is_launched and not each.is_ended
            ]
            assert len(alive) <= 1, "two epochs of one allocation at once"
        if state.authority_until_at_ms is not None and self.now_ms >= state.authority_until_at_ms:
            unstopped = [
                each.key
                for each in state.allocations.values()
                if each.phase not in (AllocationPhase.STOPPING, AllocationPhase.ENDED)
            ]
            # What is started after the fence comes with a grant that is newer than it.
            assert not unstopped or not state.is_fenced


@settings(max_examples=300, deadline=None)
@given(STORIES)
def test_any_history_keeps_the_promises(story: list[tuple[list[Input], int]]) -> None:
    life = Life()
    for inputs, passed_ms in story:
        life.now_ms += passed_ms
        life.feed(inputs)
    starts = [each.key for each in life.effects if isinstance(each, StartSupervisor)]
    assert len(starts) == len(set(starts)), "one allocation and epoch was started twice"


@settings(max_examples=100, deadline=None)
@given(STORIES)
def test_a_cut_off_agent_has_everything_stopping_when_its_authority_ends(
    story: list[tuple[list[Input], int]],
) -> None:
    life = Life()
    for inputs, passed_ms in story:
        life.now_ms += passed_ms
        life.feed(inputs)
    until_at_ms = life.state.authority_until_at_ms
    life.feed([LinkClosed()])
    if until_at_ms is None:
        return
    life.now_ms = max(life.now_ms, until_at_ms)
    life.feed([])
    running = [
        each.key
        for each in life.state.allocations.values()
        if each.phase not in (AllocationPhase.STOPPING, AllocationPhase.ENDED)
    ]
    assert running == []


def test_an_acknowledgement_from_the_past_grants_nothing() -> None:
    life = Life()
    life.feed([LinkOpened(session_id=None, received_seq=0)])
    life.feed([MessageReceived(message=a_welcome())])
    life.feed([MessageReceived(message=a_start())])
    life.now_ms += FENCE_AFTER_MS
    life.feed([MessageReceived(message=HeartbeatAck(sent_at_ms=999_000))])
    stops = [each for each in life.effects if isinstance(each, StopProcess)]
    assert len(stops) == 1
