"""What changes over time: rollouts with what an operator says to them, and timetables."""

from __future__ import annotations

from litestar import Response, get, post

from hostler.api.context import api_of, caller_of
from hostler.api.convert import bundles as views
from hostler.api.convert import timetables
from hostler.api.errors import HttpRequest, missing
from hostler.api.gateway import common, submit
from hostler.api.http import Operation, Parameter, Query, answer, described, path_text
from hostler.base.ids import BundleId
from hostler.core.calendar import DAY_MS
from hostler.core.fleet import Fleet
from hostler.core.inputs import SteerRollout
from hostler.core.timetable import upcoming
from hostler.model import Rollout
from hostler.model.rollout import Steering
from hostler.model.token import Role
from hostler.wire.http import RolloutView, UpcomingPage


@get(
    "/v1/bundles/{bundle_id:str}/rollout",
    **described(
        Operation(
            summary="Get the latest rollout of a bundle",
            answer=RolloutView,
            role=Role.VIEWER,
            statuses=(404,),
        )
    ),
)
async def get_one(request: HttpRequest) -> Response[bytes]:
    """There is none before a launch was changed for the first time."""
    return await _view(request)


@post(
    "/v1/bundles/{bundle_id:str}/rollout/pause",
    **described(
        Operation(
            summary="Pause a rollout: what is on its way arrives, nothing more is replaced",
            answer=RolloutView,
            role=Role.OPERATOR,
            statuses=(404, 409),
        )
    ),
)
async def pause(request: HttpRequest) -> Response[bytes]:
    """While it is paused it has no deadline."""
    return await _steer(request, Steering.PAUSE)


@post(
    "/v1/bundles/{bundle_id:str}/rollout/resume",
    **described(
        Operation(
            summary="Let a rollout go on that is paused or held",
            answer=RolloutView,
            role=Role.OPERATOR,
            statuses=(404, 409),
        )
    ),
)
async def resume(request: HttpRequest) -> Response[bytes]:
    """Its deadline begins anew."""
    return await _steer(request, Steering.RESUME)


@post(
    "/v1/bundles/{bundle_id:str}/rollout/undo",
    **described(
        Operation(
            summary="Go back to what the bundle was before",
            answer=RolloutView,
            role=Role.OPERATOR,
            statuses=(404, 409),
        )
    ),
)
async def undo(request: HttpRequest) -> Response[bytes]:
    """The former bundle is desired again, as a new generation, and is rolled out like any other."""
    return await _steer(request, Steering.UNDO)


async def _steer(request: HttpRequest, steering: Steering) -> Response[bytes]:
    api, caller = api_of(request), caller_of(request)
    await submit(
        api,
        SteerRollout(
            bundle_id=BundleId(path_text(request, "bundle_id")),
            steering=steering,
            **common(request, caller),
        ),
    )
    return await _view(request)


async def _view(request: HttpRequest) -> Response[bytes]:
    bundle_id = path_text(request, "bundle_id")

    def read(fleet: Fleet) -> RolloutView | None:
        found = fleet.rollouts.get(bundle_id)
        return None if found is None else views.rollout(fleet, found)

    view = await api_of(request).engine.read(read)
    if view is None:
        raise missing(Rollout.KIND, bundle_id)
    return answer(view)


@get(
    "/v1/upcoming",
    **described(
        Operation(
            summary="List the next starts and stops of all timetables",
            answer=UpcomingPage,
            role=Role.VIEWER,
            parameters=(
                Parameter("days", "integer", "How many days ahead, from 1 to 370; 14 unless said."),
                Parameter("bundle", "string", "Only those of this bundle."),
            ),
        )
    ),
)
async def list_upcoming(request: HttpRequest) -> Response[bytes]:
    """The soonest first; in UTC and on the timetable's own wall clock."""
    query, api = Query(request), api_of(request)
    days = query.number("days", most=370, default=14) or 14
    bundle = query.text("bundle")
    now_ms = api.engine.clock.now_ms()
    found = await api.engine.read(lambda fleet: upcoming(fleet, now_ms, now_ms + days * DAY_MS))
    shown = [timetables.upcoming(each) for each in found if bundle in ("", each.bundle_id)]
    return answer(UpcomingPage(items=shown))


ROUTES = [list_upcoming, get_one, pause, resume, undo]
