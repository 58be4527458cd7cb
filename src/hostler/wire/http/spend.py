"""Spend over HTTP: what was used by what, and what budgets have left."""

from __future__ import annotations

import msgspec


class SpendView(msgspec.Struct, frozen=True, kw_only=True):
    """What one thing has used, over all the days that were asked for; what runs is counted live.

    Fields that it is not grouped by are empty.
    """

    day: str
    """`2026-11-30`."""
    month: str
    """`2026-11`."""
    pool: str
    tier: str
    offer: str
    key: str
    """Of leases; empty with `--by key` are those beyond the number of keys kept apart."""
    bundle: str
    node_ms: int
    """Time of machines."""
    held_ms: int
    """Time of leases and allocations."""
    cost_micros: int
    """Millionths of the currency, rounded down."""
    currency: str


class BudgetLineView(msgspec.Struct, frozen=True, kw_only=True):
    """One bounded quantity of a budget: millionths of the currency, milliseconds or counts."""

    budget: str
    pool: str
    tier: str
    key: str
    period: str
    """`daily`, `monthly`, `lifetime` or `concurrent`."""
    quantity: str
    """`cost`, `node_time`, `lease_time`, `cost_per_hour`, `nodes` or `leases`."""
    used: int
    reserved: int
    """What is held or boots may still take, at the worst."""
    left: int
    """Below zero when work without an end has gone on past the cap."""
    limit: int
    resets_at_ms: int | None
    is_holding_back: bool
    currency: str
