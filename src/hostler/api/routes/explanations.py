"""Explanations: why things are as they are, what waits, and past decisions made again."""

from __future__ import annotations

from litestar import Response, get

from hostler.api.context import api_of
from hostler.api.convert import explanations
from hostler.api.errors import Denied, HttpRequest
from hostler.api.http import Operation, Parameter, Query, answer, described
from hostler.base.errors import Rejected
from hostler.base.ids import NodeId, ReplicaId
from hostler.core.explain import explain, explain_replica, pending
from hostler.core.explain.alterations import ALTERATIONS, Alteration, read_alteration
from hostler.core.explain.rerun import decide_again
from hostler.core.fleet import Fleet
from hostler.engine.history import Moment
from hostler.model.token import Role
from hostler.wire.http import ExplainView, PendingView

_NUMBER_MAX = 2**62

_ALTERATIONS_TOLD = ", ".join(f"`{name}={value}`" for name, value in ALTERATIONS.items())

_STATUS = {
    "journal_too_short": 410,
    "moment_unknown": 404,
    "replica_not_found": 404,
    "node_not_found": 404,
}


@get(
    "/v1/explain",
    **described(
        Operation(
            summary="Say why one thing is as it is, and what it waits for",
            answer=ExplainView,
            role=Role.VIEWER,
            parameters=(
                Parameter("about", "string", "Id of a replica, allocation, node, lease, ..."),
                Parameter("node", "string", "Of a replica: all about this node for it."),
                Parameter(
                    "at_event",
                    "integer",
                    "Of a replica: make the decision of the step that told this event again.",
                ),
                Parameter("at_revision", "integer", "The same, of the step with this revision."),
                Parameter(
                    "if",
                    "string",
                    "Of a replica: decide also with these facts altered, separated by commas: "
                    f"{_ALTERATIONS_TOLD}.",
                ),
            ),
            statuses=(404, 410, 422),
        )
    ),
)
async def explain_one(request: HttpRequest) -> Response[bytes]:
    """Reasons with their meaning and what a person can do, and the placement decisions.

    A past decision is made again from the journal, with the fleet as it was; 410 and code
    `journal_too_short` when it is no longer kept.
    """
    query = Query(request)
    about, node = query.text("about"), query.text("node")
    if not about:
        raise Denied(400, "parameter_missing", "say what to explain: `?about=ID`")
    given = [read_alteration(text) for text in query.text("if").split(",") if text]
    event_seq = query.number("at_event", most=_NUMBER_MAX)
    revision = query.number("at_revision", most=_NUMBER_MAX)
    if event_seq is not None and revision is not None:
        raise Denied(400, "parameter_invalid", "`at_event` or `at_revision`, not both")
    if event_seq is not None or revision is not None:
        moment = Moment(event_seq=event_seq, revision=revision)
        return answer(await _past(request, moment, about, node, given))
    now_ms = api_of(request).engine.clock.now_ms()

    def read(fleet: Fleet) -> ExplainView | None:
        return _present(fleet, about, node, given, now_ms)

    view = await api_of(request).engine.read(read)
    if view is None:
        raise Denied(404, "not_found", f"nothing here has the id {about!r}")
    return answer(view)


def _present(
    fleet: Fleet, about: str, node: str, given: list[Alteration], now_ms: int
) -> ExplainView | None:
    if node and node not in fleet.nodes:
        raise Denied(404, "node_not_found", f"there is no node {node!r}")
    replica = fleet.replicas.get(about)
    if replica is None:
        if given:
            raise Denied(400, "parameter_invalid", "`if` goes with the id of a replica")
        found = explain(fleet, about)
        return None if found is None else explanations.explanation(found, fleet.revision)
    found = explain_replica(
        fleet, replica.replica_id, NodeId(node) if node else None, given, now_ms=now_ms
    )
    if found is None:
        return None
    made = decide_again(fleet, replica, given, now_ms=now_ms) if given else None
    rerun = None if made is None else explanations.rerun(made, None, None)
    return explanations.explanation(found, fleet.revision, rerun)


async def _past(
    request: HttpRequest, moment: Moment, about: str, node: str, given: list[Alteration]
) -> ExplainView:
    try:
        found = await api_of(request).engine.explain_past(
            moment, ReplicaId(about), NodeId(node) if node else None, given
        )
    except Rejected as error:
        status = _STATUS.get(error.code)
        if status is None:
            raise
        raise Denied(status, error.code, error.message, **error.fields) from error
    return explanations.past(found)


@get(
    "/v1/pending",
    **described(
        Operation(
            summary="Say what waits, grouped by what it asks for and what it waits for",
            answer=PendingView,
            role=Role.VIEWER,
        )
    ),
)
async def explain_pending(request: HttpRequest) -> Response[bytes]:
    """Replicas and leases that wait, told from the present state, with what would help them."""
    now_ms = api_of(request).engine.clock.now_ms()

    def read(fleet: Fleet) -> PendingView:
        return explanations.pending(pending(fleet, now_ms=now_ms), fleet.revision)

    return answer(await api_of(request).engine.read(read))


ROUTES = [explain_one, explain_pending]
