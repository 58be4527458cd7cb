"""Everything that an agent can do, as values. Each may be carried out twice without harm."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from hostler.agent.core.inputs import AllocationKey, LeaseKey
from hostler.wire.agent import AgentMessage, ExecInput, ExecStart, StartAllocation
from hostler.wire.work import Config, ExecReadiness, HttpReadiness, TcpReadiness


class SendMessage(msgspec.Struct, frozen=True, kw_only=True):
    """Give the message to the session; a hello goes out on the open connection."""

    message: AgentMessage


class Reconnect(msgspec.Struct, frozen=True, kw_only=True):
    """Close the connection and make another. Leads to `LinkClosed`, then `LinkOpened`."""

    reason: str


class Disconnect(msgspec.Struct, frozen=True, kw_only=True):
    """Close the connection for good. Leads to `LinkClosed`."""

    reason: str


class StartSupervisor(msgspec.Struct, frozen=True, kw_only=True):
    """Write the start down, then start its supervisor unless it is or was there already.

    Leads to `SupervisorStarted` or `SupervisorFailed`, then to `ProcessSeen`s.
    """

    key: AllocationKey
    start: StartAllocation


class StopProcess(msgspec.Struct, frozen=True, kw_only=True):
    """Have the supervisor send the signal, and kill after the grace. Leads to `ProcessSeen`."""

    key: AllocationKey
    signal: str
    grace_ms: int


class KillProcess(msgspec.Struct, frozen=True, kw_only=True):
    """Have the supervisor kill everything now. Leads to `ProcessSeen`."""

    key: AllocationKey


class KillSupervisor(msgspec.Struct, frozen=True, kw_only=True):
    """Kill the supervisor, its job and all strays. Leads to `SupervisorLost`."""

    key: AllocationKey


class WriteConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Put the configuration into the folder and have the job told. Leads to `ConfigWritten`."""

    key: AllocationKey
    config: Config


class WriteRole(msgspec.Struct, frozen=True, kw_only=True):
    """Put the role into the folder. Leads to `RoleWritten`."""

    key: AllocationKey
    role: str
    term: int


class Probe(msgspec.Struct, frozen=True, kw_only=True):
    """Try the readiness check once. Leads to `ProbeAnswered`."""

    key: AllocationKey
    probe_id: int
    readiness: HttpReadiness | TcpReadiness | ExecReadiness


class RememberReady(msgspec.Struct, frozen=True, kw_only=True):
    """Note for the next life that this was ready."""

    key: AllocationKey


class TellNotice(msgspec.Struct, frozen=True, kw_only=True):
    """Let every job on this machine read that it is about to be taken back."""

    kind: Literal["rebalance", "terminate"]
    ends_at_ms: int


class RememberAuthority(msgspec.Struct, frozen=True, kw_only=True):
    """Note until when the work is authorised, for the next life and for the supervisors."""

    until_at_ms: int


class RemoveFolder(msgspec.Struct, frozen=True, kw_only=True):
    """Remove what an ended allocation left, logs included."""

    key: AllocationKey


class StartExec(msgspec.Struct, frozen=True, kw_only=True):
    """Run a leased command; its data goes past the core. Leads to `ExecFinished`."""

    start: ExecStart
    tail_bytes: int | None = None
    """Send nothing of its output: give the end of it, of so many bytes, with `ExecFinished`."""


class WriteExec(msgspec.Struct, frozen=True, kw_only=True):
    """Pass bytes to a leased command's standard input."""

    data: ExecInput


class SignalExec(msgspec.Struct, frozen=True, kw_only=True):
    """Send a signal to a leased command's process group."""

    request_id: str
    signal: str


class KillExec(msgspec.Struct, frozen=True, kw_only=True):
    """Kill a leased command. Leads to `ExecFinished`."""

    request_id: str


class ClearLease(msgspec.Struct, frozen=True, kw_only=True):
    """Kill whatever runs under the lease and remove its folder. Leads to `LeaseCleared`."""

    key: LeaseKey


class OpenLogs(msgspec.Struct, frozen=True, kw_only=True):
    """Read a log into the link; its data goes past the core. Leads to `LogsFinished`."""

    request_id: str
    key: AllocationKey
    is_followed: bool
    tail_bytes: int | None


class CloseStream(msgspec.Struct, frozen=True, kw_only=True):
    """Stop reading a log. Leads to `LogsFinished`."""

    request_id: str


class GiveCredit(msgspec.Struct, frozen=True, kw_only=True):
    """The server has room for so many more bytes of this stream."""

    request_id: str
    bytes_count: int


class Exit(msgspec.Struct, frozen=True, kw_only=True):
    """End the agent process, after what was sent has gone out."""

    code: int
    reason: str


Effect: TypeAlias = (
    SendMessage
    | Reconnect
    | Disconnect
    | StartSupervisor
    | StopProcess
    | KillProcess
    | KillSupervisor
    | WriteConfig
    | WriteRole
    | Probe
    | RememberReady
    | TellNotice
    | RememberAuthority
    | RemoveFolder
    | StartExec
    | WriteExec
    | SignalExec
    | KillExec
    | ClearLease
    | OpenLogs
    | CloseStream
    | GiveCredit
    | Exit
)
