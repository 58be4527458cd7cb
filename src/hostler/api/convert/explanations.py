"""Explanations."""

from __future__ import annotations

from hostler.api.convert.shapes import requirement
from hostler.api.convert.traces import decision, score_of
from hostler.core.explain import Explanation, Fit, Pending, PendingGroup
from hostler.core.explain.amounts import requirement_text
from hostler.core.explain.rerun import Rerun
from hostler.core.sentences import SENTENCES
from hostler.engine.history import PastExplanation
from hostler.wire.http import (
    ChangeView,
    CheckView,
    ComparisonView,
    ExplainView,
    PendingGroupView,
    PendingView,
    RerunView,
    WayView,
    WhyView,
)


def explanation(found: Explanation, revision: int, rerun: RerunView | None = None) -> ExplainView:
    """Show an explanation, and a decision made again where one was."""
    fit = found.fit
    return ExplainView(
        about=found.about,
        kind=found.kind,
        phase=found.phase,
        summary=found.summary,
        reasons=[
            WhyView(
                by=one.by,
                reason=one.reason,
                detail=one.detail,
                since_at_ms=one.since_at_ms,
                meaning=one.meaning,
                advice=one.advice,
            )
            for one in found.reasons
        ],
        next_at_ms=found.next_at_ms,
        commands=list(found.commands),
        decisions=[decision(one) for one in found.decisions],
        node_id=None if fit is None else fit.node_id,
        checks=[] if fit is None else _checks(fit),
        ways=[] if fit is None else _ways(fit),
        comparison=None if fit is None else _comparison(fit),
        rerun=rerun,
        revision=revision,
    )


def _checks(fit: Fit) -> list[CheckView]:
    return [
        CheckView(reason=one.reason, detail=one.detail, meaning=one.meaning, advice=one.advice)
        for one in fit.checks
    ]


def _ways(fit: Fit) -> list[WayView]:
    return [
        WayView(
            changes=[
                ChangeView(
                    alteration=str(one.alteration), text=one.text, until_at_ms=one.until_at_ms
                )
                for one in way.changes
            ]
        )
        for way in fit.ways
    ]


def _comparison(fit: Fit) -> ComparisonView | None:
    found = fit.comparison
    if found is None:
        return None
    return ComparisonView(
        other_node_id=found.other_node_id,
        score=score_of(found.score),
        other_score=score_of(found.other_score) if found.other_score else {},
        decided_by=found.decided_by,
        text=found.text,
    )


def rerun(made: Rerun, first_event_seq: int | None, last_event_seq: int | None) -> RerunView:
    """Show a decision that was made again."""
    return RerunView(
        revision=made.revision,
        at_ms=made.at_ms,
        decision=None if made.decision is None else decision(made.decision),
        is_reproduced=made.is_reproduced,
        given=[str(one) for one in made.given],
        altered=None if made.altered is None else decision(made.altered),
        first_event_seq=first_event_seq,
        last_event_seq=last_event_seq,
    )


def past(found: PastExplanation) -> ExplainView:
    """Show a replica as it was after a past step, with the decision of that step made again."""
    made = rerun(found.rerun, found.first_event_seq, found.last_event_seq)
    return explanation(found.explanation, found.rerun.revision, made)


def pending(found: Pending, revision: int) -> PendingView:
    """Show what waits."""
    return PendingView(
        replica_count=found.replica_count,
        lease_count=found.lease_count,
        groups=[_group(one) for one in found.groups],
        left_out_count=found.left_out_count,
        revision=revision,
    )


def _group(one: PendingGroup) -> PendingGroupView:
    meaning, advice = ("", "") if one.reason is None else SENTENCES[one.reason]
    return PendingGroupView(
        kind=one.kind,
        phase=one.phase,
        pools=list(one.pools),
        requires=requirement(one.requirement),
        needs=requirement_text(one.requirement),
        band=one.band,
        count=one.count,
        since_at_ms=one.since_at_ms,
        reason=one.reason,
        detail=one.detail,
        meaning=meaning,
        advice=advice,
        helps=list(one.helps),
        next_at_ms=one.next_at_ms,
        examples=list(one.examples),
    )
