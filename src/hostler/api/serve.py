"""Serving: one port, until told to stop. Agents and what they run go on without us.

Whoever starts a server does it in this order: `listen` takes the port, so that its address is
known; then the engine is assembled with that address, given an `AgentLinks`, and started; then
`serve` answers requests until a signal comes or the engine ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import importlib.util
import os
import signal
import socket
import ssl
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeVar

import structlog
import uvicorn
from litestar import Litestar

from hostler.api import limits
from hostler.api.app import create_app
from hostler.api.auth import is_door_open
from hostler.api.configuration import ConfigurationFile
from hostler.api.context import Api
from hostler.api.gateway import new_request_id
from hostler.api.links.links import AgentLinks
from hostler.base.errors import Rejected
from hostler.core.inputs import CreateToken
from hostler.core.replies import Refused
from hostler.engine.engine import Engine
from hostler.engine.keys import new_token_secret, token_hash
from hostler.model.token import Role
from hostler.wire.documents.rules import is_loopback
from hostler.wire.link import FRAME_BYTES_MAX

T = TypeVar("T")

_log = structlog.get_logger(__name__)

BACKLOG: Final = 2_048
"""Connections that the kernel may hold for us: a thousand agents that come back at once."""

KEEP_ALIVE_S: Final = 75
"""Longer than clients keep an idle connection, so that it is they who close it."""

ADMIN_TOKEN_FILE: Final = "admin.token"


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


class _Server(uvicorn.Server):
    """uvicorn without its own handling of signals; ours ends streams first."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.is_up = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to answer, and say so."""
        await super().startup(sockets)
        self.is_up.set()

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to `serve`."""
        yield


async def serve(
    engine: Engine,
    links: AgentLinks,
    listening: Listening,
    *,
    on_ready: Callable[[str], None] | None = None,
    configuration: ConfigurationFile | None = None,
) -> signal.Signals | None:
    """Answer requests until SIGTERM or SIGINT, or until the engine ends; then stop the engine.

    Returns the signal that ended it; from then on signals are the caller's.

    Args:
        engine: Started; `links` is attached to it.
        links: The links to agents.
        listening: From `listen`.
        on_ready: Told the URL once requests are answered; without it the log is.
        configuration: Read again when asked to, also by SIGHUP.

    Raises:
        Defect: The engine stopped itself; exit, and let the restart recover.
        Failed: It lost its store or its leadership; likewise.
    """
    app = create_app(
        engine,
        links,
        is_loopback=is_loopback(listening.host),
        configuration=configuration,
    )
    api: Api = app.state.api
    server = _Server(_config(app, listening))
    stopping = asyncio.create_task(_until_told())
    ended = asyncio.create_task(engine.wait_stopped())
    serving = asyncio.create_task(server.serve(sockets=[listening.socket]))
    up = asyncio.create_task(server.is_up.wait())
    reloading = asyncio.create_task(_reload_when_told(engine, configuration))
    try:
        await asyncio.wait((up, serving), return_when=asyncio.FIRST_COMPLETED)
        if on_ready is not None:
            on_ready(listening.url)
        else:
            _tell(api, listening)
        await asyncio.wait((stopping, ended, serving), return_when=asyncio.FIRST_COMPLETED)
    finally:
        api.stopping.set()
        server.should_exit = True
        stopping.cancel()
        up.cancel()
        reloading.cancel()
        await asyncio.gather(serving, stopping, up, reloading, return_exceptions=True)
        await engine.stop()
    await ended
    return stopping.result() if stopping.done() and not stopping.cancelled() else None


def _config(app: Litestar, listening: Listening) -> uvicorn.Config:
    tls = listening.tls
    return uvicorn.Config(
        app,
        log_config=None,
        log_level="warning",
        access_log=False,
        lifespan="on",
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


async def _until_told() -> signal.Signals:
    """Return when the process is asked to end, with the signal that asked."""
    loop = asyncio.get_running_loop()
    told: asyncio.Future[signal.Signals] = loop.create_future()

    def tell(number: signal.Signals) -> None:
        if not told.done():
            told.set_result(number)

    signals = (signal.SIGTERM, signal.SIGINT)
    for one in signals:
        loop.add_signal_handler(one, tell, one)
    try:
        await told
    finally:
        for one in signals:
            loop.remove_signal_handler(one)
    # Whoever asks twice means at once: no Python in between. A kill is safe at any moment.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    return told.result()


async def _reload_when_told(engine: Engine, configuration: ConfigurationFile | None) -> None:
    """Read the configuration again whenever SIGHUP comes; several at once are one."""
    if configuration is None:
        return
    loop, told = asyncio.get_running_loop(), asyncio.Event()
    loop.add_signal_handler(signal.SIGHUP, told.set)
    try:
        while True:
            await told.wait()
            told.clear()
            await configuration.reload_on_signal(engine, new_request_id())
    finally:
        loop.remove_signal_handler(signal.SIGHUP)


def _tell(api: Api, listening: Listening) -> None:
    if is_door_open(api):
        _log.warning(
            "development",
            url=listening.url,
            hint="no token is needed on this machine; the first admin token ends that",
        )
    _log.info("serving", url=listening.url)


async def ensure_admin(engine: Engine, listening: Listening, folder: Path) -> Path | None:
    """Give a server that can be reached from elsewhere its first admin token, in a file.

    Returns the file when it was just made; its mode is 0600.

    Raises:
        Rejected: The core refused the token.
        Failed: It could not be made durable.
    """
    if is_loopback(listening.host) or any(one.role is Role.ADMIN for one in engine.tokens()):
        return None
    secret = new_token_secret()
    path = folder / ADMIN_TOKEN_FILE
    # The file first: a token whose secret nobody has would lock everybody out.
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(file, "w", encoding="ascii") as out:
        out.write(f"{secret}\n")
    result = await engine.submit(
        CreateToken(
            request_id=new_request_id(),
            principal="server",
            name="admin",
            role=Role.ADMIN,
            sha256=token_hash(secret),
        )
    )
    if isinstance(result, Refused):
        raise Rejected(result.code, result.message)
    return path


def run(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine on the fastest event loop that is installed."""
    if importlib.util.find_spec("uvloop") is None:
        return asyncio.run(main)
    import uvloop  # noqa: PLC0415 - only where it is installed

    return uvloop.run(main)
