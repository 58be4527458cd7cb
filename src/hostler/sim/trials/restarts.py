"""Trials 8.5: state after a restart."""

from __future__ import annotations

from msgspec.structs import replace

from hostler.model.command import StopMachine
from hostler.model.lease import LeaseOutcome
from hostler.model.node import Health, NodePhase
from hostler.sim.disk import DiskPlan
from hostler.sim.trials.answers import failure
from hostler.sim.trials.stage import Stage
from hostler.sim.trials.trial import PROMPT, a_pool, trial


@trial("R02", a_pool(node_count_max=20, launch_count_max=20))
def agents_restart(stage: Stage) -> None:
    """Agents come back under their leases."""
    tenants = stage.acquire_many(20)
    stage.all_held(tenants, within="2m")
    for _ in range(3):
        for machine in stage.hardware.running():
            machine.crash_agent()
        stage.wait("20s")
    stage.expect(len(stage.held()) == 20 and stage.born_count() == 20, "all leases go on")
    for tenant in tenants:
        tenant.work()
    stage.wait("1s")
    stage.expect(stage.truth.leased_start_count == 20, "and their machines are reached")


@trial(
    "R03",
    a_pool(node_count_max=10, launch_count_max=10),
)
def settings_change_while_ending(stage: Stage) -> None:
    """A change of settings forgets no machine that is to end."""
    tenants = stage.acquire_many(10)
    stage.all_held(tenants, within="2m")
    stage.cloud.answers = lambda command: (
        failure("throttled", retry_after_ms=5_000) if isinstance(command, StopMachine) else None
    )
    for tenant in tenants:
        tenant.leave(LeaseOutcome.POISON)
    stage.wait("2s")
    stage.expect(len(stage.nodes(NodePhase.STOPPING)) == 10, "ten are to end")
    stage.configure(idle_ms=70_000)
    stage.crash(down="1s")
    stage.wait("30s")
    stage.expect(len(stage.nodes(NodePhase.STOPPING)) == 10, "ten are still to end")
    stage.cloud.answers = None
    stage.until(lambda: not stage.billed(), "and then are gone", within="3m")


@trial("R05", a_pool(warm_count=1))
def full_disk(stage: Stage) -> None:
    """A full disk stops new leases and nothing else."""
    first = stage.acquire()
    stage.all_held([first], within="2m")
    stage.warm_up(1)
    stage.disk.plan = DiskPlan(is_failing_ppm=1_000_000)
    second = stage.acquire()
    stage.wait("4m")
    stage.expect(not second.lease_ids, "nothing new is promised")
    stage.expect(first.is_held, "what is there is listed")
    stage.expect(len(stage.billed()) == 2, "machines are not touched")
    stage.disk.plan = DiskPlan()
    stage.all_held([first, second], within="1m")


@trial("R06", a_pool(warm_count=1))
def cannot_speak(stage: Stage) -> None:
    """A machine that cannot speak to us is not warm."""
    stage.warm_up(1)
    (node,) = stage.free()
    stage.cut_off(node.node_id)
    stage.until(
        lambda: stage.fleet.nodes[node.node_id].health is not Health.LIVE,
        "it leaves the warm count",
        within="1m",
    )
    stage.warm_up(1, within="30s")
    tenant = stage.acquire()
    stage.all_held([tenant], within="30s")
    stage.expect(tenant.node_id != node.node_id, "and nobody is sent there")


@trial(
    "R08",
    a_pool(node_count_max=40, launch_count_max=40),
    cloud=replace(PROMPT, stop_ms=(300_000, 300_000)),
)
def ending_and_wanted(stage: Stage) -> None:
    """What is ending is not there: as many are made as are wanted."""
    tenants = stage.acquire_many(15)
    stage.all_held(tenants, within="2m")
    for tenant in tenants:
        tenant.leave(LeaseOutcome.POISON)
    more = stage.acquire_many(15)
    stage.all_held(more, within="2m")
    stage.expect(stage.born_count() == 30, "exactly as many", born=stage.born_count())
