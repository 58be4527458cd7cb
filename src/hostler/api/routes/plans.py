"""Plans and explanations: what would follow, and why things are as they are."""

from __future__ import annotations

from litestar import Response, get, post

from hostler.api.context import api_of, caller_of
from hostler.api.convert import explanations, plans
from hostler.api.errors import Denied, HttpRequest
from hostler.api.gateway import bundle_document, new_request_id
from hostler.api.http import Operation, Parameter, Query, answer, described
from hostler.base.ids import NodeId, ReplicaId
from hostler.core.explain import Explanation, explain, explain_replica
from hostler.core.fleet import Fleet
from hostler.core.planning import plan
from hostler.engine.translate import submit_bundle
from hostler.model.token import Role
from hostler.wire.documents import BundleDocument
from hostler.wire.http import ExplainView, PlanView


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
    submission = submit_bundle(document, request_id=new_request_id(), principal=caller.principal)
    now_ms = api.engine.clock.now_ms()
    made = await api.engine.read(lambda fleet: plan(fleet, submission, now_ms))
    return answer(plans.plan(made))


@get(
    "/v1/explain",
    **described(
        Operation(
            summary="Say why one thing is as it is, and what it waits for",
            answer=ExplainView,
            role=Role.VIEWER,
            parameters=(
                Parameter("about", "string", "Id of a replica, allocation, node, lease, ..."),
                Parameter("node", "string", "Of a replica: what keeps it from this node."),
            ),
            statuses=(404,),
        )
    ),
)
async def explain_one(request: HttpRequest) -> Response[bytes]:
    """Reasons with their meaning and what a person can do, and the placement decisions."""
    query = Query(request)
    about, node = query.text("about"), query.text("node")
    if not about:
        raise Denied(400, "parameter_missing", "say what to explain: `?about=ID`")

    def read(fleet: Fleet) -> ExplainView | None:
        if node and node not in fleet.nodes:
            raise Denied(404, "node_not_found", f"there is no node {node!r}")
        found = _explanation(fleet, about, node)
        return None if found is None else explanations.explanation(found, fleet.revision)

    view = await api_of(request).engine.read(read)
    if view is None:
        raise Denied(404, "not_found", f"nothing here has the id {about!r}")
    return answer(view)


def _explanation(fleet: Fleet, about: str, node: str) -> Explanation | None:
    if node and about in fleet.replicas:
        return explain_replica(fleet, ReplicaId(about), NodeId(node))
    return explain(fleet, about)


ROUTES = [plan_one, explain_one]
