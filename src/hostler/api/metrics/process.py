"""Metrics of the server itself: its clock, outbox, steps and commits, and what it has counted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from prometheus_client.metrics_core import Metric

import hostler
from hostler.api.metrics.table import Labels, family, histogram, single
from hostler.core.fleet import Fleet
from hostler.engine.gauges import Gauges
from hostler.model.audit import AuditOutcome


def of_fleet(fleet: Fleet, wall_ms: int) -> Iterator[Metric]:
    """Give what the fleet knows of it."""
    yield family("build_info", [((hostler.__version__,), 1)])
    yield single("revision", fleet.revision)
    yield single("clock_ahead_seconds", max(0, fleet.now_ms - wall_ms) / 1_000)
    yield single("outbox_commands", len(fleet.commands))
    oldest_at_ms = min((each.created_at_ms for each in fleet.commands.rows.values()), default=None)
    age_ms = 0 if oldest_at_ms is None else max(0, wall_ms - oldest_at_ms)
    yield single("outbox_oldest_seconds", age_ms / 1_000)
    line = fleet.index.audit.by_outcome
    yield family(
        "audit_entries", (((each.value,), line.count(each.value)) for each in AuditOutcome)
    )


def families(gauges: Gauges) -> list[Metric]:
    """Give what the process has counted since its start."""
    tally = gauges.tally
    return [
        single("started_seconds", gauges.started_at_ms / 1_000),
        family("events", _by_one(tally.events)),
        family("inputs", _by_one(gauges.input_counts)),
        family("commands_settled", sorted(gauges.outcome_counts.items())),
        histogram("command_seconds", tally.commands.by_labels),
        single("steps", gauges.step_count),
        single("step_seconds", gauges.step_us_total / 1e6),
        histogram("step_duration_seconds", {(): gauges.step_times}, per_second=1_000_000),
        single("commits", gauges.commit_count),
        single("commit_seconds", gauges.commit_us_total / 1e6),
        histogram("commit_duration_seconds", {(): gauges.commit_times}, per_second=1_000_000),
        single("commits_failed", gauges.commit_failed_count),
        single("commits_doubtful", gauges.commit_doubtful_count),
        single("scans", gauges.scan_count),
        single("scan_finds", gauges.scan_find_count),
        family("placements", sorted(tally.placements.items())),
        family("allocations_ended", sorted(tally.ended.items())),
        family("recoveries", _by_one(tally.recoveries)),
        family("moves", sorted(tally.moves.items())),
        histogram("time_to_ready_seconds", tally.ready.by_labels),
        histogram("time_to_recover_seconds", tally.recovered.by_labels),
        histogram("node_boot_seconds", tally.boots.by_labels),
        family("leases_settled", sorted(tally.settled.items())),
        family("leases_refused", sorted(tally.refused.items())),
        histogram("lease_wait_seconds", tally.lease_waits.by_labels),
        histogram("lease_held_seconds", tally.lease_holds.by_labels),
        *_capacity(tally.capacity),
    ]


def _by_one(counts: Mapping[str, int]) -> list[tuple[Labels, float]]:
    return [((name,), count) for name, count in sorted(counts.items())]


def _capacity(by_pool: Mapping[str, list[int]]) -> Iterator[Metric]:
    found = sorted(by_pool.items())
    yield family("pool_capacity", (((pool,), total) for pool, (total, _) in found))
    yield family("pool_capacity_used", (((pool,), used) for pool, (_, used) in found))
    yield family(
        "pool_capacity_used_ratio",
        (((pool,), used / total if total else 0) for pool, (total, used) in found),
    )
