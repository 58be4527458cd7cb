"""Trace: why a decision came out as it did, within bounds (spec/placement.md C-090 to C-092)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import msgspec

from hostler.base.ids import ReplicaId
from hostler.core.limits import CANDIDATES_KEPT_MAX, TRACE_NODES_MAX
from hostler.core.placement.demand import Demand
from hostler.core.placement.feasible import Place, detail_of
from hostler.core.placement.score import Scored
from hostler.model import Trace
from hostler.model.reason import Reason
from hostler.model.trace import Attempt, Candidate, Decision, FilteredNode


def attempt_of(
    demand: Demand,
    pool: str,
    tier: str,
    *,
    refused: Sequence[tuple[Place, Reason]] = (),
    ranked: Sequence[Scored] = (),
    outcome: str,
) -> Attempt:
    """Return the record of one look at one tier; filtered plus scored are its candidates."""
    return Attempt(
        pool=pool,
        tier=tier,
        candidate_count=len(refused) + len(ranked),
        filtered_count=len(refused),
        scored_count=len(ranked),
        filtered_by_reason=dict(sorted(Counter(reason.value for _, reason in refused).items())),
        filtered=tuple(
            FilteredNode(
                node_id=place.node.node_id, reason=reason, detail=detail_of(reason, demand, place)
            )
            for place, reason in refused[:TRACE_NODES_MAX]
        ),
        scored=tuple(
            Candidate(node_id=each.place.node.node_id, score=each.parts)
            for each in ranked[:CANDIDATES_KEPT_MAX]
        ),
        outcome=outcome,
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
