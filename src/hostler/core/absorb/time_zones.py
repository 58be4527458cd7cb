"""The shell has read the zone database: what named time zones are is written down."""

from __future__ import annotations

from collections.abc import Iterable

from hostler.core.txn import Txn
from hostler.model.calendar import TimeZone


def keep_time_zones(txn: Txn, zones: Iterable[TimeZone]) -> bool:
    """Write down each zone that is new or has changed; say whether one had.

    They stay when nothing names them any more: there are few, and a timetable that is submitted
    again finds its zone.
    """
    is_changed = False
    for zone in zones:
        if txn.fleet.time_zones.get(zone.name) != zone:
            txn.put(zone)
            is_changed = True
    return is_changed
