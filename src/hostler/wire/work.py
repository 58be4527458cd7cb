"""What a node has, what is to be run on it, and what has become of that.

These are the values that the messages of the agent link carry; the messages are in
`hostler.wire.agent`.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Literal, TypeAlias

import msgspec

# -- inventory ----------------------------------------------------------------------------------

AttributeValue: TypeAlias = str | int | bool


class Capability(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Something a job can require by name."""

    name: str
    count: int = 1
    attributes: dict[str, AttributeValue] = {}


class Device(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One named thing that is given to one holder at a time, such as a GPU or a capture input."""

    kind: str
    id: str
    attributes: dict[str, AttributeValue] = {}


class Inventory(msgspec.Struct, frozen=True, kw_only=True):
    """What a node has. `None` means not reported yet, which is neither some nor none."""

    capacity: int | None = None
    """How many holds (allocations or leases) the node takes at once, as far as the agent knows."""
    cores_milli: int | None = None
    memory_bytes: int | None = None
    capabilities: list[Capability] | None = None
    devices: list[Device] | None = None


# -- what is to be run --------------------------------------------------------------------------


class HttpReadiness(msgspec.Struct, frozen=True, kw_only=True, tag="http", omit_defaults=True):
    """Ready while a GET on the node's loopback answers with a status from 200 to 399."""

    port: int
    path: str = "/"
    interval_ms: int = 1_000
    timeout_ms: int = 1_000


class TcpReadiness(msgspec.Struct, frozen=True, kw_only=True, tag="tcp", omit_defaults=True):
    """Ready while a connection to the port on the node's loopback is accepted."""

    port: int
    interval_ms: int = 1_000
    timeout_ms: int = 1_000


class ExecReadiness(msgspec.Struct, frozen=True, kw_only=True, tag="exec", omit_defaults=True):
    """Ready while the command, run in the allocation's folder and environment, exits with 0."""

    argv: list[str]
    interval_ms: int = 1_000
    timeout_ms: int = 1_000


class SdNotifyReadiness(msgspec.Struct, frozen=True, kw_only=True, tag="sd_notify"):
    """Ready when the job sends `READY=1` to `$NOTIFY_SOCKET`."""


class DelayReadiness(msgspec.Struct, frozen=True, kw_only=True, tag="delay"):
    """Ready when the job has run for so long."""

    delay_ms: int


class NoReadiness(msgspec.Struct, frozen=True, kw_only=True, tag="none"):
    """Ready as soon as the process runs."""


Readiness: TypeAlias = (
    HttpReadiness | TcpReadiness | ExecReadiness | SdNotifyReadiness | DelayReadiness | NoReadiness
)


class Identity(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Who a job is; becomes the `HOSTLER_*` variables of its environment."""

    fleet_id: str
    bundle_id: str
    job: str
    replica_index: int = 0
    role: str = ""
    replica_id: str = ""
    pool: str = ""
    tier: str = ""


class Launch(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How one allocation is run. Arguments and environment values may name `${HOSTLER_...}`."""

    argv: list[str]
    """Argument vector; there is no shell."""
    env: dict[str, str] = {}
    readiness: Readiness = NoReadiness()
    ready_within_ms: int | None = None
    """A job never ready after so long is stopped (cause `start_failed`); `None`: no limit."""
    stop_signal: str = "SIGTERM"
    stop_grace_ms: int = 10_000
    """Used when the agent stops the job on its own account (fence, shutdown)."""
    log_file_bytes_max: int = 4 * 1024 * 1024
    log_file_count_max: int = 4
    """How many log files there are at most, the current one included."""
    disconnect: Literal["stop", "keep"] = "stop"
    """What a cut-off agent does with the job when its authority has run out."""
    identity: Identity
    devices: dict[str, list[str]] = {}
    """Ids of the devices that the job holds, by kind."""


class Config(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a job works by and may be given anew while it runs."""

    number: int
    """Rises with each change; never twice the same for other content."""
    values_json: str = "{}"
    """A mapping, as JSON."""
    files: dict[str, str] = {}
    """Texts by file name."""
    signal: str | None = None
    """Sent to the main process when a newer one is there; `None`: it looks by itself."""


# -- what has become of it ----------------------------------------------------------------------


class AllocationPhase(StrEnum):
    """Where an allocation is in its life on the node."""

    STARTING = "starting"
    RUNNING = "running"
    READY = "ready"
    UNREADY = "unready"
    """It was ready before."""
    STOPPING = "stopping"
    ENDED = "ended"


class EndCause(StrEnum):
    """Why an allocation ended."""

    EXITED = "exited"
    """By itself; code and signal say how."""
    STOPPED = "stopped"
    """Because it was asked to."""
    START_FAILED = "start_failed"
    """It could not be started, or was not ready in time."""
    REJECTED = "rejected"
    """It was never begun: the launch itself is impossible, or the machine has no room for it (a
    full disk, no more processes), and another try on it would be no better."""
    FENCED = "fenced"
    """The agent's authority ran out."""
    SUPERVISOR_LOST = "supervisor_lost"
    """Its supervisor was killed, and the job with it; how the job fared is not known."""


class Ended(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How an allocation ended. It is final for this allocation and epoch."""

    cause: EndCause
    exit_code: int | None = None
    signal: str | None = None
    """Name of the signal that ended the main process, such as `SIGKILL`."""
    message: str = ""


class AllocationReport(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the agent knows about one allocation."""

    allocation_id: str
    epoch: int
    phase: AllocationPhase
    at_ms: int
    """Since when the phase holds, by the agent's clock."""
    started_at_ms: int | None = None
    pid: int | None = None
    config_written: int = 0
    """Number of the configuration that is in its folder; 0: there is none."""
    config_applied: int = 0
    """Number of the one that the job said it works by; 0: it has not said."""
    ended: Ended | None = None
