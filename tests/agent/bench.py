"""An agent's core on a table: feed it inputs, look at its effects."""

from __future__ import annotations

from typing import TypeVar

from hostler.agent.core.effects import Effect, SendMessage, StartSupervisor
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
    SupervisorStarted,
)
from hostler.agent.core.state import AgentSettings, AgentState
from hostler.agent.core.step import step
from hostler.wire.agent import (
    AgentMessage,
    AllocationReported,
    CommandAnswered,
    ServerMessage,
    StartAllocation,
    StopAllocation,
    Welcome,
)
from hostler.wire.work import AllocationReport, Identity, Inventory, Launch, NoReadiness, Readiness

E = TypeVar("E")

HEARTBEAT_MS = 1_000
FENCE_AFTER_MS = 10_000


def a_launch(
    *,
    readiness: Readiness | None = None,
    disconnect: str = "stop",
    ready_within_ms: int | None = None,
    argv: list[str] | None = None,
) -> Launch:
    return Launch(
        argv=["encode"] if argv is None else argv,
        readiness=readiness or NoReadiness(),
        ready_within_ms=ready_within_ms,
        disconnect="keep" if disconnect == "keep" else "stop",
        stop_grace_ms=3_000,
        identity=Identity(fleet_id="f", bundle_id="live", job="encoder"),
    )


def a_start(
    allocation_id: str = "a-1",
    epoch: int = 1,
    *,
    launch: Launch | None = None,
    node_epoch: int = 1,
    command_id: str | None = None,
) -> StartAllocation:
    return StartAllocation(
        command_id=command_id or f"{allocation_id}/start/{epoch}",
        node_epoch=node_epoch,
        allocation_id=allocation_id,
        epoch=epoch,
        launch=launch or a_launch(),
    )


def a_stop(
    allocation_id: str = "a-1", epoch: int = 1, *, grace_ms: int = 2_000, node_epoch: int = 1
) -> StopAllocation:
    return StopAllocation(
        command_id=f"{allocation_id}/stop/{epoch}",
        node_epoch=node_epoch,
        allocation_id=allocation_id,
        epoch=epoch,
        grace_ms=grace_ms,
    )


def a_welcome(session_id: str = "s-1", *, node_epoch: int = 1) -> Welcome:
    return Welcome(
        protocol=1,
        node_id="n-1",
        node_epoch=node_epoch,
        session_id=session_id,
        received_seq=0,
        heartbeat_ms=HEARTBEAT_MS,
        fence_after_ms=FENCE_AFTER_MS,
    )


class Bench:
    """One life of an agent; time stands still unless `at` moves it."""

    def __init__(self, started: Started | None = None, **settings: int) -> None:
        self.state = AgentState(
            settings=AgentSettings(
                agent_version="0", node_id="n-1", machine_id=None, incarnation=1, **settings
            )
        )
        self.now_ms = 1_000_000
        self.next_wake_at_ms: int | None = None
        self.last: list[Effect] = []
        self.feed(started or Started(inventory=Inventory()))

    def feed(self, *inputs: Input) -> list[Effect]:
        answer = step(self.state, inputs, self.now_ms)
        self.next_wake_at_ms = answer.next_wake_at_ms
        self.last = answer.effects
        return answer.effects

    def hear(self, *messages: ServerMessage) -> list[Effect]:
        return self.feed(*(MessageReceived(message=each) for each in messages))

    def later(self, ms: int) -> list[Effect]:
        self.now_ms += ms
        return self.feed()

    def connect(self, session_id: str = "s-1", *, resumes: bool = False) -> list[Effect]:
        self.feed(LinkOpened(session_id=session_id if resumes else None, received_seq=0))
        return self.hear(a_welcome(session_id))

    def trust_the_link(self) -> None:
        """Let one connection and its authority last for ever: the test is about something else."""
        self.connect()
        self.state.link.heartbeat_ms = 10**9
        self.state.link.next_heartbeat_at_ms = 10**12
        self.state.authority_until_at_ms = 10**12

    def cut_off(self) -> None:
        self.feed(LinkClosed())

    def run(
        self, allocation_id: str = "a-1", epoch: int = 1, launch: Launch | None = None
    ) -> AllocationKey:
        """Start an allocation and have its process come up."""
        key = AllocationKey(allocation_id, epoch)
        self.hear(a_start(allocation_id, epoch, launch=launch))
        assert of(self.last, StartSupervisor)
        self.feed(SupervisorStarted(key=key), ProcessSeen(key=key, process=a_process()))
        return key

    def ends(self, key: AllocationKey, **end: object) -> list[Effect]:
        return self.feed(ProcessSeen(key=key, process=a_process(**end)))

    def phase(self, key: AllocationKey) -> str:
        return str(self.state.allocations[key].phase)


def a_process(**end: object) -> ProcessView:
    return ProcessView(
        pid=77,
        started_at_ms=1_000_000,
        end=ProcessEnd(ended_at_ms=1_000_500, **end) if end else None,  # type: ignore[arg-type]  # a test's short hand
    )


def of(effects: list[Effect], kind: type[E]) -> list[E]:
    return [each for each in effects if isinstance(each, kind)]


def sent(effects: list[Effect]) -> list[AgentMessage]:
    return [each.message for each in of(effects, SendMessage)]


def answers(effects: list[Effect]) -> list[tuple[str, str, str]]:
    return [
        (each.command_id, each.outcome, each.code)
        for each in sent(effects)
        if isinstance(each, CommandAnswered)
    ]


def reports(effects: list[Effect]) -> list[AllocationReport]:
    return [each.report for each in sent(effects) if isinstance(each, AllocationReported)]


def phases(effects: list[Effect]) -> list[str]:
    return [str(each.phase) for each in reports(effects)]
