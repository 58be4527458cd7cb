"""Trials 8.15: money.

That no cap is passed at a grant, and that the provider's bill is our ledger, is checked in every
trial (1), (3).
"""

from __future__ import annotations

from hostler.core.events import EventKind
from hostler.core.waiting import why_waiting
from hostler.model import Budget
from hostler.model.lease import LeasePhase
from hostler.model.reason import Reason
from hostler.model.spend import Period, SpendCap
from hostler.sim.trials.answers import fail_launches
from hostler.sim.trials.stage import Stage
from hostler.sim.trials.trial import a_pool, trial


@trial("$01")
def dear_ones_only(stage: Stage) -> None:
    """What would cost more an hour than it may is not leased, and says so."""
    stage.apply(budgets=(Budget(name="hourly", micros_per_hour_max=150_000),))
    stage.wait("1s")
    stage.cloud.answers = fail_launches("capacity_unavailable", offer="small")
    tenant = stage.acquire()
    stage.wait("3m")
    lease = tenant.lease
    stage.expect(lease is not None and lease.phase is LeasePhase.WAITING, "it waits")
    stage.expect(not stage.billed(), "the dear one was not taken")
    if lease is not None:
        why = why_waiting(stage.fleet, lease)
        is_told = why.reason in (Reason.BUDGET_IN_USE, Reason.OFFER_COOLING_DOWN)
        stage.expect(is_told, "it is told", why=why)
    stage.cloud.answers = None
    stage.all_held([tenant], within="10m")


@trial("$03", a_pool(lease_ms=60_000, idle_ms=1_000, boot_ms=60_000))
def bills_that_lag(stage: Stage) -> None:
    """A cap holds by our own books, whenever the bill comes."""
    cap = SpendCap(period=Period.LIFETIME, node_ms=900_000)
    stage.apply(budgets=(Budget(name="all", caps=(cap,)),))
    stage.wait("1s")
    refused = None
    for _ in range(60):
        tenant = stage.acquire(wait="30s")
        stage.wait("40s")
        if tenant.phase is LeasePhase.REFUSED:
            refused = tenant.lease
            break
        tenant.leave()
        stage.wait("5s")
    stage.expect(refused is not None, "in the end nothing more is leased")
    stage.expect(
        refused is not None and "budget" in refused.reason_detail,
        "and says why",
        detail=refused and refused.reason_detail,
    )
    now_ms = stage.world.now_ms
    billed_ms = sum(
        (each.gone_at_ms or now_ms) - each.born_at_ms for each in stage.cloud.machines.values()
    )
    stage.expect(billed_ms <= 900_000, "the bill is below the cap", billed_ms=billed_ms)
    stage.apply(budgets=())


@trial("$04", a_pool(lease_ms=60_000, lease_ms_max=600_000))
def cap_with_leases_running(stage: Stage) -> None:
    """At a cap nothing new begins and what runs may finish; at 80 % people are warned."""
    cap = SpendCap(period=Period.LIFETIME, held_ms=3_600_000)
    stage.apply(budgets=(Budget(name="team", fairness_key="team", caps=(cap,)),))
    stage.wait("1s")
    first = stage.acquire_many(5, fairness_key="team")
    stage.all_held(first, within="2m")
    stage.wait("9m")
    more = stage.acquire_many(5, fairness_key="team")
    other = stage.acquire(fairness_key="other")
    stage.all_held([other], within="2m")
    stage.wait("2m")
    waiting = [each for each in more if each.phase is LeasePhase.WAITING]
    stage.expect(bool(waiting), "nothing new begins above it")
    lease = waiting[0].lease
    if lease is not None:
        stage.expect(
            why_waiting(stage.fleet, lease).reason is Reason.BUDGET_SPENT, "who waits knows"
        )
    running = stage.held(more)
    stage.wait("8m")
    stage.expect(all(each.lease is not None for each in running), "what runs may finish")
    stage.expect(bool(stage.told(EventKind.BUDGET_WARNED)), "people are warned")
    stage.apply(budgets=())
