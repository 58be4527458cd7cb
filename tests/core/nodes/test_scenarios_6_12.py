"""Scenarios of spec/placement.md 6.12 about the grace, the end and the memory of machines.

S-136 to S-138 are in test_leaving.py. S-144 to S-146 and S-148 are told in our words: there are no
tags that a machine could lack, no sweep, and no way back from the end of a machine.
"""

from typing import Any

import pytest

from hostler.base.ids import NodeId
from hostler.core.inputs import DrainNode, FullScan
from hostler.model import Node, Pool
from hostler.model.node import NodePhase
from hostler.model.pool import Offer
from hostler.model.settings import Retention
from hostler.testing.builders import SMALL, a_job, a_pool, an_elastic_tier
from tests.core.nodes.conftest import NewStable
from tests.core.nodes.stable import Stable
from tests.core.nodes.test_consolidation import settle
from tests.core.placing.theatre import Theatre

SMALL_OFFER = Offer(name="small", shape=SMALL)
GRACE_MS = 120_000
KEPT_MS = 60_000


def a_small_pool(**changes: Any) -> Pool:
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


@pytest.mark.parametrize("is_answered", [True, False], ids=["answered", "unanswered"])
def test_s_141_an_accepted_create_without_a_word_is_given_up_and_the_job_recovered(
    stable: NewStable, is_answered: bool
) -> None:
    """Given an accepted create and no event at all, then at 120 s it is given up."""
    world = stable(a_small_pool())
    world.submit("b", a_job())
    (launch,) = world.commands("launch_machine")
    if is_answered:
        world.succeed(launch)
    first = world.allocation_of("b/main/0")
    assert first is not None
    world.advance(GRACE_MS - 1)
    assert world.node(first.node_id).phase is not NodePhase.STOPPING
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


def a_ready(stable: NewStable, **settings: object) -> tuple[Stable, Node]:
    """Return a pool that wants one warm machine, and has it."""
    world = stable(a_small_pool(warm_count=1), **settings)
    (launch,) = world.commands("launch_machine")
    world.succeed(launch)
    (node,) = world.fleet.nodes.in_order()
    world.hello(node.node_id)
    return world, world.node(node.node_id)


def let_go(world: Stable, node_id: str) -> None:
    """Have a node emptied and its machine ended."""
    world.ask(DrainNode, node_id=NodeId(node_id), deadline_ms=60_000, then_retire=True)


def test_s_144_a_node_without_labels_or_a_name_starts_and_stops_like_any(
    stable: NewStable,
) -> None:
    """Given a node whose metadata has no tags, when it starts and stops, then no error and all
    reconciles run. (A machine of ours always has its tags; labels and a name it may lack.)"""
    world, node = a_ready(stable)
    assert (node.labels, node.hostname, node.phase) == ({}, "", NodePhase.READY)
    let_go(world, node.node_id)
    world.bury()
    assert world.node(node.node_id).phase is NodePhase.RETIRED
    delta = world.run(FullScan())
    assert not delta.changes


def a_retired(stable: NewStable, ended_ms: int) -> tuple[Stable, str]:
    """Return a fleet that keeps what has ended for so long, and a node that is retired at zero."""
    world, node = a_ready(stable, retention=Retention(ended_ms=ended_ms))
    let_go(world, node.node_id)
    assert world.commands("stop_machine"), "the machine ends at once, not when it is forgotten"
    world.bury()
    assert world.node(node.node_id).phase is NodePhase.RETIRED
    return world, node.node_id


def test_s_145_a_machine_ends_at_once_and_its_record_goes_when_it_was_kept_for_long_enough(
    stable: NewStable,
) -> None:
    """Given retention 60 s and a node stopped at 0, then terminate and `onNodeTerminated` at the
    sweep at 75, not at 60. (There is no sweep: the record goes at its own instant.)"""
    world, node_id = a_retired(stable, KEPT_MS)
    began_ms = world.node(node_id).phase_since_at_ms
    world.advance(began_ms + KEPT_MS - 1)
    assert node_id in world.fleet.nodes
    world.advance(began_ms + KEPT_MS)
    assert node_id not in world.fleet.nodes


@pytest.mark.parametrize("ended_ms", [300_000, 400_000, 7_200_000])
def test_s_146_however_long_records_are_kept_they_are_looked_at_when_they_are_due(
    stable: NewStable, ended_ms: int
) -> None:
    """Given retention 8, 400, 7 200 s, then sweep periods 10, 100, 300 s. (No period: an alarm.)"""
    world, node_id = a_retired(stable, ended_ms)
    due_at_ms = world.node(node_id).phase_since_at_ms + ended_ms
    assert due_at_ms in alarms_until(world, due_at_ms)
    assert node_id not in world.fleet.nodes


def alarms_until(world: Stable, until_ms: int) -> list[int]:
    """Let all alarms ring until an instant; return when they did."""
    rang: list[int] = []
    while (at_ms := world.fleet.timers.next_at_ms()) is not None and at_ms <= until_ms:
        world.advance(at_ms)
        rang.append(at_ms)
    return rang


def test_s_148_a_node_that_is_heard_while_its_machine_ends_stays_listed_as_what_it_is(
    stable: NewStable,
) -> None:
    """Given a node that returns to running while its terminate is awaited, then it stays listed as
    running. (It stays listed, and takes nothing: its end is decided. It is not forgotten before its
    provider says that it is gone, however often its agent speaks.)"""
    world, node = a_ready(stable)
    let_go(world, node.node_id)
    assert world.node(node.node_id).phase is NodePhase.STOPPING
    for incarnation in (2, 3):
        world.hello(node.node_id, incarnation=incarnation)
        world.advance(world.now_ms + 60_000)
        again = world.node(node.node_id)
        assert (again.phase, again.takes_work) == (NodePhase.STOPPING, False)
        assert world.commands("stop_machine")
    world.bury()
    assert world.node(node.node_id).phase is NodePhase.RETIRED
