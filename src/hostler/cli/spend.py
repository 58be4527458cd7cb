"""`hostler get spend`: what budgets have left, what was used by what, and the same as CSV."""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from hostler.base.units import format_duration, format_money
from hostler.cli.errors import CommandError, ExitCode
from hostler.cli.output import Column, OutputFormat, say_data, say_table
from hostler.cli.terminal import note, say

if TYPE_CHECKING:
    from hostler.client import SyncClient
    from hostler.wire.http import BudgetLineView, SpendView

_GROUP_FIELDS: Final = ("day", "month", "pool", "tier", "offer", "key", "bundle")


def say_spend(
    client: SyncClient,
    output: OutputFormat,
    *,
    by: str | None,
    since: str | None,
    until: str | None,
    pool: str | None,
    is_csv: bool,
    now_ms: int,
) -> None:
    """Write budgets, where there are any, and spend by group.

    Raises:
        CommandError: `-o name` is asked for: spend has no names.
    """
    if output is OutputFormat.NAME:
        raise CommandError("spend has no names; use -o json or --csv", code=ExitCode.BAD_INPUT)
    rows = client.spend(by=by or "pool", since=since, until=until, pool=pool)
    if is_csv:
        _say_csv(rows)
        return
    is_narrowed = any((by, since, until, pool))
    budgets = [] if is_narrowed else client.budgets()
    if output in (OutputFormat.JSON, OutputFormat.YAML):
        say_data({"budgets": budgets, "items": rows}, output)
        return
    if budgets:
        say_table(budgets, _BUDGET_COLUMNS, now_ms=now_ms)
        say("")
    if not rows:
        note("nothing was used" if not is_narrowed else "nothing was used of what was asked for")
        return
    say_table(rows, _columns_of(rows, by or "pool"), now_ms=now_ms)


def _say_csv(rows: Sequence[SpendView]) -> None:
    """Write every field, with time in seconds and money as decimals."""
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow([*_GROUP_FIELDS, "node_seconds", "held_seconds", "cost", "currency"])
    for row in rows:
        group = [_inert(getattr(row, field)) for field in _GROUP_FIELDS]
        cost = format_money(row.cost_micros, "").strip()
        seconds = [f"{ms // 1_000}.{ms % 1_000:03d}" for ms in (row.node_ms, row.held_ms)]
        writer.writerow([*group, *seconds, cost, row.currency])


def _inert(text: str) -> str:
    """Keep a spreadsheet from taking a fairness key for a formula."""
    return f"'{text}" if text[:1] in ("=", "+", "-", "@", "\t", "\r") else text


def _columns_of(rows: Sequence[SpendView], by: str) -> list[Column[SpendView]]:
    """Return columns of the groups that are there, and the amounts."""

    def field(name: str) -> Callable[[SpendView], str]:
        return lambda row: getattr(row, name) or "-"

    wanted = [each.strip() for each in by.split(",")]
    groups = [
        Column(name.upper(), field(name))
        for name in _GROUP_FIELDS
        if name in wanted or any(getattr(row, name) for row in rows)
    ]
    is_held = any(row.held_ms for row in rows)
    time: Column[SpendView] = (
        Column("HELD", lambda row: format_duration(row.held_ms))
        if is_held
        else Column("MACHINES", lambda row: format_duration(row.node_ms))
    )
    return [*groups, time, Column("COST", lambda row: format_money(row.cost_micros, row.currency))]


def _amount(line: BudgetLineView, amount: int) -> str:
    match line.quantity:
        case "cost" | "cost_per_hour":
            return format_money(amount, line.currency)
        case "nodes" | "leases":
            return str(amount)
        case _:
            return format_duration(amount)


def _about(line: BudgetLineView) -> str:
    parts = [
        f"{noun} {name}"
        for noun, name in (("pool", line.pool), ("tier", line.tier), ("key", line.key))
        if name
    ]
    return ", ".join(parts) or "the fleet"


def _resets(line: BudgetLineView) -> str | None:
    if line.resets_at_ms is None:
        return None
    from datetime import UTC, datetime

    return datetime.fromtimestamp(line.resets_at_ms / 1_000, UTC).strftime("%Y-%m-%d %H:%M UTC")


_BUDGET_COLUMNS: Final[Sequence[Column[BudgetLineView]]] = (
    Column("BUDGET", lambda line: line.budget),
    Column("OF", _about),
    Column("PERIOD", lambda line: line.period),
    Column("WHAT", lambda line: line.quantity),
    Column("USED", lambda line: _amount(line, line.used)),
    Column("RESERVED", lambda line: _amount(line, line.reserved)),
    Column("LEFT", lambda line: _amount(line, line.left)),
    Column("CAP", lambda line: _amount(line, line.limit)),
    Column("RESETS", _resets),
    Column("HOLDS BACK", lambda line: "yes" if line.is_holding_back else "no"),
)
