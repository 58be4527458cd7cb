"""Notices: a machine that its provider wants back is left in time, or at least stopped cleanly."""

from typing import Any

from hostler.base.ids import NodeId
from hostler.core.inputs import NoticeReported
from hostler.model.allocation import AllocationPhase, EndCause, Ended
from hostler.model.node import NodePhase, NoticeKind, RetireReason
from hostler.model.pool import Reliability
from hostler.testing.builders import a_job, a_pool, an_elastic_tier
from tests.core.nodes.conftest import NewStable
from tests.core.nodes.stable import Stable, a_launched_node, an_own_node, an_own_pool

SPOT = (an_elastic_tier(reliability=Reliability.INTERRUPTIBLE),)


def notice(world: Stable, node_id: str = "n-900001", left_ms: int = 120_000, **fields: Any) -> None:
    """Let an agent tell that its machine is wanted back."""
    kind = fields.get("kind", NoticeKind.TERMINATE)
    world.run(NoticeReported(node_id=NodeId(node_id), kind=kind, left_ms=left_ms))


def test_work_has_moved_before_the_machine_ends(stable: NewStable) -> None:
    world = stable(a_pool(tiers=SPOT), a_launched_node(reliability=Reliability.INTERRUPTIBLE))
    old = world.run_allocation(world.place("b", a_job(can_overlap=True)))
    notice(world)
    assert not world.node().takes_work
    assert len(world.commands("launch_machine")) == 1, "at once, not when the node is gone"
    world.advance(70_000)
    new_node = world.boot()[0]
    new = next(a for a in world.fleet.allocations.in_order() if a.node_id == new_node.node_id)
    world.run_allocation(new)
    world.report(old, "ended", ended=Ended(cause=EndCause.STOPPED))
    assert len(world.commands("stop_machine")) == 1
    assert world.node().retire_reason is RetireReason.INTERRUPTED
    assert world.fleet.replicas["b/main/0"].restart_at_ms == ()
    world.check_calm()


def test_what_has_not_moved_is_stopped_while_there_is_time_for_its_grace(stable: NewStable) -> None:
    world = stable(an_own_pool(), an_own_node())
    old = world.run_allocation(world.place("b", a_job(can_overlap=True)))
    notice(world, left_ms=60_000)
    world.advance(44_999)
    assert world.fleet.allocations[old.allocation_id].phase is AllocationPhase.READY
    world.advance(45_000)
    assert world.fleet.allocations[old.allocation_id].phase is AllocationPhase.STOPPING


def test_a_notice_that_comes_late_stops_at_once(stable: NewStable) -> None:
    world = stable(an_own_pool(), an_own_node(), an_own_node("n-2"))
    old = world.run_allocation(world.place("b", a_job(can_overlap=True)))
    notice(world, old.node_id, left_ms=3_000)
    assert world.fleet.allocations[old.allocation_id].phase is AllocationPhase.STOPPING


def test_an_idle_machine_that_is_wanted_back_is_given_back_at_once(stable: NewStable) -> None:
    world = stable(a_pool(warm_count=1), a_launched_node())
    notice(world)
    assert world.node().phase is NodePhase.STOPPING
    assert len(world.commands("launch_machine")) == 1, "the warm target holds"


def test_a_lease_is_told_until_when_it_may_stay(stable: NewStable) -> None:
    world = stable(an_own_pool(), an_own_node())
    lease = world.acquire(lease_ms=600_000)
    notice(world)
    assert world.fleet.leases[lease.lease_id].retiring_at_ms == 115_000


def test_telling_it_again_changes_nothing(stable: NewStable) -> None:
    world = stable(an_own_pool(), an_own_node())
    world.run_allocation(world.place())
    notice(world, left_ms=120_000)
    world.advance(5_000)
    notice(world, left_ms=115_300)
    assert world.events().count("node_notice_received") == 1
    notice(world, left_ms=30_000)
    assert world.events().count("node_notice_received") == 2
    drain = world.node().drain
    assert drain is not None
    assert drain.deadline_at_ms == 5_000 + 30_000 - 15_000


def test_a_rebalance_notice_moves_but_stops_nothing(stable: NewStable) -> None:
    world = stable(an_own_pool(), an_own_node())
    old = world.run_allocation(world.place())
    notice(world, kind=NoticeKind.REBALANCE, left_ms=0)
    world.advance(3_600_000)
    assert world.fleet.allocations[old.allocation_id].phase is AllocationPhase.READY
    assert not world.node().takes_work
    notice(world, left_ms=20_000)
    assert world.events().count("node_notice_received") == 2
    world.advance(3_605_000)
    assert world.fleet.allocations[old.allocation_id].phase is AllocationPhase.STOPPING


def test_the_providers_list_tells_it_too(stable: NewStable) -> None:
    world = stable(a_pool(), a_launched_node())
    world.run_allocation(world.place())
    fact = world.machine(world.node(), notice=NoticeKind.TERMINATE, ends_at_ms=500_000)
    world.list(fact)
    drain = world.node().drain
    assert drain is not None
    assert (drain.by, drain.deadline_at_ms) == ("provider", 485_000)


def test_b082_all_replacements_begin_at_once(stable: NewStable) -> None:
    nodes = [a_launched_node(f"n-{n}", reliability=Reliability.INTERRUPTIBLE) for n in range(4)]
    world = stable(a_pool(tiers=SPOT), *nodes)
    world.submit("b", a_job(capacity=8), replica_count=4)
    for index in range(4):
        found = world.allocation_of(f"b/main/{index}")
        assert found is not None
        world.run_allocation(found)
    world.run(
        *(
            NoticeReported(node_id=NodeId(f"n-{n}"), kind=NoticeKind.TERMINATE, left_ms=120_000)
            for n in range(4)
        )
    )
    assert len(world.commands("launch_machine")) == 4
    world.advance(70_000)
    world.boot()
    world.advance(105_000)
    assert len(world.commands("stop_allocation")) == 4
    for command_id in world.commands("stop_allocation"):
        world.succeed(command_id)
    for index in range(4):
        found = world.allocation_of(f"b/main/{index}")
        assert found is not None
        assert found.phase is AllocationPhase.STARTING, "its room was kept"


def test_b083_an_offer_that_is_taken_back_again_and_again_is_left_alone(stable: NewStable) -> None:
    nodes = [
        a_launched_node(f"n-{n}", reliability=Reliability.INTERRUPTIBLE, zone="z") for n in range(2)
    ]
    world = stable(a_pool(tiers=SPOT), *nodes)
    notice(world, "n-0")
    assert world.fleet.cooldowns["p/cloud/small"].is_over
    world.advance(240_000)
    notice(world, "n-1")
    cooldown = world.fleet.cooldowns["p/cloud/small"]
    assert (cooldown.is_over, cooldown.until_at_ms) == (False, 540_000)
    world.submit("b", a_job())
    assert [n.offer for n in world.in_phase(NodePhase.REQUESTED)] == ["large"]
    world.boot()
    assert not world.fleet.cooldowns["p/cloud/small"].is_over
