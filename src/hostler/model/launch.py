"""How a job's workload is started, known to be ready, and stopped."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from hostler.model.record import Value


class HttpReadiness(Value, frozen=True, kw_only=True, tag="http"):
    """Ready when a GET on loopback answers 2xx or 3xx."""

    port: int
    path: str = "/"
    interval_ms: int = 500
    timeout_ms: int = 2_000


class TcpReadiness(Value, frozen=True, kw_only=True, tag="tcp"):
    """Ready when a connection to loopback is accepted."""

    port: int
    interval_ms: int = 500
    timeout_ms: int = 2_000


class ExecReadiness(Value, frozen=True, kw_only=True, tag="exec"):
    """Ready when a command in the allocation's folder exits with 0."""

    argv: tuple[str, ...]
    interval_ms: int = 500
    timeout_ms: int = 5_000


class SdNotifyReadiness(Value, frozen=True, kw_only=True, tag="sd_notify"):
    """Ready when the workload says `READY=1` on `$NOTIFY_SOCKET`, as systemd services do."""


class DelayReadiness(Value, frozen=True, kw_only=True, tag="delay"):
    """Ready when it has run for a while."""

    delay_ms: int


class AtOnceReadiness(Value, frozen=True, kw_only=True, tag="none"):
    """Ready as soon as it runs."""


Readiness = (
    HttpReadiness
    | TcpReadiness
    | ExecReadiness
    | SdNotifyReadiness
    | DelayReadiness
    | AtOnceReadiness
)


class Disconnect(StrEnum):
    """What a cut-off agent does with a job."""

    STOP = "stop"
    """Stop it before the control plane may start it elsewhere."""
    KEEP = "keep"
    """Keep it; nothing else starts until its node is back or confirmed gone."""


class Launch(Value, frozen=True, kw_only=True):
    """A workload as a process. Field names are those of the wire, so that it converts as it is."""

    argv: tuple[str, ...]
    env: dict[str, str] = {}
    readiness: Readiness = msgspec.field(default_factory=AtOnceReadiness)
    ready_within_ms: int = 60_000
    """Not ready after this long is a failed start."""
    stop_signal: str = "SIGTERM"
    stop_grace_ms: int = 10_000
    log_file_bytes_max: int = 10 * 2**20
    log_file_count_max: int = 3
    disconnect: Disconnect = Disconnect.STOP


class JobConfig(Value, frozen=True, kw_only=True):
    """What a job works by and is given anew while it runs. It is in no event and no log."""

    generation: int = 0
    """The bundle's at which this content came; it is the number that the job sees."""
    values_json: str = "{}"
    """A mapping, as canonical JSON."""
    files: dict[str, str] = {}
    """Texts by file name."""
    signal: str | None = None
    """Sent to the main process when a newer one is there; `None`: it looks by itself."""
