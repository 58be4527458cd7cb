"""Metrics of what machines cost, and of the budgets that bound it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from prometheus_client.metrics_core import Metric

from hostler.api.convert import spend
from hostler.api.metrics.table import Labels, family, single
from hostler.core.fleet import Fleet

Rows = list[tuple[Labels, float]]

_ALWAYS: Final = 2**40


def families(fleet: Fleet, now_ms: int) -> Iterator[Metric]:
    """Give all of them."""
    time: Rows = []
    cost: Rows = []
    found = spend.rows(fleet, ["offer"], since=-_ALWAYS, until=_ALWAYS, pool="", now_ms=now_ms)
    for row in found:
        names = (row.pool, row.tier, row.offer)
        time.append((names, row.node_ms / 1_000))
        cost.append(((*names, row.currency), row.cost_micros / 1e6))
    yield family("node_seconds", time)
    yield family("spend", cost)
    used: Rows = []
    reserved: Rows = []
    for budget in fleet.budgets.in_order():
        for line in spend.budget_lines(fleet, budget, now_ms):
            labels = (line.budget, line.period, line.quantity)
            used.append((labels, line.used / max(1, line.limit)))
            reserved.append((labels, line.reserved / max(1, line.limit)))
    yield family("budget_used_ratio", used)
    yield family("budget_reserved_ratio", reserved)
    holding = sum(each.held_back_at_ms is not None for each in fleet.budgets.rows.values())
    yield single("budgets_holding_back", holding)
    yield family(
        "unattributed_seconds",
        (((each.name,), each.unattributed_ms / 1_000) for each in fleet.providers.in_order()),
    )
