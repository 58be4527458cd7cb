"""Limits: other numbers for a fleet that runs, each as an operator may set it."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from hostler.base.rng import Stream
from hostler.sim.scenario import PoolPlan, SettingsPlan, TierPlan


def changed_settings(rng: Stream, plan: SettingsPlan) -> SettingsPlan:
    """Return settings of which some are others; each keeps what scenarios leave for clocks."""
    changes: dict[str, Any] = {
        "list_every_ms": rng.choice((20_000, 60_000)),
        "orphan_grace_ms": rng.choice((30_000, 120_000)),
        "lost_node_count_max": rng.choice((2, 20)),
        "brake_window_ms": rng.choice((60_000, 240_000)),
        "ageing_ms": rng.choice((0, 60_000, 3_600_000)),
        "preemption_window_ms": rng.choice((30_000, 600_000)),
        "is_bronze_victim_dropped": rng.chance(500_000),
        "restart_count_max": rng.choice((1, 3, 6)),
        "restart_window_ms": rng.choice((120_000, 3_600_000)),
        "ended_ms": rng.choice((60_000, 240_000, 480_000)),
    }
    kept = {name: value for name, value in changes.items() if rng.chance(400_000)}
    if rng.chance(400_000):
        kept |= _of_silence(rng, plan)
    return replace(plan, **kept)


def _of_silence(rng: Stream, plan: SettingsPlan) -> dict[str, int]:
    """Return other limits of silence, as far from each other as those that were drawn."""
    heartbeat_ms = rng.choice((1_000, 3_000, 5_000))
    suspect_after_ms = heartbeat_ms * rng.between(2, 4)
    fence_after_ms = heartbeat_ms * rng.between(3, 8)
    slack_ms = plan.lost_after_ms - plan.fence_after_ms
    return {
        "heartbeat_ms": heartbeat_ms,
        "suspect_after_ms": suspect_after_ms,
        "fence_after_ms": fence_after_ms,
        "lost_after_ms": max(suspect_after_ms + 1, fence_after_ms + slack_ms),
    }


def changed_pool(rng: Stream, plan: PoolPlan) -> PoolPlan:
    """Return a pool of which some limits are others."""
    changes: dict[str, Any] = {
        "idle_ms": rng.choice((20_000, 120_000)),
        "lease_per_key_max": rng.choice((None, 1, 3)),
        "waiting_count_max": rng.choice((3, 50)),
        "use_count_max": rng.choice((None, 1, 5)),
        "launch_count_max": rng.choice((1, 5)),
        "has_clean_up": rng.chance(500_000),
        "has_ready_check": rng.chance(500_000),
        "has_service": rng.chance(300_000),
        "is_saving": rng.chance(500_000),
        "retire_notice_ms": rng.choice((0, 60_000)),
    }
    kept = {name: value for name, value in changes.items() if rng.chance(300_000)}
    tiers = tuple(_changed_tier(rng, tier) for tier in plan.tiers)
    return replace(plan, tiers=tiers, **kept)


def _changed_tier(rng: Stream, plan: TierPlan) -> TierPlan:
    return replace(plan, boot_ms=rng.choice((30_000, 60_000))) if rng.chance(300_000) else plan
