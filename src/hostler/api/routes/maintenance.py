"""When machines are worked on: what is planned, one more, one less."""

from __future__ import annotations

from litestar import Response, delete, get, post

from hostler.api.context import Api, api_of, caller_of
from hostler.api.convert.maintenance import maintenance
from hostler.api.errors import HttpRequest, missing
from hostler.api.gateway import common, document_of, submit
from hostler.api.http import Operation, answer, described, path_text
from hostler.core.fleet import Fleet
from hostler.core.maintenance_inputs import RemoveMaintenance
from hostler.engine.translate import add_maintenance
from hostler.model import Maintenance
from hostler.model.token import Role
from hostler.wire.documents import MaintenanceDocument
from hostler.wire.http import MaintenancePage, MaintenanceView


async def _view(api: Api, name: str) -> MaintenanceView:
    def read(fleet: Fleet) -> MaintenanceView | None:
        found = fleet.maintenances.get(name)
        return None if found is None else maintenance(fleet, found)

    view = await api.engine.read(read)
    if view is None:
        raise missing(Maintenance.KIND, name)
    return view


@get(
    "/v1/maintenance",
    **described(
        Operation(
            summary="List when the machines of which nodes are worked on",
            answer=MaintenancePage,
            role=Role.VIEWER,
        )
    ),
)
async def list_maintenance(request: HttpRequest) -> Response[bytes]:
    """Every plan with the coming that holds or else the next, the soonest first."""

    def read(fleet: Fleet) -> list[MaintenanceView]:
        return [maintenance(fleet, each) for each in fleet.maintenances.in_order()]

    found = await api_of(request).engine.read(read)
    found.sort(key=lambda each: (each.from_at_ms is None, each.from_at_ms, each.name))
    return answer(MaintenancePage(items=found))


@post(
    "/v1/maintenance",
    **described(
        Operation(
            summary="Plan a maintenance besides those of the configuration",
            body=MaintenanceDocument,
            answer=MaintenanceView,
            status=201,
            role=Role.OPERATOR,
            statuses=(409,),
        )
    ),
)
async def add_one(request: HttpRequest) -> Response[bytes]:
    """It stays until it is removed or, where nothing of it recurs, over. 200: it is there."""
    api, caller = api_of(request), caller_of(request)
    document = await document_of(request, MaintenanceDocument, "maintenance")
    now_ms = api.engine.clock.now_ms()
    asked = add_maintenance(document, now_ms=now_ms, **common(request, caller))
    accepted = await submit(api, asked)
    return answer(await _view(api, document.name), 200 if accepted.is_repeat else 201)


@delete(
    "/v1/maintenance/{name:str}",
    **described(
        Operation(
            summary="Call off a maintenance that was added",
            answer=MaintenanceView,
            status=200,
            role=Role.OPERATOR,
            statuses=(404, 409),
        )
    ),
)
async def remove_one(request: HttpRequest) -> Response[bytes]:
    """Nodes that are closed for it are open again. Answers with what it was."""
    api, caller = api_of(request), caller_of(request)
    name = path_text(request, "name")
    before = await _view(api, name)
    await submit(api, RemoveMaintenance(maintenance_name=name, **common(request, caller)))
    return answer(before)


ROUTES = [list_maintenance, add_one, remove_one]
