"""Trials 8.3: a busy machine ended by us.

K05 (two managers at once) is the store's: a second server waits or is fenced
(`tests/engine/test_leadership.py`). In every trial a machine that is told to stop holds no lease.
"""

from __future__ import annotations

from msgspec.structs import replace

from hostler.core.inputs import CreateToken, RevokeToken, Succeeded
from hostler.model.command import CheckMachine, ListMachines
from hostler.model.lease import LeaseOutcome
from hostler.model.node import NodePhase
from hostler.model.token import Role
from hostler.sim.trials.stage import Stage
from hostler.sim.trials.trial import PROMPT, a_pool, trial


@trial(
    "K01",
    a_pool(idle_ms=20_000, node_count_max=2),
    seed_count=4,
)
def let_go_and_wanted(stage: Stage) -> None:
    """Who comes in the instant in which a machine is let go has it or another, whole."""
    rng = stage.world.stream("script")
    for _ in range(10):
        first = stage.acquire()
        stage.all_held([first], within="2m")
        first.leave()
        stage.wait(20_000 + rng.between(-150, 150))
        second = stage.acquire()
        stage.all_held([second], within="2m")
        stage.wait("2s")
        machine = stage.machine_of(second.node_id)
        stage.expect(machine.exists and not machine.is_stopping, "it has a machine that stays")
        second.leave()


@trial("K02", a_pool(node_count_max=5))
def one_fewer(stage: Stage) -> None:
    """Of busy and idle ones the idle one goes."""
    tenants = stage.acquire_many(5)
    stage.all_held(tenants, within="2m")
    tenants[2].leave()
    stage.wait("1s")
    (idle,) = stage.free()
    stage.configure(node_count_max=4)
    stage.until(lambda: len(stage.billed()) == 4, "one goes", within="1m")
    gone = (NodePhase.STOPPING, NodePhase.RETIRED)
    stage.expect(stage.fleet.nodes[idle.node_id].phase in gone, "the idle one")
    stage.expect(len(stage.held()) == 4, "nobody loses anything")


@trial("K04")
def rotating_credentials(stage: Stage) -> None:
    """Credentials come and go; what is ours does not depend on them."""
    tenants = stage.acquire_many(5)
    stage.all_held(tenants, within="2m")
    for number in range(3):
        answers = stage.ask(
            lambda request_id, number=number: CreateToken(  # type: ignore[misc]  # bound early
                request_id=request_id,
                principal="operator",
                name=f"t{number}",
                role=Role.ADMIN,
                sha256=f"{number:064d}",
            )
        )
        stage.wait("1s")
        token_id = getattr(answers[0], "subject_id", "")
        stage.ask(
            lambda request_id, token_id=token_id: RevokeToken(  # type: ignore[misc]  # bound early
                request_id=request_id, principal="operator", token_id=token_id
            )
        )
        stage.crash()
        stage.wait("3m")
    stage.expect(len(stage.held()) == 5 and stage.born_count() == 5, "nothing has ended")


@trial(
    "K07",
    a_pool(boot_ms=900_000, idle_ms=5_000),
    cloud=replace(PROMPT, boot_ms=(480_000, 480_000)),
)
def slow_boots(stage: Stage) -> None:
    """A machine that somebody waits for is not idle while it boots."""
    tenant = stage.acquire()
    stage.all_held([tenant], within="9m")
    stage.wait("1m")
    stage.expect(tenant.is_held and stage.born_count() == 1, "the one machine serves")


@trial(
    "K08",
    a_pool(warm_count=30, launch_count_max=30, node_count_max=30, boot_ms=600_000),
    cloud=replace(PROMPT, boot_ms=(1_000, 300_000)),
)
def slow_sweeps(stage: Stage) -> None:
    """A list that is old when it arrives ends nobody."""
    stage.cloud.plan = replace(stage.cloud.plan, is_late_ppm=0)
    late = replace(stage.cloud.plan, delay_ms=(20_000, 25_000))
    stage.wait("2s")
    stage.cloud.plan = late
    stage.wait("15m")
    stage.expect(stage.born_count() == 30 and len(stage.billed()) == 30, "all are there")
    stage.expect(len(stage.ready()) == 30, "and ready", ready=len(stage.ready()))
    stage.cloud.plan = PROMPT


@trial("K10", a_pool(node_count_max=2))
def smaller_pool(stage: Stage) -> None:
    """A smaller pool keeps its busy machine as it is."""
    tenants = stage.acquire_many(2)
    stage.all_held(tenants, within="2m")
    tenants[1].leave()
    stage.wait("1s")
    before = stage.fleet.nodes[tenants[0].node_id]
    stage.configure(node_count_max=1)
    stage.until(lambda: len(stage.billed()) == 1, "the idle one ends", within="1m")
    now = stage.fleet.nodes[tenants[0].node_id]
    stage.expect(now.version == before.version and now.retire_reason is None, "busy as before")


@trial("K11", a_pool(slot_count=3, idle_ms=5_000))
def last_of_three(stage: Stage) -> None:
    """A machine is busy until its last slot is free."""
    tenants = stage.acquire_many(3)
    stage.all_held(tenants, within="2m")
    for tenant in tenants[:2]:
        tenant.leave()
    stage.wait("5m")
    stage.expect(tenants[2].is_held and len(stage.billed()) == 1, "one lease keeps it")
    tenants[2].leave()
    stage.until(lambda: not stage.billed(), "then it goes", within="1m")


@trial("K13")
def missed_once(stage: Stage) -> None:
    """One look that misses machines ends nothing."""
    tenants = stage.acquire_many(3)
    stage.all_held(tenants, within="2m")
    left = [1]

    def answers(command: object) -> object:
        if isinstance(command, ListMachines | CheckMachine) and left[0]:
            left[0] -= 1
            return Succeeded()
        return None

    for _ in range(3):
        left[0] = 1
        stage.cloud.answers = answers  # type: ignore[assignment]  # narrower than it says
        stage.wait("3m")
    stage.expect(left[0] == 0, "it was asked")
    stage.expect(len(stage.held()) == 3 and len(stage.billed()) == 3, "all live")


@trial("K14", a_pool(warm_count=2, idle_ms=30_000))
def every_end_has_a_line(stage: Stage) -> None:
    """Whatever is ended has a line that says why."""
    rng = stage.world.stream("script")
    outcomes = (LeaseOutcome.HEALTHY, LeaseOutcome.POISON)
    for _ in range(60):
        tenant = stage.acquire()
        stage.world.after(rng.between(5_000, 90_000), tenant.leave, rng.choice(outcomes))
        if rng.chance(200_000) and stage.ready():
            machine = stage.machine_of(rng.choice(stage.ready()).node_id)
            stage.cloud.end(machine, "it died")
        if rng.chance(200_000):
            stage.crash()
        stage.wait(rng.between(1_000, 30_000))
    stage.wait("3m")
    for machine in stage.cloud.machines.values():
        if not machine.exists:
            node = stage.fleet.nodes[machine.node_id]
            stage.expect(node.retire_reason is not None, "it says why", node=node.node_id)
