"""Maintenance, as the API shows it."""

from __future__ import annotations

import msgspec


class NodeMaintenanceView(msgspec.Struct, frozen=True, kw_only=True):
    """That the machine of a node is about to be worked on, or is."""

    name: str
    from_at_ms: int
    to_at_ms: int
    is_begun: bool
    """It is being emptied, or is empty for it; before that it takes no leases that may last too
    long."""
    is_called_off: bool
    """An operator has uncordoned it meanwhile."""


class MaintainedNodeView(msgspec.Struct, frozen=True, kw_only=True):
    """A node that a maintenance is about now."""

    node_id: str
    state: str
    """`closing` to leases, `emptying`, `empty` or `called_off`."""
    left_count: int
    """Leases and allocations that are still there."""


class MaintenanceView(msgspec.Struct, frozen=True, kw_only=True):
    """A plan of maintenance with the coming that holds, or else the next."""

    name: str
    reason: str
    pools: list[str]
    labels: dict[str, str]
    node_ids: list[str]
    time_zone: str
    lead_ms: int
    is_forced: bool
    state: str
    """`planned`, `preparing`, `under_way`, or `over` when nothing is to come any more."""
    from_at_ms: int | None
    to_at_ms: int | None
    from_local: str
    """The same on the wall clock of its time zone."""
    to_local: str
    nodes: list[MaintainedNodeView]
    added_by: str | None = None
    """Who has added it; `None`: it is in the configuration."""
    added_at_ms: int | None = None


class MaintenancePage(msgspec.Struct, frozen=True, kw_only=True):
    """All plans, the soonest first."""

    items: list[MaintenanceView]
