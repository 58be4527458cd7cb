"""Trace: why a decision came out as it did, within bounds (spec/placement.md C-090 to C-092)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from hostler.base.ids import NodeId, ReplicaId
from hostler.core.placement.survey import Survey
from hostler.model import Trace
from hostler.model.trace import Attempt, Candidate, Decision

if TYPE_CHECKING:
    from hostler.core.placement.walk import Verdict


def attempt_of(pool: str, tier: str, *, survey: Survey | None, outcome: str) -> Attempt:
    """Return the record of one look at one tier; filtered plus scored are its candidates."""
    if survey is None:
        return Attempt(
            pool=pool,
            tier=tier,
            candidate_count=0,
            filtered_count=0,
            scored_count=0,
            outcome=outcome,
        )
    return Attempt(
        pool=pool,
        tier=tier,
        candidate_count=survey.candidate_count,
        filtered_count=survey.candidate_count - survey.fitting_count,
        scored_count=survey.fitting_count,
        filtered_by_reason={
            reason.value: count for reason, count in sorted(survey.count_by_reason.items())
        },
        filtered=survey.shown,
        scored=tuple(
            Candidate(node_id=each.place.node.node_id, score=each.parts) for each in survey.ranked
        ),
        outcome=outcome,
    )


def decision_of(
    verdict: Verdict,
    *,
    at_ms: int,
    revision: int,
    is_recovery: bool,
    node_id: NodeId | None = None,
    devices: Mapping[str, Sequence[str]] | None = None,
) -> Decision:
    """Return the record of a verdict, with the node that it led to where there is one."""
    option = verdict.option
    outcome = "failed" if option is None else "placed" if option.place else "launched"
    return Decision(
        at_ms=at_ms,
        revision=revision,
        is_recovery=is_recovery,
        outcome=outcome,
        node_id=node_id,
        offer="" if option is None or option.offer is None else option.offer.name,
        devices={kind: tuple(ids) for kind, ids in (devices or {}).items()},
        rule=verdict.rule,
        reason=verdict.reason,
        degraded_by=() if option is None else option.degraded_by,
        attempts=verdict.attempts,
    )


def with_decision(
    trace: Trace | None, replica_id: ReplicaId, decision: Decision, count_max: int
) -> Trace:
    """Return a replica's trace with one more decision, and no more than so many."""
    before = () if trace is None else trace.decisions
    decisions = (*before, decision)[-count_max:]
    if trace is None:
        return Trace(replica_id=replica_id, decisions=decisions)
    return msgspec.structs.replace(trace, decisions=decisions)


def summary(attempts: Iterable[Attempt]) -> str:
    """Return one piece per tier looked at: how many nodes fitted, why the others did not, the end.

    Such as `p/own: 0 of 2 nodes fit (2 capacity), exhausted; p/cloud: no nodes, limit_reached`.
    """
    return "; ".join(_piece(attempt) for attempt in attempts)


def _piece(attempt: Attempt) -> str:
    where = f"{attempt.pool}/{attempt.tier}" if attempt.tier else attempt.pool
    if not attempt.candidate_count:
        return f"{where}: {'no nodes, ' if attempt.tier else ''}{attempt.outcome}"
    counts = ", ".join(f"{count} {reason}" for reason, count in attempt.filtered_by_reason.items())
    fitted = f"{attempt.scored_count} of {attempt.candidate_count} nodes fit"
    return f"{where}: {fitted}{f' ({counts})' if counts else ''}, {attempt.outcome}"
