"""Scenarios of spec/placement.md 6.10: spares.

S-124 does not apply: a spare is of an offer of its pool, which always names one. S-126 is in
tests/core/placing/test_scenarios_6_7.py. S-080 tells who gets a spare.
"""

from typing import Any

from hostler.core.inputs import CordonNode, FullScan
from hostler.core.replies import Refused
from hostler.model import Pool
from hostler.model.node import NodePhase
from hostler.model.pool import Band, Offer, SpareTarget
from hostler.testing.builders import (
    SMALL,
    a_fixed_tier,
    a_job,
    a_node,
    a_pool,
    an_elastic_tier,
)
from tests.core.nodes.conftest import NewStable
from tests.core.nodes.stable import Stable, a_launched_node

SMALL_OFFER = Offer(name="small", shape=SMALL, price_microusd_per_hour=100_000)


def a_spare_pool(**changes: Any) -> Pool:
    """Return a pool of small machines that keeps two spares."""
    tier = an_elastic_tier(offers=(SMALL_OFFER,))
    return a_pool(**{"tiers": (tier,), "spare_count": 2, **changes})


def spares(world: Stable) -> list[str]:
    """Return the spares that are there or on their way."""
    return [node.node_id for node in world.fleet.nodes.in_order() if node.is_spare]


def test_s_116_a_target_is_met_once_and_not_asked_for_again(stable: NewStable) -> None:
    """Given target 2 and no spares, then exactly two creates; further events create none."""
    world = stable(a_spare_pool())
    assert len(world.commands("launch_machine")) == 2
    for _ in range(3):
        world.run(FullScan())
    assert len(world.commands("launch_machine")) == 2
    assert len(spares(world)) == 2


def test_s_117_a_spare_that_is_used_is_replaced_at_once_and_never_ended(stable: NewStable) -> None:
    """Given a gold job recovers onto one of two spares, then one replacement is created."""
    world = stable(a_spare_pool())
    world.boot()
    world.submit("b", a_job(capacity=8, band=Band.GOLD))
    world.boot()
    placed = world.allocation_of("b/main/0")
    assert placed is not None
    allocation = world.run_allocation(placed)
    world.silence(allocation.node_id)
    world.advance(world.now_ms + 60_000)
    again = world.allocation_of("b/main/0")
    assert again is not None
    assert not world.node(again.node_id).is_spare
    assert world.events().count("spare_used") == 1
    assert len(world.commands("launch_machine")) == 1
    world.boot()
    world.advance(3_600_000)
    assert world.node(again.node_id).phase is NodePhase.READY
    assert len(spares(world)) == 2


def test_s_118_of_too_many_the_oldest_goes_and_only_one(stable: NewStable) -> None:
    """Given three idle live spares and target 2, then exactly one terminate, of the oldest."""
    nodes = [
        a_launched_node(f"n-90000{n}", is_spare=True, created_at_ms=age, idle_since_at_ms=0)
        for n, age in ((1, 500), (2, 100), (3, 300))
    ]
    world = stable(a_spare_pool(), *nodes)
    for _ in range(5):
        world.run(FullScan())
    assert spares(world) == ["n-900001", "n-900003"]
    world.advance(300_000)
    for _ in range(5):
        world.run(FullScan())
    assert world.commands("stop_machine") == ["n-900002/stop/1"]


def test_s_120_a_refused_launch_is_spaced_and_leaves_nothing_behind(stable: NewStable) -> None:
    """Given creates refused ten times, then at most as many attempts as the back-off allows."""
    world = stable(a_spare_pool(spare_count=1))
    attempts = 0
    while world.now_ms < 60_000:
        for command_id in world.commands("launch_machine"):
            attempts += 1
            world.fail(command_id, "capacity_unavailable")
        world.advance(world.now_ms + 60)
    assert attempts <= 7
    alive = [n for n in world.fleet.nodes.in_order() if n.phase is not NodePhase.RETIRED]
    assert len(alive) <= 1


def test_s_121_a_machine_that_never_comes_is_given_up_and_replaced(stable: NewStable) -> None:
    """Given an accepted create that never starts, then after the grace it is replaced."""
    world = stable(a_spare_pool(spare_count=1))
    (first,) = world.launch()
    world.advance(first.created_at_ms + first.boot_ms)
    assert world.node(first.node_id).phase is NodePhase.STOPPING
    assert spares(world) != [first.node_id]
    world.bury()
    world.advance(world.now_ms + 60_000)
    assert len(world.commands("launch_machine")) == 1
    assert [each for each in spares(world) if each != first.node_id]


def test_s_122_a_cordoned_spare_is_none(stable: NewStable) -> None:
    """Given one of two spares cordoned, target 2, then one replacement."""
    world = stable(a_spare_pool())
    first, _ = world.boot()
    world.ask(CordonNode, node_id=first.node_id, reason="smells")
    assert len(world.commands("launch_machine")) == 1


def test_s_125_a_spare_that_is_gone_without_a_word_is_found_out_and_replaced(
    stable: NewStable,
) -> None:
    """Given a spare lost without any event, then within two ticks the loss is found."""
    tier = an_elastic_tier(offers=(SMALL_OFFER,), boot_ms=600_000)
    world = stable(a_spare_pool(spare_count=1, tiers=(tier,)))
    (first,) = world.boot()
    gone_at_ms = world.now_ms
    world.silence(first.node_id, cut=True)
    for _ in range(3):
        world.list()
        for command_id in world.commands("check_machine"):
            world.succeed(command_id)
    assert world.now_ms <= gone_at_ms + 3 * 60_000
    assert world.node(first.node_id).is_machine_gone
    assert len(world.commands("launch_machine")) == 1


GOLD, SILVER = SpareTarget(count=1, band=Band.GOLD), SpareTarget(count=1, band=Band.SILVER)


def bands(world: Stable) -> list[Band | None]:
    """Return for whom each spare is kept."""
    return [node.spare_band for node in world.fleet.nodes.in_order() if node.is_spare]


def test_each_band_has_a_target_of_its_own_and_golds_is_filled_first(stable: NewStable) -> None:
    tier = an_elastic_tier(offers=(SMALL_OFFER,), node_count_max=1)
    world = stable(a_pool(tiers=(tier,), spares=(GOLD, SILVER)))
    world.boot()
    assert bands(world) == [Band.GOLD], "there may be one machine only"
    wider = an_elastic_tier(offers=(SMALL_OFFER,), node_count_max=2)
    world.configure(a_pool(tiers=(wider,), spares=(GOLD, SILVER)))
    world.boot()
    assert bands(world) == [Band.GOLD, Band.SILVER]


def test_what_one_band_has_too_many_of_another_gets(stable: NewStable) -> None:
    tier = an_elastic_tier(offers=(SMALL_OFFER,))
    world = stable(a_pool(tiers=(tier,), spares=(SpareTarget(count=2, band=Band.SILVER),)))
    world.boot()
    world.configure(a_pool(tiers=(tier,), spares=(GOLD, SILVER)))
    assert sorted(bands(world), key=str) == [Band.GOLD, Band.SILVER]
    assert world.commands("launch_machine") == []


def test_own_machines_are_designated_by_band(stable: NewStable) -> None:
    world = stable(a_pool(tiers=(a_fixed_tier(),), spares=(GOLD, SILVER)), a_node("n-900001"))
    assert bands(world) == [Band.GOLD], "gold's debt is paid before silver's"


def test_a_band_has_one_target(stable: NewStable) -> None:
    world = stable(a_pool())
    answer = world.configure(a_pool(spares=(GOLD, GOLD)))
    assert isinstance(answer, Refused)
    assert [each.path for each in answer.problems] == ["pools[0].spares[1].band"]
