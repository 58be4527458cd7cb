"""The numbers of a configuration, as an operator hands them in."""

from __future__ import annotations

import msgspec

from hostler.model.disruption import DisruptionBudget
from hostler.model.maintenance import MaintenancePlan
from hostler.model.settings import (
    AGEING_MS,
    Preemption,
    ProviderLimits,
    QuarantineLimits,
    RecoveryLimits,
    RepayLimits,
    Retention,
)
from hostler.model.spend import SpendSettings


class FleetSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The fleet-wide part of a configuration."""

    heartbeat_ms: int
    suspect_after_ms: int
    fence_after_ms: int
    lost_after_ms: int
    list_every_ms: int
    orphan_grace_ms: int
    lost_node_count_max: int
    lost_node_percent_max: int | None = None
    brake_window_ms: int
    providers: tuple[ProviderLimits, ...] = ()
    recovery: RecoveryLimits
    repay: RepayLimits = RepayLimits()
    retention: Retention
    quarantine: QuarantineLimits = QuarantineLimits()
    ageing_ms: int = AGEING_MS
    preemption: Preemption = Preemption()
    disruption_budgets: tuple[DisruptionBudget, ...] = ()
    maintenance: tuple[MaintenancePlan, ...] = ()
    spend: SpendSettings = SpendSettings()
