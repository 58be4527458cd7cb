"""How requests leave and answers come back, with patience for a server that restarts.

Two things are such a transport: HTTP (`hostler.client.http_transport`), and a fleet in the same
process (`hostler.embedded`). All that is above it is the same for both.
"""

from __future__ import annotations

import asyncio
import random
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from typing import Final, Protocol, TypeVar

from hostler.client.call import Call
from hostler.client.errors import ClientError, Unreachable

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


class Streamed(Protocol):
    """An answer that is read as it comes."""

    def aiter_lines(self) -> AsyncIterator[str]:
        """Yield its lines, without their ends."""
        ...

    def aiter_raw(self) -> AsyncIterator[bytes]:
        """Yield its bytes."""
        ...


class FramesEnded(Exception):
    """There are no more frames; the text says why, where that is known."""


class Frames(Protocol):
    """Frames of text in both directions: a WebSocket, or what does as much within one process."""

    async def send(self, text: str) -> None:
        """Hand a frame on; waits while the peer does not take it. Nothing once it is closed."""
        ...

    async def receive(self) -> str | bytes:
        """Return the next frame.

        Raises:
            FramesEnded: The connection is closed.
        """
        ...

    async def close(self) -> None:
        """Close the connection."""
        ...


class Transport(ABC):
    """One server and one identity towards it.

    Attributes:
        url: Of the server, as people are told of it.
        retry_ms: How long a request is tried again while the server is away or overloaded.
    """

    url: str
    retry_ms: int

    async def send(self, call: Call[T]) -> T:
        """Send a request, again after a break, and return its answer.

        Raises:
            ClientError: The server refused it.
            Unreachable: The server was not there for as long as we have patience.
        """
        pauses = Pauses(self.retry_ms)
        while True:
            try:
                return call.decode(await self.send_once(call))
            except Unreachable:
                if not await pauses.pause():
                    raise
            except ClientError as error:
                if error.status not in TRY_AGAIN or not await pauses.pause(
                    error.problem.retry_after_ms
                ):
                    raise

    @abstractmethod
    async def send_once(self, call: Call[T]) -> bytes:
        """Send a request once and return the body of its answer.

        Raises:
            ClientError: The server refused it.
            Unreachable: The server is not there.
        """

    @abstractmethod
    def stream(
        self, path: str, params: dict[str, str], headers: dict[str, str]
    ) -> AbstractAsyncContextManager[Streamed]:
        """Open an answer that has no end of its own.

        Raises:
            ClientError: The server refused it.
            Unreachable: The server is not there, or the connection broke; the caller resumes.
        """

    @abstractmethod
    async def connect(self, path: str, params: dict[str, str]) -> Frames:
        """Open a connection for frames.

        Raises:
            ClientError: The server refused it.
            Unreachable: The server is not there.
        """

    @abstractmethod
    async def close(self) -> None:
        """Close all connections."""
