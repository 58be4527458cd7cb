"""Requests in and answers out: bodies, parameters, pages, and how a handler is described."""

from __future__ import annotations

import asyncio
import base64
import heapq
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, TypedDict, TypeVar

import msgspec
from litestar import Response

from hostler.api import limits
from hostler.api.auth import ROLE_KEY
from hostler.api.bodies import JsonAnswer, received
from hostler.api.context import AnyConnection, header
from hostler.api.errors import Denied, HttpRequest, from_validation
from hostler.base.errors import Failed
from hostler.core.fleet import Fleet
from hostler.model.record import Record
from hostler.model.token import Role
from hostler.wire.http import Page

T = TypeVar("T")
R = TypeVar("R", bound=Record)
V = TypeVar("V")

OPERATION_KEY: Final = "operation"
"""In a handler's `opt`: its `Operation`."""

_ENCODER: Final = msgspec.json.Encoder()


class Parameter(msgspec.Struct, frozen=True):
    """A query parameter."""

    name: str
    type: str
    """`string`, `integer` or `boolean`."""
    description: str


class Operation(msgspec.Struct, frozen=True, kw_only=True):
    """What the OpenAPI document says about a handler."""

    summary: str
    answer: Any
    """The type of its answer; text for a media type."""
    status: int = 200
    body: Any = None
    parameters: tuple[Parameter, ...] = ()
    role: Role | None = None
    statuses: tuple[int, ...] = ()
    """Of problems, beyond those that every operation may have."""
    is_busy: bool = False
    """Called by `hostler.api.front`, because what the framework costs is felt here."""


class _Described(TypedDict):
    status_code: int
    opt: dict[str, Any]


def described(operation: Operation) -> _Described:
    """Give the keyword arguments of a Litestar handler for an operation."""
    opt: dict[str, Any] = {OPERATION_KEY: operation}
    if operation.role is not None:
        opt[ROLE_KEY] = operation.role
    return {"status_code": operation.status, "opt": opt}


PAGING: Final = (
    Parameter("limit", "integer", f"Most records of a page, {limits.PAGE_COUNT_MAX} at most."),
    Parameter("cursor", "string", "`next_cursor` of the page before."),
)


def answer(view: object, status: int | None = None) -> Response[bytes]:
    """Answer with a view as JSON."""
    return JsonAnswer(_ENCODER.encode(view), status)


def path_text(connection: AnyConnection, name: str) -> str:
    """Return a part of the path."""
    return str(connection.path_params[name])


def path_number(connection: AnyConnection, name: str) -> int:
    """Return a part of the path that its route says is a number."""
    return int(connection.path_params[name])


async def body_of(request: HttpRequest, kind: type[T]) -> T:
    """Read the body; an empty one is an empty object.

    Raises:
        Denied: Too large, not JSON, or not of that shape.
    """
    raw = await raw_body(request)
    try:
        return msgspec.json.decode(raw or b"{}", type=kind)
    except msgspec.MsgspecError as error:
        raise from_validation(error) from error
    except RecursionError as error:
        raise Denied(400, "bad_json", "the body is nested too deeply") from error


async def raw_body(request: HttpRequest) -> bytes:
    """Read the body as it is.

    Raises:
        Denied: Too large, too slow, or not said to be JSON, which no foreign page's form can say.
    """
    try:
        async with asyncio.timeout(limits.BODY_MS_MAX / 1_000):
            raw = await received(request)
    except TimeoutError as error:
        raise Denied(408, "body_too_slow", "the body did not come in in time") from error
    if raw:
        media_type = (header(request, b"content-type") or "").partition(";")[0].strip()
        if media_type != "application/json":
            raise Denied(415, "media_type", "send JSON with `Content-Type: application/json`")
    return raw


def idempotency_key_of(request: HttpRequest) -> str:
    """Return the request's idempotency key, or nothing.

    Raises:
        Denied: It is too long.
    """
    key = header(request, b"idempotency-key") or ""
    if len(key) > limits.IDEMPOTENCY_KEY_LENGTH_MAX:
        raise Denied(
            400,
            "idempotency_key_too_long",
            f"an Idempotency-Key has {limits.IDEMPOTENCY_KEY_LENGTH_MAX} characters at most",
        )
    return key


class Query:
    """The query parameters of a request, checked against those that its operation knows."""

    def __init__(self, request: HttpRequest) -> None:
        self._given: Mapping[str, str] = dict(request.query_params)
        operation: Operation = request.route_handler.opt[OPERATION_KEY]
        known = [parameter.name for parameter in operation.parameters]
        for name in self._given:
            if name not in known:
                raise Denied(
                    400,
                    "parameter_unknown",
                    f"there is no parameter `{name}` here; known: {', '.join(known) or 'none'}",
                )

    def text(self, name: str) -> str:
        """Return a parameter, or nothing."""
        return self._given.get(name, "")

    def flag(self, name: str, *, default: bool = False) -> bool:
        """Return a parameter that is true or false."""
        match self._given.get(name):
            case None:
                return default
            case "true" | "1" | "":
                return True
            case "false" | "0":
                return False
            case other:
                raise Denied(400, "parameter_invalid", f"`{name}` is true or false, not {other!r}")

    def number(self, name: str, *, most: int, default: int | None = None) -> int | None:
        """Return a parameter that is a whole number from 0."""
        given = self._given.get(name)
        if given is None:
            return default
        if not (given.isascii() and given.isdigit()) or int(given) > most:
            raise Denied(
                400, "parameter_invalid", f"`{name}` is a number from 0 to {most}, not {given!r}"
            )
        return int(given)


async def page(
    request: HttpRequest,
    query: Query,
    keys_of: Callable[[Fleet], Iterable[str]],
    view_of: Callable[[Fleet, str], V | None],
) -> Response[bytes]:
    """Answer with one page of records in the order of their keys.

    `view_of` gives `None` for a record that the filter leaves out.

    Raises:
        Denied: The limit or the cursor is not valid.
        Failed: The engine has stopped.
    """
    limit = query.number("limit", most=limits.PAGE_COUNT_MAX) or limits.PAGE_COUNT_DEFAULT
    after = decode_cursor(query.text("cursor"))

    def read(fleet: Fleet) -> Page[V]:
        items: list[V] = []
        last, is_cut = "", False
        for key in _keys_after(keys_of(fleet), after, limit):
            view = view_of(fleet, key)
            if view is None:
                continue
            if len(items) == limit:
                is_cut = True
                break
            items.append(view)
            last = key
        return Page(
            items=items,
            next_cursor=encode_cursor(last) if is_cut else None,
            revision=fleet.revision,
            event_seq=fleet.event_seq,
        )

    return answer(await request.app.state.api.engine.read(read))


def _keys_after(keys: Iterable[str], after: str, limit: int) -> Iterable[str]:
    """Give keys in order. The first page's worth without sorting them all, then the rest."""
    rest = [key for key in keys if key > after] if after else list(keys)
    if len(rest) <= 4 * limit:
        yield from sorted(rest)
        return
    first = heapq.nsmallest(limit + 1, rest)
    yield from first
    yield from sorted(key for key in rest if key > first[-1])


def encode_cursor(key: str) -> str:
    """Write the last key of a page as a cursor."""
    return base64.urlsafe_b64encode(key.encode()).decode().rstrip("=")


def decode_cursor(cursor: str) -> str:
    """Read a cursor; an empty one is the beginning.

    Raises:
        Denied: It is none.
    """
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        return base64.b64decode(padded, altchars=b"-_", validate=True).decode()
    except ValueError as error:
        raise Denied(
            400, "cursor_invalid", "this cursor is not one that a page gave; begin without one"
        ) from error


def unavailable(message: str) -> Failed:
    """Say that something is not there at the moment."""
    return Failed("unavailable", message, retry_after_ms=limits.RETRY_AFTER_MS)
