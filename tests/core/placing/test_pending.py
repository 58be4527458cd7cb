"""What waits, grouped: for what, since when, what would help, and when it is looked at again."""

from hostler.core.explain import Pending, PendingGroup, explain, pending
from hostler.core.inputs import CordonNode, UncordonNode
from hostler.model.constraint import SpreadOver, SpreadRule
from hostler.model.node import Cordon
from hostler.model.pool import Band
from hostler.model.reason import Reason
from hostler.model.shape import Capability, CapabilityRequest, Requirement, Shape
from hostler.testing.builders import a_fixed_tier, a_job, a_pool, an_elastic_tier
from tests.core.placing.conftest import NewTheatre
from tests.core.placing.theatre import N1, Theatre, n1, n2, own_pool, pool_p

CORDON = Cordon(by="ops", reason="disk", at_ms=0)


def told(world: Theatre) -> Pending:
    """Tell what waits, and check that looking left nothing behind."""
    before = world.fleet.digest()
    found = pending(world.fleet, now_ms=world.now_ms)
    assert world.fleet.digest() == before
    assert world.fleet.open_delta is None
    assert sum(group.count for group in found.groups) == found.replica_count + found.lease_count
    return found


def only(world: Theatre) -> PendingGroup:
    """Return the one group that there is."""
    (group,) = told(world).groups
    return group


def test_nothing_waits(theatre: NewTheatre) -> None:
    world = theatre(own_pool(), n1())
    world.submit()
    found = told(world)
    assert (found.groups, found.replica_count, found.lease_count) == ((), 0, 0)


def test_those_who_ask_alike_are_told_together_with_what_would_help(theatre: NewTheatre) -> None:
    world = theatre(own_pool(), n1(), n2())
    world.submit("big", a_job(capacity=11), replica_count=3)
    world.advance(7_000)
    world.submit("more", a_job(capacity=11))
    group = only(world)
    assert (group.count, group.since_at_ms, group.reason) == (4, 0, Reason.NO_CAPACITY)
    assert group.detail == "p/own: 0 of 2 nodes fit (2 capacity), exhausted"
    (text,) = group.helps
    assert text.startswith("p/own: a node with capacity 11 free; on one node there is at most")
    assert text.endswith("at most capacity 10 of capacity 11")
    assert group.examples == ("big/main/0", "big/main/1", "big/main/2")
    assert group.next_at_ms is None


def test_the_most_urgent_come_first(theatre: NewTheatre) -> None:
    world = theatre(own_pool(), n1())
    world.submit("a", a_job(capacity=11, band=Band.BRONZE))
    world.submit("b", a_job(capacity=12, band=Band.SILVER))
    world.submit("c", a_job(capacity=13, band=Band.GOLD))
    assert [group.examples[0] for group in told(world).groups] == [
        "c/main/0",
        "b/main/0",
        "a/main/0",
    ]


def test_a_reason_is_told_as_it_is_now(theatre: NewTheatre) -> None:
    """The record has it as of the last look; a cordon opens nothing, so nobody looked since."""
    world = theatre(own_pool(), n1())
    world.submit("b1", a_job(capacity=11))
    world.ask(CordonNode, node_id=world.fleet.nodes[N1].node_id, reason="disk")
    assert "1 capacity" in world.replica().reason_detail
    assert only(world).detail == "p/own: 0 of 1 nodes fit (1 cordoned), exhausted"
    assert only(world).helps[0].endswith("none there takes work (besides 1 cordoned)")
    found = explain(world.fleet, "b1/main/0")
    assert found is not None
    assert found.reasons[0].detail == "p/own: 0 of 1 nodes fit (1 cordoned), exhausted"
    world.ask(UncordonNode, node_id=world.fleet.nodes[N1].node_id)


def test_a_full_tier_says_how_many_machines_it_would_take(theatre: NewTheatre) -> None:
    """S-074: two of five wait, as the tier may have three machines."""
    world = theatre(a_pool(tiers=(an_elastic_tier(node_count_max=3),)))
    for name in ("a", "b", "c", "d", "e"):
        world.submit(name, a_job(capacity=10))
    world.boot()
    waiting = told(world).groups[0]
    assert (waiting.count, waiting.reason) == (2, Reason.LIMIT_REACHED)
    assert waiting.helps == ("p/cloud: a node_count_max of 5 (it has 3 of 3 machines)",)


def test_launches_under_way_and_machines_that_start(theatre: NewTheatre) -> None:
    world = theatre(a_pool(launch_count_max=1))
    world.submit("a", a_job(capacity=10))
    world.submit("b", a_job(capacity=10))
    waiting, booting = told(world).groups
    assert waiting.reason is Reason.LAUNCHES_IN_FLIGHT
    assert waiting.helps == (
        "p/cloud: small, once one of 1 launches under way (launch_count_max) is done",
    )
    assert (booting.reason, booting.phase) == (Reason.MACHINE_STARTING, "placed")
    assert booting.detail == "room is kept on n-000001 of p/cloud, which is requested"


def test_an_offer_that_cools_down_says_until_when(theatre: NewTheatre) -> None:
    world = theatre(a_pool(tiers=(an_elastic_tier(),)))
    world.submit("a", a_job(capacity=50))
    world.fail("n-000001/launch/1", "capacity_unavailable")
    group = told(world).groups[0]
    assert group.reason is Reason.OFFER_COOLING_DOWN
    assert group.next_at_ms == world.fleet.cooldowns["p/cloud/large"].until_at_ms


def test_what_no_offer_and_no_pool_can_do(theatre: NewTheatre) -> None:
    world = theatre(pool_p(), n1())
    gpu = Requirement(capacity=4, capabilities=(CapabilityRequest(name="gpu", count=9),))
    few = Shape(capacity=10, capabilities=(Capability(name="gpu", count=1),))
    world.submit("b", a_job(requirement=gpu), pool="p")
    world.join(capabilities=few.capabilities)
    group = only(world)
    assert group.reason is Reason.NO_CAPACITY
    assert group.helps[0] == (
        "p/own: a node with capacity 4, 9 gpu free; on one node there is at most 1 gpu of 9 gpu"
    )
    assert group.helps[1] == "p/cloud: an offer with capacity 4, 9 gpu"


def test_what_a_rule_keeps_apart_is_told_apart(theatre: NewTheatre) -> None:
    world = theatre(own_pool(), n1(zone="z1"), n2(zone="z1"))
    zone = SpreadRule(over=SpreadOver.ZONE, is_required=True)
    world.submit("a", a_job(capacity=2), replica_count=2, spread=(zone,))
    group = only(world)
    assert (group.count, group.reason) == (1, Reason.SPREAD_ZONE)
    assert group.helps[0].endswith(
        "each part is free somewhere, not all on one node that is open to it"
    )


def test_who_backs_off_or_is_broken(theatre: NewTheatre) -> None:
    world = theatre(own_pool(), n1(), n2())
    world.submit("a", a_job(), replica_count=1)
    world.end("a/main/0")
    world.end("a/main/0")
    off = only(world)
    assert (off.phase, off.next_at_ms, off.reason) == ("backing_off", 5_000, Reason.BACKING_OFF)
    assert off.helps == ()
    for number in range(1, 6):
        world.end_at(number * 5_000, "a/main/0")
    broken = only(world)
    assert (broken.phase, broken.reason) == ("broken", Reason.RESTART_CEILING)
    world.submit("a", a_job(), replica_count=2)
    held = told(world).groups[0]
    assert (held.phase, held.reason, held.helps) == ("pending", Reason.BUNDLE_BROKEN, ())


def test_leases_that_wait_are_told_by_what_they_ask(theatre: NewTheatre) -> None:
    tiers = (a_fixed_tier(),)
    world = theatre(a_pool(tiers=tiers, lease_per_key_max=1), n1())
    world.acquire(fairness_key="a")
    capped = world.acquire(fairness_key="a", timeout_ms=60_000)
    first = world.acquire(fairness_key="b", timeout_ms=30_000)
    world.acquire(fairness_key="c", timeout_ms=60_000)
    groups = told(world).groups
    assert [(g.kind, g.count, g.reason) for g in groups] == [
        ("lease", 2, Reason.NO_CAPACITY),
        ("lease", 1, Reason.KEY_CAP_REACHED),
    ]
    assert groups[0].next_at_ms == first.wait_deadline_at_ms
    assert groups[1].examples == (capped.lease_id,)


def test_a_thousand_demands_cost_no_more_than_those_that_are_told(theatre: NewTheatre) -> None:
    world = theatre(own_pool(), n1())
    submissions = [
        world.submission(f"b{number}", a_job(capacity=11 + number)) for number in range(120)
    ]
    world.run(*submissions)
    found = pending(world.fleet)
    assert (len(found.groups), found.left_out_count, found.replica_count) == (100, 20, 120)
