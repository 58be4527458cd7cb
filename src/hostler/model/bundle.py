"""A bundle: what an operator submits, and what is desired until it is deleted."""

from __future__ import annotations

from enum import StrEnum
from typing import ClassVar, Final

from hostler.base.ids import BundleId
from hostler.base.lifecycle import Lifecycle
from hostler.model.constraint import Affinity, NodeRule, SpreadRule
from hostler.model.disruption import DisruptionBudget
from hostler.model.launch import JobConfig, Launch
from hostler.model.pool import Band
from hostler.model.record import Record, Value
from hostler.model.service import ServiceSpec
from hostler.model.shape import NOTHING_REQUIRED, Requirement
from hostler.model.timetable import Timetable


class BundlePhase(StrEnum):
    """Desired, or on its way out."""

    ACTIVE = "active"
    DELETING = "deleting"
    DELETED = "deleted"


class BundleTrigger(StrEnum):
    """What moves a bundle."""

    DELETION_REQUESTED = "deletion_requested"
    EMPTIED = "emptied"


BUNDLE_LIFECYCLE: Final = Lifecycle(
    name="bundle",
    initial=BundlePhase.ACTIVE,
    terminal=frozenset({BundlePhase.DELETED}),
    table={
        (BundlePhase.ACTIVE, BundleTrigger.DELETION_REQUESTED): BundlePhase.DELETING,
        (BundlePhase.DELETING, BundleTrigger.EMPTIED): BundlePhase.DELETED,
    },
)


class Fallback(StrEnum):
    """When a bundle's fallback pools are open to it."""

    WHEN_FULL = "when_full"
    """As soon as its own pool has no place that keeps every rule."""
    WHEN_UNAVAILABLE = "when_unavailable"
    """Only when the pool before it could take nobody: it is not configured or disabled, or no node
    of it takes work and no machine can be launched."""


class OnFailure(StrEnum):
    """What becomes of a rollout that has failed."""

    ROLL_BACK = "roll_back"
    """What was there before is desired again."""
    HOLD = "hold"
    """It stands still until somebody says how to go on."""


class RolloutPolicy(Value, frozen=True, kw_only=True):
    """How a changed launch reaches the replicas that run."""

    max_parallel: int = 1
    """Replicas of one job that are on their way at once."""
    healthy_after_ms: int = 10_000
    """A new copy must have been ready for so long before the next one goes."""
    progress_within_ms: int = 600_000
    """No further replica settled within this time is a failure."""
    on_failure: OnFailure = OnFailure.ROLL_BACK


class Job(Value, frozen=True, kw_only=True):
    """One part of a bundle."""

    name: str
    launch: Launch
    config: JobConfig | None = None
    """`None`: it never had any. One that was taken away is an empty one."""
    band: Band = Band.SILVER
    requirement: Requirement = NOTHING_REQUIRED
    is_dormant: bool = False
    """True: placed only when an operator starts it."""
    can_overlap: bool = False
    """True: two copies of one replica may run for a while, so that the new one is ready before the
    old one ends. False: the old one ends first, whatever the reason for the move."""
    labels: dict[str, str] = {}
    """Added to those of the bundle: what others may wish to be near to or apart from."""
    node_rules: tuple[NodeRule, ...] = ()
    """Which nodes: labels, exclusions, allowed offers."""
    affinities: tuple[Affinity, ...] = ()
    """Near to whom, and apart from whom."""


class Bundle(Record, frozen=True, kw_only=True):
    """One or more jobs, a replica count and a resilience policy."""

    KIND: ClassVar[str] = "bundle"

    bundle_id: BundleId
    pool: str
    jobs: tuple[Job, ...]
    replica_count: int = 1
    fallback_pools: tuple[str, ...] = ()
    fallback: Fallback = Fallback.WHEN_FULL
    is_gang: bool = False
    """True: its replicas that want a place get all of them at once, or none."""
    spread: tuple[SpreadRule, ...] = ()
    """Beyond the rule that always holds: replicas of one job are on different nodes."""
    is_primary_interruptible: bool = True
    """False: replica 0 is never put on interruptible capacity; true: it is, marked degraded."""
    is_colocated: bool = False
    """True: the jobs of one replica are on one node."""
    backup_apart: SpreadRule | None = None
    """The domain that primary and backup of a job do not share, whatever the others do."""
    is_protection_required: bool = False
    is_backup_promoted: bool = False
    """A ready copy becomes the primary when that is gone, and is told so."""
    """True: refused unless the loss of any one domain would leave all replicas a place."""
    disruption_budgets: tuple[DisruptionBudget, ...] = ()
    """Bounds on moving its replicas; counted over each job."""
    service: ServiceSpec | None = None
    """Given: it is a node service, with one replica for each node that is meant."""
    labels: dict[str, str] = {}
    rollout: RolloutPolicy = RolloutPolicy()
    timetable: Timetable | None = None
    """When its jobs run; `None`: always."""
    switched: dict[str, bool] = {}
    """An operator's last word on a job, by its name: started, or stopped. It outranks the job's
    start mode and its timetable, and is kept when the bundle is changed; the end of a shift ends
    it."""
    generation: int = 1
    """Rises with each change of what is desired."""
    observed_generation: int = 0
    """The generation that all of its replicas are up to."""
    phase: BundlePhase = BundlePhase.ACTIVE
    phase_since_at_ms: int
    submitted_by: str = ""

    @property
    def key(self) -> str:
        """The bundle's id."""
        return self.bundle_id

    def job(self, name: str) -> Job | None:
        """Return the job of that name, or `None`."""
        return next((job for job in self.jobs if job.name == name), None)
