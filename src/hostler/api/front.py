"""The busiest routes, called without the framework's dispatch.

For each request the framework looks for the handler in a tree, makes its arguments, and wraps what
it sends four times over; on the routes that leasing lives from, that takes a tenth of the server's
time. Here the same handlers are found by their path, and authorised and answered by the same
functions. Whatever is not exactly one of these routes goes the framework's way, which also knows
what to say of it.
"""

from __future__ import annotations

from typing import Any, Final, cast

from litestar import Litestar, Request
from litestar.handlers import HTTPRouteHandler
from litestar.routes import HTTPRoute
from litestar.types import Message, Receive, Scope, Send

from hostler.api.auth import authorize, say_development
from hostler.api.errors import answer_error
from hostler.api.http import OPERATION_KEY, Operation

_LEASE: Final = "lease_id"
"""The part of their paths that differs."""


class Front:
    """The application, as whoever serves it calls it."""

    def __init__(self, app: Litestar) -> None:
        self._app = app
        self._busy: dict[tuple[object, str], HTTPRouteHandler] = {
            (str(method), route.path_format): handler
            for route in app.routes
            if isinstance(route, HTTPRoute)
            for handler in route.route_handlers
            if _is_busy(handler)
            for method in handler.http_methods
        }

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or have the framework answer it."""
        handler = self._find(scope)
        if handler is None:
            await self._app(scope, receive, send)
            return

        async def tell(message: Message) -> None:
            await say_development(message, scope)
            await send(message)

        connected = cast("dict[str, Any]", scope)
        connected["litestar_app"] = connected["app"] = self._app
        connected["route_handler"] = handler
        request: Request[Any, Any, Any] = Request(scope, receive, send)
        try:
            await authorize(request)
            response = await handler.fn(request)
        except Exception as error:  # noqa: BLE001 - whatever it is, the client gets an answer
            response = answer_error(request, error)
        answer = response.to_asgi_response(None, request, status_code=handler.status_code)
        await answer(scope, receive, tell)

    def _find(self, scope: Scope) -> HTTPRouteHandler | None:
        """Return the handler of a busy route, and keep the part of the path that it wants."""
        method, path = scope.get("method"), scope.get("path", "")
        found = self._busy.get((method, path))
        if found is not None:
            scope["path_params"] = {}
            return found
        stem, _, verb = path.rpartition("/")
        stem, _, key = stem.rpartition("/")
        found = self._busy.get((method, f"{stem}/{{{_LEASE}}}/{verb}")) if key else None
        if found is not None:
            scope["path_params"] = {_LEASE: key}
        return found


def _is_busy(handler: HTTPRouteHandler) -> bool:
    operation = handler.opt.get(OPERATION_KEY)
    return isinstance(operation, Operation) and operation.is_busy
