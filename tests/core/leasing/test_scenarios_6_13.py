"""spec/leasing.md 6.13: further targets, as far as leasing is concerned.

SC-251 and SC-252 are in `test_affinity.py`. SC-242's keys of a provider's own never meet a
request's labels here: labels stay with the lease and go to no machine. Not leasing's: SC-245
(retirement), SC-246 and SC-255 to SC-266 (providers, tunnels), SC-247 (lifetimes), SC-248 (spend),
SC-254 (settings).
"""

import msgspec

from hostler.model.lease import LeaseOutcome, LeasePhase, Share
from hostler.model.node import RetireReason
from hostler.model.pool import Packing
from hostler.testing.builders import a_fixed_tier, a_node, a_pool, an_elastic_tier
from tests.core.leasing.conftest import NewRental
from tests.core.leasing.rental import a_launched_node


def test_sc_242_hostile_labels(rental: NewRental) -> None:
    """Given request labels equal to a driver's own worker-id key with another id, to the ownership
    label, one with a comma, and an empty one, then no machine's identity or ownership changes and
    the request is served."""
    labels = {"hostler.node": "n-1", "hostler.fleet": "other", "a,b": "c,d", "": ""}
    world = rental(a_pool(tiers=(an_elastic_tier(node_count_max=1),)))
    lease = world.acquire(labels=labels, timeout_ms=60_000)
    (command_id,) = world.commands("launch_machine")
    assert "other" not in repr(world.fleet.commands[command_id])
    world.boot()
    assert world.now(lease).phase is LeasePhase.HELD
    assert world.node_of(lease).node_id == "n-000001"
    assert world.now(lease).labels == labels


def test_sc_249_causes(rental: NewRental) -> None:
    """Given a worker flagged for a cause, when its lease settles healthy, then the destroy reason
    is that cause; given fail("disk full"), then the event and the durable record carry that
    text."""
    world = rental(a_pool(use_count_max=1), a_launched_node("n-1"), a_launched_node("n-2"))
    last, bad = world.acquire(), world.acquire()
    world.release(last)
    assert world.node_of(last).retire_reason is RetireReason.USED_UP
    world.poison(bad, detail="disk full")
    assert world.node_of(bad).retire_reason is RetireReason.USED_UP  # the first cause
    assert (world.now(bad).outcome, world.now(bad).outcome_detail) == (
        LeaseOutcome.POISON,
        "disk full",
    )
    told = [event.data for delta in world.deltas for event in delta.events]
    assert any(data.get("detail") == "disk full" for data in told)


def test_sc_263_packing(rental: NewRental) -> None:
    """Given 4 idle machines with 4 slots and 4 requests, then policy pack uses one machine and
    policy spread uses four."""
    for packing, used_count in ((Packing.PACK, 1), (Packing.SPREAD, 4)):
        nodes = [a_node(f"n-{number}", slot_count=4) for number in range(4)]
        world = rental(a_pool(tiers=(a_fixed_tier(),), slot_count=4, packing=packing), *nodes)
        assert len({world.acquire().node_id for _ in range(4)}) == used_count


def test_who_shares_with_nobody_gets_an_idle_node_where_others_are_packed(
    rental: NewRental,
) -> None:
    nodes = [a_node(f"n-{number}", slot_count=4) for number in range(3)]
    world = rental(a_pool(tiers=(a_fixed_tier(),), slot_count=4, packing=Packing.PACK), *nodes)
    first, alone = world.acquire(), world.acquire(share=Share.NONE)
    assert first.node_id != alone.node_id
    assert world.acquire().node_id == first.node_id
    own = world.acquire(share=Share.SAME_KEY, fairness_key="k")
    assert world.acquire(share=Share.SAME_KEY, fairness_key="k").node_id == own.node_id


def test_a_pool_packs_from_the_moment_on_at_which_it_is_told_to(rental: NewRental) -> None:
    nodes = [a_node(f"n-{number}", slot_count=4) for number in range(3)]
    pool = a_pool(tiers=(a_fixed_tier(),), slot_count=4)
    world = rental(pool, *nodes)
    spread = {world.acquire().node_id for _ in range(2)}
    world.configure(msgspec.structs.replace(pool, packing=Packing.PACK))
    assert {world.acquire().node_id for _ in range(6)} == spread
