"""What an agent knows: its link, its allocations, its leases and its streams."""

from __future__ import annotations

from enum import StrEnum
from typing import Final, Literal

import msgspec

from hostler.agent.core.inputs import AllocationKey, LeaseKey
from hostler.base.lifecycle import Lifecycle
from hostler.wire.agent import CommandAnswered, ExecStart, StartAllocation
from hostler.wire.work import (
    AllocationPhase,
    AllocationReport,
    Config,
    EndCause,
    Ended,
    Inventory,
)


class AllocationTrigger(StrEnum):
    """What moves an allocation on."""

    SPAWNED = "spawned"
    BECAME_READY = "became_ready"
    BECAME_UNREADY = "became_unready"
    STOP_BEGUN = "stop_begun"
    ENDED = "ended"


ALLOCATION_LIFECYCLE: Final = Lifecycle(
    name="agent_allocation",
    initial=AllocationPhase.STARTING,
    terminal=frozenset({AllocationPhase.ENDED}),
    table={
        (AllocationPhase.STARTING, AllocationTrigger.SPAWNED): AllocationPhase.RUNNING,
        (AllocationPhase.STARTING, AllocationTrigger.STOP_BEGUN): AllocationPhase.STOPPING,
        (AllocationPhase.STARTING, AllocationTrigger.ENDED): AllocationPhase.ENDED,
        (AllocationPhase.RUNNING, AllocationTrigger.BECAME_READY): AllocationPhase.READY,
        (AllocationPhase.RUNNING, AllocationTrigger.STOP_BEGUN): AllocationPhase.STOPPING,
        (AllocationPhase.RUNNING, AllocationTrigger.ENDED): AllocationPhase.ENDED,
        (AllocationPhase.READY, AllocationTrigger.BECAME_UNREADY): AllocationPhase.UNREADY,
        (AllocationPhase.READY, AllocationTrigger.STOP_BEGUN): AllocationPhase.STOPPING,
        (AllocationPhase.READY, AllocationTrigger.ENDED): AllocationPhase.ENDED,
        (AllocationPhase.UNREADY, AllocationTrigger.BECAME_READY): AllocationPhase.READY,
        (AllocationPhase.UNREADY, AllocationTrigger.STOP_BEGUN): AllocationPhase.STOPPING,
        (AllocationPhase.UNREADY, AllocationTrigger.ENDED): AllocationPhase.ENDED,
        (AllocationPhase.STOPPING, AllocationTrigger.ENDED): AllocationPhase.ENDED,
    },
)


class AgentSettings(msgspec.Struct, frozen=True, kw_only=True):
    """What does not change during one life of an agent."""

    agent_version: str
    node_id: str
    machine_id: str | None
    incarnation: int
    ended_keep_ms: int = 3_600_000
    """How long the folder of an ended allocation is kept, so that its logs can be read."""
    ended_count_max: int = 50
    """How many folders of ended allocations are kept at most; the oldest go first."""
    exit_when_silent_ms: int | None = None
    """The agent stops its work and ends after so long without the server; `None`: it waits on."""


class Stop(msgspec.Struct, kw_only=True):
    """A stop in progress."""

    cause: EndCause
    message: str
    kill_at_ms: int
    is_kill_sent: bool = False
    is_supervisor_killed: bool = False


class ProbeState(msgspec.Struct, kw_only=True):
    """Where the readiness probes of one allocation are."""

    next_at_ms: int = 0
    probe_id: int = 0
    answer_due_at_ms: int | None = None
    """Set while a probe is under way."""
    failure_count: int = 0
    """In a row."""
    is_notified: bool = False
    """The job said `READY=1`."""


class ConfigState(msgspec.Struct, kw_only=True):
    """Which configuration one allocation has, and which it is to have. Numbers; 0 is none."""

    written: int = 0
    applied: int = 0
    """By the job's word."""
    wanted: Config | None = None
    """A later one than `written`."""
    under_way: int = 0
    """`WriteConfig` was given out for it."""
    number_by_command_id: dict[str, int] = {}
    """Commands to be answered once that number, or a later one, is written."""


class Allocation(msgspec.Struct, kw_only=True):
    """One allocation, as long as its folder is there."""

    key: AllocationKey
    start: StartAllocation
    phase: AllocationPhase = AllocationPhase.STARTING
    phase_since_at_ms: int
    is_launched: bool = False
    """`StartSupervisor` was given out."""
    is_durable: bool = False
    """A next life would find it."""
    launched_at_ms: int = 0
    running_since_at_ms: int = 0
    """By our clock; `started_at_ms` is the supervisor's word."""
    pid: int | None = None
    started_at_ms: int | None = None
    was_ready: bool = False
    probe: ProbeState
    stop: Stop | None = None
    ended: Ended | None = None
    config: ConfigState
    role_term: int = 0
    """Of the role that was last given out to be written; what it was started with is 0."""
    role_command_ids: dict[str, int] = {}
    """Terms by the commands that are to be answered once that one, or a later one, is written."""
    start_command_ids: list[str] = []
    """Starts to be answered once durable."""
    stop_command_ids: list[str] = []
    """Stops to be answered once ended."""
    reported: AllocationReport | None = None
    """What this session's server was told last."""

    @property
    def is_ended(self) -> bool:
        """Nothing of it runs, or ever will."""
        return self.phase is AllocationPhase.ENDED

    def report(self) -> AllocationReport:
        """Say what is known, as the server wants it."""
        return AllocationReport(
            allocation_id=self.key.allocation_id,
            epoch=self.key.epoch,
            phase=self.phase,
            at_ms=self.phase_since_at_ms,
            started_at_ms=self.started_at_ms,
            pid=self.pid,
            config_written=self.config.written,
            config_applied=min(self.config.applied, self.config.written),
            ended=self.ended,
        )


class Exec(msgspec.Struct, kw_only=True):
    """One leased command."""

    start: ExecStart
    is_launched: bool = False
    """`StartExec` was given out; before that it waits for an earlier holder to be cleared away."""
    is_disowned: bool = False
    """The session that asked for it is gone; nobody is to be told."""


class Check(msgspec.Struct, kw_only=True):
    """One try of a ready check that is under way."""

    request_id: str
    key: LeaseKey
    """Of its folder."""
    timeout_ms: int
    kill_at_ms: int
    is_killed: bool = False


class CleanUp(msgspec.Struct, kw_only=True):
    """What is run once nothing of a lease is left."""

    argv: list[str]
    clean_up_ms: int
    request_id: str = ""
    """Of the attempt: one that was cut off is made again, under another."""
    kill_at_ms: int | None = None
    """Since it was begun: when it is killed."""
    is_killed: bool = False
    problem: str | None = None
    """How it failed; empty when it went well; `None` until it has ended."""


class LeaseWork(msgspec.Struct, kw_only=True):
    """What runs, or may be left, under one lease and epoch."""

    key: LeaseKey
    exec_by_request_id: dict[str, Exec] = {}
    is_ending: bool = False
    """`ClearLease` was given out."""
    end_command_ids: list[str] = []
    clean_up: CleanUp | None = None


class LinkPhase(StrEnum):
    """How far the connection has come."""

    DOWN = "down"
    GREETING = "greeting"
    UP = "up"


class Link(msgspec.Struct, kw_only=True):
    """The connection to the server and what it grants."""

    phase: LinkPhase = LinkPhase.DOWN
    session_id: str | None = None
    """The session that is spoken in; `None` before the first welcome and after an overflow."""
    hello_sent_at_ms: int = 0
    hello_session_id: str | None = None
    hello_report_by_key: dict[AllocationKey, AllocationReport] = {}
    heartbeat_ms: int = 0
    fence_after_ms: int = 0
    fence_kept_ms: int = 0
    """By which the present authority was granted; 0: found on disk, and nobody knows."""
    next_heartbeat_at_ms: int = 0
    answered_at_ms: int = 0
    """When the last welcome or heartbeat acknowledgement came."""
    told_inventory: Inventory | None = None
    is_notice_told: bool = False


class Notice(msgspec.Struct, frozen=True, kw_only=True):
    """That the machine is about to be taken back."""

    kind: Literal["rebalance", "terminate"]
    ends_at_ms: int


class Closing(msgspec.Struct, kw_only=True):
    """The agent is on its way out."""

    is_work_stopped: bool
    code: int
    reason: str
    is_exit_sent: bool = False


class AgentState(msgspec.Struct, kw_only=True):
    """All of it. Changed by `step` only."""

    settings: AgentSettings
    started_at_ms: int = 0
    inventory: Inventory = msgspec.field(default_factory=Inventory)
    notice: Notice | None = None
    node_epoch: int = 0
    authority_until_at_ms: int | None = None
    """`None`: never granted, and nothing was found that would need it."""
    is_fenced: bool = False
    """The authority ran out and work was stopped for it; until the next grant."""
    link: Link = msgspec.field(default_factory=Link)
    allocations: dict[AllocationKey, Allocation] = {}
    leases: dict[LeaseKey, LeaseWork] = {}
    checks: dict[str, Check] = {}
    """By command id."""
    check_count: int = 0
    """Tries begun in this life; each has a folder of its own."""
    log_streams: dict[str, bool] = {}
    """By request id; true when the session that asked for it is gone."""
    ended_allocation_epochs: dict[str, int] = {}
    """Highest epoch of allocations that are over and forgotten, or were stopped before a start."""
    ended_lease_epochs: dict[str, int] = {}
    cleaned_lease_epochs: dict[str, int] = {}
    """Highest epoch of leases after which the slot was cleaned up."""
    answers: list[CommandAnswered] = []
    """Waiting for a session to be sent in."""
    closing: Closing | None = None

    def epoch_known(self, allocation_id: str) -> int:
        """Highest epoch heard of for this allocation; 0 when never."""
        return max(
            (key.epoch for key in self.allocations if key.allocation_id == allocation_id),
            default=0,
        )

    def lease_epoch_known(self, lease_id: str) -> int:
        """Highest epoch heard of for this lease; 0 when never."""
        return max(
            self.ended_lease_epochs.get(lease_id, 0),
            max((key.epoch for key in self.leases if key.lease_id == lease_id), default=0),
        )
