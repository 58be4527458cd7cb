"""Trials 8.10: fairness and priority."""

from __future__ import annotations

from hostler.model.lease import LeasePhase
from hostler.sim.trials.answers import fail_launches
from hostler.sim.trials.stage import Stage
from hostler.sim.trials.trial import a_pool, trial


@trial(
    "F01",
    a_pool(warm_count=15, launch_count_max=2, node_count_max=30),
)
def refill_yields(stage: Stage) -> None:
    """Who waits comes before the refill of the floor."""
    stage.wait("100ms")
    tenant = stage.acquire()
    stage.all_held([tenant], within="10s")
    stage.expect(len(stage.free()) < 15, "the refill goes on behind")
    stage.warm_up(15)


@trial(
    "F02",
    a_pool(node_count_max=20, waiting_count_max=200),
)
def urgent_first(stage: Stage) -> None:
    """Waiting holds no launch, and who is urgent goes first when there is room."""
    stage.cloud.answers = fail_launches("quota_exceeded")
    low = stage.acquire_many(50)
    stage.wait("1m")
    # A step of priority is worth a minute in line, so this is worth an hour and more.
    high = stage.acquire(priority=100)
    stage.wait("10s")
    stage.cloud.answers = None
    stage.until(lambda: bool(stage.held()), "somebody is served", within="10m", step=100)
    stage.expect(high.is_held, "the urgent one first")
    stage.expect(any(each.phase is LeasePhase.WAITING for each in low), "others wait on")


@trial(
    "F04",
    a_pool(warm_count=10, node_count_max=10, waiting_count_max=2_000, launch_count_max=10),
)
def one_floods(stage: Stage) -> None:
    """One who asks for a thousand keeps nobody else waiting for long."""
    stage.warm_up(10)
    flood = stage.acquire_many(200, fairness_key="a")
    stage.wait("2s")
    single = stage.acquire(fairness_key="b")
    stage.wait("1s")
    served = len(stage.held(flood))
    stage.expect(served == 10, "the flood has all", served=served)
    stage.held(flood)[0].leave()
    stage.all_held([single], within="1s")
