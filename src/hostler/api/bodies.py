"""Bodies as bytes: what a request brings, bounded, and what an answer sends, as it is.

The framework's own ways make headers, cookies and encoders anew for each of them, which on the
busiest routes costs more than the core does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from litestar import Response
from litestar.response.base import ASGIResponse
from litestar.types import Receive, Scope, Send

from hostler.api import limits
from hostler.api.context import AnyConnection, header
from hostler.api.errors import Denied, HttpRequest


async def received(request: HttpRequest) -> bytes:
    """Return the whole body of a request.

    Raises:
        Denied: It is too large, or its sender went away.
    """
    announced = header(request, b"content-length") or "0"
    _check_size(int(announced) if announced.isascii() and announced.isdigit() else 0)
    parts: list[bytes] = []
    size = 0
    while True:
        message: Mapping[str, Any] = await request.receive()
        if message["type"] == "http.disconnect":
            raise Denied(400, "body_incomplete", "the connection ended before the body did")
        part: bytes = message.get("body", b"")
        size += len(part)
        _check_size(size)
        if not message.get("more_body", False):
            return b"".join((*parts, part)) if parts else part
        parts.append(part)


def _check_size(size: int) -> None:
    if size > limits.BODY_BYTES_MAX:
        raise Denied(413, "body_too_large", "the body is too large")


class JsonAnswer(Response[bytes]):
    """An answer whose JSON is written already."""

    def __init__(self, body: bytes, status: int | None) -> None:
        """Hold an answer; without a status it has the one of its handler."""
        self.content = body
        self.status_code = status

    def to_asgi_response(
        self,
        app: object,  # noqa: ARG002 - the framework's own answers look at it
        request: AnyConnection,  # noqa: ARG002 - likewise
        *,
        status_code: int | None = None,
        **_: Any,
    ) -> ASGIResponse:
        """Return what sends it."""
        return _Sender(self.content, self.status_code or status_code or 200)


class _Sender(ASGIResponse):
    """Sends a status, two headers and a body."""

    def __init__(self, body: bytes, status: int) -> None:
        self.body = body
        self.status_code = status

    async def __call__(
        self,
        scope: Scope,  # noqa: ARG002 - what every ASGI application is called with
        receive: Receive,  # noqa: ARG002 - likewise
        send: Send,
    ) -> None:
        length = str(len(self.body)).encode()
        await send(
            {
                "type": "http.response.start",
                "status": self.status_code,
                "headers": [
                    (b"content-type", b"application/json"),
                    (b"content-length", length),
                ],
            }
        )
        await send({"type": "http.response.body", "body": self.body, "more_body": False})
