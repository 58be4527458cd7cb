"""The application: handlers, authorisation and error pages put together on Litestar."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

from litestar import Litestar
from litestar.datastructures import State
from litestar.exceptions import HTTPException

from hostler.api import limits, openapi
from hostler.api.auth import authorize, say_development
from hostler.api.configuration import Configuration
from hostler.api.context import Api
from hostler.api.deputies.deputies import Deputies
from hostler.api.errors import answer_error, log_socket_error
from hostler.api.links.links import AgentLinks
from hostler.api.refusals import Refusals
from hostler.api.routes import ROUTES
from hostler.base.errors import Failed, HostlerError
from hostler.engine.engine import Engine

Lifespan = Callable[[Litestar], AbstractAsyncContextManager[None]]


def create_app(
    engine: Engine,
    links: AgentLinks,
    *,
    is_loopback: bool,
    configuration: Configuration | None = None,
    has_open_door: bool = True,
) -> Litestar:
    """Make the application of one server.

    Args:
        engine: Started by whoever made it, with `links` attached before.
        links: The links to agents; watched for silence while the application runs.
        is_loopback: Only this machine can reach the port: the one case in which requests without
            a token may be taken (see `hostler.api.auth`).
        configuration: What can be read again; without it the configuration stays.
        has_open_door: False demands tokens also where only this machine can reach the port.
    """
    refusals = Refusals(engine)
    api = Api(
        engine=engine,
        links=links,
        refusals=refusals,
        is_loopback=is_loopback,
        configuration=configuration,
        has_admin=not has_open_door,
    )

    @contextlib.asynccontextmanager
    async def run(_: Litestar) -> AsyncIterator[None]:
        tasks = [asyncio.create_task(links.watch()), asyncio.create_task(refusals.run())]
        deputies = Deputies(links)
        await deputies.start()
        try:
            yield
        finally:
            api.stopping.set()
            await deputies.close()
            with contextlib.suppress(Failed):  # an engine that has ended takes no more
                await refusals.flush()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await links.close()

    return _application(api, run)


def _application(api: Api | None, *lifespan: Lifespan) -> Litestar:
    return Litestar(
        route_handlers=ROUTES,
        before_request=authorize,
        before_send=[say_development],
        exception_handlers={
            HostlerError: answer_error,
            HTTPException: answer_error,
            Exception: answer_error,
        },
        after_exception=[log_socket_error],
        lifespan=lifespan,
        state=State({"api": api}),
        request_max_body_size=limits.BODY_BYTES_MAX,
        openapi_config=None,
        logging_config=None,
    )


def create_openapi() -> dict[str, Any]:
    """Return the OpenAPI document, for the documentation; needs no engine."""
    return openapi.document(_application(None).routes)
