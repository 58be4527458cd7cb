"""Trials 8.8: spot and preemption."""

from __future__ import annotations

from hostler.base.ids import MachineId
from hostler.core.events import EventKind
from hostler.model.command import LaunchMachine
from hostler.model.lease import LeaseOutcome
from hostler.model.node import Health, NodePhase
from hostler.sim.cloud import CloudMachine
from hostler.sim.scenario import TierPlan
from hostler.sim.trials.answers import fail_launches
from hostler.sim.trials.stage import Stage
from hostler.sim.trials.trial import a_pool, trial

_SPOT = (
    TierPlan(name="spot", node_count_max=5, is_interruptible=True),
    TierPlan(name="steady", node_count_max=5),
)


@trial(
    "P01",
    a_pool(node_count_min=1),
)
def taken_away(stage: Stage) -> None:
    """A machine taken away is replaced, and its lease says how it ended."""
    tenant = stage.acquire()
    stage.all_held([tenant], within="2m")
    stage.cloud.end(stage.machine_of(tenant.node_id), "taken back")
    stage.until(lambda: tenant.outcome is LeaseOutcome.NODE_LOST, "its lease ends", within="1m")
    lease = tenant.lease
    stage.expect(lease is not None and bool(lease.outcome_detail), "and says why")
    stage.warm_up(1, within="2m")
    again = stage.acquire()
    stage.all_held([again], within="1m")


@trial(
    "P03",
    a_pool(warm_count=5),
)
def replaced_by_the_provider(stage: Stage) -> None:
    """When a provider replaces machines by itself the old are closed and the new ended."""
    stage.warm_up(5)
    for machine in stage.billed():
        stage.cloud.end(machine, "replaced")
        command = LaunchMachine(
            node_id=machine.node_id,
            epoch=machine.epoch,
            pool="p",
            tier="cloud",
            provider="cloud",
            offer="small",
        )
        stage.cloud.bring(
            CloudMachine(MachineId(f"x-{machine.machine_id}"), command, stage.world.now_ms)
        )
    foreign = [each for each in stage.billed() if each.machine_id.startswith("x-")]
    stage.until(lambda: not any(each.exists for each in foreign), "the new are ended", within="10m")
    stage.warm_up(5)
    stage.expect(len(stage.billed()) == 5, "and five of ours are there")


@trial("P06")
def stands_still(stage: Stage) -> None:
    """A machine that stands still for long is noticed, and its lease says so."""
    tenant = stage.acquire()
    stage.all_held([tenant], within="2m")
    node_id = tenant.node_id
    stage.cut_off(node_id)
    stage.wait("10m")
    stage.expect(bool(stage.told(EventKind.NODE_SUSPECTED, node=node_id)), "it is noticed")
    stage.expect(tenant.outcome is LeaseOutcome.NODE_LOST, "and the lease says so")
    stage.network.heal_all()
    node = stage.fleet.nodes[node_id]
    stage.expect(node.health is Health.LOST or node.phase is NodePhase.RETIRED, "nobody has it")


@trial("P07", a_pool(tiers=_SPOT))
def lost_twice(stage: Stage) -> None:
    """What is lost twice is tried where nobody takes it back."""
    for _ in range(2):
        tenant = stage.acquire()
        stage.all_held([tenant], within="2m")
        stage.expect(stage.fleet.nodes[tenant.node_id].tier == "spot", "the cheap one")
        stage.cloud.end(stage.machine_of(tenant.node_id), "taken back")
        stage.until(
            lambda last=tenant: last.outcome is LeaseOutcome.NODE_LOST,  # type: ignore[misc]  # bound early
            "it is lost",
            within="1m",
        )
    stage.cloud.answers = fail_launches("capacity_unavailable", tier="spot")
    again = stage.acquire()
    stage.all_held([again], within="2m")
    stage.expect(stage.fleet.nodes[again.node_id].tier == "steady", "the sure one")
