"""A replica: one copy of a job that wants a place, and the history of its recoveries.

The record holds what is desired of the copy and why it waits; where it runs is an allocation.
"""

from __future__ import annotations

from enum import StrEnum
from typing import ClassVar, Final

from hostler.base.ids import AllocationId, BundleId, NodeId, ReplicaId
from hostler.base.lifecycle import Lifecycle
from hostler.model.allocation import EndCause
from hostler.model.pool import Band
from hostler.model.reason import Reason
from hostler.model.record import Record, Value
from hostler.model.shape import Requirement


class ReplicaPhase(StrEnum):
    """What the replica is doing about having a place."""

    DORMANT = "dormant"
    """Is not to have a place now; its reason says what would change that."""
    PENDING = "pending"
    """Wants a place now."""
    PLACED = "placed"
    """Has a live allocation."""
    BACKING_OFF = "backing_off"
    """Wants a place at `retry_at_ms`."""
    BROKEN = "broken"
    """Over its restart ceiling; only an operator or a new spec helps."""
    DROPPED = "dropped"
    """Bronze, and its place failed."""
    STOPPING = "stopping"
    """Its bundle is being deleted; its allocation has not ended yet."""
    ENDED = "ended"


class ReplicaTrigger(StrEnum):
    """What moves a replica."""

    STARTED = "started"
    PLACED = "placed"
    FAILED = "failed"
    DISPLACED = "displaced"
    CEILING_REACHED = "ceiling_reached"
    RETRY_DUE = "retry_due"
    GAVE_UP = "gave_up"
    CLEARED = "cleared"
    STOPPED = "stopped"
    DELETED = "deleted"
    EMPTIED = "emptied"


_P = ReplicaPhase
_T = ReplicaTrigger

REPLICA_LIFECYCLE: Final = Lifecycle(
    name="replica",
    initial=ReplicaPhase.PENDING,
    terminal=frozenset({ReplicaPhase.ENDED}),
    table={
        (_P.DORMANT, _T.STARTED): _P.PENDING,
        (_P.PENDING, _T.PLACED): _P.PLACED,
        (_P.PENDING, _T.STOPPED): _P.DORMANT,
        (_P.BACKING_OFF, _T.STOPPED): _P.DORMANT,
        (_P.PLACED, _T.FAILED): _P.BACKING_OFF,
        (_P.PLACED, _T.DISPLACED): _P.PENDING,
        (_P.PLACED, _T.STOPPED): _P.DORMANT,
        (_P.PLACED, _T.CEILING_REACHED): _P.BROKEN,
        (_P.PLACED, _T.GAVE_UP): _P.DROPPED,
        (_P.BACKING_OFF, _T.RETRY_DUE): _P.PENDING,
        (_P.BROKEN, _T.CLEARED): _P.PENDING,
        (_P.DROPPED, _T.CLEARED): _P.PENDING,
        **{
            (phase, _T.DELETED): _P.STOPPING for phase in _P if phase not in (_P.STOPPING, _P.ENDED)
        },
        (_P.STOPPING, _T.EMPTIED): _P.ENDED,
    },
)


class Avoided(Value, frozen=True, kw_only=True):
    """A node that a replica stays away from for a while."""

    node_id: NodeId
    until_at_ms: int
    """The last instant at which the node is avoided."""
    is_rejection: bool = False
    """True: its agent would not take it, so not even the lack of any other node opens it."""


class Restart(Value, frozen=True, kw_only=True):
    """One recovery that counts, and what it was for."""

    at_ms: int
    cause: EndCause


class Claim(Value, frozen=True, kw_only=True):
    """Room on a node that is kept for a replica while what was there gives way."""

    node_id: NodeId
    requirement: Requirement
    """What is kept; the claim is given up when the replica comes to ask for something else."""
    at_ms: int
    until_at_ms: int
    """When it is given up, if what was to end has not ended by then."""
    allocation_ids: tuple[AllocationId, ...] = ()
    """What was asked to end for it."""


class Preempted(Value, frozen=True, kw_only=True):
    """That a replica gave way, and to whom; kept for the window of the settings."""

    at_ms: int
    by: ReplicaId
    allocation_id: AllocationId
    """What of it was asked to end."""


class MigrationCause(StrEnum):
    """Who wants a replica moved while it has a place."""

    ROLLOUT = "rollout"
    DEBT = "debt"
    """Its place breaks a rule that another one keeps."""
    DRAIN = "drain"
    """Its node is to be empty."""
    CONSOLIDATION = "consolidation"
    """Its node is little used, and its machine could go."""


class Migration(Value, frozen=True, kw_only=True):
    """A second place for a replica, which takes over once it is ready; then the first one ends."""

    cause: MigrationCause
    source_id: AllocationId
    """The place that it has."""
    target_id: AllocationId | None = None
    """The place that it is to have; `None` while none is found."""
    requested_at_ms: int
    deadline_at_ms: int
    """No target that is ready by then: it stays where it is."""
    broken_count_max: int | None = None
    """The new place breaks no more rules than so many; `None`: as the rules allow."""
    may_stay: bool = False
    """True: the new place may be on the same node, if there is room for both."""
    is_cancelled: bool = False
    """True: the target has been asked to end; the first place is kept."""
    reason: Reason | None = None
    """Why there is no target yet."""
    reason_detail: str = ""


class Debt(Value, frozen=True, kw_only=True):
    """What the place of a replica breaks although it had better not, until it is repaid."""

    rules: tuple[str, ...]
    since_at_ms: int
    look_at_ms: int
    """When a better place is looked for again."""
    look_count: int = 0
    """Looks in a row that found none."""
    better_since_at_ms: int | None = None
    """Since when there has been a better place at each look."""


class Replica(Record, frozen=True, kw_only=True):
    """One copy of a job, numbered from zero."""

    KIND: ClassVar[str] = "replica"

    replica_id: ReplicaId
    bundle_id: BundleId
    job: str
    index: int
    role: str
    node_id: NodeId | None = None
    """The one node on which it can be: it is a node service's."""
    band: Band
    generation: int
    """The bundle's generation that what runs of it (or will) is up to."""
    phase: ReplicaPhase
    phase_since_at_ms: int
    epoch: int = 0
    """Number of its latest allocation; rises by one with each."""
    is_recovery: bool = False
    """True: the next placement follows a failure, so spares are open to it."""
    reason: Reason | None = None
    """Why it is not placed, while it is not."""
    reason_detail: str = ""
    waiting_since_at_ms: int = 0
    """When it last began to want a place; the older goes first within a band."""
    retry_at_ms: int | None = None
    is_kept: bool = False
    """It ran when its job was made dormant, and goes on."""
    spec: str = ""
    """Digest of the launch and the requirement that it was last expanded from."""
    demand: str = ""
    """Digest of what it asks of a place; replicas with an equal one are looked at together."""
    restarts: tuple[Restart, ...] = ()
    """Recoveries that count against the ceiling, oldest first, bounded by it."""
    place_id: AllocationId | None = None
    """The allocation that is its place, or was last: not the target of a migration before that has
    taken over."""
    migration: Migration | None = None
    """The second place that it is to have beside the first, while it is moved."""
    migration_retry_at_ms: int = 0
    """When it may be moved again after a migration that failed."""
    debt: Debt | None = None
    """What its place breaks, while it breaks any rule."""
    repaid_at_ms: tuple[int, ...] = ()
    """When it was last moved to a better place, oldest first, bounded."""
    consolidated_at_ms: int | None = None
    """When it was last moved so that a machine could go."""
    moving_to: NodeId | None = None
    """The node on which room is held for it while it leaves its place for a better one."""
    avoided: tuple[Avoided, ...] = ()
    """Nodes on which it lately failed, oldest first; one entry a node, bounded."""
    claim: Claim | None = None
    """Room that is kept for it: while it waits, for what gives way there; while it has a place that
    it is to leave and may not be twice, until that has ended."""
    preempted: Preempted | None = None
    """Lately it gave way to another."""

    @property
    def key(self) -> str:
        """The replica's id."""
        return self.replica_id

    @property
    def restart_at_ms(self) -> tuple[int, ...]:
        """The instants of the recoveries that count."""
        return tuple(each.at_ms for each in self.restarts)

    @property
    def is_migrating_blind(self) -> bool:
        """True while it has a place and wants a second one that is not found yet."""
        migration = self.migration
        return migration is not None and migration.target_id is None

    @property
    def kept_room(self) -> Claim | None:
        """The room that is kept for it on a node, if any is."""
        return self.claim if self.phase in (ReplicaPhase.PENDING, ReplicaPhase.PLACED) else None

    @property
    def is_placeable(self) -> bool:
        """True while it stands in line for a place, be it the first or a second one."""
        if self.node_id is not None:
            return False  # it has no choice of places
        return self.phase is ReplicaPhase.PENDING or self.is_migrating_blind

    @property
    def waiting_reason(self) -> Reason | None:
        """Why it has not the place for which it stands in line."""
        return self.reason if self.migration is None else self.migration.reason
