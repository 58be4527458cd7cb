"""Trials 8.12: unclear errors.

M04 (typed errors in the client library) is in `tests/api` and `tests/client`; M07 (no empty reason
in any record) is checked in every trial.
"""

from __future__ import annotations

from hostler.core.events import EventKind
from hostler.core.waiting import why_waiting
from hostler.model.lease import LeaseOutcome
from hostler.model.reason import Reason
from hostler.sim.scenario import TierPlan
from hostler.sim.trials.answers import Answers, fail_launches
from hostler.sim.trials.stage import Stage
from hostler.sim.trials.trial import a_pool, trial


@trial(
    "M01",
    a_pool(tiers=(TierPlan(name="a", node_count_max=2), TierPlan(name="b", node_count_max=2))),
)
def each_attempt(stage: Stage) -> None:
    """Each attempt that failed names its type, its place, its code and what is next."""
    stage.cloud.answers = fail_launches("quota_exceeded", tier="a", message="quota of a is 0")
    tenant = stage.acquire()
    stage.all_held([tenant], within="2m")
    failures = stage.told(EventKind.NODE_LAUNCH_FAILED)
    stage.expect(bool(failures), "people are told")
    for event in failures:
        told = {**event.about, **event.data}
        stage.expect(told.get("code") == "quota_exceeded", "the code", told=told)
        stage.expect("quota of a" in str(told.get("message")), "the provider's words", told=told)
    pauses = [each for each in stage.fleet.cooldowns.in_order() if not each.is_over]
    stage.expect(all(each.until_at_ms > stage.fleet.now_ms for each in pauses), "what is next")


@trial(
    "M02",
    a_pool("full", node_count_max=1),
    a_pool("quota"),
    a_pool("throttled"),
    a_pool("broken", boot_ms=20_000, boot_failure_count_max=2),
)
def five_obstacles(stage: Stage) -> None:
    """A pool that does not grow says which of its bounds it is, with numbers."""
    stage.configure("throttled", provider="slow")
    stage.wait("1s")
    first = stage.acquire("full")
    stage.all_held([first], within="1m")
    answers: tuple[Answers, ...] = (
        fail_launches("quota_exceeded", pool="quota", message="0 of 0 left"),
        fail_launches("throttled", pool="throttled", retry_after_ms=120_000),
    )
    stage.cloud.answers = lambda command: next(
        (found for each in answers if (found := each(command)) is not None), None
    )
    stage.hardware.boots_in = lambda machine: None if machine.pool == "broken" else 1_000
    waiting = [stage.acquire(name) for name in ("full", "quota", "throttled", "broken")]
    seen: dict[str, set[Reason]] = {}
    for _ in range(120):
        stage.wait("2s")
        for name, tenant in zip(("full", "quota", "throttled", "broken"), waiting, strict=True):
            if tenant.lease is not None and tenant.refusal is None:
                why = why_waiting(stage.fleet, tenant.lease)
                seen.setdefault(name, set()).add(why.reason)
                stage.expect(any(each.isdigit() for each in why.detail), "with numbers", why=why)
    stage.hardware.boots_in = None
    wanted = {
        "full": Reason.LIMIT_REACHED,
        "quota": Reason.OFFER_COOLING_DOWN,
        "throttled": Reason.PROVIDER_PAUSED,
        "broken": Reason.GROWTH_STOPPED,
    }
    for name, reason in wanted.items():
        stage.expect(reason in seen[name], f"{name} says {reason.value}", seen=seen[name])


@trial("M05")
def taken_says_so(stage: Stage) -> None:
    """A lease whose machine was taken says so in words."""
    tenant = stage.acquire()
    stage.all_held([tenant], within="2m")
    stage.cloud.end(stage.machine_of(tenant.node_id), "taken back")
    stage.until(lambda: tenant.outcome is LeaseOutcome.NODE_LOST, "it ends", within="2m")
    (event,) = stage.told(EventKind.LEASE_SETTLED, lease=tenant.lease_id)
    stage.expect(bool(event.data.get("detail")), "with words", data=event.data)
