"""Disruption budgets of documents, as the core takes them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hostler.base.units import time_of_day_ms
from hostler.engine.time_zones import time_zone_problem
from hostler.model.calendar import Weekday, Window
from hostler.model.disruption import DisruptionBudget
from hostler.wire.documents import DocumentProblem
from hostler.wire.documents.disruption import (
    BudgetDocument,
    FleetBudgetDocument,
    StretchDocument,
)
from hostler.wire.documents.windows import days_of


def disruption_budgets(
    documents: Sequence[BudgetDocument],
) -> tuple[DisruptionBudget, ...]:
    """Read bounds on moving what runs."""
    return tuple(
        DisruptionBudget(
            name=each.name,
            labels=dict(each.labels) if isinstance(each, FleetBudgetDocument) else {},
            unavailable_count_max=each.unavailable_max,
            ready_count_min=each.ready_min,
            windows=tuple(_window(one) for one in each.windows),
        )
        for each in documents
    )


def budget_zones(documents: Sequence[BudgetDocument]) -> list[str]:
    """Return the time zones that budgets name."""
    return [window.time_zone for each in documents for window in each.windows]


def budget_zone_problems(
    path: str, documents: Sequence[BudgetDocument]
) -> Iterator[DocumentProblem]:
    """Yield which time zones of budgets are not in the zone database."""
    for number, budget in enumerate(documents):
        for index, window in enumerate(budget.windows):
            problem = time_zone_problem(window.time_zone)
            if problem is not None:
                yield DocumentProblem(
                    path=f"{path}[{number}].windows[{index}].time_zone",
                    code="unknown_time_zone",
                    message=problem,
                )


def _window(document: StretchDocument) -> Window:
    return Window(
        time_zone=document.time_zone,
        days=tuple(Weekday(day) for day in days_of(document.days)),
        from_ms=time_of_day_ms(document.start),
        to_ms=time_of_day_ms(document.end),
    )
