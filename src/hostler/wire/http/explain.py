"""Explanations and plans: why something is as it is, and what would follow from a bundle."""

from __future__ import annotations

import msgspec

from hostler.wire.http.problem import ProblemError


class CandidateView(msgspec.Struct, frozen=True, kw_only=True):
    """A node that passed every filter; the lowest score, part by part, is chosen."""

    node_id: str
    score: list[int]


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
    node_id: str | None
    rule: str
    degraded_by: list[str]
    attempts: list[AttemptView]
    victims: list[VictimView]
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
    """Everything that keeps the replica from that node now; empty when nothing does."""
    revision: int


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
