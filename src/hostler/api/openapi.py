"""The OpenAPI document (3.1), drawn from what each handler says of itself."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec
from litestar.handlers import HTTPRouteHandler
from litestar.routes import BaseRoute, HTTPRoute

import hostler
from hostler.api.http import OPERATION_KEY, Operation
from hostler.wire.http import Problem

_REF: Final = "#/components/schemas/{name}"

_PROBLEM_REF: Final = {"$ref": "#/components/schemas/Problem"}

_TOLD: Final = {
    400: "The request cannot be read",
    401: "No token, or not a valid one",
    403: "The token may not do this",
    404: "What it names does not exist",
    408: "The body did not come in in time",
    409: "It does not fit the present state",
    410: "The position is no longer kept",
    413: "The body is too large",
    415: "The body is not said to be JSON",
    422: "What was sent is not as it must be",
    429: "Too much at once; `Retry-After` says when",
    503: "Not now; `Retry-After` says when",
}

_DESCRIPTION: Final = (
    "Instants are `*_at_ms` (milliseconds since 1970 UTC), durations `*_ms`, money `*_microusd`."
    " Errors are problem details (RFC 9457) with a stable `code`. Every POST may carry an"
    " `Idempotency-Key`: sent again with the same key, it is done once and answered alike."
    " Commands under a lease (`/v1/leases/{lease_id}/exec`) and the link of agents"
    " (`/v1/agent/link`) are WebSockets."
)


def document(routes: Iterable[BaseRoute]) -> dict[str, Any]:
    """Return the document for a set of routes."""
    found = sorted(_operations(routes), key=lambda one: (one[0], one[1]))
    kinds = [kind for _, _, _, one in found for kind in (one.body, one.answer) if _is_kind(kind)]
    _, components = msgspec.json.schema_components([*kinds, Problem], ref_template=_REF)
    paths: dict[str, Any] = {}
    for path, method, handler, operation in found:
        plain = re.sub(r"\{(\w+):\w+\}", r"{\1}", path)
        paths.setdefault(plain, {})[method] = _describe(path, handler, operation)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Hostler",
            "version": hostler.__version__,
            "description": _DESCRIPTION,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": paths,
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operations(
    routes: Iterable[BaseRoute],
) -> Iterator[tuple[str, str, HTTPRouteHandler, Operation]]:
    for route in routes:
        if not isinstance(route, HTTPRoute):
            continue
        for handler in route.route_handlers:
            operation = handler.opt.get(OPERATION_KEY)
            if isinstance(operation, Operation):
                (method,) = handler.http_methods - {"OPTIONS"}
                yield route.path, method.lower(), handler, operation


def _is_kind(kind: object) -> bool:
    return kind is not None and not isinstance(kind, str)


def _describe(path: str, handler: HTTPRouteHandler, operation: Operation) -> dict[str, Any]:
    name = f"{handler.fn.__module__.rpartition('.')[2]}_{handler.fn.__name__}"
    told: dict[str, Any] = {
        "operationId": name,
        "tags": [handler.fn.__module__.rpartition(".")[2]],
        "summary": operation.summary,
        "description": _description(handler, operation),
        "parameters": list(_parameters(path, handler, operation)),
        "responses": {
            str(operation.status): {
                "description": "Done",
                "content": _content(operation.answer),
            },
            **{str(status): _problem(status) for status in _statuses(operation)},
        },
    }
    if operation.role is not None:
        # The empty alternative is the open door of a server for development.
        told["security"] = [{"token": []}, {}]
    if operation.body is not None:
        told["requestBody"] = {"required": True, "content": _content(operation.body)}
    return told


def _description(handler: HTTPRouteHandler, operation: Operation) -> str:
    told = inspect.cleandoc(handler.fn.__doc__ or "")
    return f"{told}\n\nNeeds the role {operation.role}." if operation.role else told


def _parameters(
    path: str, handler: HTTPRouteHandler, operation: Operation
) -> Iterator[dict[str, Any]]:
    for name, kind in re.findall(r"\{(\w+):(\w+)\}", path):
        schema: dict[str, Any] = {"type": "integer" if kind == "int" else "string"}
        yield {"name": name, "in": "path", "required": True, "schema": schema}
    for one in operation.parameters:
        schema = {"type": one.type}
        if one.type == "integer":
            schema["minimum"] = 0
        yield {"name": one.name, "in": "query", "schema": schema, "description": one.description}
    if handler.http_methods & {"POST"} and operation.role is not None:
        yield {
            "name": "Idempotency-Key",
            "in": "header",
            "schema": {"type": "string", "maxLength": 255},
            "description": "The same key is the same request, for a day.",
        }


def _content(kind: object) -> dict[str, Any]:
    if isinstance(kind, str):
        return {kind.partition(";")[0]: {"schema": {"type": "string"}}}
    schema, _ = msgspec.json.schema_components([kind], ref_template=_REF)
    return {"application/json": {"schema": schema[0]}}


def _statuses(operation: Operation) -> list[int]:
    statuses = {400, *operation.statuses}
    if operation.role is not None:
        statuses |= {401, 403, 503}
    if operation.body is not None:
        statuses |= {408, 413, 415, 422}
    return sorted(statuses)


def _problem(status: int) -> dict[str, Any]:
    return {
        "description": _TOLD[status],
        "content": {"application/problem+json": {"schema": _PROBLEM_REF}},
    }
