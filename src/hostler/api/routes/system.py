"""The server itself: status, configuration, explanations, health, metrics, and the way in."""

from __future__ import annotations

from typing import Final, TypeVar

import msgspec
from litestar import Response, get

import hostler
from hostler.api import openapi
from hostler.api.auth import is_door_open
from hostler.api.context import Api, Caller, api_of, caller_of
from hostler.api.convert import fleet as fleet_views
from hostler.api.convert.nodes import pool as pool_view
from hostler.api.errors import HttpRequest
from hostler.api.http import Operation, answer, described
from hostler.api.metrics import exposition
from hostler.core.fleet import Fleet
from hostler.core.tables import SetIndex
from hostler.model.record import Record
from hostler.model.token import Role
from hostler.wire.http import ConfigView, StatusView

R = TypeVar("R", bound=Record)

_METRICS_TYPE: Final = "text/plain; version=0.0.4"


@get(
    "/v1/status",
    **described(
        Operation(
            summary="The server and the fleet in numbers", answer=StatusView, role=Role.VIEWER
        )
    ),
)
async def status(request: HttpRequest) -> Response[bytes]:
    """Also says who asks, and with which role."""
    api, caller = api_of(request), caller_of(request)
    return answer(await api.engine.read(lambda fleet: _status(api, caller, fleet)))


def _status(api: Api, caller: Caller, fleet: Fleet) -> StatusView:
    index = fleet.index
    pools = sorted(fleet.pools.rows)
    return StatusView(
        version=hostler.__version__,
        fleet_id="" if fleet.settings is None else fleet.settings.fleet_id,
        revision=fleet.revision,
        event_seq=fleet.event_seq,
        started_at_ms=api.engine.gauges.started_at_ms,
        now_ms=api.engine.clock.now_ms(),
        is_development=is_door_open(api),
        principal=caller.principal,
        role=caller.role,
        node_count_by_phase=_counts(index.nodes_by_phase),
        replica_count_by_phase=_counts(index.replicas_by_phase),
        allocation_count_by_phase=_counts(index.allocations_by_phase),
        lease_waiting_count=sum(index.leases_waiting.count(name) for name in pools),
        lease_held_count=sum(index.leases_held.count(name) for name in pools),
        outbox_count=len(fleet.commands),
        agent_count=api.links.connected_count,
    )


def _counts(index: SetIndex[R]) -> dict[str, int]:
    return {phase: index.count(phase) for phase in index.buckets()}


@get(
    "/v1/config",
    **described(
        Operation(summary="The configuration in force", answer=ConfigView, role=Role.VIEWER)
    ),
)
async def config(request: HttpRequest) -> Response[bytes]:
    """As records hold it: in milliseconds, bytes and counts."""

    def read(fleet: Fleet) -> ConfigView:
        return ConfigView(
            settings=None if fleet.settings is None else fleet_views.settings(fleet.settings),
            pools=[pool_view(fleet, pool) for pool in fleet.pools.in_order()],
        )

    return answer(await api_of(request).engine.read(read))


@get(
    "/healthz",
    **described(Operation(summary="Whether the process works", answer="text/plain")),
)
async def healthz() -> Response[str]:
    """Fails only when restarting would help."""
    return Response("ok\n", media_type="text/plain")


@get(
    "/readyz",
    **described(
        Operation(summary="Whether requests can be served", answer="text/plain", statuses=(503,))
    ),
)
async def readyz(request: HttpRequest) -> Response[str]:
    """Asks the store."""
    await api_of(request).engine.check()
    return Response("ok\n", media_type="text/plain")


@get(
    "/metrics",
    **described(
        Operation(summary="Metrics for Prometheus", answer=_METRICS_TYPE, role=Role.VIEWER)
    ),
)
async def metrics(request: HttpRequest) -> Response[bytes]:
    """Counts by phase, lines, outbox, steps and commits."""
    return Response(await exposition(api_of(request)), media_type=_METRICS_TYPE)


@get(
    "/openapi.json",
    **described(Operation(summary="This document", answer="application/json")),
)
async def openapi_document(request: HttpRequest) -> Response[bytes]:
    """OpenAPI 3.1."""
    return Response(
        msgspec.json.encode(openapi.document(request.app.routes)), media_type="application/json"
    )


@get("/", **described(Operation(summary="The way in", answer="text/plain")))
async def root(request: HttpRequest) -> Response[str]:
    """Names the next steps, for whoever opens the port in a browser."""
    door = (
        "Development: on loopback and without tokens, whoever is on this machine may do all.\n"
        "`hostler token create admin --role admin` closes that door.\n"
        if is_door_open(api_of(request))
        else "Requests need a token: Authorization: Bearer TOKEN\n"
    )
    return Response(
        f"Hostler {hostler.__version__}\n\n{door}\n"
        "  hostler get nodes          what is there\n"
        "  hostler apply -f FILE      have something run\n"
        "  hostler events -f          watch what happens\n\n"
        "  /openapi.json              the API\n"
        "  /v1/status                 the fleet in numbers\n"
        "  /metrics                   for Prometheus\n"
        "  /healthz, /readyz          for probes\n",
        media_type="text/plain",
    )


ROUTES = [status, config, healthz, readyz, metrics, openapi_document, root]
