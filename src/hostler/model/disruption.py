"""How much of what runs well may be disturbed at once, and when."""

from __future__ import annotations

from hostler.model.calendar import Window
from hostler.model.record import Value


class DisruptionBudget(Value, frozen=True, kw_only=True):
    """A bound on voluntary moves: drains, rollouts, rotation, repayment, consolidation.

    A bundle's own budget is counted over each of its jobs; one of the fleet over every job that it
    selects, taken together.
    """

    name: str
    labels: dict[str, str] = {}
    """Which jobs: those whose bundle has all of these labels. Of a bundle's own budget: none."""
    unavailable_count_max: int | None = None
    """Replicas that may be away, or on the move, at once."""
    ready_count_min: int | None = None
    """Ready replicas that must be left."""
    windows: tuple[Window, ...] = ()
    """When it holds; none: always."""
