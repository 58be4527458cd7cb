"""Why not there: every failing check of a named node, and the smallest change that mends it.

Trials B92: a node that fails several checks tells all of them at once, with the smallest set of
changes that makes it fit, which is verified by applying it. B91: texts say what is wanted, what is
there, and who holds it.
"""

from typing import Any

import pytest

from hostler.base.errors import Rejected
from hostler.base.ids import BundleId, NodeId, ReplicaId
from hostler.core.explain import Fit, explain_replica
from hostler.core.explain.alterations import ALTERATIONS, read_alteration
from hostler.core.explain.fit import fit_of
from hostler.core.explain.strictness import preferred, required_rules
from hostler.core.inputs import UncordonNode
from hostler.model import Bundle
from hostler.model.constraint import SpreadOver, SpreadRule
from hostler.model.node import Cordon, Health
from hostler.model.pool import Band, Reliability
from hostler.model.reason import Reason
from hostler.model.settings import Preemption
from hostler.model.shape import (
    AttributeMatch,
    Capability,
    CapabilityRequest,
    Device,
    MatchRule,
    Requirement,
    Shape,
)
from hostler.testing.builders import a_fixed_tier, a_job, a_node, a_pool
from tests.core.placing.conftest import NewTheatre
from tests.core.placing.theatre import N1, N2, Theatre, n1, n2, own_pool

REPLICA = ReplicaId("b1/main/0")
CORDON = Cordon(by="ops", reason="disk", at_ms=0)


def fit(world: Theatre, node_id: str = N1, *given: str, replica_id: str = REPLICA) -> Fit:
    """Tell all about a node, and check that nothing was left behind and that each way is one."""
    before = world.fleet.digest()
    replica = world.replica(replica_id)
    altered = [read_alteration(text) for text in given]
    found = fit_of(world.fleet, replica, NodeId(node_id), altered, now_ms=world.now_ms)
    for way in found.ways:
        changes = [*altered, *(each.alteration for each in way.changes)]
        after = fit_of(world.fleet, replica, NodeId(node_id), changes, now_ms=world.now_ms)
        assert not after.checks, way
        for left_out in way.changes:
            fewer = [each for each in changes if each is not left_out.alteration]
            some = fit_of(world.fleet, replica, NodeId(node_id), fewer, now_ms=world.now_ms)
            assert some.checks, f"{way} could do without {left_out}"
    assert world.fleet.digest() == before
    return found


def told(found: Fit) -> list[list[str]]:
    """Return the changes of each way, as they would be asked for."""
    return [[str(each.alteration) for each in way.changes] for way in found.ways]


def texts(found: Fit) -> list[list[str]]:
    """Return the changes of each way, in words."""
    return [[each.text for each in way.changes] for way in found.ways]


def reasons(found: Fit) -> list[Reason]:
    """Return what stands in the way."""
    return [check.reason for check in found.checks]


def test_a_named_node_says_everything_that_is_in_the_way_and_what_mends_it(
    theatre: NewTheatre,
) -> None:
    world = theatre(own_pool(), n1(cordon=CORDON), n2())
    world.submit("b1", a_job(capacity=11))
    found = fit(world)
    assert [(c.reason, c.detail) for c in found.checks] == [
        (Reason.CORDONED, "disk"),
        (Reason.CAPACITY, "needs 11, 10 free"),
    ]
    assert told(found) == [[f"uncordon={N1}", "capacity=10"]]
    assert texts(found) == [
        [f"uncordon {N1}", "lower what it needs from capacity 11 to capacity 10"]
    ]


def test_a_full_node_names_who_could_go_the_least_urgent_first(theatre: NewTheatre) -> None:
    world = theatre(own_pool(), n1(), preemption=Preemption(bands=()))
    world.submit("gold", a_job(capacity=4, band=Band.GOLD))
    world.submit("bronze", a_job(capacity=4, band=Band.BRONZE))
    world.submit("b1", a_job(capacity=6))
    found = fit(world)
    assert [check.detail for check in found.checks] == ["needs 6, 2 free"]
    assert texts(found) == [
        ["stop or move bronze/main/0 (bronze)"],
        ["stop or move gold/main/0 (gold)"],
        ["lower what it needs from capacity 6 to capacity 2"],
    ]
    world.submit("b2", a_job(capacity=9))
    both = fit(world, replica_id="b2/main/0")
    assert told(both)[0] == ["capacity=2"]
    assert sorted(texts(both)[1]) == [
        "stop or move bronze/main/0 (bronze)",
        "stop or move gold/main/0 (gold)",
    ]


def test_many_small_ones_go_together_and_no_more_of_them_than_must(theatre: NewTheatre) -> None:
    world = theatre(own_pool(), n1())
    for number in range(10):
        world.submit(f"s{number}", a_job(capacity=1))
    world.submit("b1", a_job(capacity=4))
    (way,) = fit(world).ways
    assert len(way.changes) == 4


def test_what_stops_is_waited_for_before_anybody_is_moved(theatre: NewTheatre) -> None:
    world = theatre(own_pool(), n1())
    world.submit("old", a_job(capacity=6))
    world.submit("other", a_job(capacity=4))
    world.become_ready()
    world.delete("old")
    world.submit("b1", a_job(capacity=4))
    assert texts(fit(world))[0] == ["wait until old/main/0 has stopped there"]
    world.finish_stops()


def test_an_exclusion_says_when_it_ends_and_then_it_has_ended(theatre: NewTheatre) -> None:
    world = theatre(own_pool(), n1(), n2())
    world.submit()
    first = world.place()
    assert first is not None
    world.end()
    found = fit(world, first)
    assert reasons(found) == [Reason.EXCLUDED_RECENT_FAILURE]
    ((change,),) = [way.changes for way in found.ways]
    assert change.until_at_ms == 30_001
    assert str(change.alteration) == "exclusions=none"
    world.advance(change.until_at_ms)
    assert not fit(world, first).checks


def test_devices_that_are_missing_few_or_of_another_kind(theatre: NewTheatre) -> None:
    a10 = Shape(
        capacity=10,
        cores_milli=8_000,
        memory_bytes=2**34,
        capabilities=(Capability(name="gpu", count=2),),
        devices=tuple(
            Device(kind="gpu", device_id=str(number), attributes={"model": "a10"})
            for number in range(2)
        ),
    )
    world = theatre(own_pool(), n1(), n2(shape=a10))
    l4 = CapabilityRequest(
        name="gpu",
        count=2,
        matches=(AttributeMatch(attribute="model", rule=MatchRule.IN, values=("l4",)),),
    )
    world.submit("b1", a_job(requirement=Requirement(capabilities=(l4,))))
    missing, other = fit(world), fit(world, N2)
    assert reasons(missing) == [Reason.CAPABILITY_MISSING]
    assert texts(missing) == [[f"give {N1} 2 gpu as required"]]
    assert [c.detail for c in other.checks] == ["needs 2 gpu model in l4, 2 free"]
    assert told(other) == [[f"add={N2}/gpu:2"]]
    three = Requirement(capabilities=(CapabilityRequest(name="gpu", count=3),))
    world.submit("b2", a_job(requirement=three))
    few = fit(world, N2, replica_id="b2/main/0")
    assert reasons(few) == [Reason.CAPABILITY_COUNT]
    assert ["count=gpu:2"] in told(few)


def test_rules_spares_leases_pools_and_silence(theatre: NewTheatre) -> None:
    spare = a_node("n-900003", is_spare=True, incarnation=1, zone="z1")
    away = a_node("n-900004", pool="q", incarnation=1, zone="z2")
    quiet = a_node("n-900005", health=Health.SUSPECT, silent_since_at_ms=0, incarnation=1)
    world = theatre(own_pool(spare_count=1), own_pool(name="q"), n1(zone="z1"), spare, away, quiet)
    zone = SpreadRule(over=SpreadOver.ZONE, is_required=True)
    world.submit("b1", a_job(capacity=1), replica_count=2, spread=(zone,))
    assert world.place() == N1
    waits = "b1/main/1"
    here = fit(world, N1, replica_id=waits)
    assert reasons(here) == [Reason.SPREAD_NODE, Reason.SPREAD_ZONE]
    assert texts(here) == [[f"move {REPLICA} from {N1}"]]
    kept = fit(world, spare.node_id, replica_id=waits)
    assert reasons(kept) == [Reason.SPREAD_ZONE, Reason.SPARE_RESERVED]
    ordinary = f"ordinary={spare.node_id}"
    assert told(kept) == [["prefer=zone", ordinary], ["without=a-000001", ordinary]]
    elsewhere = fit(world, away.node_id, replica_id=waits)
    assert reasons(elsewhere) == [Reason.WRONG_POOL]
    assert told(elsewhere) == [["pool=q"]]
    silent = fit(world, quiet.node_id, replica_id=waits)
    assert reasons(silent) == [Reason.UNREACHABLE, Reason.SPREAD_ZONE]
    assert told(silent)[0] == [f"heard={quiet.node_id}", "prefer=zone"]


def test_a_rule_of_any_kind_that_is_required_can_be_made_preferred() -> None:
    """So a new rule is covered without anybody adding it to explanations."""
    zone = SpreadRule(over=SpreadOver.ZONE, is_required=True)
    tier = SpreadRule(over=SpreadOver.TIER, is_required=True)
    bundle = Bundle(
        bundle_id=BundleId("b1"),
        pool="p",
        jobs=(a_job(),),
        spread=(zone, tier, SpreadRule(over=SpreadOver.PROVIDER)),
        phase_since_at_ms=0,
    )
    assert required_rules(bundle, "main") == ["zone", "tier"]
    less = preferred(bundle, "zone")
    assert required_rules(less, "main") == ["tier"]
    assert less.spread[1:] == bundle.spread[1:]


def test_a_primary_on_what_may_be_taken_back_and_a_leased_node(theatre: NewTheatre) -> None:
    spot = a_pool(tiers=(a_fixed_tier(reliability=Reliability.INTERRUPTIBLE),))
    world = theatre(spot, n1(reliability=Reliability.INTERRUPTIBLE))
    world.acquire()
    world.submit("b1", a_job(), is_primary_interruptible=False)
    found = fit(world)
    assert reasons(found) == [Reason.RELIABILITY, Reason.LEASED]
    assert texts(found) == [
        ["allow the bundle an interruptible primary", "wait until its lease ends"]
    ]


def test_what_no_single_change_mends_has_no_way(theatre: NewTheatre) -> None:
    world = theatre(own_pool(), n1(), n2(cordon=CORDON, is_inventory_reported=False, shape=Shape()))
    world.submit("b1", a_job(capacity=11))
    found = fit(world, N2)
    assert reasons(found) == [Reason.CORDONED, Reason.NOT_REPORTED]
    assert found.ways == ()


def test_a_node_of_a_pool_that_was_taken_away_or_of_none_at_all(theatre: NewTheatre) -> None:
    stray = a_node("n-900003", pool="", tier="")
    world = theatre(own_pool(), own_pool(name="q"), n1(), a_node(N2, pool="q"), stray)
    world.submit("b1", a_job(capacity=11), fallback_pools=("q",))
    world.configure(own_pool())
    found = fit(world, N2)
    assert reasons(found) == [Reason.POOL_DISABLED, Reason.CAPACITY]
    assert found.ways == ()
    assert reasons(fit(world, stray.node_id)) == [Reason.WRONG_POOL, Reason.CAPACITY]


def test_a_node_that_would_do_says_why_another_is_better(theatre: NewTheatre) -> None:
    """The score is compared part by part with that of the place that it has, or would get."""
    large = a_node("n-900003", shape=Shape(capacity=20, cores_milli=8_000, memory_bytes=2**34))
    far = a_node("n-900004", pool="q", incarnation=1)
    world = theatre(own_pool(), own_pool(name="q"), n1(), n2(), large, far)
    world.submit("b1", a_job(capacity=5), fallback_pools=("q",))
    assert world.place() == N1
    own, twin, roomy, fallback = (
        fit(world, node_id) for node_id in (N1, N2, large.node_id, far.node_id)
    )
    for found in (own, twin, roomy, fallback):
        assert not found.checks
        assert found.comparison is not None
    assert _comparison(own).text == "It is the place that it has."
    assert _comparison(own).decided_by == ""
    assert _comparison(twin).decided_by == "node_id"
    compared = _comparison(roomy)
    assert (compared.other_node_id, compared.decided_by) == (N1, "capacity_left")
    assert compared.text == (
        f"It has its place on {N1}; {large.node_id} has a capacity_left of 15 against 5: more."
    )
    assert _comparison(fallback).decided_by == "tier_order"
    assert _comparison(fallback).text.endswith("its tier p/own comes before q/own.")


def _comparison(found: Fit) -> Any:
    assert found.comparison is not None
    return found.comparison


def test_a_dropped_replica_is_compared_with_what_it_would_get(theatre: NewTheatre) -> None:
    world = theatre(a_pool(), own_pool(name="q"), a_node(N1, pool="q", incarnation=1))
    world.submit("b1", a_job(band=Band.BRONZE), fallback_pools=("q",))
    world.boot()
    world.end()
    compared = _comparison(fit(world))
    assert (compared.other_node_id, compared.decided_by) != (N1, "")
    assert "would be chosen" in compared.text


def test_facts_that_are_supposed_and_those_that_cannot_be(theatre: NewTheatre) -> None:
    world = theatre(own_pool(), n1(cordon=CORDON))
    world.submit()
    assert reasons(fit(world)) == [Reason.CORDONED]
    assert not fit(world, N1, f"uncordon={N1}").checks
    assert not fit(world, N1, f"empty={N1}", f"uncordon={N1}").checks
    for text in ("", "uncordon", "uncordon=", "sing=loud"):
        with pytest.raises(Rejected, match="none of the facts that can be altered"):
            read_alteration(text)
    for text in (
        "uncordon=n-1", "heard=n-1", "ordinary=n-1", "unleased=n-1", "empty=n-1", "add=n-1/gpu:1",
        f"add={N1}/gpu:x", "without=a-9", "exclusions=some", "pool=z", "prefer=zone",
        "primary=no", "capacity=x", "count=gpu:1",
    ):  # fmt: skip
        with pytest.raises(Rejected) as error:
            fit(world, N1, text)
        assert error.value.code == "alteration_impossible"
        assert world.fleet.open_delta is None
    assert {"uncordon", "without", "capacity"} <= set(ALTERATIONS)


def test_the_explanation_of_a_replica_carries_it_and_uncordoning_does_what_was_said(
    theatre: NewTheatre,
) -> None:
    world = theatre(own_pool(), n1(cordon=CORDON))
    world.submit()
    found = explain_replica(world.fleet, REPLICA, NodeId(N1))
    assert found is not None
    assert found.fit is not None
    assert told(found.fit) == [[f"uncordon={N1}"]]
    world.ask(UncordonNode, node_id=NodeId(N1))
    assert world.place() == N1
