"""People who submit bundles, change them, and delete them again."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from hostler.base.ids import BundleId
from hostler.core.inputs import AnyRequest, DeleteBundle, ResetBundle, SteerRollout, SubmitBundle
from hostler.core.job_inputs import ConfigureJob, StartJob, StopJob
from hostler.model.bundle import (
    Fallback,
    Job,
    OnFailure,
    RolloutPolicy,
)
from hostler.model.calendar import Offset, TimeZone
from hostler.model.constraint import SpreadOver, SpreadRule
from hostler.model.launch import (
    AtOnceReadiness,
    DelayReadiness,
    Disconnect,
    JobConfig,
    Launch,
    Readiness,
    SdNotifyReadiness,
    TcpReadiness,
)
from hostler.model.pool import Band
from hostler.model.rollout import Steering
from hostler.model.shape import CapabilityRequest, Requirement
from hostler.model.timetable import Missed, Timetable
from hostler.sim.client import Client
from hostler.sim.scenario import SubmitBundles
from hostler.sim.supervisor import BROKEN_ARGUMENT
from hostler.sim.truth import Truth
from hostler.sim.workloads.rhythm import keep_wanting
from hostler.sim.workloads.wishes import wishes_of_bundle, with_wishes

STOP_GRACE_MS = 4_000
"""Of every job; scenarios leave so much time between fencing and loss."""


UTC_ZONE = TimeZone(
    name="UTC", offsets=(Offset(from_at_ms=0, offset_ms=0),), known_until_at_ms=1 << 53
)
"""In which timetables of the simulator are."""


class Submitters:
    """One plan's people."""

    def __init__(
        self,
        client: Client,
        truth: Truth,
        plan: SubmitBundles,
        pools: tuple[str, ...],
        *,
        has_mesh: bool = False,
    ) -> None:
        self._truth = truth
        self._client = client
        self._plan = plan
        self._pools = pools
        self._has_mesh = has_mesh
        self._rng = client.world.stream("workload", "bundles")
        self._life_rng = client.world.stream("workload", "bundle_life")
        """Of everything about bundles that run: apart, so that adding to it moves nothing else."""
        self._wish_rng = client.world.stream("workload", "bundle_wishes")
        """Of what they wish about where they are; apart for the same reason."""
        self._config_rng = client.world.stream("workload", "bundle_config")
        self._last: dict[str, SubmitBundle] = {}
        """What was last asked for, by bundle."""
        self._count = 0
        self._wanted: list[str] = []

    def begin(self) -> None:
        """Begin to submit."""
        keep_wanting(self._client.world, self._rng, self._plan.bundles_per_hour, self._act)
        steers_per_hour = self._plan.steers_per_hour
        keep_wanting(self._client.world, self._life_rng, steers_per_hour, self._steer)
        configs_per_hour = self._plan.configs_per_hour
        if configs_per_hour:
            keep_wanting(self._client.world, self._config_rng, configs_per_hour, self._configure)

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

    def _configure(self) -> None:
        """Change nothing of a bundle but what its jobs work by: all of them, or one by itself."""
        if not self._wanted:
            return
        last = self._last[self._config_rng.choice(self._wanted)]
        if self._config_rng.chance(500_000):
            self._configure_job(last)
            return
        jobs = tuple(replace(job, config=self._config(likely_ppm=900_000)) for job in last.jobs)
        self._client.ask(lambda request_id: replace(last, request_id=request_id, jobs=jobs))

    def _configure_job(self, last: SubmitBundle) -> None:
        rng = self._config_rng
        job = rng.choice(last.jobs).name
        config = self._config(likely_ppm=800_000)
        if_generation = rng.between(1, 4) if rng.chance(200_000) else None
        self._client.world.probe("people.configured_job")
        self._client.ask(
            lambda request_id: ConfigureJob(
                request_id=request_id,
                principal="operator",
                bundle_id=last.bundle_id,
                job=job,
                config=config,
                if_generation=if_generation,
            )
        )

    def _config(self, *, likely_ppm: int) -> JobConfig | None:
        rng = self._config_rng
        if not self._plan.configs_per_hour or not rng.chance(likely_ppm):
            return None
        return JobConfig(values_json=f'{{"tone":{rng.below(5)}}}')

    def _steer(self) -> None:
        if not self._wanted:
            return
        rng = self._life_rng
        name, job = BundleId(rng.choice(self._wanted)), rng.choice(("a", "b"))
        steering = rng.choice(tuple(Steering))
        kind = rng.below(5)

        def request(request_id: str) -> AnyRequest:
            who: dict[str, Any] = {"request_id": request_id, "principal": "operator"}
            match kind:
                case 0:
                    return StopJob(bundle_id=name, job=job, **who)
                case 1 | 2:
                    return StartJob(bundle_id=name, job=job, **who)
                case 3:
                    return ResetBundle(bundle_id=name, **who)
                case _:
                    return SteerRollout(bundle_id=name, steering=steering, **who)

        self._client.ask(request)

    def _submit(self, name: str) -> None:
        rng, plan = self._rng, self._plan
        pool = rng.choice(self._pools)
        others = tuple(other for other in self._pools if other != pool)
        is_spread = rng.chance(plan.required_spread_ppm)
        spread = (SpreadRule(over=SpreadOver.TIER, is_required=rng.chance(500_000)),)
        can_overlap = int(name[1:]) % 2 == 0
        if can_overlap:
            self._truth.overlapping_bundles.add(name)
        jobs = tuple(
            self._job(job, can_overlap=can_overlap) for job in ("a", "b")[: rng.between(1, 2)]
        )
        replica_count = rng.between(*plan.replica_count)
        policy, timetable = self._policy(), self._timetable()
        fallback_pools = others if rng.chance(300_000) else ()
        fallback = rng.choice(tuple(Fallback))
        is_gang = rng.chance(plan.gang_ppm)
        asked = self._last[name] = SubmitBundle(
            request_id="",
            principal="operator",
            bundle_id=BundleId(name),
            pool=pool,
            jobs=jobs,
            replica_count=replica_count,
            fallback_pools=fallback_pools,
            is_primary_interruptible=not is_spread,
            rollout=policy,
            timetable=timetable,
            time_zones=(UTC_ZONE,),
            fallback=fallback,
            is_gang=is_gang,
            is_backup_promoted=int(name[1:]) % 3 == 0,
            **self._wishes(name, spread if is_spread else ()),
        )
        self._client.ask(lambda request_id: replace(asked, request_id=request_id))

    def _wishes(self, name: str, spread: tuple[SpreadRule, ...]) -> dict[str, Any]:
        given: dict[str, Any] = {"spread": spread}
        if self._wish_rng.chance(self._plan.wishes_ppm):
            self._client.world.probe("people.wished")
            given.update(wishes_of_bundle(self._wish_rng, name))
        return given

    def _policy(self) -> RolloutPolicy:
        rng = self._life_rng
        return RolloutPolicy(
            max_parallel=rng.between(1, 2),
            healthy_after_ms=rng.between(0, 10_000),
            progress_within_ms=120_000,
            on_failure=rng.choice(tuple(OnFailure)),
        )

    def _timetable(self) -> Timetable | None:
        """Now and then a stretch of time that begins and ends within the history."""
        rng = self._life_rng
        if not rng.chance(150_000):
            return None
        from_at_ms = self._client.world.now_ms + rng.between(-60_000, 600_000)
        return Timetable(
            time_zone="UTC",
            from_at_ms=from_at_ms,
            to_at_ms=from_at_ms + rng.between(1_000, 1_200_000),
            missed=rng.choice(tuple(Missed)),
            grace_ms=rng.between(0, 60_000),
        )

    def _job(self, name: str, *, can_overlap: bool) -> Job:
        rng, plan = self._rng, self._plan
        is_broken = self._life_rng.chance(plan.broken_ppm)
        is_kept = rng.chance(plan.keeps_ppm)
        needs_input = rng.chance(100_000)
        job = Job(
            name=name,
            launch=Launch(
                argv=("work", *((BROKEN_ARGUMENT,) if is_broken else ())),
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
            can_overlap=can_overlap,
            config=self._config(likely_ppm=300_000),
        )
        if self._wish_rng.chance(plan.wishes_ppm):
            wishes = with_wishes(self._wish_rng, job, has_mesh=self._has_mesh)
            job = replace(job, **wishes)
        return job

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
