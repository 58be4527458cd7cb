"""Metrics in Prometheus' text format (version 0.0.4), read off the fleet when asked for."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from hostler.api.context import Api
from hostler.api.metrics import nodes, process, spending, work
from hostler.api.metrics.table import family, single
from hostler.core.fleet import Fleet


async def exposition(api: Api) -> bytes:
    """Return all metrics as text."""
    registry = CollectorRegistry()
    registry.register(_Given(await families(api)))
    return generate_latest(registry)


async def families(api: Api) -> list[Metric]:
    """Return all metrics. The fleet is read in one go, at a cost that follows what waits."""
    wall_ms = api.engine.clock.now_ms()
    found = await api.engine.read(lambda fleet: list(_fleet(fleet, wall_ms)))
    found += process.families(api.engine.gauges)
    found.append(single("agents_connected", api.links.connected_count))
    refused = sorted(api.refusals.counts.items())
    found.append(family("requests_refused", (((code,), count) for code, count in refused)))
    return found


def _fleet(fleet: Fleet, wall_ms: int) -> Iterator[Metric]:
    now_ms = max(wall_ms, fleet.now_ms)
    yield from process.of_fleet(fleet, wall_ms)
    yield from nodes.families(fleet, now_ms)
    yield from work.families(fleet, now_ms)
    yield from spending.families(fleet, now_ms)


class _Given(Collector):
    def __init__(self, families: list[Metric]) -> None:
        self._families = families

    def collect(self) -> list[Metric]:
        return self._families
