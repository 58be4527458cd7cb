"""Bundles, their replicas, and the allocations that give these a place."""

from __future__ import annotations

import msgspec

from hostler.wire.http.shapes import MatchView, RequirementView


class SpreadView(msgspec.Struct, frozen=True, kw_only=True):
    """Replicas of one job do not share a domain, or are spread evenly over the domains."""

    over: str
    label: str
    """Which, when it is over a label."""
    is_required: bool
    skew_max: int | None
    """How many more may be in one domain than in the emptiest; `null`: none share one."""


class NodeRuleView(msgspec.Struct, frozen=True, kw_only=True):
    """A wish about the node itself."""

    match: MatchView
    """Of a fact: `node`, `zone`, `tier`, `provider`, `offer` or `label:NAME`."""
    is_apart: bool
    """True: it must not be so."""
    is_required: bool


class AffinityView(msgspec.Struct, frozen=True, kw_only=True):
    """A wish to be in the domain of others, or in none of theirs."""

    over: str
    label: str
    is_apart: bool
    is_required: bool
    bundle_id: str
    """Whom it is about, by all that is given; empty: any with the labels, or the bundle itself."""
    job: str
    replica_index: int | None
    labels: dict[str, str]


class JobConfigView(msgspec.Struct, frozen=True, kw_only=True):
    """What a job works by, told without its content, which may be nobody else's business."""

    generation: int
    """The bundle's at which it came; the number that the job sees."""
    size_bytes: int
    files: list[str]
    signal: str | None


class JobView(msgspec.Struct, frozen=True, kw_only=True):
    """One part of a bundle."""

    name: str
    band: str
    is_dormant: bool
    can_overlap: bool
    is_switched_on: bool | None
    """An operator's last word: started, stopped; `None` when there is none."""
    requires: RequirementView
    labels: dict[str, str]
    node_rules: list[NodeRuleView]
    affinities: list[AffinityView]
    argv: list[str]
    readiness: str
    """How we know that it is ready: `http`, `tcp`, `exec`, `sd_notify`, `delay` or `none`."""
    disconnect: str
    config: JobConfigView | None
    """What it works by, without the content; `None`: it never had any."""


class HurtView(msgspec.Struct, frozen=True, kw_only=True):
    """A loss that some replicas would not survive."""

    kind: str
    """`node`, `zone`, `provider` or `interruptible_tier`."""
    name: str
    replicas: dict[str, str]
    """By id: why it would find no place."""


class ProtectionView(msgspec.Struct, frozen=True, kw_only=True):
    """Whether all replicas would have a place after the loss of any one domain."""

    is_protected: bool
    hurts: list[HurtView]
    unplaced: list[str]
    """Replicas that have no place now."""


class BudgetStateView(msgspec.Struct, frozen=True, kw_only=True):
    """A bound on moving what runs well, and how far it is used."""

    name: str
    job: str
    """Over whose replicas it is counted; empty: over all that it selects in the fleet."""
    is_in_force: bool
    """Now; one with windows holds in these only."""
    unavailable_count_max: int | None
    ready_count_min: int | None
    away: list[str]
    """Replicas that are away or on the move."""
    ready_count: int


class BundleView(msgspec.Struct, frozen=True, kw_only=True):
    """What an operator submitted, and how far it is."""

    bundle_id: str
    pool: str
    fallback_pools: list[str]
    fallback: str
    """When these are open to it: `when_full` or `when_unavailable`."""
    is_gang: bool
    """All of it starts at once, or nothing does."""
    replica_count: int
    """Copies of each job."""
    spread: list[SpreadView]
    is_primary_interruptible: bool
    backup_apart: SpreadView | None
    """What primary and backup do not share."""
    is_colocated: bool
    """The jobs of one replica are on one node."""
    is_protection_required: bool
    is_backup_promoted: bool
    protection: ProtectionView | None
    """Where it was asked for: of one bundle, or of a list with `protection=true`."""
    disruption_budgets: list[BudgetStateView] | None = None
    """What binds its moves, where it was asked for, like `protection`."""
    labels: dict[str, str]
    generation: int
    phase: str
    phase_since_at_ms: int
    submitted_by: str
    jobs: list[JobView]
    desired_count: int
    """Replicas that are to have a place."""
    placed_count: int
    ready_count: int
    pending_count: int
    """Want a place, now or after a pause."""
    failed_count: int
    """Broken or dropped."""


class UpcomingView(msgspec.Struct, frozen=True, kw_only=True):
    """A start or a stop that is to come."""

    bundle_id: str
    what: str
    """`start` or `stop`."""
    at_ms: int
    local: str
    """The same on the wall clock of the timetable."""
    time_zone: str
    note: str
    """`skipped hour`, `doubled hour` where a clock change touches it; `missed`: it is left out."""


class UpcomingPage(msgspec.Struct, frozen=True, kw_only=True):
    """Starts and stops, the soonest first."""

    items: list[UpcomingView]


class RolloutView(msgspec.Struct, frozen=True, kw_only=True):
    """How far a bundle's replicas are in taking over a changed launch."""

    bundle_id: str
    phase: str
    """`rolling`, `rolling_back`, `held`, `done` or `rolled_back`."""
    phase_since_at_ms: int
    is_paused: bool
    generation: int
    """The bundle's generation to which it goes."""
    former_generation: int | None
    """The one to which undoing it leads."""
    begun_at_ms: int
    begun_by: str
    progress_at_ms: int
    """When it last got further."""
    progress_deadline_at_ms: int
    """No further replica by then is a failure."""
    settled_count: int
    """Replicas that are up to date and have been ready for long enough."""
    replica_count: int
    waits_for: str
    evidence: str
    """Why it failed, or by whom it was undone."""


class ClaimView(msgspec.Struct, frozen=True, kw_only=True):
    """Room that is being made for a replica."""

    node_id: str
    allocation_ids: list[str]
    """What was asked to end for it."""
    at_ms: int
    until_at_ms: int
    """When it is given up, if that has not ended by then."""


class PreemptedView(msgspec.Struct, frozen=True, kw_only=True):
    """That a replica lately gave way."""

    at_ms: int
    by: str
    """The replica that needed its room."""


class JobConfigProgressView(msgspec.Struct, frozen=True, kw_only=True):
    """Which configuration a copy has. Numbers are generations of the bundle; 0 is none."""

    wanted: int
    """What is meant for it; a copy of an outdated launch keeps what it has."""
    written: int
    """What its agent has put into its folder."""
    applied: int
    """What it said that it works by; a job need not say."""
    problem: str
    """Why the last attempt to deliver what is wanted has failed; empty while none has."""


class ReplicaView(msgspec.Struct, frozen=True, kw_only=True):
    """One copy of a job."""

    replica_id: str
    bundle_id: str
    job: str
    index: int
    role: str
    band: str
    generation: int
    phase: str
    phase_since_at_ms: int
    reason: str | None
    """Why it has no place, while it has none."""
    reason_detail: str
    is_recovery: bool
    retry_at_ms: int | None
    restart_count: int
    """Recoveries that count against its ceiling."""
    restart_causes: dict[str, int]
    """The same by what they were for."""
    migrating_to: str | None
    """The allocation that takes over when it is ready, or empty while there is no place for it."""
    allocation_id: str | None
    allocation_phase: str | None
    node_id: str | None
    config: JobConfigProgressView | None
    """How far its copy is with what its job works by; `None`: it has no copy, or nothing."""
    degraded_by: list[str]
    claim: ClaimView | None
    preempted: PreemptedView | None


class EndedView(msgspec.Struct, frozen=True, kw_only=True):
    """How an allocation ended."""

    cause: str
    exit_code: int | None
    signal: int | None
    message: str


class AllocationView(msgspec.Struct, frozen=True, kw_only=True):
    """The fact that a replica has, or had, a place."""

    allocation_id: str
    replica_id: str
    bundle_id: str
    job: str
    replica_index: int
    role: str
    band: str
    node_id: str
    epoch: int
    requires: RequirementView
    devices: dict[str, list[str]]
    degraded_by: list[str]
    phase: str
    phase_since_at_ms: int
    created_at_ms: int
    started_at_ms: int | None
    ready_at_ms: int | None
    config_written: int
    config_applied: int
    stop_reason: str
    ended: EndedView | None
