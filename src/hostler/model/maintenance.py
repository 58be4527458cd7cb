"""Maintenance: windows in which nodes are empty, so that people can work on their machines."""

from __future__ import annotations

from typing import ClassVar

from hostler.model.record import Record, Value
from hostler.model.timetable import Timetable


class MaintenancePlan(Value, frozen=True, kw_only=True):
    """Which nodes are to be empty when. What is left out of the choice of nodes chooses all."""

    name: str
    pools: tuple[str, ...] = ()
    labels: dict[str, str] = {}
    """Those that have all of these."""
    node_ids: tuple[str, ...] = ()
    timetable: Timetable
    """When the machines are worked on: windows that recur, or the time between two instants."""
    lead_ms: int = 900_000
    """How long before that a node takes nothing new, and what is there begins to leave."""
    is_forced: bool = False
    """True: what has found no place when the window begins is stopped; false: it stays."""
    reason: str = ""


class MaintenanceAdded(Value, frozen=True, kw_only=True):
    """That an operator has added a plan, which is in no configuration."""

    by: str
    at_ms: int


class Maintenance(Record, frozen=True, kw_only=True):
    """The one coming of a plan that holds, or else the next."""

    KIND: ClassVar[str] = "maintenance"

    name: str
    plan: MaintenancePlan
    """By which it was computed."""
    added: MaintenanceAdded | None = None
    """By whom it was added, and is there until it is removed or over; `None`: the configuration
    says it, or nobody does any more."""
    since_at_ms: int
    """When that became the plan: of a window that has begun before, the lead counts from here."""
    from_at_ms: int | None = None
    """`None`: nothing is to come any more."""
    to_at_ms: int | None = None
    is_near: bool = False
    """Some nodes are closed to leases that could outlast its beginning, or being emptied."""
    look_at_ms: int | None = None
    """When something about it is next to be done."""

    @property
    def key(self) -> str:
        """The plan's name."""
        return self.name

    @property
    def prepare_at_ms(self) -> int | None:
        """When its nodes begin to be emptied."""
        return None if self.from_at_ms is None else self.from_at_ms - self.plan.lead_ms


class NodeMaintenance(Value, frozen=True, kw_only=True):
    """That a node is to be empty for a maintenance.

    Until it is being emptied it only takes no leases that might be too long.
    """

    name: str
    """Of the maintenance; where several fall together, of the first."""
    from_at_ms: int
    to_at_ms: int
    is_begun: bool = False
    """It is being emptied, or is empty for it."""
    is_called_off: bool = False
    """An operator has uncordoned it meanwhile: it is left alone until this is over."""
