"""Consolidation of documents, as the core takes it."""

from __future__ import annotations

from hostler.base.units import duration_ms, money_microusd
from hostler.model.consolidation import ConsolidationPolicy
from hostler.wire.documents.consolidation import ConsolidationDocument


def consolidation_policy(document: ConsolidationDocument | None) -> ConsolidationPolicy | None:
    """Read when nodes of a pool are emptied; `None` where that is switched off."""
    if document is None or not document.enabled:
        return None
    return ConsolidationPolicy(
        used_percent_max=document.used_max,
        settle_ms=duration_ms(document.settle),
        payback_ms=duration_ms(document.payback),
        move_cost_micros=money_microusd(document.move_cost),
        move_count_max=document.moves_max,
        window_ms=duration_ms(document.window),
        spacing_ms=duration_ms(document.spacing),
    )
