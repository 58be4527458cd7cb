"""Money in `hostler.yaml`: how the books are kept, and how far spend may go."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from hostler.wire.documents.text import (
    CountFromOne,
    Currency,
    MachineTime,
    Money,
    Name,
)
from hostler.wire.documents.work import Document

PERIODS = ("daily", "monthly", "lifetime")


class SpendDocument(Document, frozen=True, kw_only=True):
    """How the books are kept."""

    currency: Currency = "USD"
    """Of every price and cap; nothing is converted."""
    time_zone: str = "UTC"
    """Whose midnights divide days and months, such as `Europe/Berlin`."""
    days_max: Annotated[int, Meta(ge=32, le=3_660)] = 62
    """Days that are kept one by one; older ones are added up by month."""
    months_max: Annotated[int, Meta(ge=1, le=1_200)] = 60
    """Months that are kept one by one; older ones are added up."""
    keys_max: CountFromOne = 1_000
    """Fairness keys that are kept apart in one day; those beyond stand together."""


class CapDocument(Document, frozen=True, kw_only=True):
    """How much may be used in one period."""

    cost: Money | None = None
    node_time: MachineTime | None = None
    """Time of machines, from their start to their confirmed end."""
    lease_time: MachineTime | None = None
    """Time of leases, all together."""


class ConcurrentDocument(Document, frozen=True, kw_only=True):
    """How much may be there at once."""

    cost_per_hour: Money | None = None
    nodes: CountFromOne | None = None
    """Machines, from asked for until confirmed gone."""
    leases: CountFromOne | None = None


class BudgetDocument(Document, frozen=True, kw_only=True):
    """How far the spend of something may go. Nothing that runs is ended; nothing new begins."""

    pool: Name | None = None
    """Left out: all pools."""
    tier: Name | None = None
    """Only this tier of the pool."""
    key: Annotated[str, Meta(min_length=1)] | None = None
    """Only leases of this fairness key, and their part of their machines."""
    daily: CapDocument | None = None
    monthly: CapDocument | None = None
    lifetime: CapDocument | None = None
    concurrent: ConcurrentDocument | None = None
    warn_at: list[Annotated[int, Meta(ge=1, le=100)]] | None = None
    """Percentages of a cap of which people are told, once in each period; left out: 80 and 100."""
