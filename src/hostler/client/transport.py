"""How requests leave and answers come back: HTTP with patience for a server that restarts."""

from __future__ import annotations

import asyncio
import random
import ssl
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, TypeVar

import httpx

from hostler.client.call import Call
from hostler.client.errors import ClientError, Unreachable, refusal, unreachable

T = TypeVar("T")

TIMEOUT_MS: Final = 30_000
"""Longest time for an answer, beyond what a request asks the server to wait."""

RETRY_MS: Final = 10_000
"""How long a request is tried again: a server restarts in less."""

PAUSE_MS_MIN: Final = 100
PAUSE_MS_MAX: Final = 2_000

TRY_AGAIN: Final = frozenset({429, 502, 503, 504})
"""Statuses that say nothing about the request itself (RFC 9110 15.6, RFC 6585 4)."""


class Pauses:
    """Growing pauses between attempts, until patience ends."""

    def __init__(self, patience_ms: int) -> None:
        self._ends_at_s = time.monotonic() + patience_ms / 1000
        self._next_ms = PAUSE_MS_MIN

    async def pause(self, least_ms: int | None = None) -> bool:
        """Wait before the next attempt; false at once when it would come too late."""
        # Jitter, so that clients that lost one server do not come back in one instant.
        wait_ms = max(least_ms or 0, self._next_ms * (0.5 + random.random()))  # noqa: S311 - no secret depends on it
        self._next_ms = min(2 * self._next_ms, PAUSE_MS_MAX)
        if time.monotonic() + wait_ms / 1000 > self._ends_at_s:
            return False
        await asyncio.sleep(wait_ms / 1000)
        return True


class Transport:
    """One server and one identity towards it."""

    def __init__(
        self,
        url: str,
        *,
        token: str | None = None,
        tls_ca: Path | None = None,
        timeout_ms: int = TIMEOUT_MS,
        retry_ms: int = RETRY_MS,
    ) -> None:
        self.url = url.rstrip("/")
        self.retry_ms = retry_ms
        self.headers = {"Authorization": f"Bearer {token}"} if token else {}
        self.ssl = ssl.create_default_context(cafile=tls_ca) if url.startswith("https") else None
        self._timeout_ms = timeout_ms
        self._http = httpx.AsyncClient(
            base_url=self.url,
            headers=self.headers,
            verify=self.ssl or False,
            timeout=timeout_ms / 1000,
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=20),
            trust_env=False,  # a proxy of the environment must not see tokens for loopback
        )

    async def close(self) -> None:
        """Close all connections."""
        await self._http.aclose()

    async def send(self, call: Call[T]) -> T:
        """Send a request, again after a break, and return its answer.

        Raises:
            ClientError: The server refused it.
            Unreachable: The server was not there for as long as we have patience.
        """
        pauses = Pauses(self.retry_ms)
        while True:
            try:
                return call.decode(await self._once(call))
            except Unreachable:
                if not await pauses.pause():
                    raise
            except ClientError as error:
                if error.status not in TRY_AGAIN or not await pauses.pause(
                    error.problem.retry_after_ms
                ):
                    raise

    async def _once(self, call: Call[T]) -> bytes:
        headers = {}
        if call.body is not None:
            headers["Content-Type"] = "application/json"
        if call.idempotency_key:
            headers["Idempotency-Key"] = call.idempotency_key
        try:
            answer = await self._http.request(
                call.method,
                call.path,
                params=call.params,
                content=call.body,
                headers=headers,
                timeout=(self._timeout_ms + call.wait_ms) / 1000,
            )
        except httpx.TransportError as error:
            raise unreachable(self.url, error) from error
        if answer.status_code >= 400:
            raise refusal(answer.status_code, answer.content)
        return answer.content

    @asynccontextmanager
    async def stream(
        self, path: str, params: dict[str, str], headers: dict[str, str]
    ) -> AsyncIterator[httpx.Response]:
        """Open an answer that has no end of its own.

        Raises:
            ClientError: The server refused it.
            Unreachable: The server is not there, or the connection broke; the caller resumes.
        """
        timeout = httpx.Timeout(self._timeout_ms / 1000, read=None)
        try:
            async with self._http.stream(
                "GET", path, params=params, headers=headers, timeout=timeout
            ) as answer:
                if answer.status_code >= 400:
                    raise refusal(answer.status_code, await answer.aread())
                yield answer
        except httpx.TransportError as error:
            raise unreachable(self.url, error) from error
