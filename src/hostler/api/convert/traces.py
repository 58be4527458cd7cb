"""Placement decisions."""

from __future__ import annotations

from collections.abc import Sequence

from hostler.core.placement.score import PARTS
from hostler.model.trace import Attempt, Decision
from hostler.wire.http import (
    AttemptView,
    CandidateView,
    DecisionView,
    FilteredView,
    VictimView,
)


def decision(record: Decision) -> DecisionView:
    """Show one placement decision."""
    return DecisionView(
        at_ms=record.at_ms,
        is_recovery=record.is_recovery,
        outcome=record.outcome,
        node_id=record.node_id,
        rule=record.rule,
        degraded_by=list(record.degraded_by),
        attempts=[_attempt(one) for one in record.attempts],
        victims=[
            VictimView(
                allocation_id=one.allocation_id,
                replica_id=one.replica_id,
                band=one.band,
                is_primary=one.is_primary,
                age_ms=one.age_ms,
            )
            for one in record.victims
        ],
        offer=record.offer,
        devices={kind: list(ids) for kind, ids in record.devices.items()},
        reason=record.reason,
        revision=record.revision,
    )


def score_of(parts: Sequence[int]) -> dict[str, int]:
    """Name the parts of a score; one that an older version kept may have others."""
    if len(parts) != len(PARTS):
        return {f"part_{number}": part for number, part in enumerate(parts, start=1)}
    return dict(zip(PARTS, parts, strict=True))


def _attempt(record: Attempt) -> AttemptView:
    return AttemptView(
        pool=record.pool,
        tier=record.tier,
        candidate_count=record.candidate_count,
        filtered_count=record.filtered_count,
        scored_count=record.scored_count,
        filtered_by_reason=dict(record.filtered_by_reason),
        filtered=[
            FilteredView(node_id=one.node_id, reason=one.reason, detail=one.detail)
            for one in record.filtered
        ],
        scored=[
            CandidateView(node_id=one.node_id, score=score_of(one.score)) for one in record.scored
        ],
        outcome=record.outcome,
    )
