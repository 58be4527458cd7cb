"""Taking a port, with or without TLS, and answering requests on it."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import socket
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import uvicorn
from litestar import Litestar

from hostler.api import limits
from hostler.api.front import Front
from hostler.api.protocol import WholeAnswers
from hostler.base.errors import Rejected
from hostler.wire.documents.rules import is_loopback
from hostler.wire.link import FRAME_BYTES_MAX

BACKLOG: Final = 2_048
"""Connections that the kernel may hold for us: a thousand agents that come back at once."""

KEEP_ALIVE_S: Final = 75
"""Longer than clients keep an idle connection, so that it is they who close it."""


@dataclass(frozen=True)
class Tls:
    """The server's certificate, as PEM files."""

    cert: Path
    key: Path


@dataclass(frozen=True)
class Listening:
    """A port that is ours.

    Attributes:
        host: Address that is listened on, as it was given.
        port: The port's number, also where any free one was asked for.
    """

    socket: socket.socket
    host: str
    port: int
    tls: Tls | None

    @property
    def url(self) -> str:
        """Where clients and agents on this machine find the server."""
        scheme = "http" if self.tls is None else "https"
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(self.host, self.host)  # noqa: S104 - only compared
        return (
            f"{scheme}://[{host}]:{self.port}" if ":" in host else f"{scheme}://{host}:{self.port}"
        )


def listen(host: str, port: int, tls: Tls | None = None) -> Listening:
    """Take a port; 0 takes any that is free.

    Raises:
        Rejected: The port is taken, the address is not this machine's, or it may not be used; or
            the certificate cannot be.
    """
    if tls is not None:
        _check_certificate(tls)
    elif not is_loopback(host):
        raise Rejected(
            "tls_required",
            f"listening on {host} can be reached from elsewhere: give `server.tls` a certificate,"
            " or bind to 127.0.0.1",
        )
    try:
        family, _, _, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        taken = _bound(family, address)
    except socket.gaierror as error:
        raise Rejected("address_unknown", f"{host} is not an address") from error
    except OSError as error:
        raise _not_taken(host, port, error) from error
    taken.setblocking(False)
    return Listening(taken, host, int(taken.getsockname()[1]), tls)


def _check_certificate(tls: Tls) -> None:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    try:
        context.load_cert_chain(tls.cert, tls.key)
    except OSError as error:  # an ssl.SSLError is one too
        raise Rejected(
            "tls_unusable",
            f"the certificate {tls.cert} and the key {tls.key} cannot be used: {error.strerror}",
        ) from error


def _bound(family: socket.AddressFamily, address: tuple[Any, ...]) -> socket.socket:
    taken = socket.socket(family, socket.SOCK_STREAM)
    try:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(address)
        taken.listen(BACKLOG)
    except OSError:
        taken.close()
        raise
    return taken


def _not_taken(host: str, port: int, error: OSError) -> Rejected:
    match error.errno:
        case errno.EADDRINUSE:
            return Rejected(
                "port_taken",
                f"port {port} on {host} is taken: is another server running?"
                " Choose another port with --port",
            )
        case errno.EADDRNOTAVAIL:
            return Rejected("address_foreign", f"{host} is not an address of this machine")
        case errno.EACCES:
            return Rejected(
                "port_forbidden", f"port {port} is not ours to take; use one above 1023"
            )
        case _:
            return Rejected("port_failed", f"cannot listen on {host}:{port}: {error.strerror}")


class _NoFalseAlarm(logging.Filter):
    """Drops what uvicorn (0.54) says of each WebSocket that is refused with an HTTP answer.

    It takes the refusal for a handshake that was forgotten; the peer has had its answer.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Say whether a record is worth telling."""
        return "returned without completing handshake" not in record.msg


_NO_FALSE_ALARM: Final = _NoFalseAlarm()


class HttpServer(uvicorn.Server):
    """uvicorn on a port that is ours, without its own handling of signals.

    Attributes:
        is_up: Set once requests are answered.
    """

    def __init__(self, app: Litestar, listening: Listening) -> None:
        super().__init__(_config(app, listening))
        logging.getLogger("uvicorn.error").addFilter(_NO_FALSE_ALARM)
        self.is_up = asyncio.Event()
        self._socket = listening.socket

    async def run_until_told(self) -> None:
        """Answer requests until `should_exit` is set."""
        await self.serve(sockets=[self._socket])

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to answer, and say so."""
        await super().startup(sockets)
        self.is_up.set()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to whoever runs us."""
        yield


def _config(app: Litestar, listening: Listening) -> uvicorn.Config:
    tls = listening.tls
    return uvicorn.Config(
        Front(app),
        log_config=None,
        log_level="warning",
        access_log=False,
        lifespan="on",
        http=WholeAnswers,
        ws="websockets-sansio",
        ws_max_size=FRAME_BYTES_MAX,
        ws_per_message_deflate=False,
        proxy_headers=False,
        server_header=False,
        date_header=False,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=limits.SHUTDOWN_MS_MAX // 1_000,
        ssl_certfile=None if tls is None else str(tls.cert),
        ssl_keyfile=None if tls is None else str(tls.key),
    )
