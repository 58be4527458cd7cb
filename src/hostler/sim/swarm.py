"""The swarm: draws a whole scenario from a seed, including which faults are off.

A history with every fault on hides what only shows when some are off, so each kind is present in
about half of the histories, at a rate of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec.structs import replace

from hostler.base.rng import Stream
from hostler.sim.cloud import CloudPlan
from hostler.sim.disk import DiskPlan
from hostler.sim.machine import MachinePlan
from hostler.sim.network import NetworkPlan
from hostler.sim.scenario import (
    AcquireLeases,
    BreakLinks,
    ChangeConfiguration,
    CrashAgents,
    CrashServer,
    Fault,
    FleetPlan,
    JumpClock,
    KillMachines,
    OperateNodes,
    Partition,
    PauseAgents,
    Phases,
    PlanMaintenance,
    PoolPlan,
    RejectStarts,
    RestartEverything,
    RestNowAndThen,
    Scenario,
    SettingsPlan,
    SubmitBundles,
    TakeBack,
    TierPlan,
    Workload,
)
from hostler.sim.server import ServerPlan

StreamOf = Callable[[str], Stream]
"""Gives the random stream of one part of the scenario."""

_CLOCK_SLACK_MS: Final = 16_000
"""What scenarios leave between fencing and loss: the longest stop, a supervisor's look at its file,
and all forward jumps of the server's clock that fall into one silence."""


def draw(seed: int) -> Scenario:
    """Return the scenario of a seed.

    Each part is drawn from a stream of its own, so that a change of one part leaves the others of
    every seed as they were.
    """

    def stream(name: str) -> Stream:
        return Stream(seed, "swarm", name)

    rng = stream("world")
    return Scenario(
        title=f"swarm {seed}",
        fleet=FleetPlan(
            pools=_saving(stream("saving"), _pools(stream)),
            settings=_worked_on(stream("maintenance"), _settings(stream("settings"))),
        ),
        workload=_workload(stream),
        fault=_faults(stream),
        network=NetworkPlan(
            delay_ms=(1, rng.choice((10, 100, 800))),
            is_request_lost_ppm=_perhaps(rng, 100_000),
        ),
        cloud=_cloud(stream("cloud")),
        disk=DiskPlan(
            commit_ms=(0, rng.choice((1, 5, 50))),
            is_slow_ppm=_perhaps(rng, 5_000),
            is_failing_ppm=_perhaps(rng, 20_000),
            is_doubtful_ppm=_perhaps(rng, 10_000),
        ),
        machines=_machines(stream("machines")),
        server=ServerPlan(down_ms=(500, rng.choice((2_000, 20_000, 90_000)))),
        phases=Phases(safety_ms=rng.between(240, 900) * 1_000),
    )


def _perhaps(rng: Stream, most: int) -> int:
    """Return a rate up to `most`, or none at all."""
    return rng.between(1, most) if rng.chance(500_000) else 0


def _settings(rng: Stream) -> SettingsPlan:
    heartbeat_ms = rng.choice((1_000, 3_000, 5_000))
    suspect_after_ms = heartbeat_ms * rng.between(2, 4)
    fence_after_ms = heartbeat_ms * rng.between(3, 8)
    lost_after_ms = max(suspect_after_ms, fence_after_ms + _CLOCK_SLACK_MS) + rng.between(1, 20_000)
    return SettingsPlan(
        heartbeat_ms=heartbeat_ms,
        suspect_after_ms=suspect_after_ms,
        fence_after_ms=fence_after_ms,
        lost_after_ms=lost_after_ms,
        list_every_ms=rng.choice((20_000, 60_000)),
        orphan_grace_ms=rng.choice((30_000, 120_000)),
        lost_node_count_max=rng.choice((2, 20)),
        brake_window_ms=rng.choice((60_000, 240_000)),
        ageing_ms=rng.choice((0, 60_000, 3_600_000)),
        preemption_window_ms=rng.choice((30_000, 600_000)),
        is_bronze_victim_dropped=rng.chance(300_000),
        restart_count_max=rng.choice((1, 3, 6)),
        restart_window_ms=rng.choice((120_000, 3_600_000)),
        ended_ms=240_000,
    )


def _pools(stream: StreamOf) -> tuple[PoolPlan, ...]:
    rng, services = stream("pools"), stream("services")
    pools = [_pool(rng, name) for name in ("p", "q")[: rng.between(1, 2)]]
    pools = [replace(pool, has_service=services.chance(200_000)) for pool in pools]
    agentless = stream("agentless")
    return tuple(_without_agents(pool) if agentless.chance(150_000) else pool for pool in pools)


def _without_agents(pool: PoolPlan) -> PoolPlan:
    """Return a pool on whose launched machines nothing of ours runs."""
    tiers = (replace(tier, has_agents=tier.machine_count > 0) for tier in pool.tiers)
    return replace(pool, tiers=tuple(tiers))


def _worked_on(rng: Stream, settings: SettingsPlan) -> SettingsPlan:
    if rng.chance(700_000):
        return settings
    begin_ms = rng.between(60, 150) * 1_000
    return replace(settings, maintenance_ms=(begin_ms, begin_ms + rng.between(10, 80) * 1_000))


def _saving(rng: Stream, pools: tuple[PoolPlan, ...]) -> tuple[PoolPlan, ...]:
    return tuple(replace(pool, is_saving=rng.chance(500_000)) for pool in pools)


def _pool(rng: Stream, name: str) -> PoolPlan:
    has_own = rng.chance(600_000)
    has_cloud = not has_own or rng.chance(800_000)
    tiers: list[TierPlan] = []
    capacity = rng.choice((4, 8))
    if has_own:
        tiers.append(
            TierPlan(name="own", machine_count=rng.between(1, 4), capacity=capacity, zone="here")
        )
    if has_cloud:
        is_interruptible = rng.chance(300_000)
        tiers.append(
            TierPlan(
                name="cloud",
                zone="there",
                node_count_max=rng.between(3, 8),
                capacity=capacity,
                is_interruptible=is_interruptible,
                boot_ms=rng.choice((30_000, 60_000)),
            )
        )
    return PoolPlan(
        name=name,
        tiers=tuple(tiers),
        warm_count=rng.between(0, 2) if has_cloud else 0,
        spare_count=rng.below(2) if has_cloud else 0,
        slot_count=rng.choice((1, 1, 1, 2, 3)),
        idle_ms=rng.choice((20_000, 60_000, 120_000)),
        lease_ms=rng.choice((15_000, 60_000)),
        lease_ms_max=rng.choice((None, None, 90_000)),
        lease_per_key_max=rng.choice((None, 1, 3)),
        waiting_count_max=rng.choice((3, 50)),
        use_count_max=rng.choice((None, None, 1, 5)),
        launch_count_max=rng.choice((1, 3, 5)),
        has_clean_up=rng.chance(250_000),
        has_ready_check=rng.chance(200_000),
    )


def _workload(stream: StreamOf) -> tuple[Workload, ...]:
    found: list[Workload] = []
    rng = stream("submit_bundles")
    if rng.chance(850_000):
        found.append(
            SubmitBundles(
                bundles_per_hour=rng.choice((40, 120, 300)),
                replica_count=(1, rng.between(1, 3)),
                bundle_count_max=rng.between(2, 10),
                bands=rng.choice((("gold", "silver", "bronze"), ("gold",), ("silver", "bronze"))),
                keeps_ppm=rng.choice((0, 200_000, 1_000_000)),
                required_spread_ppm=_perhaps(rng, 300_000),
                broken_ppm=_perhaps(stream("broken_versions"), 300_000),
                wishes_ppm=_perhaps(stream("bundle_wishes"), 600_000),
                configs_per_hour=stream("job_configs").choice((0, 0, 60, 300)),
            )
        )
    rng = stream("acquire_leases")
    if rng.chance(800_000) or not found:
        found.append(
            AcquireLeases(
                leases_per_hour=rng.choice((60, 300, 900)),
                hold_ms=(500, rng.choice((5_000, 120_000))),
                timeout_ms=(0, rng.choice((1, 20_000, 60_000))),
                poison_ppm=_perhaps(rng, 200_000),
                abandoned_ppm=_perhaps(rng, 200_000),
            )
        )
    rng = stream("operate_nodes")
    if rng.chance(500_000):
        labels_ppm = _perhaps(stream("node_labels"), 500_000)
        found.append(OperateNodes(per_hour=rng.choice((10, 60)), labels_ppm=labels_ppm))
    rng = stream("change_configuration")
    if rng.chance(400_000):
        settings_ppm = stream("changed_settings").choice((0, 500_000, 1_000_000))
        per_hour = rng.choice((4, 20, 60))
        found.append(ChangeConfiguration(per_hour=per_hour, settings_ppm=settings_ppm))
    rng = stream("plan_maintenance")
    if rng.chance(250_000):
        found.append(PlanMaintenance(per_hour=rng.choice((10, 40))))
    rng = stream("rest")
    if rng.chance(250_000):
        found.append(RestNowAndThen(per_hour=rng.choice((4, 12))))
    return tuple(found)


def _faults(stream: StreamOf) -> tuple[Fault, ...]:
    drawn = (
        _crash_server(stream("crash_server")),
        _partition(stream("partition")),
        _break_links(stream("break_links")),
        _kill_machines(stream("kill_machines")),
        _crash_agents(stream("crash_agents")),
        _jump_clock(stream("jump_clock")),
        _pause_agents(stream("pause_agents")),
        _take_back(stream("take_back")),
        _reject_starts(stream("reject_starts")),
        _restart_everything(stream("restart_everything")),
    )
    return tuple(fault for fault in drawn if fault is not None)


def _crash_server(rng: Stream) -> Fault | None:
    if rng.chance(400_000):
        return None
    at = rng.choice(("any-instant", "any-durable-boundary", "any-durable-boundary"))
    return CrashServer(per_hour=rng.choice((10, 40, 120)), at=at)


def _partition(rng: Stream) -> Fault | None:
    if rng.chance(500_000):
        return None
    return Partition(
        per_hour=rng.choice((10, 40)),
        stability_ms=(2_000, rng.choice((20_000, 90_000, 240_000))),
        share_ppm=rng.choice((200_000, 500_000, 1_000_000)),
    )


def _break_links(rng: Stream) -> Fault | None:
    return BreakLinks(per_hour=rng.choice((60, 600))) if rng.chance(500_000) else None


def _kill_machines(rng: Stream) -> Fault | None:
    return KillMachines(per_hour=rng.choice((10, 40))) if rng.chance(500_000) else None


def _crash_agents(rng: Stream) -> Fault | None:
    return CrashAgents(per_hour=rng.choice((30, 200))) if rng.chance(500_000) else None


def _jump_clock(rng: Stream) -> Fault | None:
    return JumpClock() if rng.chance(300_000) else None


def _pause_agents(rng: Stream) -> Fault | None:
    if rng.chance(700_000):
        return None
    pause_ms = (1_000, rng.choice((20_000, 120_000)))
    return PauseAgents(per_hour=rng.choice((20, 60)), pause_ms=pause_ms)


def _take_back(rng: Stream) -> Fault | None:
    if rng.chance(700_000):
        return None
    notice_ms = (0, rng.choice((5_000, 120_000)))
    return TakeBack(per_hour=rng.choice((10, 40)), notice_ms=notice_ms)


def _reject_starts(rng: Stream) -> Fault | None:
    return RejectStarts(per_hour=rng.choice((10, 40))) if rng.chance(250_000) else None


def _restart_everything(rng: Stream) -> Fault | None:
    return RestartEverything(per_hour=rng.choice((4, 12))) if rng.chance(200_000) else None


def _cloud(rng: Stream) -> CloudPlan:
    return CloudPlan(
        delay_ms=(20, rng.choice((200, 2_000, 10_000))),
        boot_ms=(1_000, rng.choice((5_000, 25_000))),
        stop_ms=(200, rng.choice((2_000, 40_000))),
        is_failing_ppm=_perhaps(rng, 300_000),
        is_answer_lost_ppm=_perhaps(rng, 100_000),
        is_unknown_ppm=_perhaps(rng, 150_000),
        is_late_ppm=_perhaps(rng, 50_000),
        is_swallowed_ppm=_perhaps(rng, 100_000),
        never_boots_ppm=_perhaps(rng, 150_000),
        list_lag_ms=(0, rng.choice((0, 5_000, 60_000))),
    )


def _machines(rng: Stream) -> MachinePlan:
    return MachinePlan(
        start_fails_ppm=_perhaps(rng, 60_000),
        exits_ppm=_perhaps(rng, 300_000),
        never_ready_ppm=_perhaps(rng, 50_000),
        ignores_stop_ppm=_perhaps(rng, 200_000),
        supervisor_fails_ppm=_perhaps(rng, 30_000),
        agent_returns_ms=(200, rng.choice((3_000, 15_000, 100_000))),
        strays_ppm=_perhaps(rng, 300_000),
        check_fails_ppm=_perhaps(rng, 300_000),
    )
