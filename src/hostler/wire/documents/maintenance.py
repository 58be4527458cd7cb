"""Maintenance, as `hostler.yaml` says it."""

from __future__ import annotations

from hostler.wire.documents.bundle import ShiftDocument
from hostler.wire.documents.text import Duration, LocalTime, Name
from hostler.wire.documents.where import Labels
from hostler.wire.documents.work import Document


class MaintenanceDocument(Document, frozen=True, kw_only=True):
    """When the machines of some nodes are worked on. The nodes are empty then, and open after it.

    Of `pools`, `labels` and `nodes`, what is left out restricts nothing; one must be given.
    """

    name: Name
    pools: list[Name] = []
    labels: Labels = {}
    """Nodes that have all of these, by themselves or from their tier."""
    nodes: list[str] = []
    """Nodes by their ids."""
    time_zone: str
    """As the zone database spells it: Europe/Berlin."""
    windows: list[ShiftDocument] = []
    """Stretches of the week; left out: once, from `start` to `stop`."""
    start: LocalTime | None = None
    """Not before this."""
    stop: LocalTime | None = None
    """Not after this."""
    lead: Duration = "15m"
    """How long before it nothing new comes to the nodes, and what is there begins to leave."""
    force: bool = False
    """What has found no other place when it begins is stopped, instead of left running."""
    reason: str = ""
    """For people."""
