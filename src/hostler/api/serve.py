"""Serving: one port, until told to stop. Agents and what they run go on without us.

Whoever starts a server does it in this order: `listen` takes the port, so that its address is
known; then the engine is assembled with that address, given an `AgentLinks`, and started; then
`serve` answers requests until a signal comes or the engine ends.
"""

from __future__ import annotations

import asyncio
import gc
import importlib.util
import os
import signal
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any, Final, TypeVar

import structlog

from hostler.api import limits
from hostler.api.app import create_app
from hostler.api.auth import is_door_open
from hostler.api.configuration import Configuration
from hostler.api.context import Api
from hostler.api.gateway import new_request_id
from hostler.api.links.links import AgentLinks
from hostler.api.listening import HttpServer, Listening
from hostler.base.errors import Rejected
from hostler.core.inputs import CreateToken
from hostler.core.replies import Refused
from hostler.engine.engine import Engine
from hostler.engine.keys import new_token_secret, token_hash
from hostler.model.token import Role
from hostler.wire.documents.rules import is_loopback

T = TypeVar("T")

_log = structlog.get_logger(__name__)

ADMIN_TOKEN_FILE: Final = "admin.token"


async def serve(
    engine: Engine,
    links: AgentLinks,
    listening: Listening,
    *,
    on_ready: Callable[[str], None] | None = None,
    configuration: Configuration | None = None,
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
    server = HttpServer(app, listening)
    stopping = asyncio.create_task(_until_told())
    ended = asyncio.create_task(engine.wait_stopped())
    serving = asyncio.create_task(server.run_until_told())
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


async def _reload_when_told(engine: Engine, configuration: Configuration | None) -> None:
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
    """Run what this process is for, on the fastest event loop that is installed."""
    gc.set_threshold(limits.COLLECT_EVERY_COUNT)
    if importlib.util.find_spec("uvloop") is None:
        return asyncio.run(main)
    import uvloop  # noqa: PLC0415 - only where it is installed

    return uvloop.run(main)
