"""Every metric: its name, kind, labels and meaning. docs/metrics.md is made of this table.

Labels are names of the configuration (pools, tiers, offers, budgets, services), of providers, or
members of closed sets; none is an id, a principal or a text, so what a server exposes is bounded by
its configuration.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric as Family

from hostler.base.errors import check
from hostler.engine.tally import Histogram


class MetricKind(StrEnum):
    """How a metric's value goes."""

    GAUGE = "gauge"
    """It is what it is now."""
    COUNTER = "counter"
    """It only rises, from the start of the process; its name ends in `_total`."""
    HISTOGRAM = "histogram"
    """Buckets, a sum and a count, from the start of the process."""


@dataclass(frozen=True)
class Metric:
    """One metric.

    Attributes:
        name: Without the prefix `hostler_`, and without `_total`.
        told: What it says, and where it helps, what to do about it.
    """

    name: str
    kind: MetricKind
    told: str
    labels: tuple[str, ...] = ()

    @property
    def shown(self) -> str:
        """The name as Prometheus sees it."""
        return f"hostler_{self.name}{'_total' if self.kind is MetricKind.COUNTER else ''}"


_SECTIONS: dict[str, list[Metric]] = {}


def _section(title: str, *metrics: Metric) -> None:
    _SECTIONS[title] = list(metrics)


def _gauge(name: str, told: str, *labels: str) -> Metric:
    return Metric(name, MetricKind.GAUGE, told, labels)


def _counter(name: str, told: str, *labels: str) -> Metric:
    return Metric(name, MetricKind.COUNTER, told, labels)


def _histogram(name: str, told: str, *labels: str) -> Metric:
    return Metric(name, MetricKind.HISTOGRAM, told, labels)


_section(
    "The server",
    _gauge("build_info", "1, with the server's version.", "version"),
    _gauge("started_seconds", "When the server started, in seconds since 1970 UTC."),
    _gauge("revision", "Commits of the store since it was made."),
    _gauge(
        "clock_ahead_seconds",
        "By how much our clock is ahead of the wall clock: more"
        " than 0 after the clock was set back, until it has caught up.",
    ),
    _gauge("agents_connected", "Agents whose link is up."),
    _gauge("outbox_commands", "Commands to providers and agents that are not settled."),
    _gauge(
        "outbox_oldest_seconds",
        "Age of the oldest of them: rises while a provider or an agent does not answer.",
    ),
    _counter("events", "Committed events by kind; docs/events.md says what each means.", "kind"),
    _counter("inputs", "Inputs absorbed.", "input"),
    _counter(
        "commands_settled",
        "How attempts at commands ended; `succeeded` is a code.",
        "command",
        "code",
    ),
    _histogram("command_seconds", "From a command's first attempt until its outcome.", "command"),
    _counter("steps", "Steps of the core."),
    _counter("step_seconds", "Time in steps."),
    _histogram("step_duration_seconds", "How long single steps took."),
    _counter("commits", "Commits that the store took."),
    _counter("commit_seconds", "Time in commits."),
    _histogram("commit_duration_seconds", "How long single commits took."),
    _counter("commits_failed", "Commits that did not happen: look at the store's disk."),
    _counter("commits_doubtful", "Commits of which the store could not say whether they happened."),
    _counter("scans", "Full scans, which look whether an index or a wake-up was missed."),
    _counter("scan_finds", "Records that full scans had to write: more than 0 is a fault of ours."),
    _counter(
        "requests_refused", "Requests of somebody who may not, by the code of the answer.", "code"
    ),
    _gauge("audit_entries", "Entries in the audit.", "outcome"),
)

_section(
    "Nodes and pools",
    _gauge("nodes", "Nodes by phase.", "phase"),
    _gauge("nodes_by_health", "Nodes that are not retired, by what is heard of them.", "health"),
    _gauge("pool_nodes", "Nodes of a pool that are not retired.", "pool"),
    _gauge("pool_nodes_max", "Machines that a pool may have, where it has a bound.", "pool"),
    _gauge("tier_nodes", "Nodes of a tier that are not retired.", "pool", "tier"),
    _gauge("tier_nodes_max", "Machines that an elastic tier may have.", "pool", "tier"),
    _gauge("pool_warm_nodes", "Nodes ready for whoever comes next.", "pool"),
    _gauge("pool_warm_desired", "Warm nodes to be kept at present.", "pool"),
    _gauge("pool_minimum_nodes", "Nodes to be kept in all at present.", "pool"),
    _gauge("pool_incoming_nodes", "Nodes asked for or booting, for whoever comes next.", "pool"),
    _gauge("pool_replacing_nodes", "Nodes that others are to replace.", "pool"),
    _gauge("pool_consolidating_nodes", "Nodes being emptied to save their machines.", "pool"),
    _gauge("pool_spare_nodes", "Nodes kept for recovery, booting ones too.", "pool"),
    _gauge("pool_spares_ready", "Spares that are ready, unused and heard of.", "pool"),
    _gauge("pool_spares_desired", "Spares to be kept: fewer ready for long is an alarm.", "pool"),
    _gauge(
        "pool_cordoned_nodes", "Nodes that take nothing new, by an operator's word or ours.", "pool"
    ),
    _gauge("pool_quarantined_nodes", "Nodes left alone after refusals or losses.", "pool", "state"),
    _gauge("pool_capacity", "Capacity of the nodes that are ready or draining.", "pool"),
    _gauge("pool_capacity_used", "Of that, what replicas hold.", "pool"),
    _gauge("pool_capacity_used_ratio", "Used capacity over all of it, by capacity.", "pool"),
    _gauge("nodes_draining", "Nodes that are to be empty.", "state"),
    _gauge("nodes_stuck", "Nodes whose machine does not end: `hostler get stuck`."),
    _gauge("nodes_foreign", "Machines with our label and a name that no node of ours had."),
    _gauge("nodes_lost_in_window", "Nodes lost within `brake_window`."),
    _gauge("nodes_lost_max", "The brake: more losses in the window are held back."),
    _gauge("nodes_waiting", "What nodes wait for, or stay for, by reason.", "reason"),
    _gauge("tier_boot_failures", "Boots that failed in a row.", "pool", "tier"),
    _gauge("tier_growth_stopped", "1 while boots that fail stop growth.", "pool", "tier"),
    _gauge("offers_cooling_down", "Offers left alone after a launch failed.", "pool", "tier"),
    _gauge("provider_paused", "1 while a provider is not asked for more.", "provider"),
    _gauge("provider_launches", "Launches in flight.", "provider"),
    _gauge(
        "provider_list_age_seconds", "Since the last complete list of machines came in.", "provider"
    ),
    _histogram(
        "node_boot_seconds",
        "From the request of a machine until its agent said hello.",
        "pool",
        "tier",
    ),
)

_section(
    "Replicas",
    _gauge("replicas", "Replicas by phase.", "phase"),
    _gauge(
        "replicas_waiting",
        "Replicas without the place that they want, by reason: `hostler"
        " explain pending` tells them one by one.",
        "reason",
    ),
    _gauge(
        "replicas_in_debt",
        "Replicas whose place breaks a rule until a better one is found.",
        "band",
    ),
    _gauge("replicas_moving", "Replicas that are being moved to a second place."),
    _gauge("allocations", "Live allocations by phase.", "phase"),
    _counter(
        "placements",
        "Places decided: `attempted` is the sum of `started` (an agent runs it),"
        " `no_place`, `start_failed`, `withdrawn`, and those that are still to start.",
        "pool",
        "band",
        "outcome",
    ),
    _gauge("placements_unsettled", "Places given whose start has not come out yet."),
    _counter("allocations_ended", "How allocations ended.", "cause", "band"),
    _counter("recoveries", "Recoveries begun, by what failed.", "cause"),
    _counter("moves", "Moves to a second place: begun, done, failed.", "cause", "outcome"),
    _histogram("time_to_ready_seconds", "From a place until the workload in it was ready.", "band"),
    _histogram(
        "time_to_recover_seconds", "From a failure until the replica was ready again.", "band"
    ),
    _gauge("bundles", "Bundles by phase.", "phase"),
    _gauge("rollouts", "Rollouts by phase; `held` ones wait for somebody.", "phase"),
    _gauge("rollout_replicas", "Replicas of rollouts under way: done, or to do.", "state"),
    _gauge("shifts", "Timetables whose bundle is on, is to come, or missed its start.", "state"),
    _gauge("service_nodes", "How node services are on nodes.", "service", "state"),
    _gauge("preemptions_in_window", "Replicas that gave way within `preemption.window`."),
    _gauge("preemptions_max", "How many may in the whole fleet."),
)

_section(
    "Leases",
    _gauge("pool_leases_held", "Leases held.", "pool"),
    _gauge("pool_leases_waiting", "Leases in line.", "pool"),
    _gauge("pool_leases_waiting_max", "How many may stand in line.", "pool"),
    _gauge("leases_waiting", "What leases wait for, by reason.", "reason"),
    _counter("leases_settled", "Leases that ended, by outcome.", "pool", "outcome"),
    _counter("leases_refused", "Leases that were never held, by reason.", "pool", "reason"),
    _histogram("lease_wait_seconds", "From the request until a lease was held.", "pool"),
    _histogram("lease_held_seconds", "How long leases were held.", "pool"),
)

_section(
    "Money",
    _counter("node_seconds", "Time of machines.", "pool", "tier", "offer"),
    _counter(
        "spend",
        "Cost of machines, in whole units of the currency.",
        "pool",
        "tier",
        "offer",
        "currency",
    ),
    _gauge("budget_used_ratio", "Used part of a cap.", "budget", "period", "quantity"),
    _gauge(
        "budget_reserved_ratio",
        "Part of a cap that is set aside for what is under way.",
        "budget",
        "period",
        "quantity",
    ),
    _gauge("budgets_holding_back", "Budgets that hold something back at present."),
    _gauge(
        "unattributed_seconds",
        "By the provider's last list: time of machines of ours without a"
        " record, and of records without a machine.",
        "provider",
    ),
)

SECTIONS: Final = _SECTIONS
"""All metrics by section, in the order of the documentation."""

METRICS: Final = {metric.name: metric for found in _SECTIONS.values() for metric in found}
"""All metrics by name."""

Labels = tuple[str, ...]


def family(name: str, rows: Iterable[tuple[Labels, float]]) -> Family:
    """Make a gauge or a counter of the table."""
    metric = METRICS[name]
    made: GaugeMetricFamily | CounterMetricFamily
    if metric.kind is MetricKind.COUNTER:
        made = CounterMetricFamily(f"hostler_{name}", metric.told, labels=metric.labels)
    else:
        made = GaugeMetricFamily(f"hostler_{name}", metric.told, labels=metric.labels)
    for labels, value in rows:
        check(len(labels) == len(metric.labels), "metric_labels", "labels differ", metric=name)
        made.add_metric(labels, value)
    return made


def single(name: str, value: float) -> Family:
    """Make a gauge or a counter without labels."""
    return family(name, [((), value)])


def histogram(name: str, by_labels: dict[Labels, Histogram], *, per_second: int = 1_000) -> Family:
    """Make a histogram of the table; `per_second` says how many of its units make a second."""
    metric = METRICS[name]
    made = HistogramMetricFamily(f"hostler_{name}", metric.told, labels=metric.labels)
    for labels, found in sorted(by_labels.items()):
        buckets, below = [], 0
        for bound, count in zip(found.bounds, found.counts, strict=False):
            below += count
            buckets.append((str(bound / per_second), below))
        buckets.append(("+Inf", sum(found.counts)))
        made.add_metric(labels, buckets=buckets, sum_value=found.total / per_second)
    return made
