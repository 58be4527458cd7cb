"""The life of an embedded fleet: assembled as a server's, answering within the process, and ended.

It also listens on loopback, on any free port: that is where agents on launched machines find it. In
there nobody gets without a token, as whoever embeds us is the admin and no door is open.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from collections.abc import AsyncIterator, MutableMapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import structlog
from litestar import Litestar

from hostler.api.app import create_app
from hostler.api.context import Api, Caller
from hostler.api.gateway import new_request_id
from hostler.api.links.links import AgentLinks
from hostler.api.listening import HttpServer, Listening, listen
from hostler.base.errors import Failed, Rejected
from hostler.embedded.configuration import Config, GivenConfiguration, reading_of
from hostler.embedded.fleet import Fleet
from hostler.embedded.transport import InProcessTransport
from hostler.engine.assemble import MEMORY_URL, EngineOptions, assemble
from hostler.engine.engine import Engine
from hostler.model.token import Role
from hostler.ports.provider import ProviderKind

_log = structlog.get_logger(__name__)

LOOPBACK: Final = "127.0.0.1"


@asynccontextmanager
async def open_fleet(
    config: Config,
    *,
    store: str | os.PathLike[str] | None = None,
    providers: Sequence[ProviderKind] = (),
    principal: str = "embedded",
    ends_machines: bool = False,
) -> AsyncIterator[Fleet]:
    """Run a fleet in this process for the time of a block.

    Args:
        config: The path of a `hostler.yaml`, or its values; `server:` is for `hostler server`.
        store: Folder of the database, as of `hostler server --data`: one block after the other, or
            a server, goes on with the same fleet. Without it everything is in memory.
        providers: Providers of the program's own, besides those that are installed.
        principal: Who we are in the audit, and the holder of our leases.
        ends_machines: Have launched machines end with the block. Those of a fleet in memory always
            do, as nobody would remember them.

    Raises:
        DocumentRejected: The configuration has problems; all of them are told.
        Rejected: The store cannot be used: another process has it, or a newer Hostler wrote it.
        Failed: At the end of the block: the engine stopped itself, or machines would not go.
    """
    _log_to_the_program()
    reading_of(config).require()  # before a port or a file is touched
    async with AsyncExitStack() as stack:
        folder = _folder(store, stack)
        listening = listen(LOOPBACK, 0)
        stack.enter_context(listening.socket)
        options = EngineOptions(
            store_url=MEMORY_URL if store is None else _store_url(folder),
            folder=folder,
            server_url=listening.url,
            providers={kind.name: kind for kind in providers},
        )
        engine, links = await _started(options, stack)
        configuration = GivenConfiguration(config)
        await configuration.reload(engine, request_id=new_request_id(), principal=principal)
        app = create_app(
            engine, links, is_loopback=True, configuration=configuration, has_open_door=False
        )
        await stack.enter_async_context(_answering(app, listening))
        api: Api = app.state.api
        transport = InProcessTransport(app, Caller(principal, Role.ADMIN), listening.url)
        fleet = Fleet(transport, api, configuration, principal)
        stack.push_async_callback(fleet.close)
        try:
            yield fleet
        finally:
            await _finish(fleet, engine, ends_machines=ends_machines or store is None)


async def _started(options: EngineOptions, stack: AsyncExitStack) -> tuple[Engine, AgentLinks]:
    """Start an engine that ends with the stack, and the links to its agents.

    Raises:
        Rejected: The store cannot be used.
    """
    engine = await assemble(options)
    stack.push_async_callback(engine.stop)
    links = AgentLinks(engine)
    engine.attach(links)
    await engine.start()
    return engine, links


def _folder(store: str | os.PathLike[str] | None, stack: AsyncExitStack) -> Path:
    """Return the data folder, made if it is missing.

    Raises:
        Rejected: It cannot be made.
    """
    if store is None:
        return Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="hostler-")))
    folder = Path(store).absolute()
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise Rejected("store_unusable", f"{folder} cannot be the data folder: {why}") from error
    return folder


def _store_url(folder: Path) -> str:
    return f"sqlite:///{quote(str(folder / 'hostler.db'))}"


@asynccontextmanager
async def _answering(app: Litestar, listening: Listening) -> AsyncIterator[None]:
    """Start the application, and answer agents on the port."""
    server = HttpServer(app, listening)
    serving = asyncio.create_task(server.run_until_told())
    up = asyncio.create_task(server.is_up.wait())
    try:
        await asyncio.wait((up, serving), return_when=asyncio.FIRST_COMPLETED)
        yield
    finally:
        app.state.api.stopping.set()
        server.should_exit = True
        up.cancel()
        await asyncio.gather(up, serving, return_exceptions=True)


async def _finish(fleet: Fleet, engine: Engine, *, ends_machines: bool) -> None:
    """End what shall not outlive the block, and say what went wrong in the engine.

    Raises:
        Failed: The engine stopped itself, or machines would not go.
    """
    failure: BaseException | None = None
    try:
        await engine.check()
        left = await fleet.drain(deadline_ms=0) if ends_machines else []
        if left:
            failure = Failed(
                "machines_left",
                "not all machines are gone: end them at their provider",
                machines=", ".join(f"{one.provider} {one.machine_id}" for one in left),
            )
    except Failed:
        await engine.wait_stopped()
        raise
    if failure is None:
        return
    if sys.exc_info()[0] is None:
        raise failure
    _log.error("machines_left", why=str(failure))


def _log_to_the_program() -> None:
    """Hand our log to the program's logging, unless it has set structlog up as it likes."""
    if structlog.is_configured():
        return
    structlog.configure(
        processors=[structlog.stdlib.filter_by_level, _as_a_line],
        wrapper_class=structlog.stdlib.BoundLogger,
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=False,
    )


def _as_a_line(
    _: object, __: str, event: MutableMapping[str, Any]
) -> tuple[tuple[str], dict[str, Any]]:
    """Write what is logged as one text: as `extra`, its names could be those of the log's own."""
    error = event.pop("exc_info", None)
    told = [str(event.pop("event", "")), *(f"{name}={value!r}" for name, value in event.items())]
    return (" ".join(told),), {"exc_info": error}
