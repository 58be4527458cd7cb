"""What every handler needs: the engine, the links to agents, and who asks."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from litestar.connection import ASGIConnection

from hostler.api.configuration import Configuration
from hostler.api.links.links import AgentLinks
from hostler.engine.engine import Engine
from hostler.model.token import Role

if TYPE_CHECKING:
    from hostler.api.refusals import Refusals

T = TypeVar("T")

CALLER_KEY: Final = "hostler.caller"
"""Where a connection's scope keeps who asks."""

_HEADERS_KEY: Final = "hostler.headers"

RANKS: Final = {Role.VIEWER: 0, Role.LESSEE: 1, Role.OPERATOR: 2, Role.ADMIN: 3}
"""Each role may also do what the lower ones may; agents stand apart."""

AnyConnection = ASGIConnection[Any, Any, Any, Any]


@dataclass(frozen=True)
class Caller:
    """Who asks.

    Attributes:
        principal: The name in the audit.
        pool: The only pool that a lessee may lease from; empty for any.
        tier: Of an agent's join token.
        token_id: The token that was shown, where one was.
        is_development: Nobody was asked who they are, because only this machine can reach us.
    """

    principal: str
    role: Role
    pool: str = ""
    tier: str = ""
    token_id: str = ""
    is_development: bool = False

    def may(self, role: Role) -> bool:
        """Say whether a role's rights are among the caller's."""
        return role in RANKS and RANKS.get(self.role, -1) >= RANKS[role]


@dataclass
class Api:
    """One server's side of the API.

    Attributes:
        refusals: Who was refused.
        is_loopback: The server listens where only this machine can reach it.
        stopping: Set when streams shall end.
    """

    engine: Engine
    links: AgentLinks
    is_loopback: bool
    refusals: Refusals
    configuration: Configuration | None = None
    """What is read again on `config reload`; `None` where it cannot be."""
    has_admin: bool = False
    """An admin token has been seen, or whoever embeds us is the admin; from then on nobody gets in
    without a token."""
    stopping: asyncio.Event = field(default_factory=asyncio.Event)


def api_of(connection: AnyConnection) -> Api:
    """Return the server's side of a connection."""
    return cast("Api", connection.app.state.api)


def caller_of(connection: AnyConnection) -> Caller:
    """Return who asks; `auth.authorize` has put it there."""
    scope = cast("dict[str, Any]", connection.scope)
    return cast("Caller", scope[CALLER_KEY])


def remote_of(connection: AnyConnection) -> str:
    """Return the address that a connection comes from, or nothing where it has none."""
    client = connection.scope.get("client")
    return str(client[0]) if client else ""


def header(connection: AnyConnection, name: bytes) -> str | None:
    """Return a header of the request; names are in lower case. Parsed once a request."""
    scope = cast("dict[str, Any]", connection.scope)
    found: dict[bytes, bytes] | None = scope.get(_HEADERS_KEY)
    if found is None:
        found = scope[_HEADERS_KEY] = dict(scope["headers"])
    value = found.get(name)
    return None if value is None else value.decode("latin-1")


async def or_stopping(api: Api, work: Coroutine[Any, Any, T]) -> T | None:
    """Do something that may take long; give it up with `None` when the server stops."""
    working = asyncio.ensure_future(work)
    stopping = asyncio.ensure_future(api.stopping.wait())
    stopping.add_done_callback(lambda _: working.cancel())
    try:
        # Nothing stands between the work and whoever waits for it: each pass of the loop in between
        # would be behind the engine's next step.
        return await working
    except asyncio.CancelledError:
        me = asyncio.current_task()
        if not api.stopping.is_set() or (me is not None and me.cancelling()):
            raise
        return None
    finally:
        stopping.cancel()
