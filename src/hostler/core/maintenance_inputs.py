"""What operators want of maintenance: one more, or one less."""

from __future__ import annotations

from hostler.core.asking import Request
from hostler.model.calendar import TimeZone
from hostler.model.maintenance import MaintenancePlan


class AddMaintenance(Request, frozen=True, kw_only=True, tag="add_maintenance"):
    """Have the machines of some nodes worked on at some time, besides what is configured."""

    plan: MaintenancePlan
    time_zones: tuple[TimeZone, ...] = ()
    """What the plan's is, as the shell has read it."""


class RemoveMaintenance(Request, frozen=True, kw_only=True, tag="remove_maintenance"):
    """Call off what was added; nodes that are empty for it are open again."""

    maintenance_name: str
