"""Lives: what became of one node, replica, bundle, pool or lease, also after it is gone."""

from __future__ import annotations

from typing import Final

from litestar import Response, get

from hostler.api import limits
from hostler.api.context import Api, api_of
from hostler.api.convert.fleet import event as view_of
from hostler.api.errors import Denied, HttpRequest, missing
from hostler.api.http import (
    PAGING,
    Operation,
    Parameter,
    Query,
    answer,
    decode_cursor,
    described,
    encode_cursor,
)
from hostler.core.life import NOUNS, Happening, Span, lease_phases, phases
from hostler.model import Lease
from hostler.model.token import Role
from hostler.ports.store import StoredEvent
from hostler.wire.http import EventView, LifeView, PhaseView

READ_MAX: Final = 1_000
"""Events of one life that phases are told from: five times what is kept by default."""


@get(
    "/v1/life",
    **described(
        Operation(
            summary="What became of one node, replica, bundle, pool or lease",
            answer=LifeView,
            role=Role.VIEWER,
            parameters=(
                Parameter("about", "string", "Noun and id: `node/n-000001`, `replica/b/job/0`."),
                *PAGING,
            ),
            statuses=(404,),
        )
    ),
)
async def life(request: HttpRequest) -> Response[bytes]:
    """Kept for longer than the stream of events goes back: `retention.life_max` events of each."""
    api, query = api_of(request), Query(request)
    about = query.text("about")
    noun, _, thing_id = about.partition("/")
    if not thing_id or noun not in (*NOUNS, Lease.KIND):
        told = f"`about` is one of {', '.join((*NOUNS, Lease.KIND))}, a slash, and an id"
        raise Denied(400, "parameter_invalid", told)
    limit = query.number("limit", most=limits.PAGE_COUNT_MAX) or limits.PAGE_COUNT_DEFAULT
    before = _position(decode_cursor(query.text("cursor")))
    now_ms = api.engine.clock.now_ms()
    if noun == Lease.KIND:
        found = api.engine.peek(Lease.KIND, thing_id)
        if not isinstance(found, Lease):
            raise missing(Lease.KIND, thing_id)
        return answer(_view(about, lease_phases(found), [], None, now_ms))
    events = await _events(api, about)
    if not events:
        raise Denied(404, "life_not_found", f"nothing is remembered of {about}")
    spans = phases(
        Happening(kind=each.kind, at_ms=each.at_ms, allocation=each.about.get("allocation", ""))
        for each in reversed(events)
    )
    older = [each for each in events if before is None or each.seq < before]
    page = older[:limit]
    cursor = encode_cursor(str(page[-1].seq)) if len(older) > limit else None
    return answer(_view(about, spans, page, cursor, now_ms))


def _position(cursor: str) -> int | None:
    if not cursor:
        return None
    if not (cursor.isascii() and cursor.isdigit()):
        raise Denied(400, "cursor_invalid", "this cursor is not one that a page gave")
    return int(cursor)


async def _events(api: Api, about: str) -> list[EventView]:
    rows = await api.engine.life(about, None, READ_MAX)
    return [view_of(StoredEvent(row.seq, row.at_ms, row.body)) for row in rows]


def _view(
    about: str, spans: list[Span], events: list[EventView], cursor: str | None, now_ms: int
) -> LifeView:
    return LifeView(
        about=about,
        phases=[
            PhaseView(
                phase=one.phase,
                since_at_ms=one.since_at_ms,
                until_at_ms=one.until_at_ms,
                lasted_ms=max(0, (one.until_at_ms or now_ms) - one.since_at_ms),
            )
            for one in spans
        ],
        events=events,
        next_cursor=cursor,
    )


ROUTES = [life]
