"""Where replicas may be: labels, exclusions, allowed offers, near, apart, together, spread.

The rules hold for every move: a first placement, a recovery, a drain and a migration ask the same.
"""

from typing import Any

import pytest

from hostler.core.inputs import LabelNode
from hostler.core.replies import Refused
from hostler.model import Allocation, Node, Pool
from hostler.model.allocation import AllocationPhase, EndCause
from hostler.model.bundle import Job
from hostler.model.constraint import Affinity, NodeRule, Peers, SpreadOver, SpreadRule
from hostler.model.launch import Launch
from hostler.model.pool import Band, Reliability
from hostler.model.reason import Reason
from hostler.model.replica import ReplicaPhase
from hostler.model.shape import AttributeMatch, MatchRule, Shape
from hostler.testing.builders import a_fixed_tier, a_job, a_node, a_pool, an_elastic_tier
from tests.core.placing.conftest import NewTheatre
from tests.core.placing.theatre import Theatre, own_pool, own_shape

RACK = SpreadOver.LABEL


def a_place(number: int, zone: str = "", rack: str = "", **changes: Any) -> Node:
    """Return a node of the fixed tier."""
    labels = {"rack": rack} if rack else {}
    return a_node(f"n-90000{number}", zone=zone, labels=labels, incarnation=1, **changes)


def label_in(*values: str, name: str = "rack", **changes: Any) -> NodeRule:
    """Return a rule about a label."""
    match = AttributeMatch(attribute=f"label:{name}", rule=MatchRule.IN, values=values)
    return NodeRule(match=match, **changes)


def fact_in(fact: str, *values: str, **changes: Any) -> NodeRule:
    """Return a rule about something else of the node."""
    return NodeRule(
        match=AttributeMatch(attribute=fact, rule=MatchRule.IN, values=values), **changes
    )


def near(*, required: bool = True, over: SpreadOver = SpreadOver.NODE, **peers: Any) -> Affinity:
    """Return a wish to be near to somebody."""
    return Affinity(over=over, is_required=required, peers=Peers(**peers))


def apart(*, required: bool = True, over: SpreadOver = SpreadOver.NODE, **peers: Any) -> Affinity:
    """Return a wish to be apart from somebody."""
    return Affinity(over=over, is_apart=True, is_required=required, peers=Peers(**peers))


def zones(world: Theatre, *keys: str) -> list[str]:
    """Return the zones of replicas."""
    return [world.fleet.nodes[world.live(key).node_id].zone for key in keys]


def zone_rule(*, skew_max: int | None = None, is_required: bool = True) -> tuple[SpreadRule, ...]:
    """Return a rule over zones."""
    return (SpreadRule(over=SpreadOver.ZONE, is_required=is_required, skew_max=skew_max),)


# -- the node itself -----------------------------------------------------------------------------


def test_a_job_is_put_only_on_nodes_with_the_label(theatre: NewTheatre) -> None:
    world = theatre(own_pool(), a_place(1), a_place(2, rack="r1"), a_place(3, rack="r2"))
    world.submit("b1", a_job(node_rules=(label_in("r2", "r3"),)))
    assert world.place() == "n-900003"
    world.submit("b2", a_job(node_rules=(label_in("r9"),)))
    assert world.replica("b2/main/0").reason is Reason.NODE_LABELS


def test_labels_of_a_tier_are_those_of_its_nodes(theatre: NewTheatre) -> None:
    tier = a_fixed_tier(labels={"rack": "r1"})
    world = theatre(a_pool(tiers=(tier,)), a_place(1), a_place(2, rack="r2"))
    world.submit("b1", a_job(node_rules=(label_in("r1"),)))
    assert world.place() == "n-900001"
    world.submit("b2", a_job(node_rules=(label_in("r3"),)))
    assert world.place("b2/main/0") is None
    world.configure(a_pool(tiers=(a_fixed_tier(labels={"rack": "r3"}),)))
    assert world.place("b2/main/0") == "n-900001"


def test_a_preferred_label_is_missed_when_there_is_no_room_and_that_is_said(
    theatre: NewTheatre,
) -> None:
    world = theatre(own_pool(), a_place(1), a_place(2, rack="r1"))
    rule = label_in("r1", is_required=False)
    world.submit("b1", a_job(capacity=8, node_rules=(rule,)))
    world.submit("b2", a_job(capacity=8, node_rules=(rule,)))
    assert (world.place("b1/main/0"), world.live("b1/main/0").degraded_by) == ("n-900002", ())
    assert world.live("b2/main/0").degraded_by == ("node_labels",)


@pytest.mark.parametrize(
    ("fact", "value", "reason"),
    [
        ("node", "n-900001", Reason.NODE_EXCLUDED),
        ("zone", "a", Reason.NODE_EXCLUDED),
        ("tier", "p/own", Reason.NODE_EXCLUDED),
        ("provider", "own hardware", Reason.NODE_EXCLUDED),
        ("label:rack", "r1", Reason.NODE_LABELS),
        ("offer", "box", Reason.OFFER_NOT_ALLOWED),
    ],
)
def test_what_is_excluded_is_not_used(
    theatre: NewTheatre, fact: str, value: str, reason: Reason
) -> None:
    world = theatre(own_pool(), a_place(1, zone="a", rack="r1", offer="box"))
    world.submit("b1", a_job(node_rules=(fact_in(fact, value, is_apart=True),)))
    assert world.replica().reason is reason
    world.submit("b2", a_job(node_rules=(fact_in(fact, "other", is_apart=True),)))
    assert world.place("b2/main/0") == "n-900001"


def test_only_allowed_offers_are_launched(theatre: NewTheatre) -> None:
    world = theatre(a_pool())
    world.submit("b1", a_job(node_rules=(fact_in("offer", "large"),)))
    assert [node.offer for node in world.launched()] == ["large"]
    world.submit("b2", a_job(node_rules=(fact_in("offer", "tiny"),)))
    assert world.place("b2/main/0") is None


# -- near to others ------------------------------------------------------------------------------


def test_who_must_be_near_waits_for_the_other_and_follows(theatre: NewTheatre) -> None:
    world = theatre(own_pool(), a_place(1, "a"), a_place(2, "b"), a_place(3, "b"))
    wish = near(over=SpreadOver.ZONE, bundle_id="b2")
    world.submit("b1", a_job(affinities=(wish,)))
    assert world.replica().reason is Reason.AFFINITY
    world.submit("b2", a_job(capacity=9, node_rules=(fact_in("zone", "b"),)))
    assert zones(world, "b1/main/0") == ["b"]


def test_near_a_job_of_the_same_copy(theatre: NewTheatre) -> None:
    world = theatre(own_pool(), a_place(1), a_place(2))
    helper = a_job("helper", capacity=1, affinities=(near(job="main", replica_index=1),))
    world.submit("b1", a_job(), helper, replica_count=1)
    assert world.replica("b1/helper/0").reason is Reason.AFFINITY
    world.submit("b1", a_job(), helper, replica_count=2)
    assert world.place("b1/helper/0") == world.place("b1/main/1")


def test_the_first_of_those_who_want_to_be_near_each_other_goes_anywhere(
    theatre: NewTheatre,
) -> None:
    world = theatre(own_pool(), a_place(1, "a"), a_place(2, "b"), a_place(3, "b"))
    wish = near(over=SpreadOver.ZONE, labels={"app": "x"})
    for name in ("b1", "b2", "b3"):
        world.submit(name, a_job(capacity=6, affinities=(wish,)), labels={"app": "x"})
    assert zones(world, "b1/main/0") == ["a"]
    assert world.replica("b2/main/0").reason is Reason.AFFINITY
    world.join(tier="own")
    assert world.replica("b2/main/0").reason is Reason.AFFINITY


def test_a_preferred_wish_to_be_near_is_missed_and_said(theatre: NewTheatre) -> None:
    world = theatre(own_pool(), a_place(1, "a"), a_place(2, "b"))
    world.submit("b2", a_job(capacity=9))
    wish = near(required=False, over=SpreadOver.ZONE, bundle_id="b2")
    world.submit("b1", a_job(affinities=(wish,)))
    assert zones(world, "b2/main/0", "b1/main/0") == ["a", "b"]
    assert world.live().degraded_by == ("affinity",)


# -- apart from others ---------------------------------------------------------------------------


def test_apart_holds_whoever_came_first(theatre: NewTheatre) -> None:
    world = theatre(own_pool(), a_place(1), a_place(2))
    shy = a_job(capacity=1, affinities=(apart(labels={"kind": "loud"}),))
    world.submit("shy", shy)
    world.submit("loud", a_job(capacity=1), labels={"kind": "loud"})
    assert {world.place("shy/main/0"), world.place("loud/main/0")} == {"n-900001", "n-900002"}
    world.submit("loud2", a_job(capacity=1, labels={"kind": "loud"}))
    assert world.place("loud2/main/0") == world.place("loud/main/0")
    left = world.live("loud/main/0").node_id
    world.drain(left)
    world.become_ready()
    world.finish_stops()
    for key in ("loud/main/0", "loud2/main/0"):  # what finds no place stays, and says why
        assert world.live(key).node_id == left
        waits = world.fleet.notes[world.live(key).allocation_id]["drain"]
        assert waits.reason is Reason.ANTI_AFFINITY
    world.delete("shy")
    for _ in range(3):  # it ends; then each of them may move
        world.finish_stops()
        world.become_ready()
    assert world.place("loud/main/0") == world.place("loud2/main/0") == "n-900001"


def test_apart_over_zones_opens_when_the_other_leaves(theatre: NewTheatre) -> None:
    world = theatre(own_pool(), a_place(1, "a"), a_place(2, "a", rack="r1"))
    world.submit("b2", a_job(capacity=9, node_rules=(label_in("r1"),)))
    wish = apart(over=SpreadOver.ZONE, bundle_id="b2")
    world.submit("b1", a_job(affinities=(wish,)))
    assert world.replica().reason is Reason.ANTI_AFFINITY
    world.become_ready("b2/main/0")
    world.delete("b2")
    world.finish_stops()
    assert world.place() is not None


def test_a_preferred_wish_to_be_apart_is_missed_and_said(theatre: NewTheatre) -> None:
    world = theatre(own_pool(), a_place(1))
    world.submit("b2", a_job())
    world.submit("b1", a_job(affinities=(apart(required=False, bundle_id="b2"),)))
    assert world.live().degraded_by == ("anti_affinity",)


# -- together ------------------------------------------------------------------------------------


def two_jobs() -> tuple[Job, Job]:
    """Return the jobs of a bundle that need 7 together."""
    return a_job(capacity=4), a_job("pack", capacity=3, band=Band.BRONZE)


def test_the_jobs_of_one_replica_are_on_one_node(theatre: NewTheatre) -> None:
    world = theatre(own_pool(), a_place(1), a_place(2))
    world.submit("b0", a_job(capacity=5))
    world.submit("b1", *two_jobs(), is_colocated=True)
    assert world.place("b0/main/0") == "n-900001"
    assert world.place("b1/main/0") == world.place("b1/pack/0") == "n-900002"


def test_nobody_takes_the_room_of_the_others_in_between(theatre: NewTheatre) -> None:
    world = theatre(own_pool(), a_place(1))
    gold = a_job(band=Band.GOLD, capacity=3)
    world.run(
        world.submission("b1", *two_jobs(), is_colocated=True),
        world.submission("b2", gold, a_job("other", band=Band.SILVER, capacity=3)),
    )
    assert world.places().keys() == {"b1/main/0", "b1/pack/0", "b2/main/0"}


def test_a_drained_node_lets_all_of_a_replica_move(theatre: NewTheatre) -> None:
    world = theatre(own_pool(), a_place(1), a_place(2))
    world.submit("b1", *two_jobs(), is_colocated=True)
    world.become_ready()
    world.drain("n-900001")
    world.finish_stops()
    world.finish_stops()
    assert world.place("b1/main/0") == world.place("b1/pack/0") == "n-900002"


def test_a_crashed_job_comes_back_to_the_others(theatre: NewTheatre) -> None:
    world = theatre(own_pool(), a_place(1), a_place(2))
    world.submit("b1", *two_jobs(), is_colocated=True)
    world.become_ready()
    world.end("b1/main/0")
    assert world.place("b1/main/0") == world.place("b1/pack/0") == "n-900001"


def test_all_of_a_replica_that_is_replaced_may_go_elsewhere_together(theatre: NewTheatre) -> None:
    """Where they are there is no room for a second copy of each, and elsewhere there is."""
    world = theatre(own_pool(), a_place(1), a_place(2))
    submit_together(world, "old")
    world.become_ready()
    submit_together(world, "new")
    nodes = {each.replica_id: each.node_id for each in starting(world)}
    assert nodes == {"b1/main/0": "n-900002", "b1/pack/0": "n-900002"}
    for allocation in starting(world):
        world.report(allocation, "ready")
    world.finish_stops()
    assert world.place("b1/main/0") == world.place("b1/pack/0") == "n-900002"


def starting(world: Theatre) -> list[Allocation]:
    """Return the copies that have been told to start."""
    rows = world.fleet.allocations.in_order()
    return [each for each in rows if each.phase is AllocationPhase.STARTING]


def submit_together(world: Theatre, name: str) -> None:
    """Submit a bundle of two jobs that are to be on one node, and may be there twice."""
    launch = Launch(argv=(name,))
    jobs = (a_job(job, capacity=4, can_overlap=True, launch=launch) for job in ("main", "pack"))
    world.submit("b1", *jobs, is_colocated=True)


def test_who_was_brought_along_is_not_tried_again_for_standing_behind(theatre: NewTheatre) -> None:
    """Simulator seed 119: the first in line had no place, and those behind it were written down."""
    world = theatre(own_pool(), a_place(1))
    jobs = (a_job(capacity=4), a_job("pack", capacity=4))
    world.submit("b1", *jobs, is_colocated=True, replica_count=2)
    (node_id,) = set(world.places().values())
    for name in ("main", "pack"):
        world.end(f"b1/{name}/0", EndCause.REJECTED)
    assert world.places() == {"b1/main/1": node_id, "b1/pack/1": node_id}
    world.check_calm()


def test_a_silent_node_binds_nobody_to_who_is_on_it(theatre: NewTheatre) -> None:
    """Seed 848: whoever was to come to the others did, until their node was lost."""
    world = theatre(own_pool(), a_place(1), a_place(2))
    world.advance(1_000)  # nodes that have just come are news to everybody
    submit_together(world, "old")
    world.become_ready()
    world.hear_inventory("n-900001", own_shape(a_node("n-900001", shape=Shape(capacity=6))))
    world.end("b1/main/0")
    assert world.replica("b1/main/0").reason is Reason.COLOCATION
    world.fall_silent("n-900001")
    world.advance(world.now_ms + 15_000)  # from now on it is suspected
    assert world.place("b1/main/0") == "n-900002"
    world.check_calm()


def test_a_lost_node_lets_all_of_a_replica_move(theatre: NewTheatre) -> None:
    world = theatre(own_pool(), a_place(1), a_place(2))
    world.submit("b1", a_job(), a_job("pack", capacity=3), is_colocated=True)
    world.become_ready()
    world.lose("n-900001")
    assert world.place("b1/main/0") == world.place("b1/pack/0") == "n-900002"


# -- spread --------------------------------------------------------------------------------------


def test_an_even_spread_keeps_within_its_skew(theatre: NewTheatre) -> None:
    nodes = [a_place(n, "abc"[n % 3]) for n in range(9)]
    world = theatre(own_pool(), *nodes)
    world.submit("b1", a_job(), replica_count=7, spread=zone_rule(skew_max=1))
    found = zones(world, *(f"b1/main/{n}" for n in range(7)))
    assert sorted(map(found.count, "abc")) == [2, 2, 3]


def test_a_full_domain_holds_an_even_spread_back_and_a_lost_one_does_not(
    theatre: NewTheatre,
) -> None:
    nodes = [a_place(n, "a") for n in range(4)]
    world = theatre(own_pool(), *nodes, a_place(8, "b"))
    world.submit("b0", a_job(capacity=9, node_rules=(fact_in("zone", "b"),)))
    world.submit("b1", a_job(), replica_count=3, spread=zone_rule(skew_max=1))
    assert len(world.places()) == 2
    assert world.replica("b1/main/1").reason is Reason.SPREAD_ZONE
    world.lose("n-900008")
    assert zones(world, "b1/main/0", "b1/main/1", "b1/main/2") == ["a", "a", "a"]


def test_a_preferred_skew_is_missed_and_said(theatre: NewTheatre) -> None:
    world = theatre(own_pool(), a_place(1, "a"), a_place(2, "a"), a_place(3, "b"))
    world.submit("b0", a_job(capacity=9, node_rules=(fact_in("zone", "b"),)))
    world.submit("b1", replica_count=2, spread=zone_rule(skew_max=1, is_required=False))
    assert world.live("b1/main/1").degraded_by == ("spread_zone",)


def test_a_spread_over_a_label(theatre: NewTheatre) -> None:
    world = theatre(own_pool(), a_place(1, rack="r1"), a_place(2, rack="r1"), a_place(3))
    rule = SpreadRule(over=RACK, label="rack", is_required=True)
    world.submit("b1", replica_count=2, spread=(rule,))
    assert world.replica("b1/main/1").reason is Reason.SPREAD_LABEL


def test_one_in_each_tier_whichever_machines_come_first(theatre: NewTheatre) -> None:
    """B61: all replicas of a service went to the spot fleet although a reserved one was offered."""
    spot = an_elastic_tier("spot", reliability=Reliability.INTERRUPTIBLE)
    tiers = (spot, an_elastic_tier("steady"))
    world = theatre(a_pool(tiers=tiers))
    rule = SpreadRule(over=SpreadOver.TIER, is_required=True, skew_max=1)
    world.submit("b1", replica_count=4, spread=(rule,))
    world.boot(is_together=False)
    found = [world.fleet.nodes[node_id].tier for node_id in world.places().values()]
    assert sorted(found) == ["spot", "spot", "steady", "steady"]


def test_primary_and_backup_are_apart_and_the_third_may_be_anywhere(theatre: NewTheatre) -> None:
    nodes = [a_place(1, "a"), a_place(2, "a"), a_place(3, "b"), a_place(4, "a")]
    world = theatre(own_pool(), *nodes)
    rule = SpreadRule(over=SpreadOver.ZONE, is_required=True)
    world.submit("b1", a_job(band=Band.GOLD), replica_count=3, backup_apart=rule)
    assert zones(world, "b1/main/0", "b1/main/1", "b1/main/2") == ["a", "b", "a"]
    world.become_ready()
    world.lose("n-900003")
    backup = world.replica("b1/main/1")
    assert (backup.phase, backup.reason) == (ReplicaPhase.PENDING, Reason.FAILURE_DOMAIN)


# -- every move ----------------------------------------------------------------------------------


def a_fleet_of_zones() -> tuple[Pool, ...] | tuple[Pool | Node, ...]:
    """Return two zones of two nodes."""
    places = [a_place(n, zone) for n, zone in enumerate("aabb", 1)]
    return (own_pool(), *places)


@pytest.mark.parametrize("move", ["drain", "lose", "crash"])
def test_the_rules_hold_after_every_move(theatre: NewTheatre, move: str) -> None:
    world = theatre(*a_fleet_of_zones())
    job = a_job(affinities=(apart(over=SpreadOver.ZONE, bundle_id="b2"),))
    world.submit("b2", a_job(node_rules=(fact_in("zone", "b"),)))
    world.submit("b1", job, spread=zone_rule(), replica_count=1)
    assert zones(world, "b1/main/0") == ["a"]
    world.become_ready()
    node_id = world.live().node_id
    if move == "drain":
        world.drain(node_id)
        world.finish_stops()
    elif move == "lose":
        world.lose(node_id)
    else:
        world.end()
    assert zones(world, "b1/main/0") == ["a"]
    assert world.place() != node_id


# -- what is refused -----------------------------------------------------------------------------


def test_everything_wrong_with_the_rules_is_said_at_once(theatre: NewTheatre) -> None:
    world = theatre(own_pool())
    rule = SpreadRule(over=SpreadOver.LABEL)
    answer = world.try_submit(
        "b1",
        a_job("x", affinities=(near(job="y"), near(job="z"))),
        a_job("y", affinities=(near(job="x"), near(job="y"))),
        spread=(rule, SpreadRule(over=SpreadOver.NODE, skew_max=1)),
        backup_apart=SpreadRule(over=SpreadOver.ZONE, label="rack", skew_max=1),
    )
    assert isinstance(answer, Refused)
    assert [(one.path, one.code) for one in answer.problems] == [
        ("spread[0].label", "invalid"),
        ("spread[1].skew_max", "out_of_range"),
        ("backup_apart.label", "invalid"),
        ("backup_apart.skew_max", "not_here"),
        ("jobs[0].affinities[1].peers.job", "job_unknown"),
        ("jobs[1].affinities[1]", "unsatisfiable"),
        ("jobs[0].affinities", "circle"),
        ("jobs[1].affinities", "circle"),
    ]


def test_jobs_that_fit_only_alone_cannot_be_together(theatre: NewTheatre) -> None:
    world = theatre(a_pool())
    jobs = (a_job(capacity=60), a_job("pack", capacity=60))
    world.submit("b1", *jobs)
    answer = world.try_submit("b2", *jobs, is_colocated=True)
    assert isinstance(answer, Refused)
    assert [one.code for one in answer.problems] == ["requirement_unsatisfiable"]


def test_an_operator_gives_a_node_labels_and_takes_them_away(theatre: NewTheatre) -> None:
    world = theatre(a_pool(tiers=(a_fixed_tier(labels={"disk": "hdd"}),)), a_place(1))
    world.submit("b1", a_job(node_rules=(label_in("r1"),)))
    assert world.place() is None
    world.ask(LabelNode, node_id="n-900001", labels={"rack": "r1", "disk": "ssd"})
    assert world.place() == "n-900001"
    world.submit("b2", a_job(node_rules=(label_in("ssd", name="disk"),)))
    assert world.place("b2/main/0") == "n-900001"
    world.ask(LabelNode, node_id="n-900001", labels={"rack": ""})
    assert world.fleet.nodes["n-900001"].labels == {"disk": "ssd"}
    assert world.place() == "n-900001"
    assert world.count("node_labelled") == 2
