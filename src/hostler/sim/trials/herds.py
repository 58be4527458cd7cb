"""Trials 8.6: herds, flapping, runaway cost.

T04: failed boots are kept as records (`breakers`), not as machines that go on costing. Days of
T06 are hours here: nothing in it depends on how long.
"""

from __future__ import annotations

from msgspec.structs import replace

from hostler.core.events import EventKind
from hostler.core.limits import BOOT_FAILURES_KEPT_MAX
from hostler.model.reason import Reason
from hostler.sim.trials.stage import Stage
from hostler.sim.trials.trial import PROMPT, a_pool, trial

_NEVER_BOOTS = replace(PROMPT, never_boots_ppm=1_000_000)


@trial(
    "T01",
    a_pool(node_count_max=10, launch_count_max=10, boot_ms=60_000, waiting_count_max=100),
    cloud=_NEVER_BOOTS,
)
def broken_image(stage: Stage) -> None:
    """A broken image stays under its ceiling and stops."""
    tenants = stage.acquire_many(40)
    most = 0
    for _ in range(60):
        stage.wait("1m")
        most = max(most, len(stage.billed()))
    stage.expect(most <= 10, "never above the ceiling", most=most)
    # Those that were on their way when it stopped, and one trial each quarter of an hour.
    stage.expect(stage.born_count() <= 10 + 5 + 5, "no more than it takes", n=stage.born_count())
    stage.expect(bool(stage.told(EventKind.GROWTH_STOPPED)), "people are told")
    lease = tenants[0].lease
    is_told = lease is not None and lease.reason in (Reason.GROWTH_STOPPED, Reason.MACHINE_STARTING)
    stage.expect(is_told, "and so is who waits")


@trial(
    "T03",
    a_pool(warm_count=3, boot_ms=60_000),
    cloud=_NEVER_BOOTS,
)
def no_boots_for_an_hour(stage: Stage) -> None:
    """A pool whose machines do not boot goes on by itself after a good one."""
    stage.wait("1h")
    stage.expect(stage.born_count() <= 8 + 5, "few were tried", born=stage.born_count())
    stage.cloud.plan = PROMPT
    stage.warm_up(3, within="20m")
    stage.expect(bool(stage.told(EventKind.GROWTH_RESUMED)), "people are told")


@trial(
    "T04",
    a_pool(warm_count=3, boot_ms=30_000),
    cloud=_NEVER_BOOTS,
)
def evidence(stage: Stage) -> None:
    """What is kept of failures costs nothing."""
    stage.wait("30m")
    kept = [each for breaker in stage.fleet.breakers.in_order() for each in breaker.failures]
    stage.expect(0 < len(kept) <= BOOT_FAILURES_KEPT_MAX, "some are kept", kept=len(kept))
    stage.expect(len(stage.billed()) <= 1, "and none of their machines")


@trial("T06", a_pool(warm_count=2, idle_ms=300_000))
def quiet_floor(stage: Stage) -> None:
    """A floor without demand is left alone."""
    stage.wait("8h")
    stage.expect(stage.born_count() == 2, "no churn", born=stage.born_count())


@trial(
    "T07",
    a_pool(node_count_max=12, warm_count=2, launch_count_max=12, idle_ms=20_000),
)
def around_the_threshold(stage: Stage) -> None:
    """What is planned is what is done, in one step."""
    tenants = stage.acquire_many(8)
    stage.all_held(tenants, within="2m")
    stage.warm_up(2)
    for tenant in tenants[:4]:
        tenant.leave()
    stage.wait("1m")
    stage.expect(len(stage.free()) == 2 and len(stage.held()) == 4, "as planned")
    born, gone = stage.born_count(), stage.born_count() - len(stage.billed())
    stage.wait("20m")
    stage.expect(stage.born_count() == born, "nothing is made", born=stage.born_count())
    stage.expect(stage.born_count() - len(stage.billed()) == gone, "and nothing goes")


@trial(
    "T09",
    *(
        a_pool(f"p{number}", warm_count=1, node_count_max=30, launch_count_max=30)
        for number in range(8)
    ),
)
def cold_start(stage: Stage) -> None:
    """From cold as many are made as are wanted, and the floors."""
    tenants = [stage.acquire(f"p{number % 8}") for number in range(48)]
    stage.all_held(tenants, within="3m")
    stage.warm_up(8, "")
    stage.expect(stage.born_count() == 48 + 8, "no more", born=stage.born_count())


@trial(
    "T10",
    a_pool(warm_count=2, use_count_max=1, idle_ms=10_000),
)
def used_up(stage: Stage) -> None:
    """A machine that is used up is replaced by one, and no ready one goes."""
    stage.warm_up(2)
    for _ in range(30):
        tenant = stage.acquire()
        stage.all_held([tenant], within="1m")
        tenant.leave()
        stage.wait("10s")
    stage.warm_up(2)
    stage.expect(stage.born_count() == 32, "one for each lease", born=stage.born_count())
    stage.expect(len(stage.billed()) == 2, "and two are left")


@trial("T12", a_pool(slot_count=5, idle_ms=30_000))
def down_to_none(stage: Stage) -> None:
    """With several slots a pool shrinks to none."""
    tenants = stage.acquire_many(10)
    stage.all_held(tenants, within="2m")
    for tenant in tenants:
        tenant.leave()
    stage.until(lambda: not stage.billed(), "none is left", within="2m")


@trial(
    "T13",
    a_pool(node_count_max=5, launch_count_max=5, boot_ms=600_000),
    cloud=replace(PROMPT, boot_ms=(200_000, 300_000)),
)
def taking_over(stage: Stage) -> None:
    """The ceiling holds when a new server takes over while machines are slow to come."""
    tenants = stage.acquire_many(10)
    for _ in range(8):
        stage.wait("20s")
        stage.crash()
        stage.wait("5s")
        stage.expect(len(stage.billed()) <= 5, "never above the ceiling")
    stage.until(lambda: len(stage.held(tenants)) == 5, "and all of it serves", within="10m")
    stage.expect(stage.born_count() == 5, "five were made", born=stage.born_count())
