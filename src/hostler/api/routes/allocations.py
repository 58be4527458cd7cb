"""Allocations, and the logs of what runs in them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable

from litestar import Response, get
from litestar.response import Stream

from hostler.api.context import Api, api_of
from hostler.api.convert import bundles as views
from hostler.api.errors import Denied, HttpRequest, missing
from hostler.api.gateway import record_of
from hostler.api.http import (
    PAGING,
    Operation,
    Parameter,
    Query,
    answer,
    described,
    page,
    path_number,
    path_text,
)
from hostler.api.links.streams import AgentStream, StreamBroken
from hostler.base.ids import replica_id
from hostler.core.fleet import Fleet
from hostler.model import Allocation, Replica
from hostler.model.token import Role
from hostler.wire.http import AllocationView, Page

_TAIL_BYTES_MAX = 1 << 40

_LOG_PARAMETERS = (
    Parameter("follow", "boolean", "Go on with what is written from now on."),
    Parameter("tail_bytes", "integer", "Begin so far before the end; else with all that is kept."),
)


@get(
    "/v1/allocations",
    **described(
        Operation(
            summary="List allocations",
            answer=Page[AllocationView],
            role=Role.VIEWER,
            parameters=(
                *PAGING,
                Parameter("bundle", "string", "Only those of this bundle."),
                Parameter("node", "string", "Only those on this node."),
                Parameter("include_ended", "boolean", "Also those that have ended."),
            ),
        )
    ),
)
async def list_all(request: HttpRequest) -> Response[bytes]:
    """Live allocations, and those that are still remembered if asked for."""
    query = Query(request)
    bundle, node = query.text("bundle"), query.text("node")
    include_ended = query.flag("include_ended")

    def keys(fleet: Fleet) -> Iterable[str]:
        if include_ended:
            return fleet.allocations.rows
        if node:
            return fleet.index.allocations_by_node.keys(node)
        if bundle:
            return fleet.index.allocations_by_bundle.keys(bundle)
        live = fleet.index.allocations_by_phase
        return [key for phase in live.buckets() for key in live.keys(phase)]

    def view(fleet: Fleet, key: str) -> AllocationView | None:
        found = fleet.allocations[key]
        is_wanted = (
            (include_ended or found.is_live)
            and (not bundle or found.bundle_id == bundle)
            and (not node or found.node_id == node)
        )
        return views.allocation(found) if is_wanted else None

    return await page(request, query, keys, view)


@get(
    "/v1/allocations/{allocation_id:str}",
    **described(
        Operation(
            summary="Get an allocation",
            answer=AllocationView,
            role=Role.VIEWER,
            statuses=(404,),
        )
    ),
)
async def get_one(request: HttpRequest) -> Response[bytes]:
    """One allocation."""
    allocation_id = path_text(request, "allocation_id")
    return answer(views.allocation(record_of(api_of(request), Allocation, allocation_id)))


@get(
    "/v1/allocations/{allocation_id:str}/logs",
    **described(
        Operation(
            summary="Read the log of an allocation",
            answer="application/octet-stream",
            role=Role.VIEWER,
            parameters=_LOG_PARAMETERS,
            statuses=(404, 503),
        )
    ),
)
async def logs(request: HttpRequest) -> Stream:
    """Standard output and error as they were written. It ends with the allocation."""
    allocation_id = path_text(request, "allocation_id")
    api = api_of(request)
    return await _logs(request, api, record_of(api, Allocation, allocation_id))


@get(
    "/v1/replicas/{bundle_id:str}/{job:str}/{index:int}/logs",
    **described(
        Operation(
            summary="Read the log of a replica's latest allocation",
            answer="application/octet-stream",
            role=Role.VIEWER,
            parameters=_LOG_PARAMETERS,
            statuses=(404, 503),
        )
    ),
)
async def replica_logs(request: HttpRequest) -> Stream:
    """As of its live allocation, or of the last one while it is remembered."""
    bundle_id = path_text(request, "bundle_id")
    job = path_text(request, "job")
    index = path_number(request, "index")
    api, key = api_of(request), replica_id(bundle_id, job, index)

    def read(fleet: Fleet) -> Allocation | None:
        replica = fleet.replicas.get(key)
        if replica is None:
            raise missing(Replica.KIND, key)
        live = views.allocation_of(fleet, replica)
        if live is not None:
            return live
        ended = [one for one in fleet.allocations.rows.values() if one.replica_id == key]
        return max(ended, key=lambda one: one.epoch, default=None)

    found = await api.engine.read(read)
    if found is None:
        raise Denied(404, "log_not_found", f"replica {key} has not run yet")
    return await _logs(request, api, found)


async def _logs(request: HttpRequest, api: Api, allocation: Allocation) -> Stream:
    query = Query(request)
    entered = api.links.logs(
        allocation.node_id,
        allocation.allocation_id,
        follow=query.flag("follow"),
        tail_bytes=query.number("tail_bytes", most=_TAIL_BYTES_MAX),
    )
    # Entered here, so that a node that is away is a problem document and not an empty log.
    stream = await entered.__aenter__()

    async def body() -> AsyncIterator[bytes]:
        try:
            async for chunk in _until_stopping(api, stream):
                yield chunk
        finally:
            await entered.__aexit__(None, None, None)

    return Stream(
        body(),
        media_type="application/octet-stream",
        headers={"Hostler-Allocation": allocation.allocation_id, "Cache-Control": "no-store"},
    )


async def _until_stopping(api: Api, stream: AgentStream) -> AsyncIterator[bytes]:
    """Yield the log; one that breaks ends here, because its status is sent already."""
    try:
        async for chunk in stream.log():
            yield chunk
    except StreamBroken as broken:
        if not api.stopping.is_set():
            yield f"\n[hostler: the log ends here: {broken.message}]\n".encode()


ROUTES = [list_all, get_one, logs, replica_logs]
