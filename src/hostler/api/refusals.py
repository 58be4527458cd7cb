"""Who was refused: counted for metrics, and written into the audit, which nobody can flood.

The first refusal is written down at once; what follows within a while is put together by who, from
where, what and why, so that the store sees a few entries, however many knock.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from typing import Any, Final, cast

from hostler.api.context import CALLER_KEY, AnyConnection, Caller, remote_of
from hostler.api.errors import Denied
from hostler.base.errors import Failed
from hostler.core.asking import AccessNoted
from hostler.engine.engine import Engine
from hostler.model.audit import Origin

TOGETHER_MS: Final = 10_000
"""What comes within so long is written down together."""

KINDS_MAX: Final = 20
"""Kinds of refusals written down at once; whatever else there was is one entry of its own."""

STATUSES: Final = (401, 403)

_OTHERS: Final = ("", "", "", "others", "refused")

_Kind = tuple[str, str, str, str, str]


class Refusals:
    """The refusals of one server.

    Attributes:
        counts: How many there were since the start, by code.
    """

    def __init__(self, engine: Engine) -> None:
        self.counts: Counter[str] = Counter()
        self._engine = engine
        self._waiting: Counter[_Kind] = Counter()
        self._news = asyncio.Event()

    def note(self, connection: AnyConnection, error: Exception) -> None:
        """Take note of an answer, if it is a refusal of somebody who may not."""
        if not isinstance(error, Denied) or error.status not in STATUSES:
            return
        self.counts[error.code] += 1
        kind = _kind_of(connection, error)
        if kind not in self._waiting and len(self._waiting) >= KINDS_MAX:
            kind = _OTHERS
        self._waiting[kind] += 1
        self._news.set()

    async def run(self) -> None:
        """Write down what there is, until cancelled."""
        while True:
            await self._news.wait()
            with contextlib.suppress(Failed):  # the engine ends; so will this
                await self.flush()
            await asyncio.sleep(TOGETHER_MS / 1_000)

    async def flush(self) -> None:
        """Write down what there is.

        Raises:
            Failed: The engine has stopped.
        """
        waiting, self._waiting = self._waiting, Counter()
        self._news.clear()
        if waiting:
            await self._engine.observe(
                *(
                    AccessNoted(
                        principal=principal,
                        origin=Origin(token_id=token_id, remote=remote),
                        action=action,
                        code=code,
                        count=count,
                    )
                    for (principal, token_id, remote, action, code), count in waiting.items()
                )
            )


def _kind_of(connection: AnyConnection, error: Denied) -> _Kind:
    scope = cast("dict[str, Any]", connection.scope)
    caller = scope.get(CALLER_KEY)
    known = caller if isinstance(caller, Caller) else None
    token_id = str(error.fields.get("token_id", "")) if known is None else known.token_id
    method = scope.get("method", "CONNECT")
    handler = scope.get("route_handler")
    route = min(handler.paths) if handler is not None else ""
    return (
        "" if known is None else known.principal,
        token_id,
        remote_of(connection),
        f"{method} {route}".replace(":str", ""),
        error.code,
    )
