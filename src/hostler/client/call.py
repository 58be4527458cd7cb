"""A request of the API as a value: what to send, and what comes back.

The clients only send these. Each is safe to send again: reads change nothing, releases and
heartbeats repeat without harm, and every other change carries an idempotency key.
"""

from __future__ import annotations

import secrets
from typing import Any, Generic, TypeVar
from urllib.parse import quote

import msgspec

T = TypeVar("T")

Params = dict[str, str | int | bool | None]


class Call(msgspec.Struct, Generic[T], frozen=True, kw_only=True):
    """One request."""

    method: str
    path: str
    answer: type[T]
    params: dict[str, str] = {}
    body: bytes | None = None
    idempotency_key: str = ""
    wait_ms: int = 0
    """How long the server may keep it open on purpose."""

    def decode(self, body: bytes) -> T:
        """Read the answer."""
        return msgspec.json.decode(body, type=self.answer)


def segment(text: str) -> str:
    """Quote one part of a path."""
    return quote(text, safe="")


def _params(given: Params) -> dict[str, str]:
    told: dict[str, str] = {}
    for name, value in given.items():
        if isinstance(value, bool):
            told[name] = "true" if value else "false"
        elif value is not None:
            told[name] = str(value)
    return told


def getting(path: str, answer: type[T], *, wait_ms: int = 0, **params: Any) -> Call[T]:
    """Read something; parameters that are `None` are left out."""
    if wait_ms:
        params["wait_ms"] = wait_ms
    return Call(method="GET", path=path, answer=answer, params=_params(params), wait_ms=wait_ms)


def posting(
    path: str,
    answer: type[T],
    body: object = None,
    *,
    key: str | None = None,
    wait_ms: int = 0,
    **params: Any,
) -> Call[T]:
    """Make a change; `key` is its idempotency key, `None` makes one up, empty sends none."""
    return Call(
        method="POST",
        path=path,
        answer=answer,
        params=_params(params),
        body=None if body is None else msgspec.json.encode(body),
        idempotency_key=secrets.token_urlsafe(18) if key is None else key,
        wait_ms=wait_ms,
    )


def putting(path: str, answer: type[T], body: object, **params: Any) -> Call[T]:
    """Make something be as the body says, however often it is said."""
    return Call(
        method="PUT",
        path=path,
        answer=answer,
        params=_params(params),
        body=msgspec.json.encode(body),
    )
