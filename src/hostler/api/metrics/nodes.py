"""Metrics of nodes, pools, tiers and providers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from prometheus_client.metrics_core import Metric

from hostler.api.metrics.table import Labels, family, single
from hostler.core.fleet import Fleet
from hostler.core.keys import tier_key
from hostler.core.provider_pauses import paused_until_ms
from hostler.core.sizing_targets import sizes_of
from hostler.core.uses import Replaceable, Use, replaceable_key, use_key
from hostler.model import Pool
from hostler.model.node import NodePhase
from hostler.model.pool import TierKind

Rows = list[tuple[Labels, float]]


def families(fleet: Fleet, now_ms: int) -> Iterator[Metric]:
    """Give all of them."""
    yield family("nodes", _phases(fleet))
    yield from _pools(fleet)
    yield from _tiers(fleet)
    yield from _health(fleet, now_ms)
    yield from _providers(fleet, now_ms)


def _phases(fleet: Fleet) -> Rows:
    index = fleet.index.nodes_by_phase
    return [((phase,), index.count(phase)) for phase in index.buckets()]


_POOL_METRICS = (
    "pool_nodes",
    "pool_nodes_max",
    "pool_warm_nodes",
    "pool_warm_desired",
    "pool_minimum_nodes",
    "pool_incoming_nodes",
    "pool_replacing_nodes",
    "pool_consolidating_nodes",
    "pool_spare_nodes",
    "pool_spares_ready",
    "pool_spares_desired",
    "pool_leases_held",
    "pool_leases_waiting",
    "pool_leases_waiting_max",
)


def _pools(fleet: Fleet) -> Iterator[Metric]:
    rows: dict[str, Rows] = {name: [] for name in _POOL_METRICS}
    for pool in fleet.pools.in_order():
        for name, value in zip(_POOL_METRICS, _pool(fleet, pool), strict=True):
            if value is not None:
                rows[name].append(((pool.name,), value))
    for name, found in rows.items():
        yield family(name, found)


def _pool(fleet: Fleet, pool: Pool) -> tuple[int | None, ...]:
    index, sizes = fleet.index, sizes_of(fleet, pool)
    uses, state = index.nodes_by_use, fleet.consolidations.get(pool.name)
    return (
        index.nodes_by_pool.count(pool.name),
        sizes.node_count_max,
        uses.count(use_key(pool.name, Use.WARM)),
        sizes.warm_count,
        sizes.node_count_min,
        uses.count(use_key(pool.name, Use.INCOMING)),
        sum(index.nodes_to_replace.count(replaceable_key(pool.name, how)) for how in Replaceable),
        int(state is not None and state.node_id is not None),
        index.nodes_spare.count(pool.name),
        uses.count(use_key(pool.name, Use.SPARE)),
        pool.spare_count,
        index.leases_held.count(pool.name),
        index.leases_waiting.count(pool.name),
        pool.waiting_count_max,
    )


def _tiers(fleet: Fleet) -> Iterator[Metric]:
    nodes: Rows = []
    bounds: Rows = []
    for pool in fleet.pools.in_order():
        for tier in pool.tiers:
            labels = (pool.name, tier.name)
            count = fleet.index.nodes_by_tier.count(tier_key(pool.name, tier.name))
            nodes.append((labels, count))
            if tier.kind is TierKind.ELASTIC:
                bounds.append((labels, tier.node_count_max))
    yield family("tier_nodes", nodes)
    yield family("tier_nodes_max", bounds)
    breakers = [((*_split(each.key, 2),), each) for each in fleet.breakers.in_order()]
    yield family("tier_boot_failures", ((at, each.failure_count) for at, each in breakers))
    yield family(
        "tier_growth_stopped", ((at, int(each.stopped_at_ms is not None)) for at, each in breakers)
    )


def _split(key: str, count: int) -> list[str]:
    return [*key.split("/", count - 1), "", ""][:count]


def _health(fleet: Fleet, now_ms: int) -> Iterator[Metric]:
    """Give what an operator should look at. Costs a look at each node."""
    health: Counter[Labels] = Counter()
    cordoned: Counter[Labels] = Counter()
    for node in fleet.nodes.rows.values():
        if node.phase is not NodePhase.RETIRED:
            health[(node.health.value,)] += 1
            if node.cordon is not None:
                cordoned[(node.pool,)] += 1
    yield family("nodes_by_health", sorted(health.items()))
    yield family("pool_cordoned_nodes", sorted(cordoned.items()))
    quarantined: Counter[Labels] = Counter()
    index = fleet.index
    for pool in index.nodes_quarantined.buckets():
        for key in index.nodes_quarantined.keys(pool):
            found = fleet.nodes[key].quarantine
            is_on_probation = found is not None and found.is_on_probation
            quarantined[(pool, "on_probation" if is_on_probation else "quarantined")] += 1
    yield family("pool_quarantined_nodes", sorted(quarantined.items()))
    draining = Counter(
        ("overdue" if drain is not None and drain.is_overdue else "on_time",)
        for drain in (fleet.nodes[key].drain for key in index.nodes_draining.keys("all"))
    )
    yield family("nodes_draining", sorted(draining.items()))
    yield single("nodes_stuck", index.nodes_stuck.count("stuck"))
    yield single("nodes_foreign", index.nodes_stuck.count("foreign"))
    if fleet.settings is not None:
        begin_at_ms = now_ms - fleet.settings.brake_window_ms
        lost = (fleet.nodes[key] for key in index.nodes_lost.keys("all"))
        count = sum(node.health_since_at_ms > begin_at_ms for node in lost)
        yield single("nodes_lost_in_window", count)
        yield single("nodes_lost_max", fleet.settings.lost_node_count_max)
    reasons = Counter(
        (note.reason.value,)
        for key, notes in fleet.notes.items()
        if key in fleet.nodes
        for note in notes.values()
    )
    yield family("nodes_waiting", sorted(reasons.items()))


def _providers(fleet: Fleet, now_ms: int) -> Iterator[Metric]:
    cooling: Counter[Labels] = Counter()
    for cooldown in fleet.cooldowns.rows.values():
        pool, tier, offer = _split(cooldown.key, 3)
        if offer and not cooldown.is_over and cooldown.until_at_ms > now_ms:
            cooling[(pool, tier)] += 1
    yield family("offers_cooling_down", sorted(cooling.items()))
    names = sorted(fleet.providers.rows)
    yield family(
        "provider_paused",
        (((name,), int((paused_until_ms(fleet, name) or 0) > now_ms)) for name in names),
    )
    yield family(
        "provider_launches",
        (((name,), fleet.index.nodes_launching.count(name)) for name in names),
    )
    yield family(
        "provider_list_age_seconds",
        (
            ((name,), max(0, now_ms - at_ms) / 1_000)
            for name in names
            if (at_ms := fleet.providers[name].listed_at_ms) is not None
        ),
    )
