"""The connection of a command to its server. Nothing of the client loads before it is used."""

from __future__ import annotations

import sys
import time
from contextlib import ExitStack
from functools import cached_property
from typing import TYPE_CHECKING, Final, Self

from hostler.cli.context import Target

if TYPE_CHECKING:
    from hostler.client import Client, SyncClient

PATIENCE_MS: Final = 30_000
"""How long what follows something (events, a lease, a run) rides out an absent server: a restart
on a large store takes less (DESIGN 10)."""


# httpx brings a command line of its own, and with it a terminal toolkit that costs more than half
# of its start. Where that module is not to be had, it goes on without.
sys.modules.setdefault("httpx._main", None)  # type: ignore[arg-type]  # None is how sys.modules says no


class Remote:
    """A server, and the clients to talk to it. A context manager, which closes them."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self._open = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    @cached_property
    def client(self) -> SyncClient:
        """The blocking client. It does not try again: people see at once that nobody answers."""
        return self._blocking(retry_ms=0)

    @cached_property
    def patient_client(self) -> SyncClient:
        """The blocking client for what lasts; rides out a server that restarts."""
        return self._blocking(retry_ms=PATIENCE_MS)

    def async_client(self) -> Client:
        """Make a patient asynchronous client; the caller closes it."""
        from hostler.client import Client

        target = self.target
        return Client(target.url, token=target.token, tls_ca=target.tls_ca, retry_ms=PATIENCE_MS)

    async def first_contact(self) -> None:
        """Find out at once whether the server is there and lets us in, before patience begins.

        Raises:
            Unreachable: It is not there.
            ClientError: It does not let us in.
        """
        from hostler.client import Client

        target = self.target
        async with Client(
            target.url, token=target.token, tls_ca=target.tls_ca, retry_ms=0
        ) as client:
            await client.status()

    def _blocking(self, retry_ms: int) -> SyncClient:
        from hostler.client import SyncClient

        target = self.target
        client = SyncClient(target.url, token=target.token, tls_ca=target.tls_ca, retry_ms=retry_ms)
        return self._open.enter_context(client)


def now_ms() -> int:
    """Return the wall time, for ages and deadlines that people see."""
    return time.time_ns() // 1_000_000
