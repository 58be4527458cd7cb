"""Plans of maintenance in documents, as the core takes them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hostler.base.units import duration_ms
from hostler.core.maintenance_inputs import AddMaintenance
from hostler.engine.time_zones import read_time_zones
from hostler.engine.translate.bundles import timetable_of
from hostler.model.audit import Origin
from hostler.model.calendar import TimeZone
from hostler.model.maintenance import MaintenancePlan
from hostler.wire.documents.bundle import TimetableDocument
from hostler.wire.documents.maintenance import MaintenanceDocument


def maintenance_plans(
    documents: Sequence[MaintenanceDocument], now_ms: int
) -> tuple[MaintenancePlan, ...]:
    """Read when the machines of which nodes are worked on."""
    return tuple(_plan(each, read_time_zones([each.time_zone], now_ms)) for each in documents)


def add_maintenance(
    document: MaintenanceDocument,
    *,
    now_ms: int,
    request_id: str,
    principal: str,
    idempotency_key: str = "",
    origin: Origin | None = None,
) -> AddMaintenance:
    """Read a checked document as one more plan."""
    zones = read_time_zones([document.time_zone], now_ms)
    return AddMaintenance(
        request_id=request_id,
        principal=principal,
        idempotency_key=idempotency_key,
        origin=origin,
        plan=_plan(document, zones),
        time_zones=zones,
    )


def _plan(each: MaintenanceDocument, zones: tuple[TimeZone, ...]) -> MaintenancePlan:
    return MaintenancePlan(
        name=each.name,
        pools=tuple(each.pools),
        labels=dict(each.labels),
        node_ids=tuple(each.nodes),
        timetable=timetable_of(_timetable(each), zones),
        lead_ms=duration_ms(each.lead),
        is_forced=each.force,
        reason=each.reason,
    )


def maintenance_zones(
    path: str, documents: Sequence[MaintenanceDocument]
) -> Iterator[tuple[str, str]]:
    """Yield path and name of each time zone that plans name."""
    for number, each in enumerate(documents):
        yield f"{path}[{number}].time_zone", each.time_zone


def _timetable(each: MaintenanceDocument) -> TimetableDocument:
    return TimetableDocument(
        time_zone=each.time_zone, windows=each.windows, start=each.start, stop=each.stop
    )
