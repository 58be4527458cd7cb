"""Trials 8.14: security and reuse.

X01 is D04. X04: what outlives a lease on a node is named by the node (last tenant, last clean-up,
use count); providers keep nothing else of ours.
"""

from __future__ import annotations

from hostler.model.lease import LeaseOutcome
from hostler.model.node import NodePhase
from hostler.sim.machine import MachinePlan
from hostler.sim.trials.stage import Stage
from hostler.sim.trials.trial import a_pool, trial


@trial(
    "X02",
    a_pool(node_count_max=1, has_clean_up=True),
)
def scrubbed(stage: Stage) -> None:
    """What a tenant left is cleared away before the next one, and it is on record."""
    first = stage.acquire(fairness_key="a")
    stage.all_held([first], within="2m")
    first.work()
    stage.wait("2s")
    stage.expect(bool(stage.truth.leased()), "something runs")
    node_id = first.node_id
    second = stage.acquire(fairness_key="b")
    first.leave()
    stage.all_held([second], within="4m")
    stage.expect(second.node_id == node_id, "the same machine")
    runs = [each for each in stage.truth.leased() if each.lease_id == first.lease_id]
    stage.expect(not runs, "nothing of the first runs")
    node = stage.fleet.nodes[node_id]
    is_recorded = node.last_clean_up is not None and node.last_clean_up.is_success
    stage.expect(is_recorded, "its result is on record")
    stage.expect(node.last_tenant is not None and node.last_tenant.fairness_key == "a", "by whom")


@trial("X04", a_pool(use_count_max=1))
def single_use(stage: Stage) -> None:
    """A machine for one tenant serves no other."""
    seen = set()
    for number in range(5):
        tenant = stage.acquire(fairness_key=f"k{number}")
        stage.all_held([tenant], within="2m")
        seen.add(stage.machine_of(tenant.node_id).machine_id)
        tenant.leave()
        stage.wait("5s")
    stage.expect(len(seen) == 5, "a new one each time")
    stage.until(lambda: not stage.billed(), "and each ends", within="2m")


@trial(
    "X05",
    a_pool(lease_ms=60_000, node_count_max=2),
    machines=MachinePlan(strays_ppm=1_000_000),
)
def ran_out(stage: Stage) -> None:
    """After a lease that ran out its machine is ended, with all that runs."""
    tenant = stage.acquire()
    stage.all_held([tenant], within="2m")
    tenant.work()
    stage.wait("1s")
    tenant.fall_silent()
    node_id = tenant.node_id
    stage.until(lambda: tenant.outcome is LeaseOutcome.EXPIRED, "it runs out", within="2m")
    following = stage.acquire()
    stage.all_held([following], within="2m")
    stage.expect(following.node_id != node_id, "the next one has another machine")
    stage.until(
        lambda: stage.fleet.nodes[node_id].phase is NodePhase.RETIRED, "it is ended", within="2m"
    )


@trial("X07", a_pool(node_count_max=3))
def papers_of_another(stage: Stage) -> None:
    """Who shows the papers of another node does not become it."""
    tenants = stage.acquire_many(2)
    stage.all_held(tenants, within="2m")
    one, other = (stage.machine_of(each.node_id) for each in tenants)
    thief = stage.hardware.machines[one.machine_id]
    before = stage.fleet.nodes[tenants[1].node_id]
    thief.disk.node_id = str(other.node_id)
    thief.disk.incarnation = 0
    thief.crash_agent()
    stage.wait("20s")
    now = stage.fleet.nodes[tenants[1].node_id]
    stage.expect(now.machine_id == before.machine_id, "the record is the authority")
    stage.expect(tenants[1].is_held, "and its lease stays")
    thief.disk.node_id = str(one.node_id)
    thief.disk.incarnation = 1_000
    thief.crash_agent()
