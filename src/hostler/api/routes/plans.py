"""Plans: what would follow."""

from __future__ import annotations

from litestar import Response, post

from hostler.api.context import api_of, caller_of
from hostler.api.convert import plans
from hostler.api.errors import HttpRequest
from hostler.api.gateway import bundle_document, new_request_id
from hostler.api.http import Operation, answer, described
from hostler.engine.translate import submit_bundle
from hostler.model.token import Role
from hostler.wire.documents import BundleDocument
from hostler.wire.http import PlanView


@post(
    "/v1/plan",
    **described(
        Operation(
            summary="Say what would follow from submitting a bundle; changes nothing",
            body=BundleDocument,
            answer=PlanView,
            role=Role.VIEWER,
        )
    ),
)
async def plan_one(request: HttpRequest) -> Response[bytes]:
    """A real step on the present fleet that is then dropped, so it cannot differ from applying."""
    api, caller = api_of(request), caller_of(request)
    document = await bundle_document(request)
    submission = submit_bundle(
        document,
        request_id=new_request_id(),
        principal=caller.principal,
        now_ms=api.engine.clock.now_ms(),
    )
    made = await api.engine.plan(submission)
    return answer(plans.plan(made, document.timetable.time_zone if document.timetable else "UTC"))


ROUTES = [plan_one]
