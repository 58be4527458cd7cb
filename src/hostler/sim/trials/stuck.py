"""Trials 8.4: something stays as it is for ever."""

from __future__ import annotations

from msgspec.structs import replace

from hostler.core.events import EventKind
from hostler.core.inputs import Outcome, Succeeded
from hostler.model.command import CheckMachine, LaunchMachine, ProviderCommand, StopMachine
from hostler.model.lease import LeaseOutcome, LeasePhase
from hostler.model.node import NodePhase
from hostler.model.reason import Reason
from hostler.sim.machine import MachinePlan
from hostler.sim.scenario import TierPlan
from hostler.sim.trials.answers import fail_launches, failure
from hostler.sim.trials.stage import Stage
from hostler.sim.trials.trial import PROMPT, a_pool, trial

_NEVER_BOOTS = replace(PROMPT, never_boots_ppm=1_000_000)


@trial(
    "S01",
    a_pool(warm_count=1, boot_ms=120_000),
    cloud=_NEVER_BOOTS,
)
def never_ready(stage: Stage) -> None:
    """What never gets ready can be ended at any time, and ends at its limit."""
    stage.wait("5s")
    (first,) = stage.billed()
    stage.drain(first.node_id, within="10s")
    stage.until(lambda: not first.exists, "it can be ended while it starts", within="1m")
    stage.wait("10s")
    (second,) = stage.billed()
    stage.until(lambda: not second.exists, "the next one ends at its limit", within="3m")
    stage.cloud.plan = PROMPT
    stage.warm_up(1, within="30m")


@trial(
    "S02",
    a_pool(node_count_max=2, lease_per_key_max=1),
)
def slow_to_end(stage: Stage) -> None:
    """What takes long to end holds no lease, counts as a machine, and is told."""
    first = stage.acquire(fairness_key="k")
    stage.all_held([first], within="2m")
    node_id = first.node_id
    stage.cloud.answers = lambda command: (
        failure("unreachable") if isinstance(command, StopMachine) else None
    )
    first.leave(LeaseOutcome.POISON)
    second = stage.acquire(fairness_key="k")
    stage.all_held([second], within="2m")
    third = stage.acquire(fairness_key="other", wait="5h")
    stage.wait("2h")
    stage.expect(stage.fleet.nodes[node_id].phase is NodePhase.STOPPING, "it is still ending")
    stage.expect(not third.is_held, "and counts against the ceiling")
    stage.expect(
        third.lease is not None and third.lease.reason is Reason.LIMIT_REACHED,
        "which is what who waits is told",
    )
    stage.cloud.answers = None
    stage.all_held([third], within="3m")


@trial("S04")
def odd_errors(stage: Stage) -> None:
    """An odd error each time sets that type aside, and another serves."""
    stage.cloud.answers = fail_launches("defect", offer="small", message="Traceback: odd")
    tenant = stage.acquire()
    stage.all_held([tenant], within="5m")
    stage.wait("10m")
    failures = stage.told(EventKind.NODE_LAUNCH_FAILED)
    stage.expect(0 < len(failures) <= 10, "it is not tried without end", count=len(failures))
    kept = [each.message for each in stage.fleet.cooldowns.in_order()]
    stage.expect(any("odd" in message for message in kept), "the error is kept", kept=kept)


@trial(
    "S05",
    a_pool(warm_count=15, launch_count_max=30),
)
def failing_at_once(stage: Stage) -> None:
    """What fails at once is replaced within one sweep."""
    stage.wait("1s")
    for machine in stage.billed()[:5]:
        stage.cloud.end(machine, "failed")
    stage.warm_up(15, within="90s")


@trial(
    "S07",
    a_pool(warm_count=3, idle_ms=60_000, lease_per_key_max=1, node_count_max=8),
)
def settings_change(stage: Stage) -> None:
    """Who waits is served from warm stock while settings change."""
    stage.warm_up(3)
    for number in range(10):
        stage.configure(idle_ms=60_000 + number, waiting_count_max=50 + number)
        tenant = stage.acquire(fairness_key=f"k{number % 5}")
        stage.all_held([tenant], within="5s")
        tenant.leave()
        stage.wait("1s")


@trial(
    "S08",
    a_pool(
        node_count_max=10,
        slot_count=3,
        lease_ms=30_000,
        use_count_max=20,
        idle_ms=20_000,
        has_clean_up=True,
    ),
    cloud=replace(
        PROMPT,
        is_failing_ppm=20_000,
        is_answer_lost_ppm=20_000,
        is_unknown_ppm=20_000,
        never_boots_ppm=20_000,
    ),
)
def everything_at_two_percent(stage: Stage) -> None:
    """Free, held and ending are all there is, whatever goes wrong."""
    rng = stage.world.stream("script")
    outcomes = (*[LeaseOutcome.HEALTHY] * 48, LeaseOutcome.POISON)
    for number in range(300):
        tenant = stage.acquire(ack_ms=20_000 if rng.chance(20_000) else None, wait="2m")
        stage.world.after(rng.between(1_000, 20_000), tenant.leave, rng.choice(outcomes))
        if rng.chance(20_000):
            tenant.fall_silent()
        if rng.chance(20_000):
            stage.crash()
        if number % 10 == 0:
            for machine in stage.hardware.running():
                if rng.chance(20_000):
                    machine.crash_agent()
        stage.wait(rng.between(200, 1_500))
        for node in stage.nodes():
            used = node.lease_count + node.cleaning_count
            stage.expect(0 <= used <= node.slot_count, "no slot is lost or doubled")
    stage.until(lambda: not stage.held(), "nothing stays held", within="10m")
    for node in stage.nodes(NodePhase.READY):
        stage.expect(not node.lease_count, "every slot is free again", node=node.node_id)


@trial(
    "S10",
    a_pool(
        tiers=(
            TierPlan(name="spot", node_count_max=2, is_interruptible=True),
            TierPlan(name="steady", node_count_max=2),
        )
    ),
)
def never_filled(stage: Stage) -> None:
    """An order that is accepted and never filled ages out; after a few another tier serves."""
    stage.cloud.swallows = lambda command: (
        isinstance(command, LaunchMachine) and command.tier == "spot"
    )
    tenant = stage.acquire()
    stage.all_held([tenant], within="10m")
    stage.expect(stage.fleet.nodes[tenant.node_id].tier == "steady", "the other tier")
    stage.until(
        lambda: len(stage.nodes()) == 1, "what was never filled counts no more", within="2m"
    )


@trial(
    "S11",
    *(a_pool(f"p{number}", node_count_max=2) for number in range(10)),
)
def one_cannot_grow(stage: Stage) -> None:
    """A pool that cannot grow stops no other."""
    stage.cloud.answers = fail_launches("capacity_unavailable", pool="p0")
    stuck = stage.acquire("p0")
    others = [stage.acquire(f"p{number}") for number in range(1, 10)]
    stage.all_held(others, within="1m")
    stage.expect(stuck.phase is LeasePhase.WAITING, "one waits")


@trial(
    "S13",
    a_pool(node_count_max=4),
)
def odd_descriptions(stage: Stage) -> None:
    """An answer about nothing, or about two, is not believed, and all goes on."""
    stage.hardware.set_plan(MachinePlan(agent_returns_ms=(20_000, 25_000)))
    tenants = stage.acquire_many(2)
    stage.all_held(tenants, within="2m")

    def answers(command: ProviderCommand) -> Outcome | None:
        if isinstance(command, CheckMachine):
            fact = stage.cloud.machines[command.machine_id].fact()
            return Succeeded(machines=(fact, replace(fact, machine_id="m-other")))
        return None

    stage.cloud.answers = answers
    for machine in stage.hardware.running():
        machine.crash_agent()
    stage.wait("2m")
    stage.expect(len(stage.held(tenants)) == 2, "nothing has ended")
    third = stage.acquire()
    stage.all_held([third], within="2m")
    facts = [fact for fact in stage.fleet.nodes.in_order() if fact.machine_id == "m-other"]
    stage.expect(not facts, "and nothing was made up", facts=len(facts))


@trial(
    "S14",
    a_pool(warm_count=5, boot_ms=20_000),
    cloud=_NEVER_BOOTS,
)
def failing_before_the_first_word(stage: Stage) -> None:
    """A build that fails before its first word leaves nothing behind."""
    stage.wait("30m")
    stage.cloud.plan = PROMPT
    stage.warm_up(5, within="30m")
    old_ms = stage.fleet.now_ms - 300_000
    for node in stage.nodes():
        is_fine = node.phase is NodePhase.READY or node.phase_since_at_ms > old_ms
        stage.expect(is_fine, "nothing waits for nobody", node=node.node_id)
