"""Replacing machines that are out of date or old: a few at a time, and never for nothing.

Of spec/leasing.md 6.5 and 6.8: SC-091, SC-093, SC-114, SC-116, SC-135, SC-160, SC-161, SC-164,
SC-162, SC-163, SC-167, SC-172; trials C04, C05, C07, Q10, T06. Where SC-162 and SC-163 count builds
of a driver object: here a provider is opened once a process, and options travel with each launch.
"""

from typing import Any

import pytest

from hostler.base.ids import NodeId
from hostler.core.explain import explain
from hostler.core.inputs import ReleaseLease
from hostler.core.versions import version_of
from hostler.model import Pool
from hostler.model.node import NodePhase, RetireReason
from hostler.model.pool import Rollout
from hostler.model.reason import Reason
from hostler.testing.builders import a_pool, an_elastic_tier
from tests.core.nodes.conftest import NewStable
from tests.core.nodes.stable import Stable, a_launched_node

OLD = an_elastic_tier()
NEW = an_elastic_tier(options_json='{"image":"new"}')
VERSION = version_of(OLD, OLD.offers[0])
HOUR_MS = 3_600_000


def of_old(count: int) -> list[object]:
    """Return ready nodes that the old options made."""
    return [a_launched_node(f"n-9{n:05}", version=VERSION) for n in range(count)]


def release(world: Stable, lease_id: str) -> None:
    """End a lease well."""
    world.ask(ReleaseLease, lease_id=lease_id)


def ready(world: Stable) -> int:
    """Count the nodes that may be used now."""
    return len([n for n in world.in_phase(NodePhase.READY) if n.retire_reason is None])


def roll(world: Stable, pool: Pool, *, least: int, most: int) -> None:
    """Apply a configuration and let machines come and go until nothing more happens."""
    world.configure(pool)
    for _ in range(40):
        assert ready(world) >= least
        assert len(world.fleet.index.nodes_staying.keys("p")) <= most
        if not world.commands("launch_machine") and not world.commands("stop_machine"):
            break
        world.boot()
        assert ready(world) >= least
        world.bury()
    versions = {node.version for node in world.in_phase(NodePhase.READY)}
    assert versions == {version_of(pool.tiers[0], pool.tiers[0].offers[0])}
    assert ready(world) == pool.warm_count


def test_s_172_all_are_replaced_and_never_too_few_are_there(stable: NewStable) -> None:
    """Given 10 idle machines and a changed image with surge 2 and unavailability 2, then at no time
    are fewer than 8 usable, and all 10 are replaced."""
    rollout = Rollout(surge_count_max=2, unavailable_count_max=2)
    world = stable(a_pool(warm_count=10, rollout=rollout), *of_old(10))
    roll(world, a_pool(warm_count=10, rollout=rollout, tiers=(NEW,)), least=8, most=14)


def test_with_surge_alone_none_is_missing_at_any_time(stable: NewStable) -> None:
    world = stable(a_pool(warm_count=3), *of_old(3))
    roll(world, a_pool(warm_count=3, tiers=(NEW,)), least=3, most=5)


def test_a_pool_that_is_full_replaces_one_by_one(stable: NewStable) -> None:
    full = an_elastic_tier(node_count_max=3, options_json=NEW.options_json)
    world = stable(a_pool(warm_count=3), *of_old(3))
    roll(world, a_pool(warm_count=3, tiers=(full,)), least=2, most=3)


def test_spares_are_replaced_too(stable: NewStable) -> None:
    world = stable(a_pool(spare_count=2), *of_old(2))
    world.configure(a_pool(spare_count=2, tiers=(NEW,)))
    for _ in range(10):
        assert ready(world) >= 2
        world.boot()
        world.bury()
    assert {n.version for n in world.in_phase(NodePhase.READY)} == {version_of(NEW, NEW.offers[0])}
    assert [n.is_spare for n in world.in_phase(NodePhase.READY)] == [True, True]


def test_a_rollout_whose_machines_do_not_boot_stops_by_itself(stable: NewStable) -> None:
    rollout = Rollout(surge_count_max=1, unavailable_count_max=1)
    world = stable(a_pool(warm_count=4, rollout=rollout), *of_old(4))
    world.configure(a_pool(warm_count=4, rollout=rollout, tiers=(NEW,), boot_failure_count_max=2))
    for _ in range(20):
        world.launch()
        world.advance(world.now_ms + 130_000)
        world.bury()
        assert ready(world) >= 3
    breaker = world.fleet.breakers["p/cloud"]
    assert breaker.stopped_at_ms is not None
    assert breaker.failures[-1].code == "boot_timeout"
    assert "growth_stopped" in world.events()


def test_sc_161_a_change_that_is_taken_back_replaces_nothing_more(stable: NewStable) -> None:
    """As SC-161: what was marked is unmarked."""
    world = stable(a_pool(warm_count=4), *of_old(4))
    world.configure(a_pool(warm_count=4, tiers=(NEW,)))
    world.configure(a_pool(warm_count=4))
    world.boot()
    assert {n.version for n in world.in_phase(NodePhase.READY)} == {VERSION}
    assert ready(world) == 4
    assert not world.commands("launch_machine")


def test_c_07_leases_end_naturally_and_only_idle_machines_are_replaced(stable: NewStable) -> None:
    """Trial C07: new image with 10 leases: leases end naturally; only idle replaced."""
    world = stable(a_pool(), *of_old(10))
    leases = [world.acquire() for _ in range(10)]
    world.configure(a_pool(tiers=(NEW,)))
    assert ready(world) == 10
    release(world, leases[0].lease_id)
    (gone,) = world.in_phase(NodePhase.STOPPING)
    assert gone.retire_reason is RetireReason.OUTDATED
    assert len(world.fleet.index.leases_held.keys("p")) == 9


def test_a_machine_that_is_given_back_lets_an_old_one_go_at_once(stable: NewStable) -> None:
    full = an_elastic_tier(node_count_max=2, options_json=NEW.options_json)
    world = stable(a_pool(), *of_old(1))
    world.configure(a_pool(warm_count=2, tiers=(full,)))
    lease = world.acquire(timeout_ms=HOUR_MS, excluded_node_ids=(NodeId("n-900000"),))
    world.boot()
    assert world.node("n-900000").phase is NodePhase.READY
    world.advance(world.now_ms + 1_000)
    release(world, lease.lease_id)
    assert world.node("n-900000").phase is NodePhase.STOPPING


def test_nodes_that_leases_share_are_closed_a_few_at_a_time(stable: NewStable) -> None:
    shared: dict[str, Any] = {
        "slot_count": 2,
        "rollout": Rollout(surge_count_max=1, unavailable_count_max=0),
    }
    world = stable(a_pool(**shared), *of_old(3))
    leases = [world.acquire() for _ in range(6)]
    world.configure(a_pool(**shared, tiers=(NEW,)))
    (closing,) = world.in_phase(NodePhase.DRAINING)
    for lease in leases:
        if lease.node_id == closing.node_id:
            release(world, lease.lease_id)
    assert world.node(closing.node_id).phase is NodePhase.STOPPING
    assert len(world.in_phase(NodePhase.DRAINING)) == 1


def test_what_only_has_another_price_or_deadline_is_not_replaced(stable: NewStable) -> None:
    world = stable(a_pool(warm_count=2), *of_old(2))
    world.configure(a_pool(warm_count=2, tiers=(an_elastic_tier(boot_ms=5_000),)))
    assert not any(node.replace_reason for node in world.fleet.nodes.in_order())


def test_s_164_a_machine_ends_at_the_provider_that_made_it(stable: NewStable) -> None:
    """Given a lease on driver 1, when swapped and then failed, then driver 1 gets the destroy."""
    world = stable(a_pool(), *of_old(1))
    lease = world.acquire()
    world.configure(a_pool(tiers=(an_elastic_tier(provider="other"),)))
    assert world.node("n-900000").phase is NodePhase.READY
    world.advance(world.now_ms + 1_000)
    release(world, lease.lease_id)
    (stop,) = (world.fleet.commands[each].command for each in world.commands("stop_machine"))
    assert stop.provider == "fake"  # type: ignore[union-attr]  # a stop has one
    assert world.fleet.nodes["n-900000"].provider == "fake"


def test_s_167_a_machine_on_its_way_across_a_swap_ends_where_it_was_made(
    stable: NewStable,
) -> None:
    """Swap during warm provisioning: destroyed on driver 1 and does not stay in inventory."""
    world = stable(a_pool(warm_count=1))
    world.configure(a_pool(warm_count=1, tiers=(an_elastic_tier(provider="other"),)))
    world.succeed("n-000001/launch/1")
    assert world.node("n-000001").phase is NodePhase.STOPPING
    assert world.node("n-000001").provider == "fake"
    assert world.node("n-000002").provider == "other"


def test_a_launch_that_is_tried_again_asks_for_what_it_asked_for(stable: NewStable) -> None:
    """Trial Q10: one token never stands for two different machines."""
    world = stable(a_pool(warm_count=1))
    world.fail("n-000001/launch/1", "outcome_unknown")
    world.configure(a_pool(warm_count=1, tiers=(NEW,)))
    entry = world.fleet.commands.get("n-000001/launch/1")
    assert entry is None or entry.command.options_json == "{}"  # type: ignore[union-attr]  # a launch


# -- age ---------------------------------------------------------------------------------------


def test_s_114_another_is_asked_for_before_an_old_one_goes(stable: NewStable) -> None:
    """Given min 1 and one idle machine that gets old, then a replacement is made first and the old
    one destroyed after, and no lease is granted on the expired one."""
    world = stable(a_pool(node_count_min=1, age_ms_max=HOUR_MS), a_launched_node())
    out_ms = world.node().ages_out_at_ms
    assert out_ms is not None
    assert 0.9 * HOUR_MS <= out_ms <= HOUR_MS
    world.advance(out_ms - world.node().boot_ms)
    assert len(world.commands("launch_machine")) == 1
    assert world.node().phase is NodePhase.READY
    world.boot()
    assert world.node().retire_reason is RetireReason.AGED
    assert ready(world) == 1


def test_what_is_too_old_takes_no_lease_even_if_no_other_has_come(stable: NewStable) -> None:
    world = stable(a_pool(node_count_min=1, age_ms_max=HOUR_MS), a_launched_node())
    world.advance(HOUR_MS)
    assert world.node().phase is NodePhase.STOPPING
    assert world.acquire(timeout_ms=60_000).node_id is None


def test_what_has_long_to_live_is_leased_before_what_is_soon_replaced(stable: NewStable) -> None:
    young = a_launched_node("n-900002", created_at_ms=HOUR_MS // 2)
    world = stable(a_pool(warm_count=2, age_ms_max=HOUR_MS), a_launched_node(), young)
    old_out_ms = world.node().ages_out_at_ms
    assert old_out_ms is not None
    world.advance(old_out_ms - world.node().boot_ms)
    assert world.node().replace_reason is RetireReason.AGED
    assert world.acquire().node_id == "n-900002"
    assert world.acquire().node_id == "n-900001"  # better than to wait


def test_s_093_a_lease_outlives_the_age_of_its_node(stable: NewStable) -> None:
    """Given a leased worker past its ttl: still leased; on release it is destroyed once."""
    world = stable(a_pool(age_ms_max=HOUR_MS, lease_ms=10 * HOUR_MS), a_launched_node())
    lease = world.acquire()
    world.advance(HOUR_MS + 60_000)  # its holder has been told, and has time left
    assert world.node().phase is NodePhase.DRAINING
    release(world, lease.lease_id)
    assert len(world.commands("stop_machine")) == 1


def test_what_came_together_does_not_go_together(stable: NewStable) -> None:
    """G-30: machines created together expire apart."""
    nodes = [a_launched_node(f"n-9{n:05}") for n in range(20)]
    world = stable(a_pool(age_ms_max=HOUR_MS), *nodes)
    outs = {node.ages_out_at_ms for node in world.fleet.nodes.in_order()}
    assert len(outs) > 15
    assert max(each or 0 for each in outs) - min(each or 0 for each in outs) > 0.05 * HOUR_MS


def test_s_135_age_counts_from_the_true_beginning(stable: NewStable) -> None:
    """Given ttl 1 h, made at 0, restarts at 30 and 50 min, then it is retired at 60 min."""
    world = stable(a_pool(age_ms_max=HOUR_MS), a_launched_node())
    before = world.node().ages_out_at_ms
    world.configure(a_pool(age_ms_max=HOUR_MS, idle_ms=10 * HOUR_MS))
    assert world.node().ages_out_at_ms == before


@pytest.mark.parametrize("idle_ms", [0, 1_000, 300_000])
def test_t_06_a_floor_without_demand_is_left_alone(stable: NewStable, idle_ms: int) -> None:
    """Trial T06: floor 2, no demand, 24 h: zero churn."""
    world = stable(a_pool(warm_count=2, idle_ms=idle_ms))
    world.boot()
    world.advance(24 * HOUR_MS)
    assert len(world.fleet.nodes) == 2
    assert not world.in_phase(NodePhase.STOPPING)


# -- minimum and maximum -----------------------------------------------------------------------


def test_a_minimum_counts_what_is_held_and_a_warm_floor_does_not(stable: NewStable) -> None:
    world = stable(a_pool(node_count_min=2))
    world.boot()
    assert ready(world) == 2
    world.acquire()
    assert not world.commands("launch_machine")
    world.acquire()
    world.acquire(timeout_ms=60_000)
    assert len(world.commands("launch_machine")) == 1


def test_s_091_exactly_one_above_the_minimum_goes(stable: NewStable) -> None:
    """Given min 1, idle 1,000, two workers idle since 0, now 5,000, then one is destroyed."""
    nodes = [a_launched_node(f"n-{n}") for n in range(2)]
    world = stable(a_pool(node_count_min=1, idle_ms=1_000), *nodes)
    world.advance(5_000)
    assert len(world.in_phase(NodePhase.READY)) == 1


def test_s_116_a_desired_idle_is_a_real_buffer(stable: NewStable) -> None:
    """Given desired idle 2 and two leased machines, then two idle ones exist as well."""
    world = stable(a_pool(warm_count=2))
    world.boot()
    world.acquire()
    world.acquire()
    world.boot()
    assert ready(world) == 4


def test_c_05_sc_160_a_lower_maximum_ends_idle_ones_and_lets_leases_finish(
    stable: NewStable,
) -> None:
    """Trial C05, SC-160: 4 machines (2 leased), maximum to 2: idle ended at once, leased stay."""
    world = stable(a_pool(node_count_max=4), *(a_launched_node(f"n-{n}") for n in range(4)))
    held = [world.acquire() for _ in range(2)]
    world.configure(a_pool(node_count_max=2))
    assert len(world.in_phase(NodePhase.STOPPING)) == 2
    assert len(world.fleet.index.leases_held.keys("p")) == 2
    assert world.acquire(timeout_ms=60_000).node_id is None
    assert not world.commands("launch_machine")
    assert all(world.fleet.leases[each.lease_id].node_id for each in held)


def test_c_04_a_lower_target_is_reached(stable: NewStable) -> None:
    """Trial C04: target lowered from 20 to 1: 19 idle ended."""
    world = stable(a_pool(warm_count=20), *(a_launched_node(f"n-9{n:05}") for n in range(20)))
    world.configure(a_pool(warm_count=1))
    world.advance(300_000)
    assert len(world.in_phase(NodePhase.READY)) == 1


def test_sc_162_a_swap_of_the_provider_ends_each_machine_where_it_was_made(
    stable: NewStable,
) -> None:
    """Given an idle worker of driver 1, when the driver changes, then the old worker is destroyed
    on driver 1 and the next acquire runs on driver 2."""
    other = an_elastic_tier(provider="other")
    world = stable(a_pool(warm_count=1), *of_old(1))
    world.configure(a_pool(warm_count=1, tiers=(other,)))
    (launch,) = world.commands("launch_machine")
    assert world.fleet.commands[launch].command.provider == "other"  # type: ignore[union-attr]  # a launch has one
    world.boot()
    (stop,) = world.commands("stop_machine")
    assert world.fleet.commands[stop].command.provider == "fake"  # type: ignore[union-attr]  # a stop has one
    assert world.node(world.acquire().node_id or "").provider == "other"


def test_sc_163_what_makes_no_other_machine_replaces_none(stable: NewStable) -> None:
    """Given only max changes, then nothing is built anew; changed options of the same kind are
    followed once; the same options again are not."""
    world = stable(a_pool(warm_count=1), *of_old(1))
    world.configure(a_pool(warm_count=1, tiers=(an_elastic_tier(node_count_max=7),)))
    assert world.commands("launch_machine") == []
    world.configure(a_pool(warm_count=1, tiers=(NEW,)))
    world.boot()
    world.bury()
    assert [node.version for node in world.in_phase(NodePhase.READY)] == [
        version_of(NEW, NEW.offers[0])
    ]
    world.configure(a_pool(warm_count=1, tiers=(NEW,), idle_ms=1_000_000))
    assert world.commands("launch_machine") == world.commands("stop_machine") == []


# -- remaining life ------------------------------------------------------------------------------

NOTICE_MS = 600_000
LEASE_MAX_MS = 1_200_000


def dated(**changes: Any) -> Pool:
    """Return a pool whose leases may last longer than its notice."""
    given = {
        "tiers": (an_elastic_tier(boot_ms=HOUR_MS // 4),),
        "node_count_min": 1,
        "age_ms_max": HOUR_MS,
        "lease_ms": HOUR_MS,
        "lease_ms_max": LEASE_MAX_MS,
        "retire_notice_ms": NOTICE_MS,
        "idle_ms": 10 * HOUR_MS,
    }
    return a_pool(**{**given, **changes})


def test_no_lease_is_granted_that_its_nodes_age_might_cut_short(stable: NewStable) -> None:
    """At the grant remaining life is checked (spec/leasing.md, appendix 4)."""
    world = stable(dated(slot_count=2), a_launched_node(slot_count=2))
    node = world.node()
    assert node.ages_out_at_ms is not None
    assert node.leases_until_at_ms == node.ages_out_at_ms - (LEASE_MAX_MS - NOTICE_MS)
    world.advance(node.leases_until_at_ms - 1)
    first = world.acquire()
    assert world.fleet.leases[first.lease_id].node_id == node.node_id
    world.advance(node.leases_until_at_ms)
    second = world.acquire(timeout_ms=900_000)
    assert world.fleet.leases[second.lease_id].phase == "waiting"
    told = explain(world.fleet, second.lease_id)
    assert told is not None
    assert Reason.REMAINING_LIFE in {each.reason for each in told.reasons}
    about_node = explain(world.fleet, node.node_id)
    assert about_node is not None
    assert Reason.REMAINING_LIFE in {each.reason for each in about_node.reasons}
    world.boot()
    assert world.fleet.leases[second.lease_id].node_id == "n-000001"
    held = world.fleet.leases[first.lease_id]
    assert held.retiring_at_ms is None
    assert held.ends_at_ms is not None
    assert held.ends_at_ms <= node.ages_out_at_ms + NOTICE_MS
    release(world, first.lease_id)
    assert world.node().retire_reason is RetireReason.AGED


def test_one_that_holds_nothing_then_is_replaced_with_the_next_one_there(stable: NewStable) -> None:
    world = stable(dated(), a_launched_node())
    until_ms = world.node().leases_until_at_ms
    assert until_ms is not None
    world.advance(until_ms - world.node().boot_ms)
    assert len(world.commands("launch_machine")) == 1
    world.boot()
    world.advance(until_ms)
    assert world.node().retire_reason is RetireReason.AGED


def test_leases_that_the_notice_covers_are_granted_to_the_end(stable: NewStable) -> None:
    world = stable(dated(lease_ms_max=NOTICE_MS), a_launched_node())
    assert world.node().leases_until_at_ms is None


def test_a_node_serves_for_half_of_its_age_whatever_leases_may_last(stable: NewStable) -> None:
    world = stable(dated(lease_ms_max=10 * HOUR_MS), a_launched_node())
    node = world.node()
    assert node.leases_until_at_ms == node.created_at_ms + HOUR_MS // 2


def test_a_longer_age_lets_leases_come_again(stable: NewStable) -> None:
    world = stable(dated(slot_count=2), a_launched_node(slot_count=2))
    until_ms = world.node().leases_until_at_ms
    assert until_ms is not None
    world.advance(until_ms - 1)
    world.acquire()
    world.advance(until_ms)
    assert world.node().is_aging
    world.configure(dated(slot_count=2, age_ms_max=3 * HOUR_MS))
    assert not world.node().is_aging
    second = world.acquire()
    assert world.fleet.leases[second.lease_id].node_id == world.node().node_id
