"""A scenario's fleet as the configuration that an operator would apply."""

from __future__ import annotations

from typing import Final

from hostler.core.fleet_settings import FleetSettings
from hostler.core.inputs import ApplyConfiguration
from hostler.core.services import NodeService
from hostler.model import Budget
from hostler.model.bundle import Job
from hostler.model.calendar import Offset, TimeZone
from hostler.model.consolidation import ConsolidationPolicy
from hostler.model.launch import Launch
from hostler.model.maintenance import MaintenancePlan
from hostler.model.pool import Offer, Pool, Reliability, SpareTarget, Tier, TierKind
from hostler.model.ready import ReadyCheck
from hostler.model.service import ServiceSpec
from hostler.model.settings import (
    BronzeVictims,
    Preemption,
    QuarantineLimits,
    RecoveryLimits,
    Retention,
)
from hostler.model.shape import Capability, Shape
from hostler.model.spend import Period, SpendCap
from hostler.model.timetable import Timetable
from hostler.sim.scenario import FleetPlan, PoolPlan, Range, SettingsPlan, TierPlan
from hostler.sim.workloads.wishes import MESH
from hostler.sim.world import WORLD_BEGINS_AT_MS

FLEET_ID = "f-sim"

BUDGETS = (
    Budget(
        name="all",
        caps=(
            SpendCap(period=Period.LIFETIME, cost_micros=10**12, node_ms=10**12, held_ms=10**12),
        ),
        warn_percents=(1, 2),
    ),
)
"""Wide enough never to hold anything back, so that every check of it runs and nothing waits."""


def shape_of(capacity: int) -> Shape:
    """Return what a machine of so much capacity has; what agents report is the same."""
    return Shape(
        capacity=capacity,
        cores_milli=capacity * 1_000,
        memory_bytes=capacity * 2**30,
        capabilities=(Capability(name="input", count=2),),
    )


def configuration(request_id: str, plan: FleetPlan) -> ApplyConfiguration:
    """Return the request that applies a plan."""
    return ApplyConfiguration(
        request_id=request_id,
        principal="operator",
        fleet_id=FLEET_ID,
        settings=_settings(plan.settings, plan.pools[0].name),
        time_zones=(UTC,),
        pools=tuple(_pool(pool) for pool in plan.pools),
        services=tuple(_service(pool.name) for pool in plan.pools if pool.has_service),
        budgets=BUDGETS,
    )


def _service(pool: str) -> NodeService:
    """Return the service of a pool's nodes; what it provides is asked for by some jobs."""
    launch = Launch(argv=("serve",), stop_grace_ms=1_000)
    return NodeService(
        name=f"mesh-{pool}",
        job=Job(name="mesh", launch=launch),
        spec=ServiceSpec(pools=(pool,), provides=(Capability(name=MESH, count=8),)),
    )


def _settings(plan: SettingsPlan, first_pool: str) -> FleetSettings:
    return FleetSettings(
        heartbeat_ms=plan.heartbeat_ms,
        suspect_after_ms=plan.suspect_after_ms,
        fence_after_ms=plan.fence_after_ms,
        lost_after_ms=plan.lost_after_ms,
        list_every_ms=plan.list_every_ms,
        orphan_grace_ms=plan.orphan_grace_ms,
        lost_node_count_max=plan.lost_node_count_max,
        brake_window_ms=plan.brake_window_ms,
        ageing_ms=plan.ageing_ms,
        preemption=Preemption(
            window_ms=plan.preemption_window_ms,
            bronze_victims=BronzeVictims.DROP
            if plan.is_bronze_victim_dropped
            else BronzeVictims.WAIT,
        ),
        maintenance=()
        if plan.maintenance_ms is None
        else (_works(plan.maintenance_ms, first_pool),),
        recovery=RecoveryLimits(
            restart_count_max=plan.restart_count_max, restart_window_ms=plan.restart_window_ms
        ),
        quarantine=QuarantineLimits(pause_ms=5_000, pause_ms_max=30_000),
        retention=Retention(
            event_count_max=plan.event_count_max,
            journal_count_max=plan.journal_count_max,
            ended_ms=plan.ended_ms,
        ),
    )


def _works(since_ms: Range, pool: str) -> MaintenancePlan:
    from_ms, to_ms = since_ms
    timetable = Timetable(
        time_zone=UTC.name,
        from_at_ms=WORLD_BEGINS_AT_MS + from_ms,
        to_at_ms=WORLD_BEGINS_AT_MS + to_ms,
    )
    return MaintenancePlan(name="works", pools=(pool,), timetable=timetable, lead_ms=30_000)


UTC: Final = TimeZone(
    name="UTC", offsets=(Offset(from_at_ms=0, offset_ms=0),), known_until_at_ms=1 << 53
)

_CLEAN_UP_MS: Final = 120_000
"""Longer than any simulated command takes, so that only faults make a clean-up fail."""


_READY: Final = ReadyCheck(argv=("ready",), told="ready", timeout_ms=120_000, success_count=2)


_SAVING: Final = ConsolidationPolicy(
    used_percent_max=75, settle_ms=15_000, spacing_ms=60_000, window_ms=300_000
)
"""Eager, so that much of it happens in a history."""


def _pool(plan: PoolPlan) -> Pool:
    return Pool(
        name=plan.name,
        is_enabled=plan.is_enabled,
        tiers=tuple(_tier(tier) for tier in plan.tiers),
        warm_count=plan.warm_count,
        spares=(SpareTarget(count=plan.spare_count),) if plan.spare_count else (),
        slot_count=plan.slot_count,
        idle_ms=plan.idle_ms,
        retire_notice_ms=plan.retire_notice_ms,
        lease_ms=plan.lease_ms,
        lease_ms_max=plan.lease_ms_max,
        lease_per_key_max=plan.lease_per_key_max,
        waiting_count_max=plan.waiting_count_max,
        use_count_max=plan.use_count_max,
        clean_up=("scrub",) if plan.has_clean_up else (),
        clean_up_ms=_CLEAN_UP_MS,
        ready=_READY if plan.has_ready_check else None,
        launch_count_max=plan.launch_count_max,
        consolidation=_SAVING if plan.is_saving else None,
    )


def _tier(plan: TierPlan) -> Tier:
    is_fixed = plan.machine_count > 0
    offers = (
        Offer(name="small", shape=shape_of(plan.capacity), price_microusd_per_hour=100_000),
        Offer(name="large", shape=shape_of(2 * plan.capacity), price_microusd_per_hour=250_000),
    )
    return Tier(
        name=plan.name,
        zone=plan.zone,
        kind=TierKind.FIXED if is_fixed else TierKind.ELASTIC,
        provider="" if is_fixed else "cloud",
        reliability=Reliability.INTERRUPTIBLE if plan.is_interruptible else Reliability.RELIABLE,
        offers=() if is_fixed else offers,
        node_count_max=plan.node_count_max,
        boot_ms=plan.boot_ms,
        has_agents=plan.has_agents,
        options_json=f'{{"edition":{plan.edition}}}' if plan.edition else "{}",
    )
