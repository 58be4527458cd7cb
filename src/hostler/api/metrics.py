"""Metrics in Prometheus' text format (version 0.0.4), read off the fleet when asked for."""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

import hostler
from hostler.api.context import Api
from hostler.api.convert import spend
from hostler.core.fleet import Fleet
from hostler.core.sizing_targets import sizes_of
from hostler.core.uses import Replaceable, Use, replaceable_key, use_key
from hostler.engine.gauges import Gauges


async def exposition(api: Api) -> bytes:
    """Return all metrics as text."""
    now_ms = api.engine.clock.now_ms()
    families = await api.engine.read(lambda fleet: list(_fleet(fleet, max(now_ms, fleet.now_ms))))
    families += _engine(api.engine.gauges)
    families.append(
        GaugeMetricFamily(
            "hostler_agents_connected", "Agents whose link is up", api.links.connected_count
        )
    )
    registry = CollectorRegistry()
    registry.register(_Given(families))
    return generate_latest(registry)


class _Given(Collector):
    def __init__(self, families: list[Metric]) -> None:
        self._families = families

    def collect(self) -> list[Metric]:
        return self._families


def _gauge(name: str, told: str, labels: list[str]) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"hostler_{name}", told, labels=labels)


def _fleet(fleet: Fleet, now_ms: int) -> Iterator[Metric]:
    info = _gauge("build_info", "The server's version", ["version"])
    info.add_metric([hostler.__version__], 1)
    yield info
    yield GaugeMetricFamily("hostler_revision", "Commits of the store", fleet.revision)
    yield GaugeMetricFamily("hostler_events", "Committed events", fleet.event_seq)
    yield GaugeMetricFamily(
        "hostler_outbox_commands", "Commands that are not settled", len(fleet.commands)
    )
    index = fleet.index
    for name, told, by_phase in (
        ("nodes", "Nodes by phase", index.nodes_by_phase),
        ("replicas", "Replicas by phase", index.replicas_by_phase),
        ("allocations", "Live allocations by phase", index.allocations_by_phase),
    ):
        family = _gauge(name, told, ["phase"])
        for phase in by_phase.buckets():
            family.add_metric([phase], by_phase.count(phase))
        yield family
    yield from _pools(fleet)
    yield from _obstacles(fleet)
    yield from _spend(fleet, now_ms)


def _pools(fleet: Fleet) -> Iterator[Metric]:
    index = fleet.index
    nodes = _gauge("pool_nodes", "Nodes of a pool that are not retired", ["pool"])
    warm = _gauge("pool_warm_nodes", "Nodes ready for whoever comes next", ["pool"])
    warm_desired = _gauge("pool_warm_desired", "Warm nodes to be kept at present", ["pool"])
    minimum = _gauge("pool_minimum_nodes", "Nodes to be kept in all at present", ["pool"])
    replacing = _gauge("pool_replacing_nodes", "Nodes that others are to replace", ["pool"])
    emptied = _gauge("pool_consolidating_nodes", "Nodes being emptied to save them", ["pool"])
    spares = _gauge("pool_spare_nodes", "Nodes kept for recovery", ["pool"])
    held = _gauge("pool_leases_held", "Leases held", ["pool"])
    waiting = _gauge("pool_leases_waiting", "Leases in line", ["pool"])
    for pool in fleet.pools.in_order():
        nodes.add_metric([pool.name], index.nodes_by_pool.count(pool.name))
        warm.add_metric([pool.name], index.nodes_by_use.count(use_key(pool.name, Use.WARM)))
        warm_desired.add_metric([pool.name], sizes_of(fleet, pool).warm_count)
        minimum.add_metric([pool.name], sizes_of(fleet, pool).node_count_min)
        replacing.add_metric(
            [pool.name],
            sum(
                index.nodes_to_replace.count(replaceable_key(pool.name, kind))
                for kind in Replaceable
            ),
        )
        state = fleet.consolidations.get(pool.name)
        is_emptying = state is not None and state.node_id is not None
        emptied.add_metric([pool.name], int(is_emptying))
        spares.add_metric([pool.name], index.nodes_spare.count(pool.name))
        held.add_metric([pool.name], index.leases_held.count(pool.name))
        waiting.add_metric([pool.name], index.leases_waiting.count(pool.name))
    yield from (nodes, warm, warm_desired, minimum, replacing, emptied, spares, held, waiting)


def _obstacles(fleet: Fleet) -> Iterator[Metric]:
    """What an operator should look at."""
    stuck = GaugeMetricFamily(
        "hostler_nodes_stuck",
        "Nodes whose machine does not end",
        fleet.index.nodes_stuck.count("stuck"),
    )
    foreign = GaugeMetricFamily(
        "hostler_nodes_foreign",
        "Machines with our label and a name that no node of ours had",
        fleet.index.nodes_stuck.count("foreign"),
    )
    failures = _gauge("tier_boot_failures", "Boots that failed in a row", ["pool", "tier"])
    stopped = _gauge("tier_growth_stopped", "1 while boots that fail stop growth", ["pool", "tier"])
    for breaker in fleet.breakers.in_order():
        pool, _, tier = breaker.breaker_id.partition("/")
        failures.add_metric([pool, tier], breaker.failure_count)
        stopped.add_metric([pool, tier], int(breaker.stopped_at_ms is not None))
    yield from (stuck, foreign, failures, stopped)


def _spend(fleet: Fleet, now_ms: int) -> Iterator[Metric]:
    by = ["pool", "tier", "offer"]
    time = CounterMetricFamily("hostler_node_seconds", "Time of machines", labels=by)
    cost = CounterMetricFamily("hostler_spend", "Cost of machines", labels=[*by, "currency"])
    for row in spend.rows(fleet, ["offer"], since=-(2**40), until=2**40, pool="", now_ms=now_ms):
        names = [row.pool, row.tier, row.offer]
        time.add_metric(names, row.node_ms / 1_000)
        cost.add_metric([*names, row.currency], row.cost_micros / 1e6)
    labels = ["budget", "period", "quantity"]
    used = _gauge("budget_used_ratio", "Used part of a cap", labels)
    reserved = _gauge("budget_reserved_ratio", "Reserved part of a cap", labels)
    for budget in fleet.budgets.in_order():
        for line in spend.budget_lines(fleet, budget, now_ms):
            names = [line.budget, line.period, line.quantity]
            used.add_metric(names, line.used / max(1, line.limit))
            reserved.add_metric(names, line.reserved / max(1, line.limit))
    missed = _gauge(
        "unattributed_seconds",
        "By the provider's last list: machines of ours without a record, records without a machine",
        ["provider"],
    )
    for provider in fleet.providers.in_order():
        missed.add_metric([provider.name], provider.unattributed_ms / 1_000)
    yield from (time, cost, used, reserved, missed)


def _engine(gauges: Gauges) -> list[Metric]:
    def counter(name: str, told: str, value: float) -> CounterMetricFamily:
        return CounterMetricFamily(f"hostler_{name}", told, value)

    inputs = CounterMetricFamily("hostler_inputs", "Inputs absorbed", labels=["input"])
    for name, count in sorted(gauges.input_counts.items()):
        inputs.add_metric([name], count)
    outcomes = CounterMetricFamily(
        "hostler_commands_settled", "How attempts at commands ended", labels=["command", "code"]
    )
    for (command, code), count in sorted(gauges.outcome_counts.items()):
        outcomes.add_metric([command, code], count)
    return [
        GaugeMetricFamily(
            "hostler_started_seconds", "When the server started", gauges.started_at_ms / 1_000
        ),
        counter("steps", "Steps of the core", gauges.step_count),
        counter("step_seconds", "Time in steps", gauges.step_us_total / 1e6),
        counter("commits", "Commits", gauges.commit_count),
        counter("commit_seconds", "Time in commits", gauges.commit_us_total / 1e6),
        counter("commits_failed", "Commits that did not happen", gauges.commit_failed_count),
        counter("commits_doubtful", "Commits in doubt", gauges.commit_doubtful_count),
        counter("scan_finds", "Records that full scans had to write", gauges.scan_find_count),
        inputs,
        outcomes,
    ]
