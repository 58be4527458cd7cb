"""What operators ask about the growth of pools, and of it."""

from __future__ import annotations

from litestar import Response, get, post

from hostler.api.context import api_of, caller_of
from hostler.api.convert import nodes as views
from hostler.api.errors import HttpRequest, missing
from hostler.api.gateway import common, submit
from hostler.api.http import Operation, Parameter, Query, answer, described, path_text
from hostler.core.explain.windows import Coming, comings
from hostler.core.fleet import Fleet
from hostler.core.inputs import RetryGrowth
from hostler.model import Pool
from hostler.model.token import Role
from hostler.wire.http import (
    PoolView,
    WindowComingView,
    WindowsView,
)


@get(
    "/v1/windows",
    **described(
        Operation(
            summary="List what the windows of pools bring, in the next two weeks",
            answer=WindowsView,
            role=Role.VIEWER,
            parameters=(Parameter("pool", "string", "Only those of this pool."),),
        )
    ),
)
async def list_windows(request: HttpRequest) -> Response[bytes]:
    """Gaps and overlaps are told, and the days of the next two clock changes are always shown."""
    api, pool = api_of(request), Query(request).text("pool")
    now_ms = api.engine.clock.now_ms()

    def read(fleet: Fleet) -> WindowsView:
        return WindowsView(
            items=[
                _coming(each)
                for found in fleet.pools.in_order()
                if not pool or found.name == pool
                for each in comings(fleet, found, now_ms)
            ]
        )

    return answer(await api.engine.read(read))


def _coming(each: Coming) -> WindowComingView:
    sizes = each.sizes
    return WindowComingView(
        pool=each.pool,
        window=each.window,
        time_zone=each.time_zone,
        from_at_ms=each.from_at_ms,
        to_at_ms=each.to_at_ms,
        local=each.local,
        warm_count=None if sizes is None else sizes.warm_count,
        node_count_min=None if sizes is None else sizes.node_count_min,
        node_count_max=None if sizes is None else sizes.node_count_max,
        note=each.note,
    )


@post(
    "/v1/pools/{name:str}/retry",
    **described(
        Operation(
            summary="Launch again what lately failed",
            answer=PoolView,
            role=Role.OPERATOR,
            statuses=(404,),
        )
    ),
)
async def retry(request: HttpRequest) -> Response[bytes]:
    """Forgets failed boots, and pauses of the pool's offers and providers."""
    name = path_text(request, "name")
    api, caller = api_of(request), caller_of(request)
    await submit(api, RetryGrowth(pool=name, **common(request, caller)))

    def read(fleet: Fleet) -> PoolView | None:
        found = fleet.pools.get(name)
        return None if found is None else views.pool(fleet, found)

    view = await api.engine.read(read)
    if view is None:
        raise missing(Pool.KIND, name)
    return answer(view)


ROUTES = [list_windows, retry]
