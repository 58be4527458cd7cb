"""Connections to hosts: shared, bounded for each host, and only to hosts whose key is known."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any, Final

import asyncssh

from hostler.ports.provider import (
    CapacityUnavailable,
    CredentialsRejected,
    OutcomeUnknown,
    ProviderFailed,
    RequestInvalid,
)
from hostler.providers.ssh.options import Host, HostAddress
from hostler.providers.ssh.session import WINDOW_BYTES, CommandSession

KEEPALIVE_S: Final = 15
KEEPALIVE_COUNT_MAX: Final = 3
"""A connection on which so many questions stayed unanswered is dead, whatever TCP believes."""


_Opened = tuple[asyncssh.SSHClientConnection, ...]
"""A connection after those that it goes through."""


class _Connection:
    """One connection, and how many commands it carries."""

    def __init__(self) -> None:
        self.opening: asyncio.Task[_Opened] | None = None
        self.session_count = 0

    @property
    def is_usable(self) -> bool:
        """It stands, or is about to."""
        if self.opening is None or (self.opening.done() and self.opening.exception() is not None):
            return False
        return not self.opening.done() or not self.opening.result()[-1].is_closed()


class HostConnections:
    """All connections to one host."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self._connections: list[_Connection] = []
        self._has_room = asyncio.Condition()

    @contextlib.asynccontextmanager
    async def session(self, command: str) -> AsyncIterator[CommandSession]:
        """Run a command line on the host for the time of a block.

        Raises:
            ProviderFailed: It was not started; after `OutcomeUnknown` it may have been.
        """
        connection = await self._take()
        try:
            opened = await self._opened(connection)
            try:
                session = CommandSession()
                channel, _ = await opened.create_session(
                    lambda: session, command, encoding=None, window=WINDOW_BYTES
                )
            except (asyncssh.Error, OSError) as error:
                raise OutcomeUnknown(
                    "the connection was lost as the command began", host=self.host.name
                ) from error
            try:
                yield session
            finally:
                channel.abort()
        finally:
            connection.session_count -= 1
            async with self._has_room:
                self._has_room.notify_all()

    async def close(self) -> None:
        """End them all."""
        connections, self._connections = self._connections, []
        for connection in connections:
            opening = connection.opening
            if opening is None:
                continue
            if not opening.done():
                opening.cancel()
            with contextlib.suppress(ProviderFailed, asyncio.CancelledError):
                for opened in reversed(await opening):
                    opened.abort()
                    await opened.wait_closed()

    async def _take(self) -> _Connection:
        """Return a connection with room for one more command; waits while there is none."""
        async with self._has_room:
            while True:
                self._connections = [one for one in self._connections if self._is_kept(one)]
                for connection in self._connections:
                    is_free = connection.session_count < self.host.sessions_max
                    if connection.is_usable and is_free:
                        connection.session_count += 1
                        return connection
                if len(self._connections) < self.host.connections_max:
                    connection = _Connection()
                    connection.opening = asyncio.ensure_future(connect(self.host))
                    # Whoever waits for it is told; if nobody does any more, nobody need be.
                    connection.opening.add_done_callback(lambda task: task.exception())
                    connection.session_count = 1
                    self._connections.append(connection)
                    return connection
                await self._has_room.wait()

    def _is_kept(self, connection: _Connection) -> bool:
        if connection.is_usable or connection.session_count > 0:
            return True
        opening = connection.opening
        if opening is not None and opening.done() and opening.exception() is None:
            for opened in opening.result():
                opened.abort()
        return False

    async def _opened(self, connection: _Connection) -> asyncssh.SSHClientConnection:
        if connection.opening is None:
            raise OutcomeUnknown("the connection was closed", host=self.host.name)
        # One caller that gives up does not end it for the others.
        return (await asyncio.shield(connection.opening))[-1]


async def connect(host: Host) -> _Opened:
    """Connect to a host, through its jump host if it has one; the last one is to the host.

    Raises:
        ProviderFailed: Nobody answers, the host's key is not the one that is known, or we are not
            let in; nothing was done there.
    """
    try:
        async with asyncio.timeout(host.connect_ms / 1_000):
            if host.jump is None:
                return (await _connect_one(host, host.address, None),)
            jump = await _connect_one(host, host.jump, None)
            try:
                return jump, await _connect_one(host, host.address, jump)
            except BaseException:
                jump.abort()
                raise
    except asyncssh.HostKeyNotVerifiable as error:
        raise CredentialsRejected(
            "the host does not show the key that is known of it: somebody may be in between, or it"
            " was set up anew",
            host=host.name,
        ) from error
    except asyncssh.PermissionDenied as error:
        raise CredentialsRejected("the host does not let us in", host=host.name) from error
    except (asyncssh.KeyImportError, FileNotFoundError, PermissionError) as error:
        raise RequestInvalid(
            "a key cannot be read", host=host.name, key=host.key, why=str(error)
        ) from error
    except (asyncssh.Error, OSError, TimeoutError) as error:
        raise CapacityUnavailable(
            "the host does not answer",
            scope="host",
            host=host.name,
            why=str(error) or "not in time",
        ) from error


async def _connect_one(
    host: Host, address: HostAddress, tunnel: asyncssh.SSHClientConnection | None
) -> asyncssh.SSHClientConnection:
    trusted: Any = host.known_hosts
    if address.host_key:
        trusted = ([asyncssh.import_public_key(address.host_key)], [], [])
    return await asyncssh.connect(
        address.host,
        address.port,
        username=address.user or host.user,
        client_keys=[host.key],
        known_hosts=trusted,
        # Only what the options say: no configuration, agent or password of the server's user.
        config=None,
        agent_path=None,
        password_auth=False,
        kbdint_auth=False,
        tunnel=tunnel or (),
        keepalive_interval=KEEPALIVE_S,
        keepalive_count_max=KEEPALIVE_COUNT_MAX,
    )
