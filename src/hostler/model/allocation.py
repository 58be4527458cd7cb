"""An allocation: the fact that a replica has a place on a node, until it is known to have ended.

It holds the node's room from the decision on, also while the node is still being launched, and
gives it back only when the agent says ended or the machine is confirmed gone.
"""

from __future__ import annotations

from enum import StrEnum
from typing import ClassVar, Final

from hostler.base.ids import AllocationId, BundleId, NodeId, ReplicaId
from hostler.base.lifecycle import Lifecycle
from hostler.model.launch import Launch
from hostler.model.pool import Band
from hostler.model.record import Record, Value
from hostler.model.shape import Requirement


class AllocationPhase(StrEnum):
    """Where the copy is in its life."""

    RESERVED = "reserved"
    """Room is held; the start command is not out yet (the node may still be booting)."""
    STARTING = "starting"
    """The start command is out."""
    RUNNING = "running"
    """Runs, not ready yet (or no longer)."""
    READY = "ready"
    STOPPING = "stopping"
    """The stop command is out, or its node is being fenced."""
    ENDED = "ended"


class AllocationTrigger(StrEnum):
    """What moves an allocation."""

    START_SENT = "start_sent"
    RAN = "ran"
    BECAME_READY = "became_ready"
    BECAME_UNREADY = "became_unready"
    STOP_REQUESTED = "stop_requested"
    ENDED = "ended"


_P = AllocationPhase
_T = AllocationTrigger

ALLOCATION_LIFECYCLE: Final = Lifecycle[AllocationPhase, AllocationTrigger](
    name="allocation",
    initial=AllocationPhase.RESERVED,
    terminal=frozenset({AllocationPhase.ENDED}),
    table={
        (_P.RESERVED, _T.START_SENT): _P.STARTING,
        (_P.STARTING, _T.RAN): _P.RUNNING,
        (_P.RUNNING, _T.BECAME_READY): _P.READY,
        (_P.READY, _T.BECAME_UNREADY): _P.RUNNING,
        (_P.STARTING, _T.STOP_REQUESTED): _P.STOPPING,
        (_P.RUNNING, _T.STOP_REQUESTED): _P.STOPPING,
        (_P.READY, _T.STOP_REQUESTED): _P.STOPPING,
        **{(phase, _T.ENDED): _P.ENDED for phase in _P if phase is not _P.ENDED},
    },
)


class EndCause(StrEnum):
    """Why an allocation ended."""

    EXITED = "exited"
    """The workload ended by itself, with whatever status."""
    START_FAILED = "start_failed"
    """It could not be started, or was not ready in time."""
    REJECTED = "rejected"
    """The agent would not take it."""
    FENCED = "fenced"
    """A cut-off agent stopped it."""
    SUPERVISOR_LOST = "supervisor_lost"
    STOPPED = "stopped"
    """We asked for it."""
    NODE_LOST = "node_lost"
    """Its node's machine is gone, or was silent for too long."""
    LAUNCH_FAILED = "launch_failed"
    """The machine it was to run on never came."""
    CANCELLED = "cancelled"
    """Given up before a start was sent."""


class Ended(Value, frozen=True, kw_only=True):
    """How it ended."""

    cause: EndCause
    exit_code: int | None = None
    signal: int | None = None
    message: str = ""


class Allocation(Record, frozen=True, kw_only=True):
    """The record that a replica has a place."""

    KIND: ClassVar[str] = "allocation"

    allocation_id: AllocationId
    replica_id: ReplicaId
    bundle_id: BundleId
    job: str
    replica_index: int
    role: str
    is_service: bool = False
    """A copy of a node service: it is there for others, and its node counts as empty."""
    band: Band
    node_id: NodeId
    epoch: int
    """The replica's epoch; the agent refuses a lower one."""
    requirement: Requirement
    launch: Launch
    devices: dict[str, tuple[str, ...]] = {}
    """Named devices given to it, by kind."""
    degraded_by: tuple[str, ...] = ()
    """Resilience rules that this place breaks."""
    phase: AllocationPhase
    phase_since_at_ms: int
    created_at_ms: int
    start_at_ms: int | None = None
    """It is reserved ahead, and not to be started before this."""
    started_at_ms: int | None = None
    ready_at_ms: int | None = None
    role_term: int = 0
    """Rises whenever its role changes while it lives."""
    role_known: int = 0
    """The term of the role that its agent has told it; what it was started with is 0."""
    config_sent: int = 0
    """Generation of the configuration that was last sent to the copy while it ran."""
    config_written: int = 0
    """Generation of the one that its agent has put into its folder; 0: there is none."""
    config_applied: int = 0
    """Generation of the one that the job said it works by; 0: it has not said."""
    stop_reason: str = ""
    """Why we asked it to stop."""
    ended: Ended | None = None

    @property
    def key(self) -> str:
        """The allocation's id."""
        return self.allocation_id

    @property
    def is_live(self) -> bool:
        """True while it may hold room or run."""
        return self.phase is not AllocationPhase.ENDED
