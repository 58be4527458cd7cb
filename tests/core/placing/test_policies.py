"""Policies of walking, buying and waiting: what comes first, where, and at what price.

spec/placement.md C-018 (reuse before create, by name), C-061 and C-062 (launch modes), G-039, G-041
and G-043; trials B22, B23 and B37.
"""

from typing import Any

import pytest

from hostler.core.placement.buy import Wanted, by_price
from hostler.core.waiting import why_in_line
from hostler.model.bundle import Fallback
from hostler.model.constraint import NodeRule, SpreadOver, SpreadRule
from hostler.model.pool import Band, LaunchMode, Offer, Reliability, Reuse
from hostler.model.reason import Reason
from hostler.model.replica import ReplicaPhase
from hostler.model.settings import Preemption
from hostler.model.shape import AttributeMatch, MatchRule, Requirement, Shape
from hostler.testing.builders import a_fixed_tier, a_job, a_node, a_pool, an_elastic_tier
from tests.core.placing.conftest import NewTheatre
from tests.core.placing.theatre import N1, Theatre, n1, own_pool

HOUR_MS = 3_600_000
NEVER_PREEMPT = Preemption(bands=())


def an_offer(name: str, capacity: int, price: int, **changes: Any) -> Offer:
    """Return an offer of so much capacity at a price."""
    return Offer(
        name=name, shape=Shape(capacity=capacity), price_microusd_per_hour=price, **changes
    )


def offers_launched(world: Theatre) -> list[str]:
    """Return the offers of all machines that were asked for."""
    return [node.offer for node in world.launched()]


# -- who is first --------------------------------------------------------------------------------


@pytest.mark.parametrize(("waited_ms", "first"), [(HOUR_MS - 1, "silver"), (HOUR_MS + 1, "bronze")])
def test_who_waits_long_enough_goes_before_a_band_above(
    theatre: NewTheatre, waited_ms: int, first: str
) -> None:
    world = theatre(own_pool())
    world.submit("bronze", a_job(capacity=6, band=Band.BRONZE))
    world.advance(waited_ms)
    world.submit("silver", a_job(capacity=6))
    world.join()
    assert list(world.places()) == [f"{first}/main/0"]


def test_gold_goes_before_bronze_for_twice_as_long(theatre: NewTheatre) -> None:
    world = theatre(own_pool(), preemption=NEVER_PREEMPT, ageing_ms=1_000)
    world.submit("bronze", a_job(capacity=6, band=Band.BRONZE))
    world.advance(1_500)
    world.submit("gold", a_job(capacity=6, band=Band.GOLD))
    world.submit("silver", a_job(capacity=6))
    world.join()
    world.join()
    placed = sorted(world.fleet.allocations.in_order(), key=lambda each: each.allocation_id)
    assert [each.bundle_id for each in placed] == ["gold", "bronze"]


def test_without_ageing_bands_always_come_first(theatre: NewTheatre) -> None:
    world = theatre(own_pool(), ageing_ms=0)
    world.submit("bronze", a_job(capacity=6, band=Band.BRONZE))
    world.advance(1_000 * HOUR_MS)
    world.submit("silver", a_job(capacity=6))
    world.join()
    assert list(world.places()) == ["silver/main/0"]


def test_what_a_band_is_worth_changes_with_the_setting(theatre: NewTheatre) -> None:
    world = theatre(own_pool(), ageing_ms=0)
    world.submit("bronze", a_job(capacity=6, band=Band.BRONZE))
    world.advance(HOUR_MS)
    world.submit("silver", a_job(capacity=6))
    world.configure(own_pool(), ageing_ms=60_000)
    world.join()
    assert list(world.places()) == ["bronze/main/0"]


def test_a_thousand_wait_and_each_of_a_hundred_nodes_gets_ten(theatre: NewTheatre) -> None:
    """A thousand replicas wait; a hundred nodes of ten slots report in one after another, or all in
    one batch: each node gets ten, and no decision counts the same room twice."""
    for is_together in (True, False):
        nodes = [
            a_node(f"n-9{number:05}", incarnation=0, is_inventory_reported=False, shape=Shape())
            for number in range(100)
        ]
        world = theatre(own_pool(), *nodes)
        jobs = tuple(a_job(f"j{number}", capacity=1) for number in range(100))
        world.run(*(world.submission(f"b{n}", *jobs) for n in range(10)))
        assert not world.places()
        shape = Shape(capacity=10)
        hellos = [world.hello(node, incarnation=1, shape=shape) for node in nodes]
        for batch in [hellos] if is_together else [[hello] for hello in hellos]:
            world.run(*batch)
        counts = [world.fleet.index.allocations_by_node.count(node.node_id) for node in nodes]
        assert counts == [10] * 100
        decisions = [world.fleet.traces[key].decisions for key in world.fleet.traces.rows]
        assert all([d.outcome for d in each].count("placed") == 1 for each in decisions)


def test_a_line_that_does_not_fit_is_asked_once(theatre: NewTheatre) -> None:
    """Those far back in line keep the reason that they were told; who asks is told the first's."""
    world = theatre(own_pool(), n1())
    world.submit("full", a_job(capacity=10))
    world.run(*(world.submission(f"b{n}", a_job(capacity=4)) for n in range(50)))
    before = len(world.deltas)
    world.join(capacity=3)
    written = {key for delta in world.deltas[before:] for kind, key in delta.changes}
    assert not {key for key in written if key.startswith("b")}
    last = world.replica("b9/main/0")
    why = why_in_line(world.fleet, last)
    assert why is not None
    assert why.reason is Reason.NO_CAPACITY


# -- where ---------------------------------------------------------------------------------------


def two_tiers(**changes: Any) -> Any:
    """Return a pool that launches in its first tier, and has machines in its second."""
    return a_pool(tiers=(an_elastic_tier(), a_fixed_tier()), **changes)


def test_c_018_reuse_within_a_tier_or_within_the_pool(theatre: NewTheatre) -> None:
    """A later tier's free existing node is not preferred over an earlier elastic tier's new machine
    unless the policy says so."""
    by_tier = theatre(two_tiers(), n1())
    by_tier.submit()
    assert offers_launched(by_tier) == ["small"]
    by_pool = theatre(two_tiers(reuse=Reuse.POOL), n1())
    by_pool.submit()
    assert by_pool.place() == N1
    by_pool.submit("b2", a_job(capacity=9))
    assert offers_launched(by_pool) == ["small"]
    (decision,) = by_pool.fleet.traces["b2/main/0"].decisions
    assert [(a.tier, a.outcome) for a in decision.attempts] == [
        ("cloud", "launched"),
        ("own", "exhausted"),
    ]


def test_a_fallback_pool_may_be_for_when_nothing_else_works(theatre: NewTheatre) -> None:
    world = theatre(
        own_pool(),
        a_pool("q", tiers=(a_fixed_tier(),)),
        n1(),
        a_node("n-900009", pool="q", incarnation=1),
    )
    world.submit("full", a_job(capacity=10))
    fallback = {"fallback_pools": ("q",), "fallback": Fallback.WHEN_UNAVAILABLE}
    world.submit("b1", **fallback)
    assert (world.place(), world.replica().reason) == (None, Reason.NO_CAPACITY)
    world.submit("b2", fallback_pools=("q",))
    assert world.place("b2/main/0") == "n-900009"
    world.fall_silent(N1)
    world.advance(15_000)
    assert world.place() == "n-900009", "no node of its own pool takes work any more"


def test_an_elastic_pool_that_may_launch_is_not_unavailable(theatre: NewTheatre) -> None:
    full = an_elastic_tier(node_count_max=1)
    world = theatre(a_pool(tiers=(full,)), a_pool("q"), preemption=NEVER_PREEMPT)
    fallback = {"fallback_pools": ("q",), "fallback": Fallback.WHEN_UNAVAILABLE}
    world.submit("b1", a_job(capacity=100))
    world.submit("b2", a_job(capacity=100), **fallback)
    assert world.replica("b2/main/0").reason is Reason.LIMIT_REACHED
    world.fail(world.commands("launch_machine")[0], "capacity_unavailable")
    assert world.fleet.nodes[world.place("b2/main/0") or ""].pool == "q"


# -- buying --------------------------------------------------------------------------------------


def crowd(*capacities: int, **changes: Any) -> list[Wanted]:
    """Return a crowd of different jobs."""
    return [
        Wanted(Requirement(capacity=capacity), ("b", str(number)), **changes)
        for number, capacity in enumerate(capacities)
    ]


@pytest.mark.parametrize(
    ("capacities", "expected"),
    [
        ((1,), "small"),
        ((1, 1), "small"),
        ((1, 1, 1), "small"),
        ((1, 1, 1, 1), "large"),
        ((1,) * 8, "large"),
        ((4,), "large"),
        ((1, 99), "small"),
    ],
)
def test_the_price_is_that_of_all_who_wait(capacities: tuple[int, ...], expected: str) -> None:
    """Three small machines cost what a large one does, which serves four."""
    tier = an_elastic_tier(offers=(an_offer("small", 1, 100), an_offer("large", 4, 350)))
    offers = [o for o in tier.offers if (o.shape.capacity or 0) >= capacities[0]]
    assert by_price(offers, crowd(*capacities), tier)[0].name == expected


def test_replicas_of_one_job_do_not_share_what_is_bought() -> None:
    tier = an_elastic_tier(offers=(an_offer("small", 1, 100), an_offer("large", 4, 150)))
    together = crowd(1, 1)
    apart = [Wanted(Requirement(capacity=1), ("b", "j")) for _ in range(2)]
    assert by_price(tier.offers, together, tier)[0].name == "large"
    assert by_price(tier.offers, apart, tier)[0].name == "small"


def test_several_small_jobs_share_one_new_machine(theatre: NewTheatre) -> None:
    tier = an_elastic_tier(offers=(an_offer("small", 5, 100), an_offer("large", 50, 400)))
    world = theatre(a_pool(tiers=(tier,)))
    world.run(*(world.submission(f"b{n}", a_job(capacity=5)) for n in range(9)))
    assert offers_launched(world) == ["large"]
    world.submit("late", a_job(capacity=5))
    assert offers_launched(world) == ["large"], "what is coming has room for one more"
    world.submit("later", a_job(capacity=5))
    assert offers_launched(world) == ["large", "small"]


def test_different_demands_share_one_too(theatre: NewTheatre) -> None:
    tier = an_elastic_tier(offers=(an_offer("small", 5, 100), an_offer("large", 50, 180)))
    world = theatre(a_pool(tiers=(tier, a_fixed_tier())), n1(shape=Shape(capacity=3)))
    world.run(world.submission("a", a_job(capacity=5)), world.submission("b", a_job(capacity=4)))
    assert offers_launched(world) == ["large"]


def test_who_fits_on_a_node_has_no_say_in_what_is_bought(theatre: NewTheatre) -> None:
    tier = an_elastic_tier(offers=(an_offer("small", 5, 100), an_offer("large", 50, 180)))
    world = theatre(a_pool(tiers=(a_fixed_tier(), tier)), n1(shape=Shape(capacity=4)))
    world.run(world.submission("a", a_job(capacity=5)), world.submission("b", a_job(capacity=4)))
    assert offers_launched(world) == ["small"]


def test_spot_is_bought_by_price_but_not_for_who_may_not_have_it(theatre: NewTheatre) -> None:
    offers = (
        an_offer("spot", 10, 30, mode=LaunchMode.SPOT),
        an_offer("demand", 10, 100),
    )
    world = theatre(a_pool(tiers=(an_elastic_tier(offers=offers),)))
    world.submit("b1", a_job(capacity=8), replica_count=2, is_primary_interruptible=False)
    kinds = [world.fleet.nodes[world.place(f"b1/main/{n}") or ""] for n in (0, 1)]
    assert [(node.offer, node.reliability) for node in kinds] == [
        ("demand", Reliability.RELIABLE),
        ("spot", Reliability.INTERRUPTIBLE),
    ]
    world.submit("b2", a_job(capacity=8))
    assert world.live("b2/main/0").degraded_by == ("interruptible_primary",)


def test_a_primary_that_must_not_be_interrupted_waits_for_other_offers(
    theatre: NewTheatre,
) -> None:
    spot = an_elastic_tier(offers=(an_offer("spot", 10, 30, mode=LaunchMode.SPOT),))
    world = theatre(a_pool(tiers=(spot,)))
    world.submit(is_primary_interruptible=False)
    assert world.replica().reason is Reason.RELIABILITY
    assert not world.launched()


def test_reserved_machines_come_first_and_are_counted(theatre: NewTheatre) -> None:
    offers = (
        an_offer("ours", 10, 0, mode=LaunchMode.RESERVED, node_count_max=2),
        an_offer("demand", 10, 100),
    )
    world = theatre(a_pool(tiers=(an_elastic_tier(offers=offers),)))
    for number in range(3):
        world.submit(f"b{number}", a_job(capacity=10))
    assert offers_launched(world) == ["ours", "ours", "demand"]


def test_a_pool_has_a_limit_over_its_tiers(theatre: NewTheatre) -> None:
    tiers = (an_elastic_tier("a", node_count_max=2), an_elastic_tier("b", node_count_max=2))
    world = theatre(a_pool(tiers=tiers, node_count_max=3))
    for number in range(5):
        world.submit(f"b{number}", a_job(capacity=100))
    assert len(world.launched()) == 3
    assert world.replica("b4/main/0").reason is Reason.LIMIT_REACHED


def test_b_037_another_offer_is_taken_when_one_has_no_capacity(theatre: NewTheatre) -> None:
    """Pool Z1 answers "none" for 30 min. Expect Z2 tried within one tick, Z1 backed off, then band
    ladder to on-demand per policy."""
    offers = (an_offer("spot", 10, 30, mode=LaunchMode.SPOT), an_offer("demand", 10, 100))
    tiers = tuple(an_elastic_tier(zone, zone=zone, offers=offers) for zone in ("z1", "z2"))
    world = theatre(a_pool(tiers=tiers))
    world.submit(replica_count=1)
    tried = []
    for _ in range(3):
        node = world.fleet.nodes[world.place() or ""]
        tried.append((node.tier, node.offer))
        world.fail(f"{node.node_id}/launch/1", "capacity_unavailable")
    assert tried == [("z1", "spot"), ("z1", "demand"), ("z2", "spot")]


def test_b_023_as_many_machines_are_bought_as_are_needed(theatre: NewTheatre) -> None:
    """64 INF need 64 machines arriving one by one with random report delays. Expect exactly 64
    bought."""
    tier = an_elastic_tier(offers=(an_offer("one", 4, 100),))
    world = theatre(a_pool(tiers=(tier,)))
    world.run(*(world.submission(f"inf{n}", a_job(capacity=4)) for n in range(64)))
    while world.commands("launch_machine"):
        world.boot(is_together=False)
    assert len(world.launched()) == 64
    assert all(r.phase is ReplicaPhase.PLACED for r in world.fleet.replicas.in_order())


# -- whole or not at all -------------------------------------------------------------------------


def three_jobs(capacity: int = 5) -> tuple[Any, ...]:
    """Return three jobs of one size."""
    return tuple(a_job(name, capacity=capacity) for name in ("a", "b", "c"))


def test_s_185_all_of_a_gang_starts_or_nothing(theatre: NewTheatre) -> None:
    """Given a bundle of three jobs marked all-or-nothing, room for two, then none is started,
    nothing stays reserved, and the answer names the third; when room for three appears, then all
    three start."""
    world = theatre(own_pool(), n1())
    world.submit("g", *three_jobs(), is_gang=True)
    assert not world.places()
    assert not world.commands("start_allocation")
    assert not world.fleet.allocations.rows
    for name in ("a", "b", "c"):
        replica = world.replica(f"g/{name}/0")
        assert replica.reason is Reason.GANG_INCOMPLETE
        assert replica.reason_detail == "g/c/0 has no place (no_capacity); 2 of 3 have one"
    world.submit("other", a_job(capacity=10))
    assert world.place("other/main/0") == N1
    world.join()
    assert not [key for key in world.places() if key.startswith("g/")]
    world.join()
    assert len(world.commands("start_allocation")) == 4


def test_a_gang_that_fits_only_together_is_found(theatre: NewTheatre) -> None:
    """Each taking its best leaves one without: the small one must not be where the large fits."""
    zones = [
        a_node("n-900001", incarnation=1, zone="z1"),
        a_node("n-900002", incarnation=1, zone="z2", shape=Shape(capacity=12)),
    ]
    world = theatre(own_pool(), *zones)
    rule = SpreadRule(over=SpreadOver.ZONE, is_required=True)
    world.submit(
        "g",
        a_job("x", capacity=6),
        a_job("y", capacity=4),
        replica_count=2,
        spread=(rule,),
        is_gang=True,
    )
    assert len(world.places()) == 4


def test_nothing_of_a_gang_starts_before_all_machines_are_there(theatre: NewTheatre) -> None:
    world = theatre(a_pool(tiers=(a_fixed_tier(), an_elastic_tier())), n1())
    world.submit("g", *three_jobs(), is_gang=True)
    assert len(world.places()) == 3
    assert not world.commands("start_allocation")
    world.boot()
    assert len(world.commands("start_allocation")) == 3


def test_a_gang_whose_machine_does_not_come_gives_everything_back(theatre: NewTheatre) -> None:
    world = theatre(a_pool(tiers=(a_fixed_tier(), an_elastic_tier())), n1())
    world.submit("g", *three_jobs(), is_gang=True)
    (node,) = world.launched()
    offers = ("small", "large")
    for _ in offers:
        (command_id,) = world.commands("launch_machine")
        world.fail(command_id, "capacity_unavailable")
    assert node.node_id not in world.places().values()
    assert not world.places()
    assert not world.commands("start_allocation")


def test_what_a_gang_gives_back_is_open_to_who_waits(theatre: NewTheatre) -> None:
    world = theatre(a_pool(tiers=(a_fixed_tier(), an_elastic_tier())), n1(labels={"rack": "a"}))
    world.submit("g", *three_jobs(), is_gang=True)
    is_there = AttributeMatch(attribute="label:rack", rule=MatchRule.IN, values=("a",))
    world.submit("b1", a_job(capacity=7, node_rules=(NodeRule(match=is_there),)))
    assert world.place("b1/main/0") is None
    for _ in ("small", "large"):
        (command_id,) = world.commands("launch_machine")
        world.fail(command_id, "capacity_unavailable")
    assert world.places() == {"b1/main/0": N1}
    world.check_calm()


def test_one_of_a_running_gang_is_recovered_alone(theatre: NewTheatre) -> None:
    world = theatre(own_pool(), n1())
    world.submit("g", *three_jobs(3), is_gang=True)
    world.become_ready()
    world.end("g/b/0")
    assert len(world.places()) == 3
    world.join()
    assert len(world.commands("start_allocation")) == 1 or world.place("g/b/0") is not None


def test_gangs_do_not_take_each_others_room(theatre: NewTheatre) -> None:
    world = theatre(own_pool(), n1())
    world.run(
        world.submission("g1", *three_jobs(), is_gang=True),
        world.submission("g2", *three_jobs(3), is_gang=True),
    )
    assert {key.partition("/")[0] for key in world.places()} == {"g2"}


def test_a_gang_may_become_an_ordinary_bundle(theatre: NewTheatre) -> None:
    world = theatre(own_pool(), n1())
    world.submit("g", *three_jobs(), is_gang=True)
    world.submit("g", *three_jobs())
    assert len(world.commands("start_allocation")) == 2
