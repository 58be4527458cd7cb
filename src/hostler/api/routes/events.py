"""The stream of committed events, as server-sent events (WHATWG HTML 9.2)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Final

import msgspec
from litestar import get
from litestar.response import Stream

from hostler.api import limits
from hostler.api.context import Api, api_of, or_stopping
from hostler.api.convert.fleet import event as view_of
from hostler.api.errors import Denied, HttpRequest
from hostler.api.http import Operation, Parameter, Query, described
from hostler.base.errors import Failed
from hostler.engine.publish import Subscription
from hostler.model.token import Role
from hostler.ports.store import EventsGone, StoredEvent
from hostler.wire.http import EventView

_ENCODER: Final = msgspec.json.Encoder()
_SEQ_MAX: Final = 2**62


class _Filter:
    """Which events a follower wants."""

    def __init__(self, kinds: Sequence[str], about: str) -> None:
        self._kinds = frozenset(kinds)
        self._about = about

    def takes(self, event: EventView) -> bool:
        """Say whether an event is wanted."""
        return (not self._kinds or event.kind in self._kinds) and (
            not self._about or self._about in event.about.values()
        )


@get(
    "/v1/events",
    **described(
        Operation(
            summary="Follow committed events (server-sent events)",
            answer="text/event-stream",
            role=Role.VIEWER,
            parameters=(
                Parameter("after_seq", "integer", "Begin after this position."),
                Parameter("tail", "integer", "Without a position: begin so many events ago."),
                Parameter("kind", "string", "Only these kinds, separated by commas."),
                Parameter("about", "string", "Only events about this id."),
                Parameter("follow", "boolean", "False ends with the newest event. Default true."),
            ),
            statuses=(410,),
        )
    ),
)
async def follow(request: HttpRequest) -> Stream:
    """Each event's id is its position; `Last-Event-ID` resumes after it without loss or repeat.

    A position that is no longer kept is answered with 410 and code `events_gone`: take a snapshot
    (its `event_seq` is a position) and follow from there.
    """
    api, query = api_of(request), Query(request)
    subscription = api.engine.subscribe(_begin(api, request, query))
    wanted = _Filter([one for one in query.text("kind").split(",") if one], query.text("about"))
    is_following = query.flag("follow", default=True)
    try:
        first = await subscription.take(timeout_ms=0)
    except EventsGone as gone:
        raise Denied(
            410,
            "events_gone",
            "these events are no longer kept; take a snapshot and follow from its event_seq",
            oldest_seq=gone.oldest_seq,
        ) from gone
    return Stream(
        _body(api, subscription, first, wanted, is_following=is_following),
        media_type="text/event-stream",
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )


def _begin(api: Api, request: HttpRequest, query: Query) -> int:
    """Return the position to begin after."""
    newest = api.engine.subscribe().after_seq
    last_id = request.headers.get("last-event-id", "")
    if last_id.isascii() and last_id.isdigit():
        position = int(last_id)
    else:
        tail = query.number("tail", most=limits.EVENTS_TAIL_MAX) or 0
        given = query.number("after_seq", most=_SEQ_MAX)
        position = max(0, newest - tail) if given is None else given
    if position > newest:
        raise Denied(
            410,
            "events_gone",
            "this position is ahead of us: it is from another store; take a snapshot",
            newest_seq=newest,
        )
    return position


async def _body(
    api: Api,
    subscription: Subscription,
    first: Sequence[StoredEvent],
    wanted: _Filter,
    *,
    is_following: bool,
) -> AsyncIterator[bytes]:
    # A comment first: the answer begins at once, and a proxy sees that it lives.
    yield b": hostler\n\n"
    events = first
    try:
        while not api.stopping.is_set():
            if events:
                yield _frames(events, wanted)
            elif not is_following:
                return
            else:
                yield b": alive\n\n"
            wait_ms = limits.EVENTS_KEEPALIVE_MS if is_following else 0
            events = await or_stopping(api, subscription.take(timeout_ms=wait_ms)) or ()
    except (EventsGone, Failed):
        return  # the client comes again with its position and is told what is wrong


def _frames(events: Sequence[StoredEvent], wanted: _Filter) -> bytes:
    """Write events; a bare id at the end moves the position past those that are left out."""
    told: list[bytes] = []
    is_last_told = False
    for stored in events:
        view = view_of(stored)
        is_last_told = wanted.takes(view)
        if is_last_told:
            told.append(
                b"id: %d\nevent: %s\ndata: %s\n\n"
                % (view.seq, view.kind.encode(), _ENCODER.encode(view))
            )
    if not is_last_told:
        told.append(b"id: %d\n\n" % events[-1].seq)
    return b"".join(told)


ROUTES = [follow]
