"""Explanations and plans: why something is as it is, and what would follow from a bundle."""

from __future__ import annotations

import msgspec

from hostler.wire.http.bundles import ProtectionView
from hostler.wire.http.problem import ProblemError
from hostler.wire.http.shapes import RequirementView


class CandidateView(msgspec.Struct, frozen=True, kw_only=True):
    """A node that passed every filter; the lowest score, part by part, is chosen."""

    node_id: str
    score: dict[str, int]
    """By the name of the part, in the order in which they are compared (`docs/placement.md`)."""


class FilteredView(msgspec.Struct, frozen=True, kw_only=True):
    """A node that did not pass, and the first filter that refused it."""

    node_id: str
    reason: str
    detail: str


class AttemptView(msgspec.Struct, frozen=True, kw_only=True):
    """One look at one tier of one pool."""

    pool: str
    tier: str
    candidate_count: int
    filtered_count: int
    scored_count: int
    filtered_by_reason: dict[str, int]
    filtered: list[FilteredView]
    """The first of them, up to a bound."""
    scored: list[CandidateView]
    """The best of them, best first, up to a bound."""
    outcome: str


class VictimView(msgspec.Struct, frozen=True, kw_only=True):
    """An allocation that ends so that another replica can have its room."""

    allocation_id: str
    replica_id: str
    band: str
    is_primary: bool
    age_ms: int
    """How long it had run."""


class DecisionView(msgspec.Struct, frozen=True, kw_only=True):
    """One placement decision, or one that nothing fits."""

    at_ms: int
    is_recovery: bool
    outcome: str
    """`placed`, `launched` or `failed`; `claimed` when lower work gives way, and `preempted` when
    it is this replica that did."""
    node_id: str | None
    rule: str
    """The policy line that chose, in words."""
    degraded_by: list[str]
    attempts: list[AttemptView]
    offer: str = ""
    """Of the machine that was asked for, where one was."""
    devices: dict[str, list[str]] = {}
    """Named devices that were chosen with the node, by kind."""
    reason: str | None = None
    """Why nothing was chosen."""
    revision: int = 0
    """Of the step that decided; `at_revision` of `/v1/explain` replays it."""
    victims: list[VictimView] = []
    """What gives way to it."""


class WhyView(msgspec.Struct, frozen=True, kw_only=True):
    """One reason, in words."""

    by: str
    """The controller that says so, or `record` when the record itself does."""
    reason: str
    detail: str
    since_at_ms: int
    meaning: str
    advice: str
    """What a person can do."""


class CheckView(msgspec.Struct, frozen=True, kw_only=True):
    """One reason why a replica could not be put on a named node now."""

    reason: str
    detail: str
    meaning: str
    advice: str


class ChangeView(msgspec.Struct, frozen=True, kw_only=True):
    """One thing to change so that a node would do."""

    alteration: str
    """As `if` of `/v1/explain` takes it, to see what would follow."""
    text: str
    until_at_ms: int | None
    """When it comes about by itself."""


class WayView(msgspec.Struct, frozen=True, kw_only=True):
    """Changes that together make a node do; none of them can be left out."""

    changes: list[ChangeView]


class ComparisonView(msgspec.Struct, frozen=True, kw_only=True):
    """How a node that would do compares with the place that is, or would be, chosen."""

    other_node_id: str | None
    score: dict[str, int]
    other_score: dict[str, int]
    """Empty where scores decide nothing, as between tiers."""
    decided_by: str
    """The part of the score, `tier_order`, `rule` or `node_id`; empty: it is the one chosen."""
    text: str
    """One sentence."""


class RerunView(msgspec.Struct, frozen=True, kw_only=True):
    """A decision that was made again: on the present fleet, or in a past step as a whole."""

    revision: int
    at_ms: int
    decision: DecisionView | None
    """As it comes out; `null`: the step decided nothing about the replica."""
    is_reproduced: bool | None
    """Of a past step: it came out as it did then, byte for byte."""
    given: list[str]
    """Facts that were taken to be different."""
    altered: DecisionView | None
    """As it comes out with them."""
    first_event_seq: int | None
    last_event_seq: int | None
    """Events that the past step told; the first is above the last where it told none."""


class PendingGroupView(msgspec.Struct, frozen=True, kw_only=True):
    """Some that ask alike and wait for the same."""

    kind: str
    """`replica` or `lease`."""
    phase: str
    pools: list[str]
    requires: RequirementView
    needs: str
    """The same in words."""
    band: str | None
    count: int
    since_at_ms: int
    """Since when the first of them waits."""
    reason: str | None
    """What they wait for; `null`: the next step serves them."""
    detail: str
    meaning: str
    advice: str
    """What a person can do."""
    helps: list[str]
    """What capacity would help, tier by tier; empty where capacity is not what they lack."""
    next_at_ms: int | None
    """When they are looked at again, whatever happens."""
    examples: list[str]
    """Ids of the first of them."""


class PendingView(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that waits, the most urgent first."""

    replica_count: int
    lease_count: int
    groups: list[PendingGroupView]
    left_out_count: int
    """Groups beyond those that are told."""
    revision: int


class ExplainView(msgspec.Struct, frozen=True, kw_only=True):
    """Why one thing is as it is, and what it waits for."""

    about: str
    """Its id."""
    kind: str
    """`bundle`, `replica`, `allocation`, `node`, `lease` or `pool`."""
    phase: str
    summary: str
    """One sentence."""
    reasons: list[WhyView]
    next_at_ms: int | None
    """When it is looked at again, whatever happens."""
    commands: list[str]
    """Unsettled commands about it, by id."""
    decisions: list[DecisionView]
    """Placement decisions, newest last."""
    node_id: str | None
    """The node asked about, where one was named."""
    checks: list[CheckView]
    """Everything that keeps the replica from that node; empty when nothing does."""
    revision: int
    ways: list[WayView] = []
    """The smallest changes after which that node would do, fewest first."""
    comparison: ComparisonView | None = None
    """Of a node that would do: why another place is better, or that none is."""
    rerun: RerunView | None = None
    """The decision made again, where a moment or an altered fact was asked about."""


class PlannedReplica(msgspec.Struct, frozen=True, kw_only=True):
    """What would become of one replica."""

    replica_id: str
    role: str
    change: str
    """`create`, `keep`, `update` (what runs is replaced when its turn comes) or `remove`."""
    outcome: str
    """`placed`, `launching` (on a machine that would be launched), `waiting` or `gone`."""
    node_id: str | None
    pool: str
    tier: str
    offer: str
    """Of the machine that would be launched."""
    reason: str | None
    reason_detail: str
    degraded_by: list[str]
    trace: str
    """Each tier looked at, in one line."""
    decision: DecisionView | None
    """The same in full, where a decision would be made."""


class CollisionView(msgspec.Struct, frozen=True, kw_only=True):
    """A time at which what the timetables of a pool ask for is more than it has."""

    pool: str
    resource: str
    """`capacity`, `cores_milli`, `memory_bytes`, or a capability's name (in thousandths)."""
    from_at_ms: int
    local: str
    """The same on the wall clock of the timetable."""
    needed: int
    available: int
    bundles: list[str]
    """The others that want of it then."""


class PlanView(msgspec.Struct, frozen=True, kw_only=True):
    """What would follow from submitting a bundle now. Nothing was changed."""

    bundle_id: str
    revision: int
    """The fleet that this is about."""
    is_accepted: bool
    errors: list[ProblemError]
    """Why it would be refused."""
    change: str
    """`create`, `update` or `keep`."""
    replicas: list[PlannedReplica]
    launch_count: int
    """Machines that would be launched."""
    launch_microusd_per_hour: int
    """What they would cost."""
    protection: ProtectionView | None
    """Which single losses it would then not survive."""
    collisions: list[CollisionView] = []
    """When the timetable asks for more than the pool has: the first time for each resource."""
