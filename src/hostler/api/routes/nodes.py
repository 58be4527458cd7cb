"""Nodes and pools, and what operators ask of nodes."""

from __future__ import annotations

from collections.abc import Iterable

from litestar import Response, get, post

from hostler.api.context import Api, api_of, caller_of
from hostler.api.convert import nodes as views
from hostler.api.errors import HttpRequest, missing
from hostler.api.gateway import common, submit
from hostler.api.http import (
    PAGING,
    Operation,
    Parameter,
    Query,
    answer,
    body_of,
    described,
    page,
    path_text,
)
from hostler.base.ids import NodeId
from hostler.core.fleet import Fleet
from hostler.core.inputs import (
    ConfirmLoss,
    CordonNode,
    DrainNode,
    EndOrphan,
    LabelNode,
    UncordonNode,
)
from hostler.model import Node, Pool
from hostler.model.node import NodePhase
from hostler.model.token import Role
from hostler.wire.http import CordonRequest, DrainRequest, LabelsRequest, NodeView, Page, PoolView


async def _view(api: Api, node_id: str) -> Response[bytes]:
    def read(fleet: Fleet) -> NodeView | None:
        found = fleet.nodes.get(node_id)
        is_connected = api.links.is_connected(node_id)
        return None if found is None else views.node(fleet, found, is_connected=is_connected)

    view = await api.engine.read(read)
    if view is None:
        raise missing(Node.KIND, node_id)
    return answer(view)


@get(
    "/v1/nodes",
    **described(
        Operation(
            summary="List nodes",
            answer=Page[NodeView],
            role=Role.VIEWER,
            parameters=(
                *PAGING,
                Parameter("pool", "string", "Only those of this pool."),
                Parameter("phase", "string", "Only those in this phase."),
                Parameter("include_retired", "boolean", "Also those that are retired."),
            ),
        )
    ),
)
async def list_all(request: HttpRequest) -> Response[bytes]:
    """Nodes that are not retired, and the retired that are remembered if asked for."""
    api, query = api_of(request), Query(request)
    pool, phase = query.text("pool"), query.text("phase")
    include_retired = query.flag("include_retired") or phase == NodePhase.RETIRED

    def view(fleet: Fleet, key: str) -> NodeView | None:
        found = fleet.nodes[key]
        is_wanted = (
            (include_retired or found.phase is not NodePhase.RETIRED)
            and (not pool or found.pool == pool)
            and (not phase or found.phase == phase)
        )
        if not is_wanted:
            return None
        return views.node(fleet, found, is_connected=api.links.is_connected(key))

    def keys(fleet: Fleet) -> Iterable[str]:
        return fleet.index.nodes_by_phase.keys(phase) if phase else fleet.nodes.rows

    return await page(request, query, keys, view)


@get(
    "/v1/nodes/{node_id:str}",
    **described(
        Operation(summary="Get a node", answer=NodeView, role=Role.VIEWER, statuses=(404,))
    ),
)
async def get_one(request: HttpRequest) -> Response[bytes]:
    """One node, with the notes about it."""
    node_id = path_text(request, "node_id")
    return await _view(api_of(request), node_id)


@post(
    "/v1/nodes/{node_id:str}/cordon",
    **described(
        Operation(
            summary="Let nothing new onto a node",
            body=CordonRequest,
            answer=NodeView,
            role=Role.OPERATOR,
            statuses=(404, 409),
        )
    ),
)
async def cordon(request: HttpRequest) -> Response[bytes]:
    """What is there stays."""
    node_id = path_text(request, "node_id")
    api, caller = api_of(request), caller_of(request)
    asked = await body_of(request, CordonRequest)
    await submit(
        api,
        CordonNode(node_id=NodeId(node_id), reason=asked.reason, **common(request, caller)),
    )
    return await _view(api, node_id)


@post(
    "/v1/nodes/{node_id:str}/labels",
    **described(
        Operation(
            summary="Give a node labels, or take some away",
            body=LabelsRequest,
            answer=NodeView,
            role=Role.OPERATOR,
            statuses=(404, 409),
        )
    ),
)
async def label(request: HttpRequest) -> Response[bytes]:
    """What is on the node stays; labels that are not named stay as they are."""
    node_id = path_text(request, "node_id")
    api, caller = api_of(request), caller_of(request)
    asked = await body_of(request, LabelsRequest)
    await submit(
        api,
        LabelNode(
            node_id=NodeId(node_id),
            labels=dict(asked.labels),
            **common(request, caller),
        ),
    )
    return await _view(api, node_id)


@post(
    "/v1/nodes/{node_id:str}/uncordon",
    **described(
        Operation(
            summary="Let new work onto a node again; ends its drain too",
            answer=NodeView,
            role=Role.OPERATOR,
            statuses=(404, 409),
        )
    ),
)
async def uncordon(request: HttpRequest) -> Response[bytes]:
    """A node that is already retiring cannot be called back."""
    node_id = path_text(request, "node_id")
    api, caller = api_of(request), caller_of(request)
    await submit(api, UncordonNode(node_id=NodeId(node_id), **common(request, caller)))
    return await _view(api, node_id)


@post(
    "/v1/nodes/{node_id:str}/drain",
    **described(
        Operation(
            summary="Cordon a node and move what is there by a deadline",
            body=DrainRequest,
            answer=NodeView,
            role=Role.OPERATOR,
            statuses=(404, 409),
        )
    ),
)
async def drain(request: HttpRequest) -> Response[bytes]:
    """Answers at once; the node is drained when the event `node_drained` says so."""
    node_id = path_text(request, "node_id")
    api, caller = api_of(request), caller_of(request)
    asked = await body_of(request, DrainRequest)
    await submit(
        api,
        DrainNode(
            node_id=NodeId(node_id),
            deadline_ms=asked.deadline_ms,
            is_forced=asked.is_forced,
            then_retire=asked.then_retire,
            **common(request, caller),
        ),
    )
    return await _view(api, node_id)


@post(
    "/v1/nodes/{node_id:str}/confirm-lost",
    **described(
        Operation(
            summary="Say that a silent node is really gone",
            answer=NodeView,
            role=Role.OPERATOR,
            statuses=(404, 409),
        )
    ),
)
async def confirm_lost(request: HttpRequest) -> Response[bytes]:
    """The brake on many losses does not hold it; its silence must be long enough all the same."""
    node_id = path_text(request, "node_id")
    api, caller = api_of(request), caller_of(request)
    await submit(api, ConfirmLoss(node_id=NodeId(node_id), **common(request, caller)))
    return await _view(api, node_id)


@post(
    "/v1/nodes/{node_id:str}/end",
    **described(
        Operation(
            summary="End a machine that was held back because nobody knows whose it is",
            answer=NodeView,
            role=Role.OPERATOR,
            statuses=(404, 409),
        )
    ),
)
async def end(request: HttpRequest) -> Response[bytes]:
    """It carries this fleet's label and the name of a node that the fleet never had."""
    node_id = path_text(request, "node_id")
    api, caller = api_of(request), caller_of(request)
    await submit(api, EndOrphan(node_id=NodeId(node_id), **common(request, caller)))
    return await _view(api, node_id)


@get(
    "/v1/pools",
    **described(
        Operation(summary="List pools", answer=Page[PoolView], role=Role.VIEWER, parameters=PAGING)
    ),
)
async def list_pools(request: HttpRequest) -> Response[bytes]:
    """Pools with their nodes and leases counted."""
    return await page(
        request,
        Query(request),
        lambda fleet: fleet.pools.rows,
        lambda fleet, key: views.pool(fleet, fleet.pools[key]),
    )


@get(
    "/v1/pools/{name:str}",
    **described(
        Operation(summary="Get a pool", answer=PoolView, role=Role.VIEWER, statuses=(404,))
    ),
)
async def get_pool(request: HttpRequest) -> Response[bytes]:
    """One pool with its nodes and leases counted."""
    name = path_text(request, "name")

    def read(fleet: Fleet) -> PoolView | None:
        found = fleet.pools.get(name)
        return None if found is None else views.pool(fleet, found)

    view = await api_of(request).engine.read(read)
    if view is None:
        raise missing(Pool.KIND, name)
    return answer(view)


ROUTES = [
    list_all,
    get_one,
    label,
    cordon,
    uncordon,
    drain,
    confirm_lost,
    end,
    list_pools,
    get_pool,
]
