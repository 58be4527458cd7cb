"""A plan binds: applied at its revision it is what happens, and later it is said what differs."""

import random
from typing import Any

from hostler.core.binding import Gist, gist_of, stale
from hostler.core.fleet import Fleet
from hostler.core.inputs import CordonNode, SubmitBundle
from hostler.core.planning import plan
from hostler.core.replies import Refused
from hostler.core.step import step
from hostler.model import Node
from hostler.model.constraint import Affinity, NodeRule, Peers, SpreadOver, SpreadRule
from hostler.model.node import Cordon
from hostler.model.pool import Band, Reliability
from hostler.model.record import Record
from hostler.model.shape import AttributeMatch, MatchRule, Shape
from hostler.testing.builders import a_fixed_tier, a_job, a_node, a_pool, an_elastic_tier
from tests.core.placing.conftest import NewTheatre
from tests.core.placing.theatre import Theatre, own_pool


def a_random_node(rng: random.Random, number: int) -> Node:
    """Return a node in some state."""
    return a_node(
        f"n-9{number:05d}",
        zone=rng.choice(["", "a", "b", "c"]),
        labels=rng.choice([{}, {"rack": "r1"}, {"rack": "r2"}]),
        shape=Shape(capacity=rng.randint(0, 12)),
        cordon=rng.choice([None, None, None, Cordon(by="me", reason="", at_ms=0)]),
        reliability=rng.choice(list(Reliability)),
        lease_count=0,
        incarnation=1,
    )


def a_random_submission(rng: random.Random, name: str) -> SubmitBundle:
    """Return a bundle that uses every kind of rule now and then."""
    match = AttributeMatch(attribute="label:rack", rule=MatchRule.IN, values=("r1",))
    peers = rng.choice([Peers(), Peers(labels={"app": "x"}), Peers(bundle_id="b0")])
    affinity = Affinity(
        over=rng.choice([SpreadOver.NODE, SpreadOver.ZONE]),
        is_apart=rng.random() < 0.7,
        is_required=rng.random() < 0.5,
        peers=peers,
    )
    job = a_job(
        band=rng.choice(list(Band)),
        capacity=rng.randint(1, 6),
        node_rules=(NodeRule(match=match, is_required=rng.random() < 0.5),)
        if rng.random() < 0.3
        else (),
        affinities=(affinity,) if rng.random() < 0.4 and affinity.is_apart else (),
    )
    spread = SpreadRule(
        over=rng.choice([SpreadOver.ZONE, SpreadOver.TIER, SpreadOver.LABEL]),
        label="rack",
        is_required=rng.random() < 0.5,
        skew_max=rng.choice([None, 1, 2]),
    )
    if spread.over is not SpreadOver.LABEL:
        spread = SpreadRule(over=spread.over, is_required=spread.is_required)
    jobs = (job, a_job("side", capacity=1)) if rng.random() < 0.3 else (job,)
    return SubmitBundle(
        request_id=f"r-{name}",
        principal="tester",
        bundle_id=name,  # type: ignore[arg-type]  # a name is an id
        pool="p",
        jobs=jobs,
        replica_count=rng.randint(1, 4),
        spread=(spread,) if rng.random() < 0.5 else (),
        is_colocated=len(jobs) > 1 and rng.random() < 0.5,
        labels=rng.choice([{}, {"app": "x"}]),
    )


def a_random_fleet(rng: random.Random) -> Fleet:
    """Return a fleet with some work on it."""
    elastic = an_elastic_tier(node_count_max=rng.randint(0, 3), zone=rng.choice(["", "a"]))
    records: list[Record] = [a_pool(tiers=(a_fixed_tier(), elastic))]
    records += [a_random_node(rng, number) for number in range(rng.randint(0, 6))]
    world = Theatre(*records)
    for number in range(rng.randint(0, 2)):
        world.run(a_random_submission(rng, f"b{number}"))
    return world.fleet


def test_plan_and_apply_on_one_revision_agree_on_1000_random_fleets() -> None:
    for seed in range(1_000):
        rng = random.Random(seed)
        fleet = a_random_fleet(rng)
        submission = a_random_submission(rng, "new")
        made = plan(fleet, submission, 1_000)
        again = plan(fleet, submission, 1_000)
        assert gist_of(again) == gist_of(made)
        fleet.keep(step(fleet, [submission], 1_000))
        for one in made.replicas:
            allocations = fleet.index.allocations_by_replica.keys(one.replica_id)
            found = fleet.allocations[allocations[0]] if allocations else None
            assert (None if found is None else found.node_id) == one.node_id, seed
            assert (() if found is None else found.degraded_by) == one.degraded_by, seed


# -- later -----------------------------------------------------------------------------------------


def planned(world: Theatre, **fields: Any) -> tuple[SubmitBundle, int, Gist]:
    """Plan a bundle and return what it binds to."""
    submission = world.submission("new", **fields)
    made = plan(world.fleet, submission, world.now_ms)
    return submission, made.revision, gist_of(made)


def held_to(
    world: Theatre, bound: tuple[SubmitBundle, int, Gist], *, is_remembered: bool = False
) -> Refused | None:
    """Say whether what was planned still is what would happen."""
    submission, at, gist = bound
    deltas = [delta for delta in world.deltas if delta.revision > at and delta.is_durable]
    remembered = gist if is_remembered else None
    return stale(world.fleet, submission, at, deltas, remembered, world.now_ms)


def test_what_does_not_matter_does_not_make_a_plan_stale(theatre: NewTheatre) -> None:
    world = theatre(own_pool(), a_pool("q"), a_node("n-900001", incarnation=1))
    bound = planned(world)
    assert held_to(world, bound) is None
    world.submit("other", pool="q")
    assert world.fleet.revision > bound[1]
    assert held_to(world, bound) is None


def test_what_matters_is_said(theatre: NewTheatre) -> None:
    world = theatre(own_pool(), a_node("n-900001", incarnation=1), a_node("n-900002", zone="a"))
    bound = planned(world)
    world.ask(CordonNode, node_id="n-900002", reason="")
    refused = held_to(world, bound)
    assert refused is not None
    assert (refused.code, refused.is_conflict) == ("plan_stale", True)
    assert [(one.path, one.code) for one in refused.problems] == [("node/n-900002", "changed")]
    assert held_to(world, bound, is_remembered=True) is None


def test_a_plan_that_would_come_out_otherwise_is_said_replica_by_replica(
    theatre: NewTheatre,
) -> None:
    world = theatre(own_pool(), a_node("n-900001", incarnation=1), a_node("n-900002"))
    bound = planned(world)
    world.submit("b2")
    world.ask(CordonNode, node_id="n-900001", reason="")
    refused = held_to(world, bound, is_remembered=True)
    assert refused is not None
    assert refused.problems[0].path == "replica/new/main/0"
    assert "placed p own n-900002, and was planned placed p own n-900001" in (
        refused.problems[0].message
    )


def test_a_revision_of_long_ago_or_of_the_future_binds_nothing(theatre: NewTheatre) -> None:
    world = theatre(own_pool(), a_node("n-900001", incarnation=1))
    submission, at, gist = planned(world)
    world.submit("b2")
    old = stale(world.fleet, submission, at, None, None, 0)
    assert old is not None
    assert old.code == "revision_too_old"
    new = stale(world.fleet, submission, world.fleet.revision + 1, [], gist, 0)
    assert new is not None
    assert new.code == "revision_unknown"
