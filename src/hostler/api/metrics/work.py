"""Metrics of replicas, bundles, rollouts, timetables, node services and waiting leases."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from prometheus_client.metrics_core import Metric

from hostler.api.convert.services import service
from hostler.api.metrics.table import Labels, family, single
from hostler.core.fleet import Fleet
from hostler.core.services import services_of
from hostler.core.tables import SetIndex
from hostler.model import Allocation, Replica
from hostler.model.allocation import AllocationPhase
from hostler.model.replica import ReplicaPhase
from hostler.model.settings import Settings

_WAITING = (
    ReplicaPhase.DORMANT,
    ReplicaPhase.PENDING,
    ReplicaPhase.BACKING_OFF,
    ReplicaPhase.BROKEN,
    ReplicaPhase.DROPPED,
)


def families(fleet: Fleet, now_ms: int) -> Iterator[Metric]:
    """Give all of them."""
    index = fleet.index
    yield family("replicas", _counts(index.replicas_by_phase))
    yield family("allocations", _counts(index.allocations_by_phase))
    unsettled = (AllocationPhase.RESERVED, AllocationPhase.STARTING)
    count = sum(index.allocations_by_phase.count(phase.value) for phase in unsettled)
    yield single("placements_unsettled", count)
    yield from _waiting(fleet)
    yield from _rules(fleet, now_ms)
    yield from _bundles(fleet)


def _counts(index: SetIndex[Replica] | SetIndex[Allocation]) -> Iterator[tuple[Labels, float]]:
    return (((phase,), index.count(phase)) for phase in index.buckets())


def _waiting(fleet: Fleet) -> Iterator[Metric]:
    """Give what waits for what; costs a look at each that waits."""
    index = fleet.index
    replicas: Counter[Labels] = Counter()
    for phase in _WAITING:
        for key in index.replicas_by_phase.keys(phase.value):
            reason = fleet.replicas[key].waiting_reason
            replicas[("" if reason is None else reason.value,)] += 1
    for bundle in index.replicas_migrating.buckets():
        for key in index.replicas_migrating.keys(bundle):
            migration = fleet.replicas[key].migration
            if migration is not None and migration.reason is not None:
                replicas[(migration.reason.value,)] += 1
    yield family("replicas_waiting", sorted(replicas.items()))
    leases: Counter[Labels] = Counter()
    for pool in sorted(fleet.pools.rows):
        for key in index.leases_waiting.keys(pool):
            reason = fleet.leases[key].reason
            leases[("" if reason is None else reason.value,)] += 1
    yield family("leases_waiting", sorted(leases.items()))


def _rules(fleet: Fleet, now_ms: int) -> Iterator[Metric]:
    index = fleet.index
    debts = Counter((fleet.replicas[key].band.value,) for key in index.replicas_in_debt.keys("all"))
    yield family("replicas_in_debt", sorted(debts.items()))
    moving = index.replicas_migrating
    yield single("replicas_moving", sum(moving.count(name) for name in moving.buckets()))
    policy = (fleet.settings or Settings(fleet_id="")).preemption
    begin_at_ms = now_ms - policy.window_ms
    lately = (fleet.replicas[key].preempted for key in index.replicas_preempted.keys("all"))
    count = sum(each is not None and each.at_ms > begin_at_ms for each in lately)
    yield single("preemptions_in_window", count)
    yield single("preemptions_max", policy.victim_count_max)


def _bundles(fleet: Fleet) -> Iterator[Metric]:
    bundles = Counter((each.phase.value,) for each in fleet.bundles.rows.values())
    yield family("bundles", sorted(bundles.items()))
    rollouts: Counter[Labels] = Counter()
    settled = wanted = 0
    for rollout in fleet.rollouts.rows.values():
        is_paused = rollout.is_paused and rollout.is_under_way
        rollouts[("paused" if is_paused else rollout.phase.value,)] += 1
        if rollout.is_under_way:
            settled, wanted = settled + rollout.settled_count, wanted + rollout.replica_count
    yield family("rollouts", sorted(rollouts.items()))
    yield family("rollout_replicas", [(("done",), settled), (("to_do",), wanted - settled)])
    shifts = Counter(
        (
            "on"
            if each.is_on
            else "skipped"
            if each.is_skipped
            else "over"
            if each.from_at_ms is None
            else "to_come",
        )
        for each in fleet.shifts.rows.values()
    )
    yield family("shifts", sorted(shifts.items()))
    services: Counter[Labels] = Counter()
    for bundle in services_of(fleet):
        view = service(fleet, bundle, has_nodes=False)
        services[(view.name, "ready")] = view.ready_count
        services[(view.name, "withdrawn")] = view.withdrawn_count
        others = view.node_count - view.ready_count - view.withdrawn_count
        services[(view.name, "not_ready")] = others
    yield family("service_nodes", sorted(services.items()))
