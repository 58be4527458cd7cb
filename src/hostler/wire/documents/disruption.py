"""Disruption budgets, as `hostler.yaml` and bundles say them."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from hostler.wire.documents.text import Count, Name, TimeOfDay
from hostler.wire.documents.windows import Day
from hostler.wire.documents.work import Document


class StretchDocument(Document, frozen=True, kw_only=True):
    """A stretch of the week."""

    time_zone: str
    """As the zone database spells it: Europe/Berlin."""
    days: Annotated[list[Day], Meta(min_length=1)]
    """On which it begins."""
    start: TimeOfDay
    end: TimeOfDay
    """At or before `start`: on the day after."""


class DisruptionBudgetDocument(Document, frozen=True, kw_only=True):
    """A bound on moving what runs well: drains, rollouts, repayment, consolidation."""

    name: Name
    unavailable_max: Count | None = None
    """Replicas that may be away, or on the move, at once; 0: nothing is moved."""
    ready_min: Count | None = None
    """Ready replicas that must be left."""
    windows: list[StretchDocument] = []
    """When it holds; left out: always."""


class FleetDisruptionBudgetDocument(DisruptionBudgetDocument, frozen=True, kw_only=True):
    """A bound over many bundles together."""

    labels: dict[str, str] = {}
    """Bundles with all of these labels; left out: all bundles."""
