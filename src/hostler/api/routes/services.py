"""Node services, and how they are on nodes."""

from __future__ import annotations

from litestar import Response, get

from hostler.api.context import api_of
from hostler.api.convert import services as views
from hostler.api.errors import HttpRequest, missing
from hostler.api.http import Operation, answer, described, path_text
from hostler.core.fleet import Fleet
from hostler.model.service import service_bundle_id
from hostler.model.token import Role
from hostler.wire.http import ServicesView, ServiceView


@get(
    "/v1/services",
    **described(Operation(summary="List node services", answer=ServicesView, role=Role.VIEWER)),
)
async def list_services(request: HttpRequest) -> Response[bytes]:
    """Each with its nodes counted."""

    def read(fleet: Fleet) -> ServicesView:
        keys = fleet.index.bundles_of_services.keys("all")
        return ServicesView(
            items=[views.service(fleet, fleet.bundles[key], has_nodes=False) for key in keys]
        )

    return answer(await api_of(request).engine.read(read))


@get(
    "/v1/services/{name:str}",
    **described(
        Operation(
            summary="Get a node service", answer=ServiceView, role=Role.VIEWER, statuses=(404,)
        )
    ),
)
async def get_service(request: HttpRequest) -> Response[bytes]:
    """One service, with each node that it is on or for."""
    name = path_text(request, "name")

    def read(fleet: Fleet) -> ServiceView | None:
        found = fleet.bundles.get(service_bundle_id(name))
        return None if found is None else views.service(fleet, found, has_nodes=True)

    view = await api_of(request).engine.read(read)
    if view is None:
        raise missing("service", name)
    return answer(view)


ROUTES = [list_services, get_service]
