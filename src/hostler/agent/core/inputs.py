"""Everything that can happen to an agent, as values."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

import msgspec

from hostler.wire.agent import ServerMessage, StartAllocation
from hostler.wire.work import Inventory


class AllocationKey(NamedTuple):
    """One grant of authority over one allocation; names its folder too."""

    allocation_id: str
    epoch: int


class LeaseKey(NamedTuple):
    """One grant of authority under one lease; names its folder too."""

    lease_id: str
    epoch: int


class ProcessEnd(msgspec.Struct, frozen=True, kw_only=True):
    """How a supervised process ended, as its supervisor wrote it down."""

    ended_at_ms: int
    exit_code: int | None = None
    signal: str | None = None
    start_error: str | None = None
    """Why it could not be started at all."""
    is_fenced: bool = False
    """The supervisor stopped it because the agent's authority ran out."""


class ProcessView(msgspec.Struct, frozen=True, kw_only=True):
    """What a supervisor's state file says."""

    pid: int | None = None
    started_at_ms: int | None = None
    is_ready: bool = False
    """By `sd_notify`."""
    is_stopping: bool = False
    """A stop was begun."""
    config_applied: int = 0
    """Number of the configuration that the job said it works by."""
    end: ProcessEnd | None = None


class FoundAllocation(msgspec.Struct, frozen=True, kw_only=True):
    """An allocation's folder that an earlier life of the agent left."""

    start: StartAllocation
    process: ProcessView | None
    """`None`: the start is written down, but no supervisor has told anything yet."""
    is_supervised: bool
    """Its supervisor is alive. When it is not, and the process has no end, the job is gone too."""
    was_ready: bool
    """It had been ready in an earlier life."""
    config_written: int = 0
    """Number of the configuration in its folder."""


class Started(msgspec.Struct, frozen=True, kw_only=True):
    """A life of the agent begins."""

    inventory: Inventory
    found: list[FoundAllocation] = []
    found_leases: list[LeaseKey] = []
    """Leases whose folders are there; their processes died with the earlier life or are strays."""
    authority_until_at_ms: int | None = None
    """What the last `RememberAuthority` said; `None` when there was none."""


class LinkOpened(msgspec.Struct, frozen=True, kw_only=True):
    """A connection to the server stands; a hello is due."""

    session_id: str | None
    """The session that the shell could go on with."""
    received_seq: int


class LinkClosed(msgspec.Struct, frozen=True, kw_only=True):
    """The connection is gone."""


class SessionLost(msgspec.Struct, frozen=True, kw_only=True):
    """The shell gave the session up (overflow); the next connection makes a new one."""


class MessageReceived(msgspec.Struct, frozen=True, kw_only=True):
    """The server said something."""

    message: ServerMessage


class InventoryRead(msgspec.Struct, frozen=True, kw_only=True):
    """The inventory was read again."""

    inventory: Inventory


class NoticeRead(msgspec.Struct, frozen=True, kw_only=True):
    """This machine is about to be taken back."""

    kind: Literal["rebalance", "terminate"]
    left_ms: int


class SupervisorStarted(msgspec.Struct, frozen=True, kw_only=True):
    """The start is durable and a supervisor process exists."""

    key: AllocationKey


class SupervisorFailed(msgspec.Struct, frozen=True, kw_only=True):
    """No supervisor could be started."""

    key: AllocationKey
    message: str
    is_refusal: bool = False
    """It was this machine that could not, and not the launch that cannot be."""


class SupervisorLost(msgspec.Struct, frozen=True, kw_only=True):
    """The supervisor died without writing an end; the job and its strays were killed."""

    key: AllocationKey


class ProcessSeen(msgspec.Struct, frozen=True, kw_only=True):
    """A supervisor wrote a new state."""

    key: AllocationKey
    process: ProcessView


class ConfigWritten(msgspec.Struct, frozen=True, kw_only=True):
    """A configuration was put into an allocation's folder, or could not be."""

    key: AllocationKey
    number: int
    problem: str | None = None


class RoleWritten(msgspec.Struct, frozen=True, kw_only=True):
    """A role was put into an allocation's folder, or could not be."""

    key: AllocationKey
    term: int
    problem: str | None = None


class ProbeAnswered(msgspec.Struct, frozen=True, kw_only=True):
    """A readiness probe has a result."""

    key: AllocationKey
    probe_id: int
    is_success: bool


class ExecFinished(msgspec.Struct, frozen=True, kw_only=True):
    """A leased command ended, and all of its output was handed to the link."""

    request_id: str
    exit_code: int | None = None
    signal: str | None = None
    error: str | None = None
    tail: str = ""
    """The end of its output, where that was asked for."""


class LogsFinished(msgspec.Struct, frozen=True, kw_only=True):
    """A log was read to its end (or not), and all of it was handed to the link."""

    request_id: str
    error: str | None = None


class LeaseCleared(msgspec.Struct, frozen=True, kw_only=True):
    """No process of the lease is left, nor its folder."""

    key: LeaseKey


class StopAsked(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody on this machine wants the agent to end."""

    is_work_stopped: bool
    """Stop all work first; otherwise supervised work goes on without the agent."""


Input: TypeAlias = (
    Started
    | LinkOpened
    | LinkClosed
    | SessionLost
    | MessageReceived
    | InventoryRead
    | NoticeRead
    | SupervisorStarted
    | SupervisorFailed
    | SupervisorLost
    | ProcessSeen
    | ConfigWritten
    | RoleWritten
    | ProbeAnswered
    | ExecFinished
    | LogsFinished
    | LeaseCleared
    | StopAsked
)
