"""Explanations."""

from __future__ import annotations

from hostler.api.convert.traces import decision
from hostler.core.explain import Explanation
from hostler.wire.http import CheckView, ExplainView, WhyView


def explanation(found: Explanation, revision: int) -> ExplainView:
    """Show an explanation."""
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
        node_id=found.node_id,
        checks=[
            CheckView(reason=one.reason, detail=one.detail, meaning=one.meaning, advice=one.advice)
            for one in found.checks
        ],
        revision=revision,
    )
