"""Trials 8.2: one slot, two holders; one thing, two names.

D09 is here with a pool that packs; how a pool that spreads does it is SC-263.
"""

from __future__ import annotations

from msgspec.structs import replace

from hostler.base.ids import LeaseId
from hostler.core.inputs import AcquireLease, ReleaseLease
from hostler.core.replies import Refused
from hostler.model.lease import LeaseOutcome
from hostler.model.node import NodePhase
from hostler.model.pool import Packing
from hostler.sim.trials.stage import Stage
from hostler.sim.trials.trial import PROMPT, a_pool, trial


@trial("D01", a_pool(warm_count=2))
def taken_in_twice(stage: Stage) -> None:
    """A request that is taken in twice at once gets one slot."""
    stage.warm_up(2)
    answers = [
        stage.ask(
            lambda request_id: AcquireLease(
                request_id=request_id, principal="a", pool="p", timeout_ms=0, idempotency_key="x"
            )
        )
        for _ in range(2)
    ]
    stage.wait("1s")
    stage.expect(answers[0] == answers[1] or len(stage.fleet.leases.rows) == 1, "one lease")
    stage.expect(len(stage.fleet.leases.rows) == 1, "and one only")
    (lease,) = stage.fleet.leases.in_order()
    stage.ask(
        lambda request_id: ReleaseLease(
            request_id=request_id, principal="a", lease_id=LeaseId(lease.lease_id)
        )
    )


@trial("D03", a_pool(use_count_max=1))
def completed_twice(stage: Stage) -> None:
    """Uses are counted once, and never below none."""
    tenant = stage.acquire()
    stage.all_held([tenant], within="2m")
    node_id = tenant.node_id
    stage.expect(stage.fleet.nodes[node_id].use_count == 1, "it is used once")
    answers = [
        stage.ask(
            lambda request_id: ReleaseLease(
                request_id=request_id, principal=tenant.name, lease_id=LeaseId(tenant.lease_id)
            )
        )
        for _ in range(2)
    ]
    stage.wait("1s")
    stage.expect(all(answers), "both are answered")
    stage.expect(stage.fleet.nodes[node_id].use_count == 1, "and counted once")
    stage.until(lambda: not stage.billed(), "it is used up and goes", within="2m")


@trial(
    "D04",
    a_pool("red", warm_count=1),
    a_pool("blue", warm_count=1),
)
def no_such_pool(stage: Stage) -> None:
    """A pool that is not there is refused; nobody gets another tenant's machine."""
    stage.warm_up(1, "red")
    stage.warm_up(1, "blue")
    tenant = stage.acquire("default")
    stage.wait("1s")
    stage.expect(
        tenant.refusal is not None and tenant.refusal.code == "pool_not_found", "it is refused"
    )
    stage.expect(len(stage.free()) == 2, "nobody's machine is touched")
    owner = stage.acquire("red")
    stage.all_held([owner], within="1m")
    answers = stage.ask(
        lambda request_id: ReleaseLease(
            request_id=request_id, principal="guesser", lease_id=LeaseId(owner.lease_id)
        )
    )
    stage.wait("1s")
    stage.expect(isinstance(answers[0], Refused), "a guess at another's lease is refused")
    stage.expect(owner.is_held, "and does nothing")


@trial("D06")
def four_at_once(stage: Stage) -> None:
    """Demands of one instant all count."""
    tenants = stage.acquire_many(4)
    stage.wait("3s")
    stage.expect(stage.born_count() == 4, "four are made", born=stage.born_count())
    stage.all_held(tenants, within="2m")


@trial(
    "D07",
    a_pool(tiers=None, warm_count=1, slot_count=100, waiting_count_max=200, node_count_max=1),
)
def a_hundred_slots(stage: Stage) -> None:
    """A machine with many slots serves as many as ask at once."""
    stage.warm_up(1)
    tenants = stage.acquire_many(100)
    stage.all_held(tenants, within="10s")
    stage.expect(len({tenant.node_id for tenant in tenants}) == 1, "all on the one machine")


@trial(
    "D09",
    a_pool(slot_count=20, warm_count=1, packing=Packing.PACK, idle_ms=30_000, node_count_max=10),
)
def packing(stage: Stage) -> None:
    """A machine is opened when the open ones are full, and no earlier."""
    stage.warm_up(1)
    for _ in range(300):
        tenant = stage.acquire()
        stage.world.after(30_000, tenant.leave)
        stage.wait(500)
        live_max = 30_000 // 500 + 2
        wanted = -(-live_max // 20) + 1
        open_count = sum(1 for node in stage.nodes() if node.retire_reason is None)
        stage.expect(open_count <= wanted, "none is opened early", wanted=wanted)


@trial(
    "D10",
    a_pool(warm_count=1),
    cloud=replace(PROMPT, listed_after_ms=110_000),
)
def stale_lists(stage: Stage) -> None:
    """A machine that is gone is never taken back because a list still has it."""
    stage.warm_up(1)
    tenant = stage.acquire()
    stage.all_held([tenant], within="1m")
    node_id = tenant.node_id
    tenant.leave(LeaseOutcome.POISON)
    stage.until(
        lambda: stage.fleet.nodes[node_id].phase is NodePhase.RETIRED, "it is gone", within="1m"
    )
    stage.wait("5m")
    stage.expect(len(stage.nodes()) == 1, "nothing stands for it again")
    stage.expect(
        not [n for n in stage.fleet.nodes.in_order() if n.origin.value == "orphan"],
        "and nobody is told of an orphan",
    )
