"""People who submit bundles, change them, and delete them again."""

from __future__ import annotations

from hostler.base.ids import BundleId
from hostler.core.inputs import DeleteBundle, StartJob, SubmitBundle
from hostler.model.bundle import Fallback, Job
from hostler.model.constraint import SpreadOver, SpreadRule
from hostler.model.launch import (
    AtOnceReadiness,
    DelayReadiness,
    Disconnect,
    Launch,
    Readiness,
    SdNotifyReadiness,
    TcpReadiness,
)
from hostler.model.pool import Band
from hostler.model.shape import CapabilityRequest, Requirement
from hostler.sim.client import Client
from hostler.sim.scenario import SubmitBundles
from hostler.sim.workloads.rhythm import keep_wanting

STOP_GRACE_MS = 4_000
"""Of every job; scenarios leave so much time between fencing and loss."""


class Submitters:
    """One plan's people."""

    def __init__(self, client: Client, plan: SubmitBundles, pools: tuple[str, ...]) -> None:
        self._client = client
        self._plan = plan
        self._pools = pools
        self._rng = client.world.stream("workload", "bundles")
        self._count = 0
        self._wanted: list[str] = []

    def begin(self) -> None:
        """Begin to submit."""
        keep_wanting(self._client.world, self._rng, self._plan.bundles_per_hour, self._act)

    def _act(self) -> None:
        rng = self._rng
        choice = rng.below(100)
        if choice < 60 and len(self._wanted) < self._plan.bundle_count_max:
            self._count += 1
            name = f"b{self._count}"
            self._wanted.append(name)
            self._submit(name)
        elif self._wanted and choice < 80:
            self._submit(rng.choice(self._wanted))
        elif self._wanted and choice < 88:
            name = rng.choice(self._wanted)
            self._client.ask(
                lambda request_id: StartJob(
                    request_id=request_id, principal="operator", bundle_id=BundleId(name), job="a"
                )
            )
        elif self._wanted:
            name = self._wanted.pop(rng.below(len(self._wanted)))
            self._client.ask(
                lambda request_id: DeleteBundle(
                    request_id=request_id, principal="operator", bundle_id=BundleId(name)
                )
            )

    def _submit(self, name: str) -> None:
        rng, plan = self._rng, self._plan
        pool = rng.choice(self._pools)
        others = tuple(other for other in self._pools if other != pool)
        is_spread = rng.chance(plan.required_spread_ppm)
        spread = (SpreadRule(over=SpreadOver.TIER, is_required=rng.chance(500_000)),)
        jobs = tuple(self._job(job) for job in ("a", "b")[: rng.between(1, 2)])
        replica_count = rng.between(*plan.replica_count)
        fallback_pools = others if rng.chance(300_000) else ()
        fallback = rng.choice(tuple(Fallback))
        is_gang = rng.chance(plan.gang_ppm)
        self._client.ask(
            lambda request_id: SubmitBundle(
                request_id=request_id,
                principal="operator",
                bundle_id=BundleId(name),
                pool=pool,
                jobs=jobs,
                replica_count=replica_count,
                fallback_pools=fallback_pools,
                spread=spread if is_spread else (),
                is_primary_interruptible=not is_spread,
                fallback=fallback,
                is_gang=is_gang,
            )
        )

    def _job(self, name: str) -> Job:
        rng, plan = self._rng, self._plan
        is_kept = rng.chance(plan.keeps_ppm)
        needs_input = rng.chance(100_000)
        return Job(
            name=name,
            launch=Launch(
                argv=("work",),
                readiness=self._readiness(),
                ready_within_ms=30_000,
                stop_grace_ms=STOP_GRACE_MS,
                disconnect=Disconnect.KEEP if is_kept else Disconnect.STOP,
            ),
            band=Band(rng.choice(plan.bands)),
            requirement=Requirement(
                capacity=rng.between(*plan.capacity),
                capabilities=(CapabilityRequest(name="input"),) if needs_input else (),
            ),
            is_dormant=rng.chance(50_000),
        )

    def _readiness(self) -> Readiness:
        match self._rng.below(4):
            case 0:
                return AtOnceReadiness()
            case 1:
                return DelayReadiness(delay_ms=self._rng.between(100, 5_000))
            case 2:
                return SdNotifyReadiness()
            case _:
                return TcpReadiness(port=80, interval_ms=15_000, timeout_ms=1_000)
