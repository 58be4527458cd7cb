"""Disabling a pool, and what a new configuration means for machines that are there.

Scenarios of spec/leasing.md 6.7 and 6.8 on the core. Left out: SC-150, whose drain is the one that
is superseded in SC-151; SC-158, since a server that is told to stop leaves its machines to the next
one (decision 15). SC-160 to SC-164 and SC-172 are in test_replacing.py and test_sizing.py, SC-154
and SC-173 in tests/api/test_reload.py. SC-169: there is one store, and every node is in it.
"""

from typing import Any

from hostler.core.inputs import AcquireLease, DrainNode, ReleaseLease
from hostler.core.replies import Refused
from hostler.model import Lease
from hostler.model.command import StopMachine
from hostler.model.lease import LeaseOutcome, LeasePhase
from hostler.model.node import NodePhase
from hostler.testing.builders import a_pool, an_elastic_tier
from tests.core.nodes.conftest import NewStable
from tests.core.nodes.stable import Stable, a_launched_node, an_own_node, an_own_pool

NOTICE_MS = 600_000


def release(world: Stable, lease: Lease) -> None:
    world.ask(ReleaseLease, lease_id=lease.lease_id)


def settled(world: Stable, lease: Lease) -> LeaseOutcome | None:
    return world.fleet.leases[lease.lease_id].outcome


def test_s_145_what_is_held_in_a_disabled_pool_ends_at_the_deadline(stable: NewStable) -> None:
    """Forced: an unreleased lease, then total 0, and acquire gives pool_disabled."""
    world = stable(a_pool(lease_ms=10 * NOTICE_MS), a_launched_node(), a_launched_node("n-2"))
    lease = world.acquire()
    world.configure(a_pool(is_enabled=False))
    assert world.fleet.leases[lease.lease_id].retiring_at_ms == NOTICE_MS
    world.advance(NOTICE_MS - 1)
    assert settled(world, lease) is None
    world.advance(NOTICE_MS)
    assert settled(world, lease) is LeaseOutcome.REVOKED
    world.bury()
    assert world.fleet.index.nodes_by_pool.count("p") == 0
    assert world.events().count("pool_closed") == 1
    answer = world.ask(AcquireLease, pool="p", timeout_ms=1_000)
    assert isinstance(answer, Refused)
    assert answer.code == "pool_disabled"


def test_s_146_disabling_twice_is_disabling_once(stable: NewStable) -> None:
    """Twice: it completes and nothing happens."""
    world = stable(a_pool(), a_launched_node())
    world.configure(a_pool(is_enabled=False))
    world.configure(a_pool(is_enabled=False))
    assert world.events().count("pool_closing") == 1


def test_s_147_what_is_released_in_time_is_not_waited_for(stable: NewStable) -> None:
    """In time: drain completes without the deadline passing, total 0."""
    world = stable(a_pool(), a_launched_node())
    lease = world.acquire()
    world.configure(a_pool(is_enabled=False))
    world.advance(5_000)
    release(world, lease)
    world.bury()
    assert world.node().phase is NodePhase.RETIRED
    assert world.fleet.pools["p"].closing is not None
    assert world.fleet.pools["p"].closing.is_done
    assert world.now_ms == 5_000


def test_s_149_s_157_a_launch_that_is_out_ends_with_its_pool(stable: NewStable) -> None:
    """Provision meets drain: the machine is destroyed and total is 0; only then is it finished."""
    world = stable(a_pool(warm_count=1))
    world.configure(a_pool(is_enabled=False))
    assert "pool_closed" not in world.events()
    world.launch()
    assert world.node("n-000001").phase is NodePhase.STOPPING
    assert "pool_closed" not in world.events()
    world.bury()
    assert world.events().count("pool_closed") == 1


def test_s_151_a_pool_that_is_enabled_again_keeps_what_is_there(stable: NewStable) -> None:
    """Superseded drain says so, at once, and nothing of the re-enabled pool is destroyed."""
    pool = a_pool(slot_count=2)
    world = stable(pool, a_launched_node(slot_count=2))
    lease = world.acquire()
    world.configure(a_pool(slot_count=2, is_enabled=False))
    assert not world.node().takes_work
    world.configure(pool)
    (told,) = [each for d in world.deltas for each in d.events if each.kind == "pool_reopened"]
    assert told.data == {"is_superseded": True}
    assert world.fleet.leases[lease.lease_id].retiring_at_ms is None
    assert world.acquire().phase is LeasePhase.HELD
    world.advance(NOTICE_MS - 1)
    assert world.node().phase is NodePhase.READY


def test_s_152_off_and_on(stable: NewStable) -> None:
    """Off and on: total reaches 0, then an acquire is leased."""
    world = stable(a_pool(), a_launched_node())
    release(world, world.acquire())
    world.configure(a_pool(is_enabled=False))
    world.bury()
    assert world.node().phase is NodePhase.RETIRED
    world.configure(a_pool())
    lease = world.acquire()
    world.boot()
    assert world.fleet.leases[lease.lease_id].phase is LeasePhase.HELD


def test_s_153_on_from_off(stable: NewStable) -> None:
    """On from off: total 2, idle 2; when disabled, 0."""
    sizes: dict[str, Any] = {
        "node_count_min": 2,
        "warm_count": 2,
        "tiers": (an_elastic_tier(node_count_max=3),),
    }
    world = stable()
    world.configure(a_pool(**sizes, is_enabled=False))
    assert not world.commands("launch_machine")
    world.configure(a_pool(**sizes))
    world.boot()
    assert len(world.in_phase(NodePhase.READY)) == 2
    world.configure(a_pool(**sizes, is_enabled=False))
    world.bury()
    assert world.fleet.index.nodes_by_pool.count("p") == 0


def test_s_156_all_machines_of_a_closing_pool_are_stopped_beside_each_other(
    stable: NewStable,
) -> None:
    """Bounded drain: one slow stop delays no other."""
    nodes = [a_launched_node(f"n-{n}") for n in range(10)]
    world = stable(a_pool(tiers=(an_elastic_tier(node_count_max=10),)), *nodes)
    world.configure(a_pool(is_enabled=False))
    assert len(world.commands("stop_machine")) == 10


def test_an_operators_drain_outlives_the_pools_closing(stable: NewStable) -> None:
    world = stable(an_own_pool(), an_own_node(), an_own_node("n-900002"))
    for _ in range(2):
        world.acquire()
    world.ask(DrainNode, node_id="n-900001", deadline_ms=1_000)
    world.configure(an_own_pool(is_enabled=False))
    assert [world.node(f"n-90000{n}").drain is not None for n in (1, 2)] == [True, True]
    world.configure(an_own_pool())
    assert [world.node(f"n-90000{n}").drain is not None for n in (1, 2)] == [True, False]


def test_fixed_nodes_of_a_closed_pool_stay_and_hold_nothing(stable: NewStable) -> None:
    world = stable(an_own_pool(lease_ms=10 * NOTICE_MS), an_own_node())
    lease = world.acquire()
    world.configure(an_own_pool(is_enabled=False))
    world.advance(NOTICE_MS)
    assert settled(world, lease) is LeaseOutcome.REVOKED
    assert world.node().phase is NodePhase.READY
    assert world.events().count("pool_closed") == 1


def test_s_101_a_machine_of_a_former_provider_is_kept_and_asked_about_there(
    stable: NewStable,
) -> None:
    """Former driver: a leased worker that the live driver does not list is kept."""
    world = stable(a_pool(), a_launched_node())
    world.acquire()
    world.configure(a_pool(tiers=(an_elastic_tier(provider="rare"),)))
    world.advance(60_000)
    for _ in range(4):
        world.list(provider="rare")
    assert world.node().phase is NodePhase.READY
    assert "fake" in world.fleet.providers


def test_s_166_s_167_a_machine_that_a_swap_overtakes_ends_at_its_own_provider(
    stable: NewStable,
) -> None:
    """Swap during growth or warm provisioning: the machine is destroyed on driver 1.

    Whoever waits is served by driver 2, whose machine is asked for in the same step.
    """
    world = stable(a_pool())
    lease = world.acquire()
    world.configure(a_pool(tiers=(an_elastic_tier(provider="rare"),)))
    world.launch()
    (entry,) = [e for e in world.fleet.commands.in_order() if e.command_id.endswith("/stop/1")]
    assert isinstance(entry.command, StopMachine)
    assert (entry.command.provider, entry.command.machine_id) == ("fake", "m-n-000001")
    world.hello("n-000002")
    assert world.fleet.leases[lease.lease_id].node_id == "n-000002"
    assert world.node("n-000002").provider == "rare"


def test_a_removed_pool_closes_too_and_its_record_goes_last(stable: NewStable) -> None:
    world = stable(a_pool(lease_ms=10 * NOTICE_MS), a_launched_node())
    lease = world.acquire()
    world.configure()
    assert world.fleet.pools["p"].closing is not None
    world.advance(NOTICE_MS)
    assert settled(world, lease) is LeaseOutcome.REVOKED
    assert "p" in world.fleet.pools
    world.bury()
    assert "p" not in world.fleet.pools
