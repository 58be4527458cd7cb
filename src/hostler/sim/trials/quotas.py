"""Trials 8.7: quota, capacity, rate limits."""

from __future__ import annotations

from itertools import pairwise

from hostler.core.inputs import Outcome
from hostler.core.waiting import why_waiting
from hostler.model.command import LaunchMachine, ProviderCommand
from hostler.model.lease import LeasePhase
from hostler.model.reason import Reason
from hostler.sim.scenario import TierPlan
from hostler.sim.trials.answers import fail_launches, failure
from hostler.sim.trials.stage import Stage
from hostler.sim.trials.trial import a_pool, trial

_ZONES = (
    TierPlan(name="a", node_count_max=5),
    TierPlan(name="b", node_count_max=5),
    TierPlan(name="c", node_count_max=5),
)


@trial("Q01")
def no_capacity(stage: Stage) -> None:
    """Without capacity a request keeps its place and is told why."""
    stage.cloud.answers = fail_launches("capacity_unavailable", message="zone a is full")
    tenant = stage.acquire()
    stage.wait("30m")
    lease = tenant.lease
    stage.expect(lease is not None and lease.phase is LeasePhase.WAITING, "it still waits")
    stage.expect(
        lease is not None and lease.reason is Reason.OFFER_COOLING_DOWN,
        "it says why",
        reason=lease and lease.reason,
    )
    stage.cloud.answers = None
    stage.all_held([tenant], within="6m")


@trial("Q02", a_pool(tiers=_ZONES))
def next_zone(stage: Stage) -> None:
    """Where one zone is empty the next one serves in the same breath."""
    stage.cloud.answers = fail_launches("capacity_unavailable", tier="a")
    tenant = stage.acquire()
    stage.all_held([tenant], within="30s")
    stage.expect(stage.fleet.nodes[tenant.node_id].tier == "b", "the next zone")


@trial("Q04")
def raised_quota(stage: Stage) -> None:
    """A quota that is raised while somebody waits serves them."""
    stage.cloud.answers = fail_launches("quota_exceeded")
    tenant = stage.acquire(wait="15m")
    stage.wait("10m")
    stage.expect(tenant.phase is LeasePhase.WAITING, "it was not sent away")
    stage.cloud.answers = None
    stage.all_held([tenant], within="5m")


@trial(
    "Q05",
    a_pool(node_count_max=10, launch_count_max=10),
)
def above_the_ceiling(stage: Stage) -> None:
    """What is above the ceiling waits and says so."""
    tenants = stage.acquire_many(16)
    stage.until(lambda: len(stage.held()) == 10, "ten are served", within="2m")
    stage.wait("1m")
    waiting = [tenant.lease for tenant in tenants if tenant.phase is LeasePhase.WAITING]
    stage.expect(len(waiting) == 6, "six wait")
    first = min((each for each in waiting if each), key=lambda each: each.line_at_ms)
    why = why_waiting(stage.fleet, first)
    is_told = why.reason is Reason.LIMIT_REACHED and "10" in why.detail
    stage.expect(is_told, "and are told the ceiling", why=why)


@trial(
    "Q07",
    a_pool("red", tiers=_ZONES),
    a_pool("blue"),
)
def too_often(stage: Stage) -> None:
    """Who says 'too often' is left alone as a whole, and others are not."""
    stage.configure("blue", provider="other")
    asked: list[int] = []

    def answers(command: ProviderCommand) -> Outcome | None:
        if isinstance(command, LaunchMachine) and command.pool == "red":
            asked.append(stage.world.now_ms)
            return failure("throttled", retry_after_ms=60_000)
        return None

    stage.wait("1s")
    stage.cloud.answers = answers
    reds = [stage.acquire("red") for _ in range(5)]
    blue = stage.acquire("blue")
    stage.all_held([blue], within="30s")
    stage.wait("10m")
    bursts = sum(1 for first, second in pairwise(asked) if second - first >= 55_000)
    stage.expect(
        len(asked) <= 5 * (bursts + 1) and bursts <= 10,
        "it is asked seldom",
        asked=len(asked),
        bursts=bursts,
    )
    stage.cloud.answers = None
    stage.all_held(reds, within="10m")


@trial("Q08")
def gone_at_once(stage: Stage) -> None:
    """A machine that goes at once is a failed attempt, and another is made."""
    tenant = stage.acquire()
    stage.wait("2s")
    for machine in stage.billed():
        stage.cloud.end(machine, "no addresses left")
    stage.all_held([tenant], within="2m")
    stage.expect(stage.born_count() == 2, "a second one serves")


@trial("Q10", a_pool(node_count_max=6, launch_count_max=6))
def half_rejected(stage: Stage) -> None:
    """What was rejected holds no slot."""
    count = [0]

    def answers(command: ProviderCommand) -> Outcome | None:
        if not isinstance(command, LaunchMachine):
            return None
        count[0] += 1
        return failure("capacity_unavailable", message="full") if count[0] % 2 else None

    stage.cloud.answers = answers
    tenants = stage.acquire_many(6)
    stage.all_held(tenants, within="20m")
    stage.expect(len(stage.nodes()) == 6, "six nodes for six leases")
