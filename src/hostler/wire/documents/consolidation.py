"""Consolidation, as a pool of `hostler.yaml` says it."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from hostler.wire.documents.text import Duration, Money
from hostler.wire.documents.work import Document


class ConsolidationDocument(Document, frozen=True, kw_only=True):
    """When what runs on a launched machine that is little used is moved, so that it can go."""

    enabled: bool = True
    """false: as if it were left out."""
    used_max: Annotated[int, Meta(ge=0, le=100)] = 50
    """Percent of whatever the node has least left of; what is used more is left as it is."""
    settle: Duration = "10m"
    """How long the node, and all that runs on it, must have been ready."""
    payback: Duration = "1h"
    """Within which the price of the machine must exceed what the moves cost."""
    move_cost: Money = "0.01"
    """What moving one replica is held to cost."""
    moves_max: Annotated[int, Meta(ge=1, le=1_000)] = 20
    """Replicas moved in the pool within `window`."""
    window: Duration = "1h"
    spacing: Duration = "2h"
    """For which a replica that was moved is left alone, and a node that could not be emptied."""
