"""A configuration document as a request, and what providers say of its tiers."""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterator
from contextlib import suppress

import msgspec

from hostler.base.encoding import encode
from hostler.base.errors import HostlerError
from hostler.base.units import (
    cores_milli,
    duration_ms,
    machine_time_ms,
    money_microusd,
    size_bytes,
    time_of_day_ms,
)
from hostler.core.fleet_settings import FleetSettings
from hostler.core.inputs import ApplyConfiguration
from hostler.engine.time_zones import read_time_zones, time_zone_problem
from hostler.engine.translate.consolidation import consolidation_policy
from hostler.engine.translate.disruption import budget_zones, disruption_budgets
from hostler.engine.translate.maintenance import maintenance_plans, maintenance_zones
from hostler.engine.translate.ready import ready_check
from hostler.engine.translate.services import node_service
from hostler.model import Budget, Pool
from hostler.model.audit import Origin
from hostler.model.calendar import Weekday, Window
from hostler.model.pool import (
    Band,
    LaunchMode,
    Offer,
    Packing,
    Reliability,
    Reuse,
    Rollout,
    SizeWindow,
    SpareTarget,
    Tier,
    TierKind,
)
from hostler.model.settings import (
    BronzeVictims,
    Preemption,
    ProviderLimits,
    QuarantineLimits,
    RecoveryLimits,
    RepayLimits,
    Retention,
)
from hostler.model.shape import Capability, Shape
from hostler.model.spend import Period, SpendCap, SpendSettings
from hostler.providers.registry import Registry
from hostler.wire.documents import (
    ConfigDocument,
    DocumentProblem,
    PoolDocument,
    TierDocument,
    capability_of,
)
from hostler.wire.documents.config import (
    FleetDocument,
    OfferDocument,
    PreemptionDocument,
    SparesDocument,
)
from hostler.wire.documents.spend import BudgetDocument, CapDocument, SpendDocument
from hostler.wire.documents.windows import WindowDocument, days_of
from hostler.wire.documents.work import ShapeDocument


def new_fleet_id() -> str:
    """Make up a fleet's id: the label that nobody else's machines carry."""
    return f"f-{secrets.token_hex(4)}"


def provider_problems(document: ConfigDocument, registry: Registry) -> list[DocumentProblem]:
    """Return what providers have against their tiers, with paths from the document's root.

    A disabled pool launches nothing, so it can be switched off although its provider is broken.
    """
    return [
        msgspec.structs.replace(problem, path=f"{path}.{problem.path}")
        for path, tier in _tiers(document)
        if tier.provider
        for problem in registry.problems_of(tier.provider, tier.options)
    ]


def time_zone_problems(document: ConfigDocument) -> list[DocumentProblem]:
    """Return which time zones are not in the zone database, with paths from the root."""
    return [
        DocumentProblem(path=path, code="unknown_time_zone", message=problem)
        for path, zone in _time_zones(document)
        if (problem := time_zone_problem(zone)) is not None
    ]


def _time_zones(document: ConfigDocument) -> Iterator[tuple[str, str]]:
    if document.fleet.spend.time_zone != SpendSettings().time_zone:
        yield "fleet.spend.time_zone", document.fleet.spend.time_zone
    for name, pool in document.pools.items():
        for index, window in enumerate(pool.windows):
            yield f"pools.{name}.windows[{index}].time_zone", window.time_zone
    yield from maintenance_zones("fleet.maintenance", document.fleet.maintenance)
    yield from budget_zones("fleet.disruption_budgets", document.fleet.disruption_budgets)


def _tiers(document: ConfigDocument) -> Iterator[tuple[str, TierDocument]]:
    for name, pool in document.pools.items():
        for index, tier in enumerate(pool.tiers if pool.enabled else ()):
            yield f"pools.{name}.tiers[{index}]", tier


def apply_configuration(
    document: ConfigDocument,
    *,
    now_ms: int,
    request_id: str,
    principal: str,
    idempotency_key: str = "",
    origin: Origin | None = None,
    registry: Registry | None = None,
) -> ApplyConfiguration:
    """Read a checked document. An id is made up if it has none; the core uses it once only.

    The registry tells which providers' machines run no agent of ours; without one all do.
    """
    agentless = frozenset[str]() if registry is None else _agentless(document, registry)
    return ApplyConfiguration(
        request_id=request_id,
        principal=principal,
        idempotency_key=idempotency_key,
        origin=origin,
        fleet_id=document.fleet.id or new_fleet_id(),
        settings=_settings(document.fleet, now_ms),
        pools=tuple(_pool(name, pool, agentless) for name, pool in sorted(document.pools.items())),
        services=tuple(
            node_service(name, each) for name, each in sorted(document.services.items())
        ),
        time_zones=read_time_zones((zone for _, zone in _time_zones(document)), now_ms),
        budgets=tuple(_budget(name, one) for name, one in sorted(document.budgets.items())),
    )


def _settings(document: FleetDocument, now_ms: int) -> FleetSettings:
    timing, recovery, retention = document.timing, document.recovery, document.retention
    return FleetSettings(
        heartbeat_ms=duration_ms(timing.heartbeat),
        suspect_after_ms=duration_ms(timing.suspect_after),
        fence_after_ms=duration_ms(timing.fence_after),
        lost_after_ms=duration_ms(timing.lost_after),
        list_every_ms=duration_ms(timing.list_every),
        orphan_grace_ms=duration_ms(timing.orphan_grace),
        lost_node_count_max=timing.lost_nodes_max,
        lost_node_percent_max=timing.lost_percent_max,
        brake_window_ms=duration_ms(timing.brake_window),
        repay=RepayLimits(
            settle_ms=duration_ms(document.debts.settle),
            spacing_ms=duration_ms(document.debts.spacing),
        ),
        providers=tuple(
            ProviderLimits(
                provider=name,
                launch_count_max=limits.launches_max,
                launches_per_minute_max=limits.launches_per_minute_max,
            )
            for name, limits in sorted(document.providers.items())
        ),
        ageing_ms=duration_ms(document.placement.ageing),
        preemption=_preemption(document.placement.preemption),
        maintenance=maintenance_plans(document.maintenance, now_ms),
        disruption_budgets=disruption_budgets(document.disruption_budgets),
        recovery=RecoveryLimits(
            restart_count_max=recovery.restarts_max,
            bundle_restart_count_max=recovery.bundle_restarts_max,
            restart_window_ms=duration_ms(recovery.restart_window),
            spacing_ms=duration_ms(recovery.spacing),
            healthy_after_ms=duration_ms(recovery.healthy_after),
            exclusion_ms=duration_ms(recovery.exclusion),
        ),
        quarantine=QuarantineLimits(
            rejection_count_max=document.quarantine.rejections_max,
            rejection_window_ms=duration_ms(document.quarantine.rejection_window),
            pause_ms=duration_ms(document.quarantine.pause),
            pause_ms_max=duration_ms(document.quarantine.pause_max),
            forget_ms=duration_ms(document.quarantine.forget),
        ),
        retention=Retention(
            event_count_max=retention.events_max,
            journal_count_max=retention.journal_max,
            ended_ms=duration_ms(retention.ended),
            decision_count_max=retention.decisions_max,
            life_count_max=retention.life_max,
            lives_count_max=retention.lives_max,
            audit_ms=duration_ms(retention.audit),
            audit_count_max=retention.audit_max,
        ),
        spend=_spend(document.spend),
    )


def _spend(document: SpendDocument) -> SpendSettings:
    return SpendSettings(
        currency=document.currency,
        time_zone=document.time_zone,
        day_count_max=document.days_max,
        month_count_max=document.months_max,
        key_count_max=document.keys_max,
    )


def _budget(name: str, document: BudgetDocument) -> Budget:
    periods = (
        (Period.DAILY, document.daily),
        (Period.MONTHLY, document.monthly),
        (Period.LIFETIME, document.lifetime),
    )
    at_once = document.concurrent
    return Budget(
        name=name,
        pool=document.pool or "",
        tier=document.tier or "",
        fairness_key=document.key or "",
        caps=tuple(_cap(period, cap) for period, cap in periods if cap is not None),
        micros_per_hour_max=_money(None if at_once is None else at_once.cost_per_hour),
        node_count_max=None if at_once is None else at_once.nodes,
        lease_count_max=None if at_once is None else at_once.leases,
        warn_percents=(80, 100) if document.warn_at is None else tuple(document.warn_at),
    )


def _cap(period: Period, document: CapDocument) -> SpendCap:
    return SpendCap(
        period=period,
        cost_micros=_money(document.cost),
        node_ms=_machine_time(document.node_time),
        held_ms=_machine_time(document.lease_time),
    )


def _money(text: str | None) -> int | None:
    return None if text is None else money_microusd(text)


def _machine_time(text: str | None) -> int | None:
    return None if text is None else machine_time_ms(text)


def _preemption(document: PreemptionDocument) -> Preemption:
    return Preemption(
        bands=tuple(sorted({Band(band) for band in document.bands}, key=lambda band: band.rank)),
        after_ms=duration_ms(document.after),
        window_ms=duration_ms(document.window),
        victim_count_max=document.victims_max,
        victim_per_bundle_count_max=document.victims_per_bundle_max,
        bronze_victims=BronzeVictims(document.bronze_victims),
    )


def _agentless(document: ConfigDocument, registry: Registry) -> frozenset[str]:
    """Return the providers that are used and have no agents; one that cannot be loaded has some."""
    found: set[str] = set()
    names = {tier.provider for pool in document.pools.values() for tier in pool.tiers}
    for name in sorted(names - {""}):
        with suppress(HostlerError):
            if not registry.kind(name).has_agents:
                found.add(name)
    return frozenset(found)


def _pool(name: str, document: PoolDocument, agentless: Collection[str]) -> Pool:
    return Pool(
        name=name,
        tiers=tuple(_tier(tier, agentless) for tier in document.tiers),
        is_enabled=document.enabled,
        reuse=Reuse(document.reuse),
        node_count_max=document.node_count_max,
        warm_count=document.warm,
        node_count_min=document.min,
        windows=tuple(_window(window) for window in document.windows),
        rollout=Rollout(
            surge_count_max=document.rollout.surge,
            unavailable_count_max=document.rollout.unavailable,
        ),
        consolidation=consolidation_policy(document.consolidation),
        age_ms_max=None if document.age_max is None else duration_ms(document.age_max),
        boot_failure_count_max=document.boot_failures_max,
        ready=None if document.ready is None else ready_check(document.ready),
        spares=_spares(document.spares),
        slot_count=document.slots,
        packing=Packing(document.packing),
        idle_ms=duration_ms(document.idle),
        lease_ms=duration_ms(document.lease),
        lease_ms_max=None if document.lease_max is None else duration_ms(document.lease_max),
        clean_up=tuple(document.clean_up),
        clean_up_ms=duration_ms(document.clean_up_timeout),
        retire_notice_ms=duration_ms(document.retire_notice),
        retire_extension_ms_max=duration_ms(document.retire_extension_max or "0s"),
        lease_per_key_max=document.leases_per_key_max,
        line_step_ms=duration_ms(document.line_step),
        waiting_count_max=document.waiting_max,
        use_count_max=document.uses_max,
        launch_count_max=document.launches_max,
    )


def _spares(
    documents: SparesDocument | list[SparesDocument] | None,
) -> tuple[SpareTarget, ...]:
    """Read the targets, in the order in which they are filled: gold, either, silver."""
    given = documents if isinstance(documents, list) else [documents] if documents else []
    targets = [
        SpareTarget(count=one.count, band=None if one.band is None else Band(one.band))
        for one in given
    ]
    order = (Band.GOLD, None, Band.SILVER)
    return tuple(sorted(targets, key=lambda target: order.index(target.band)))


def _window(document: WindowDocument) -> SizeWindow:
    return SizeWindow(
        name=document.name,
        window=Window(
            time_zone=document.time_zone,
            days=tuple(Weekday(day) for day in days_of(document.days)),
            from_ms=time_of_day_ms(document.start),
            to_ms=time_of_day_ms(document.end),
        ),
        warm_count=document.warm,
        node_count_min=document.min,
        node_count_max=document.node_count_max,
    )


def _tier(document: TierDocument, agentless: Collection[str]) -> Tier:
    return Tier(
        name=document.name,
        kind=TierKind(document.kind),
        provider=document.provider,
        has_agents=document.provider not in agentless,
        reliability=Reliability(document.reliability),
        offers=tuple(_offer(offer) for offer in document.offers),
        node_count_max=document.node_count_max or 0,
        zone=document.zone,
        labels=dict(document.labels),
        lead_ms=None if document.lead is None else duration_ms(document.lead),
        boot_ms=duration_ms(document.boot),
        options_json=encode(document.options).decode(),
        price_microusd_per_hour=money_microusd(document.price_per_hour),
    )


def _offer(document: OfferDocument) -> Offer:
    return Offer(
        name=document.name,
        shape=_shape(document.shape),
        price_microusd_per_hour=money_microusd(document.price_per_hour),
        mode=LaunchMode(document.mode),
        node_count_max=document.node_count_max,
    )


def _shape(document: ShapeDocument) -> Shape:
    return Shape(
        capacity=document.capacity,
        cores_milli=None if document.cores is None else cores_milli(document.cores),
        memory_bytes=None if document.memory is None else size_bytes(document.memory),
        capabilities=tuple(
            Capability(name=name, count=one.count, attributes=dict(one.attributes))
            for name, value in sorted(document.capabilities.items())
            for one in [capability_of(value)]
        ),
    )
