"""What operators say about maintenance: plans are added and removed."""

from __future__ import annotations

from hostler.core.absorb.time_zones import keep_time_zones
from hostler.core.events import EventKind
from hostler.core.maintenance import ADDED_COUNT_MAX, configured, problems_of_plan
from hostler.core.maintenance_inputs import AddMaintenance, RemoveMaintenance
from hostler.core.replies import Refused
from hostler.core.txn import Txn
from hostler.model import Maintenance
from hostler.model.maintenance import MaintenanceAdded


def add(txn: Txn, one: AddMaintenance) -> None:
    """Write a plan down, or say all that is wrong with it; the same once more changes nothing."""
    fleet, plan = txn.fleet, one.plan
    zones = {*fleet.time_zones.rows, *(zone.name for zone in one.time_zones)}
    problems = tuple(problems_of_plan("", plan, fleet.pools.rows, zones))
    if problems:
        first = problems[0]
        message = f"{first.path}: {first.message}" if first.path else first.message
        if len(problems) > 1:
            message = f"{message} (and {len(problems) - 1} more)"
        told = Refused(code="maintenance_invalid", message=message, problems=problems)
        txn.reply(one.request_id, told)
        return
    known = fleet.maintenances.get(plan.name)
    if known is not None and known.added is not None and known.plan == plan:
        txn.accept(one.request_id, plan.name, is_repeat=True)
        return
    refusal = _refusal(txn, one, known)
    if refusal is not None:
        txn.reply(one.request_id, refusal)
        return
    keep_time_zones(txn, one.time_zones)
    added = MaintenanceAdded(by=one.principal, at_ms=txn.now_ms)
    # Which coming is next is found out by the controller.
    txn.put(Maintenance(name=plan.name, plan=plan, added=added, since_at_ms=txn.now_ms))
    about = {"maintenance": plan.name, "principal": one.principal}
    txn.emit(EventKind.MAINTENANCE_ADDED, about, why=plan.reason)
    txn.accept(one.request_id, plan.name)


def _refusal(txn: Txn, one: AddMaintenance, known: Maintenance | None) -> Refused | None:
    name = one.plan.name
    if known is not None or configured(txn.fleet, name) is not None:
        told = f"there is a maintenance {name} already: remove it first, or choose another name"
        return Refused(code="maintenance_exists", message=told, is_conflict=True)
    if one.plan.timetable.to_at_ms is not None and one.plan.timetable.to_at_ms <= txn.now_ms:
        return Refused(
            code="maintenance_over", message="it would be over already", is_conflict=True
        )
    if sum(each.added is not None for each in txn.fleet.maintenances.in_order()) >= ADDED_COUNT_MAX:
        told = f"{ADDED_COUNT_MAX} were added already: remove what is not needed any more"
        return Refused(code="maintenance_too_many", message=told, is_conflict=True)
    return None


def remove(txn: Txn, one: RemoveMaintenance) -> None:
    """Write down that nobody wants a plan any more; the controller opens its nodes."""
    name = one.maintenance_name
    known = txn.fleet.maintenances.get(name)
    if known is None:
        told = f"there is no maintenance {name!r}"
        txn.refuse(one.request_id, "maintenance_not_found", told, is_missing=True)
        return
    if known.added is None:
        told = "it is in the configuration: take it out of `fleet.maintenance` there"
        txn.refuse(one.request_id, "maintenance_configured", told, is_conflict=True)
        return
    txn.change(known, added=None)
    about = {"maintenance": name, "principal": one.principal}
    txn.emit(EventKind.MAINTENANCE_REMOVED, about)
    txn.accept(one.request_id, name)
