"""Disruption budgets of documents, as the core takes them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hostler.base.units import time_of_day_ms
from hostler.model.calendar import Weekday, Window
from hostler.model.disruption import DisruptionBudget
from hostler.wire.documents.disruption import (
    DisruptionBudgetDocument,
    FleetDisruptionBudgetDocument,
    StretchDocument,
)
from hostler.wire.documents.windows import days_of


def disruption_budgets(
    documents: Sequence[DisruptionBudgetDocument],
) -> tuple[DisruptionBudget, ...]:
    """Read bounds on moving what runs."""
    return tuple(
        DisruptionBudget(
            name=each.name,
            labels=dict(each.labels) if isinstance(each, FleetDisruptionBudgetDocument) else {},
            unavailable_count_max=each.unavailable_max,
            ready_count_min=each.ready_min,
            windows=tuple(_window(one) for one in each.windows),
        )
        for each in documents
    )


def budget_zones(
    path: str, documents: Sequence[DisruptionBudgetDocument]
) -> Iterator[tuple[str, str]]:
    """Yield path and name of each time zone that budgets name."""
    for number, budget in enumerate(documents):
        for index, window in enumerate(budget.windows):
            yield f"{path}[{number}].windows[{index}].time_zone", window.time_zone


def _window(document: StretchDocument) -> Window:
    return Window(
        time_zone=document.time_zone,
        days=tuple(Weekday(day) for day in days_of(document.days)),
        from_ms=time_of_day_ms(document.start),
        to_ms=time_of_day_ms(document.end),
    )
