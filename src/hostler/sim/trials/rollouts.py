"""Trials 8.9: drain, rollout, configuration."""

from __future__ import annotations

from hostler.core.events import EventKind
from hostler.model.lease import LeaseOutcome
from hostler.model.node import NodePhase
from hostler.sim.trials.stage import Stage
from hostler.sim.trials.trial import a_pool, trial


@trial(
    "C01",
    a_pool(slot_count=3, node_count_max=1),
)
def draining_with_leases(stage: Stage) -> None:
    """A drain waits for leases up to its limit, warns, and then ends the rest."""
    tenants = stage.acquire_many(3)
    stage.all_held(tenants, within="2m")
    for tenant, hold_ms in zip(tenants, (10_000, 60_000, 600_000), strict=True):
        stage.world.after(hold_ms, tenant.leave)
    node_id = tenants[0].node_id
    stage.drain(node_id, within="5m")
    late = stage.acquire()
    stage.wait("90s")
    stage.expect(late.node_id in ("", "None"), "nothing new comes")
    stage.expect([each.outcome for each in tenants[:2]] == [LeaseOutcome.HEALTHY] * 2, "two end")
    third = tenants[2]
    stage.expect(third.is_held, "the third may stay")
    stage.expect(bool(stage.told(EventKind.LEASE_RETIRING, lease=third.lease_id)), "and is told")
    stage.wait("3m45s")
    stage.expect(third.outcome is LeaseOutcome.REVOKED, "until the limit", outcome=third.outcome)
    stage.all_held([late], within="2m")


@trial("C02", a_pool(slot_count=4))
def draining_is_not_free(stage: Stage) -> None:
    """Slots of a draining machine are nobody's."""
    first = stage.acquire()
    stage.all_held([first], within="2m")
    stage.drain(first.node_id, within="1h")
    stage.wait("1s")
    three = stage.acquire_many(3)
    stage.all_held(three, within="10s")
    stage.expect(all(each.node_id != first.node_id for each in three), "another machine")


@trial(
    "C04",
    a_pool(warm_count=20, launch_count_max=20, idle_ms=30_000),
)
def lower_target(stage: Stage) -> None:
    """A lower target lets the rest go at once."""
    stage.warm_up(20)
    stage.wait("30s")
    stage.configure(warm_count=1)
    stage.until(lambda: len(stage.billed()) == 1, "nineteen go", within="1m")


@trial("C05", a_pool(node_count_max=4))
def lower_maximum(stage: Stage) -> None:
    """A lower maximum ends what is idle at once and drains the rest."""
    tenants = stage.acquire_many(4)
    stage.all_held(tenants, within="2m")
    tenants[0].leave()
    stage.wait("1s")
    stage.configure(node_count_max=2)
    stage.until(lambda: len(stage.billed()) == 3, "the idle one goes", within="30s")
    more = stage.acquire()
    tenants[1].leave()
    stage.until(lambda: len(stage.billed()) == 2, "and one more when it is free", within="30s")
    stage.wait("1m")
    stage.expect(not more.is_held or len(stage.billed()) == 2, "nothing is made above two")
    born = stage.born_count()
    tenants[2].leave()
    stage.all_held([more], within="1m")
    stage.expect(stage.born_count() == born, "who waits has what is there")


@trial(
    "C07",
    a_pool(node_count_max=30, warm_count=2, launch_count_max=10),
)
def new_image(stage: Stage) -> None:
    """A new image ends no lease; only idle machines are replaced."""
    tenants = stage.acquire_many(10)
    stage.all_held(tenants, within="2m")
    stage.warm_up(2)
    idle = {node.node_id for node in stage.free()}
    stage.configure(options_json='{"image":"new"}')
    gone = (NodePhase.STOPPING, NodePhase.RETIRED)
    stage.until(
        lambda: all(stage.fleet.nodes[each].phase in gone for each in idle),
        "idle ones are replaced",
        within="5m",
    )
    stage.expect(len(stage.held()) == 10, "no lease ends")
    for tenant in tenants:
        tenant.leave()
    stage.wait("5m")
    stage.warm_up(2)
    versions = {node.version for node in stage.nodes()}
    stage.expect(len(versions) == 1, "in the end all are new")


@trial(
    "C08",
    a_pool(lease_ms=300_000, lease_ms_max=3_600_000),
)
def precedence(stage: Stage) -> None:
    """Of two settings the nearer one counts, within what the farther one allows."""
    own, pools = stage.acquire(lease_ms=60_000), stage.acquire()
    over = stage.acquire(lease_ms=300_001)
    stage.all_held([own, pools], within="2m")
    stage.expect(own.lease is not None and own.lease.lease_ms == 60_000, "the request's own")
    stage.expect(pools.lease is not None and pools.lease.lease_ms == 300_000, "the pool's")
    stage.expect(
        over.refusal is not None and "300000" in over.refusal.message,
        "what is too much is refused with the number",
    )
    stage.configure(lease_ms=120_000)
    stage.wait("1s")
    stage.expect(
        pools.lease is not None and pools.lease.lease_ms == 300_000,
        "what was granted stays as it was granted",
    )
