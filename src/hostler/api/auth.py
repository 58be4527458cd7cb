"""Who asks, and may they: tokens, roles, and the open door of a server for development.

A server on loopback takes requests without a token for as long as there is no admin token; every
answer then says `Hostler-Development: true`. The first admin token closes that door for good, also
when it is revoked or has expired. A server that listens wider has no such door.

A browser on this machine may be made to speak to us by any page that it shows. So on loopback the
`Host` must name loopback (a foreign name that resolves to 127.0.0.1 is refused), and an `Origin`
must be our own.
"""

from __future__ import annotations

import hmac
from functools import lru_cache
from typing import Any, Final, cast
from urllib.parse import urlsplit

from litestar.types import Message, Scope

from hostler.api.context import CALLER_KEY, AnyConnection, Api, Caller, api_of, header
from hostler.api.errors import Denied
from hostler.engine.keys import token_hash
from hostler.model import Token
from hostler.model.token import Role
from hostler.wire.documents.rules import is_loopback

DEVELOPMENT_HEADER: Final = "Hostler-Development"

_DEVELOPMENT: Final = (DEVELOPMENT_HEADER.lower().encode(), b"true")

ROLE_KEY: Final = "role"
"""In a handler's `opt`: the least role that may call it; absent for what everybody may."""

DEVELOPER: Final = Caller(principal="local", role=Role.ADMIN, is_development=True)
"""Whoever asks while the door is open."""


async def authorize(connection: AnyConnection) -> None:
    """Let a connection through to its handler, or refuse it.

    Runs before every HTTP handler; WebSocket handlers call it, because they answer a refusal in
    their own way. (A guard of Litestar's would do both, but copies the handler for each request.)

    Raises:
        Denied: 401 without a valid token, 403 with one that may not.
    """
    api = api_of(connection)
    refuse_foreign_pages(connection, is_on_loopback=api.is_loopback)
    role = connection.route_handler.opt.get(ROLE_KEY)
    if role is None:
        return
    scope = cast("dict[str, Any]", connection.scope)
    # Only code in this process can have put it there: a scope is made by whoever serves.
    caller = scope.get(CALLER_KEY) or identify(api, connection)
    scope[CALLER_KEY] = caller
    if role is Role.AGENT:
        if caller.role is not Role.AGENT and not caller.is_development:
            raise Denied(403, "forbidden", "only an agent's token may do this")
    elif not caller.may(role):
        raise Denied(
            403,
            "forbidden",
            f"this needs the role {role.value}; the token has {caller.role.value}",
            role=caller.role.value,
            needed_role=role.value,
        )


async def say_development(message: Message, scope: Scope) -> None:
    """Say in an answer's head that nobody was asked who they are, where that is so."""
    if message["type"] != "http.response.start":
        return
    caller = cast("dict[str, Any]", scope).get(CALLER_KEY)
    if isinstance(caller, Caller) and caller.is_development:
        message["headers"] = [*message.get("headers", []), _DEVELOPMENT]


def bearer_of(connection: AnyConnection) -> str | None:
    """Return the secret of the `Authorization` header, or `None` when there is none.

    Raises:
        Denied: The header is there and is something else.
    """
    given = header(connection, b"authorization")
    if given is None:
        return None
    scheme, _, secret = given.partition(" ")
    if scheme.lower() != "bearer" or not secret.strip():
        raise Denied(401, "unauthorized", "send `Authorization: Bearer TOKEN`")
    return secret.strip()


def identify(api: Api, connection: AnyConnection) -> Caller:
    """Return who asks.

    Raises:
        Denied: Nobody that we know.
    """
    secret = bearer_of(connection)
    if secret is not None:
        return by_secret(api, secret)
    if is_door_open(api):
        return DEVELOPER
    raise Denied(401, "unauthorized", "this server demands a token; send one as a bearer token")


def by_secret(api: Api, secret: str) -> Caller:
    """Return who a secret belongs to.

    Raises:
        Denied: Nobody, or a token that is revoked or has expired.
    """
    sha256 = token_hash(secret)
    token = api.engine.token_of(sha256)
    # Found by its hash; compared once more in constant time, as a habit that costs nothing.
    if token is None or not hmac.compare_digest(token.sha256, sha256):
        raise Denied(401, "unauthorized", "this token is not known here")
    if token.is_revoked:
        raise Denied(401, "token_revoked", "this token has been revoked", token_id=token.token_id)
    if token.expires_at_ms is not None and token.expires_at_ms <= api.engine.clock.now_ms():
        raise Denied(401, "token_expired", "this token has expired", token_id=token.token_id)
    return _caller(token)


def _caller(token: Token) -> Caller:
    return Caller(
        principal=token.name or token.token_id,
        role=token.role,
        pool=token.pool,
        tier=token.tier,
        token_id=token.token_id,
    )


def is_door_open(api: Api) -> bool:
    """Say whether requests without a token are taken now."""
    if not api.is_loopback or api.has_admin:
        return False
    api.has_admin = any(token.role is Role.ADMIN for token in api.engine.tokens())
    return not api.has_admin


def refuse_foreign_pages(connection: AnyConnection, *, is_on_loopback: bool) -> None:
    """Refuse what a page of somebody else makes a browser send.

    Raises:
        Denied: The host is not ours, or the origin is not.
    """
    host = header(connection, b"host") or ""
    if is_on_loopback and not _names_loopback(host):
        raise Denied(403, "host_foreign", "this server answers to loopback names only", host=host)
    origin = header(connection, b"origin")
    if origin is not None and urlsplit(origin).netloc != host:
        raise Denied(403, "origin_foreign", "pages of other sites may not ask", origin=origin)


@lru_cache(maxsize=256)
def _names_loopback(host: str) -> bool:
    """Say whether a `Host` header names this machine; a busy server sees few different ones."""
    try:
        return is_loopback(urlsplit(f"//{host}").hostname or "")
    except ValueError:
        return False
