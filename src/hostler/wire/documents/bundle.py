"""A bundle: one or more jobs, how many copies, where they may run and how hard we try."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from msgspec import Meta

from hostler.wire.documents.disruption import DisruptionBudgetDocument
from hostler.wire.documents.text import (
    CountFromOne,
    Duration,
    LocalTime,
    Name,
    Port,
    Size,
    TimeOfDay,
)
from hostler.wire.documents.where import (
    DomainDocument,
    Labels,
    SpreadDocument,
    WhereDocument,
)
from hostler.wire.documents.windows import Day
from hostler.wire.documents.work import Document, RequiresDocument

CONFIG_BYTES_MAX: Final = 64 * 1024
"""Of one job's configuration, as JSON. It is kept in the bundle's record and sent to each copy."""

REPLICA_COUNT_MAX: Final = 10_000
"""Replicas of one bundle, over all its jobs: each is a record, and they come in one step."""

FileName = Annotated[
    str,
    Meta(
        pattern=r"^[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}$",
        description="A file's name without a folder: letters, digits, dots, hyphens, 100 at most.",
    ),
]

Argv = Annotated[list[str], Meta(min_length=1, description="Argument vector; there is no shell.")]


class HttpProbeDocument(Document, frozen=True, kw_only=True):
    """Ready while a GET on the node's loopback answers with a status from 200 to 399."""

    port: Port
    path: Annotated[str, Meta(pattern="^/", description="A path such as /healthz.")] = "/"
    interval: Duration = "500ms"
    timeout: Duration = "2s"


class TcpProbeDocument(Document, frozen=True, kw_only=True):
    """Ready while a connection on the node's loopback is accepted."""

    port: Port
    interval: Duration = "500ms"
    timeout: Duration = "2s"


class ExecProbeDocument(Document, frozen=True, kw_only=True):
    """Ready while a command in the allocation's folder exits with 0."""

    argv: Argv
    interval: Duration = "500ms"
    timeout: Duration = "5s"


class SdNotifyDocument(Document, frozen=True, kw_only=True):
    """Ready when the job says `READY=1` on `$NOTIFY_SOCKET`."""


class ReadinessDocument(Document, frozen=True, kw_only=True):
    """How we know that a job is ready: exactly one of these."""

    http: HttpProbeDocument | None = None
    tcp: TcpProbeDocument | None = None
    exec: ExecProbeDocument | None = None
    sd_notify: SdNotifyDocument | None = None
    """Write `sd_notify: {}`."""
    delay: Duration | None = None


class StopDocument(Document, frozen=True, kw_only=True):
    """How a job is stopped: the signal, some patience, then kill."""

    signal: Annotated[
        str, Meta(pattern=r"^SIG[A-Z0-9]+$", description="A signal's name such as SIGTERM.")
    ] = "SIGTERM"
    grace: Duration = "10s"


class LogsDocument(Document, frozen=True, kw_only=True):
    """How much of a job's output is kept on the node."""

    file_size: Size = "10MiB"
    files: CountFromOne = 3


class RunDocument(Document, frozen=True, kw_only=True):
    """The process. Arguments and environment values may name `${HOSTLER_...}` variables."""

    argv: Argv
    env: dict[str, str] = {}
    readiness: ReadinessDocument | None = None
    """Left out: ready as soon as the process runs."""
    ready_within: Duration = "60s"
    """Not ready after so long is a failed start."""
    stop: StopDocument = StopDocument()
    logs: LogsDocument = LogsDocument()
    disconnect: Literal["stop", "keep"] = "stop"
    """What a cut-off agent does with the job: stop it in time, or keep it and let nothing else
    start."""


class JobConfigDocument(Document, frozen=True, kw_only=True):
    """What a job works by: it finds it in a folder, and anew there whenever it has changed."""

    values: dict[str, Any] = {}
    """A mapping of whatever the job understands; the job reads it as JSON."""
    files: dict[FileName, str] = {}
    """Texts, each a file of that name."""
    signal: Literal["SIGHUP", "SIGUSR1", "SIGUSR2", "SIGWINCH"] | None = None
    """Sent to the main process when a newer one is there, once it has a handler for it. Left out:
    the job looks by itself."""


class JobDocument(Document, frozen=True, kw_only=True):
    """One part of a bundle."""

    name: Name
    band: Literal["gold", "silver", "bronze"] = "silver"
    """Recovery class: gold first and onto spares, silver re-placed, bronze dropped."""
    requires: RequiresDocument = RequiresDocument()
    where: WhereDocument = WhereDocument()
    labels: Labels = {}
    """Added to those of the bundle."""
    run: RunDocument
    config: JobConfigDocument | None = None
    """Changed in place: a copy that runs gets it and is not restarted."""
    dormant: bool = False
    """Placed only when an operator starts it."""
    overlap: Literal["allowed", "forbidden"] = "forbidden"
    """Whether two copies of one replica may run for a while when it is moved or renewed: the new
    one is then ready before the old one ends. Forbidden: the old one ends first."""


class RolloutDocument(Document, frozen=True, kw_only=True):
    """How a changed `run` or `requires` reaches the replicas that run."""

    max_parallel: CountFromOne = 1
    """Replicas of one job that are on their way at once."""
    healthy_after: Duration = "10s"
    """A new copy must have been ready for so long before the next one goes."""
    progress_within: Duration = "10m"
    """No further replica settled within this time is a failure."""
    on_failure: Literal["roll_back", "hold"] = "roll_back"
    """Go back to what was there before, or stand still until somebody says how to go on."""


class ShiftDocument(Document, frozen=True, kw_only=True):
    """A stretch of the week in which the jobs run."""

    days: list[Day]
    """On which it begins."""
    start: TimeOfDay
    end: TimeOfDay
    """At or before `start`: on the day after."""


class TimetableDocument(Document, frozen=True, kw_only=True):
    """When the jobs run. Machines are booted ahead, so that they are ready at the start."""

    time_zone: str
    """As the zone database spells it: Europe/Berlin."""
    windows: list[ShiftDocument] = []
    """Left out: all the time between `start` and `stop`."""
    start: LocalTime | None = None
    """Not before this."""
    stop: LocalTime | None = None
    """Not after this."""
    missed: Literal["run", "skip"] = "run"
    """What becomes of a shift whose start Hostler was not there for: run late, or not at all."""
    grace: Duration = "5m"
    """How late a start may be and still not be missed."""
    then_delete: bool = False
    """Delete the bundle when nothing is to come any more."""


class BundleDocument(Document, frozen=True, kw_only=True):
    """What an operator submits."""

    bundle: Name
    """The bundle's id."""
    pool: Name
    fallback_pools: list[Name] = []
    """Pools to try, in this order, after the first."""
    fallback: Literal["when_full", "when_unavailable"] = "when_full"
    """`when_full`: as soon as the pool before has no good place. `when_unavailable`: only when it
    could take nobody, because it is gone, or nothing in it works or can be launched."""
    gang: bool = False
    """True: all replicas that want a place get one at once, or none does."""
    replicas: CountFromOne = 1
    """Copies of each job; 0 is the primary, 1 the backup. Never two on one node."""
    spread: list[SpreadDocument] = []
    primary_interruptible: bool = True
    """False: the primary is never put on interruptible capacity."""
    backup_apart: DomainDocument | None = None
    """What primary and backup do not share, whatever holds for the others."""
    colocate: bool = False
    """True: the jobs of one replica are on one node."""
    where: WhereDocument = WhereDocument()
    """For each of the jobs."""
    require_protected: bool = False
    """True: refused unless the loss of any one node, zone, provider or interruptible tier would
    leave every replica a place."""
    promote_backup: bool = False
    """True: when the primary is gone and another copy is ready, that one becomes the primary."""
    labels: dict[str, str] = {}
    disruption_budgets: list[DisruptionBudgetDocument] = []
    """Bounds on moving its replicas, over each job; left out: one replica of a job at a time."""
    rollout: RolloutDocument = RolloutDocument()
    timetable: TimetableDocument | None = None
    """Left out: the jobs run always."""
    jobs: Annotated[list[JobDocument], Meta(min_length=1)]
