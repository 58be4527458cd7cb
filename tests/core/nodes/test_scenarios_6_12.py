"""Scenarios of spec/placement.md 6.12 about the grace, the end and the memory of machines.

S-136 to S-138 are in test_leaving.py. S-144 does not apply: a node has no tags that could lack; one
of a fixed tier starts and stops in every other test. S-145, S-146 do not apply: no sweep removes
what has ended, each record has an instant of its own. S-148: a node's id is never used again, so a
machine that comes back is a new node (test_joining.py).
"""

from hostler.core.inputs import FullScan
from hostler.model import Pool
from hostler.model.node import NodePhase
from hostler.model.pool import Offer
from hostler.testing.builders import SMALL, a_job, a_pool, an_elastic_tier
from tests.core.nodes.conftest import NewStable
from tests.core.nodes.test_consolidation import settle
from tests.core.placing.theatre import Theatre

SMALL_OFFER = Offer(name="small", shape=SMALL)
GRACE_MS = 120_000


def a_small_pool(**changes: object) -> Pool:
    """Return a pool of small machines."""
    tier = an_elastic_tier(offers=(SMALL_OFFER,), boot_ms=GRACE_MS)
    return a_pool(tiers=(tier,), **changes)


def test_s_140_a_machine_has_its_grace_and_no_more(stable: NewStable) -> None:
    """Given starting at 0, then terminate at 120.000; given hello at 119.999, then none."""
    for hello_at_ms, is_stopped in ((None, True), (GRACE_MS - 1, False)):
        world = stable(a_small_pool())
        world.submit("b", a_job())
        (launch,) = world.commands("launch_machine")
        world.succeed(launch)
        (node,) = world.fleet.nodes.in_order()
        if hello_at_ms is not None:
            world.advance(hello_at_ms)
            world.hello(node.node_id)
        world.advance(GRACE_MS)
        assert bool(world.commands("stop_machine")) is is_stopped


def test_s_141_an_accepted_create_without_a_word_is_given_up_and_the_job_recovered(
    stable: NewStable,
) -> None:
    """Given an accepted create and no event at all, then at 120 s it is given up."""
    world = stable(a_small_pool())
    world.submit("b", a_job())
    (launch,) = world.commands("launch_machine")
    world.succeed(launch)
    first = world.allocation_of("b/main/0")
    assert first is not None
    world.advance(GRACE_MS)
    assert world.node(first.node_id).phase is NodePhase.STOPPING
    world.advance(GRACE_MS + 10_000)  # the offer is left alone for a moment
    again = world.allocation_of("b/main/0")
    assert again is not None
    assert again.node_id != first.node_id


def test_s_142_the_end_at_the_grace_is_asked_for_until_it_is_confirmed(stable: NewStable) -> None:
    """Given the terminate at grace fails, then it is retried until confirmed."""
    world = stable(a_small_pool())
    world.submit("b", a_job())
    (launch,) = world.commands("launch_machine")
    world.succeed(launch)
    (node,) = world.fleet.nodes.in_order()
    world.advance(GRACE_MS)
    for _ in range(5):
        world.fail(f"{node.node_id}/stop/{node.epoch}", "unreachable")
        world.advance(world.now_ms + 60_000)
        assert world.node(node.node_id).phase is NodePhase.STOPPING
    world.succeed(f"{node.node_id}/stop/{node.epoch}")
    assert world.node(node.node_id).phase is NodePhase.RETIRED


def test_s_149_nodes_that_are_gone_leave_nothing_behind() -> None:
    """Given many nodes created and gone, then no per-node store holds any of them."""
    world = Theatre(a_small_pool(idle_ms=0))
    for number in range(60):
        world.submit(f"b{number}", a_job(capacity=9))
        settle(world)
        world.delete(f"b{number}")
        settle(world)
    world.advance(world.now_ms + 24 * 3_600_000)
    world.run(FullScan())
    fleet = world.fleet
    assert (len(fleet.nodes), len(fleet.allocations)) == (0, 0)
    assert [key for key in fleet.commands.rows if key.startswith("n-")] == []
    assert not fleet.notes
    assert fleet.index.nodes_by_pool.buckets() == []
    assert fleet.index.nodes_maintained.buckets() == []
    assert fleet.index.commands_by_target.buckets() in ([], ["provider:fake"])
