"""The arithmetic of placement: room, filters in their order, scores, traces within bounds."""

from typing import Any

import msgspec
import pytest

from hostler.base.ids import NodeId, ReplicaId
from hostler.core.fleet import Fleet
from hostler.core.limits import CANDIDATES_KEPT_MAX, TRACE_NODES_MAX
from hostler.core.placement.demand import Demand, SpareAccess
from hostler.core.placement.feasible import Place, detail_of, refusal, refusals
from hostler.core.placement.places import offer_of, place_of
from hostler.core.placement.resilience import Domains, broken_rules, domains_of, spread_rules
from hostler.core.placement.room import Hold, free_room, pick_devices, shortage, whole_room
from hostler.core.placement.score import PARTS, Market, scored
from hostler.core.placement.survey import survey_of
from hostler.core.placement.trace import attempt_of, summary, with_decision
from hostler.model import Trace
from hostler.model.constraint import SpreadOver, SpreadRule
from hostler.model.node import Cordon, Drain, Health, Node, NodePhase, RetireReason
from hostler.model.pool import Band, Reliability
from hostler.model.reason import Reason
from hostler.model.shape import Capability, CapabilityRequest, Device, Requirement, Shape
from hostler.model.trace import Decision
from hostler.testing.builders import a_node

A10 = {"model": "a10"}
A100 = {"model": "a100"}
TWO_KINDS = Shape(
    capacity=10,
    capabilities=(
        Capability(name="gpu", count=2, attributes=A10),
        Capability(name="gpu", count=1, attributes=A100),
    ),
)
NAMED = Shape(
    capabilities=(Capability(name="gpu", count=3, attributes=A10),),
    devices=tuple(Device(kind="gpu", device_id=number) for number in ("10", "9", "0")),
)


def gpu(count: int = 1, **attributes: str) -> Requirement:
    """Return a requirement of GPUs."""
    request = CapabilityRequest(name="gpu", count=count, attributes=attributes)
    return Requirement(capabilities=(request,))


def a_demand(**changes: Any) -> Demand:
    """Return a demand for a little room in pool `p`."""
    given: dict[str, Any] = {
        "replica_id": ReplicaId("b/main/0"),
        "band": Band.SILVER,
        "requirement": Requirement(capacity=4),
        "pools": ("p",),
    }
    return Demand(**{**given, **changes})


def a_place(node: Node | None = None, *holds: Hold) -> Place:
    """Return a node as placing sees it."""
    node = node or a_node()
    return place_of(node, free_room(node.shape, holds), offer_of(node.shape))


# -- room ----------------------------------------------------------------------------------------


def test_what_is_held_is_not_free() -> None:
    shape = Shape(capacity=10, cores_milli=4_000, memory_bytes=100)
    held = Hold(Requirement(capacity=3, cores_milli=1_000, memory_bytes=60))
    room = free_room(shape, [held])
    assert (room.capacity, room.cores_milli, room.memory_bytes) == (7, 3_000, 40)
    assert shortage(Requirement(capacity=8), room) is Reason.CAPACITY
    assert shortage(Requirement(capacity=7, cores_milli=3_001), room) is Reason.CORES
    assert shortage(Requirement(memory_bytes=41), room) is Reason.MEMORY
    assert shortage(Requirement(capacity=7, cores_milli=3_000, memory_bytes=40), room) is None


def test_nothing_fits_beside_what_is_too_large_already_but_nothing_does() -> None:
    room = free_room(Shape(capacity=1), [Hold(Requirement(capacity=5))])
    assert shortage(Requirement(capacity=1), room) is Reason.CAPACITY
    assert shortage(Requirement(), room) is None


def test_not_reported_is_neither_none_nor_some() -> None:
    room = whole_room(Shape(capacity=None, capabilities=None))
    assert shortage(Requirement(capacity=1), room) is Reason.NOT_REPORTED
    assert shortage(gpu(), room) is Reason.NOT_REPORTED
    assert shortage(Requirement(), room) is None


@pytest.mark.parametrize(
    ("requirement", "expected"),
    [
        (gpu(1), None),
        (gpu(3), None),
        (gpu(4), Reason.CAPABILITY_COUNT),
        (gpu(2, model="a10"), None),
        (gpu(2, model="a100"), Reason.CAPABILITY_ATTRIBUTE),
        (gpu(1, model="h100"), Reason.CAPABILITY_ATTRIBUTE),
        (Requirement(capabilities=(CapabilityRequest(name="sdi"),)), Reason.CAPABILITY_MISSING),
    ],
)
def test_capabilities_are_counted_by_name_and_attributes(
    requirement: Requirement, expected: Reason | None
) -> None:
    assert shortage(requirement, whole_room(TWO_KINDS)) is expected


def test_what_is_taken_of_one_kind_leaves_the_other() -> None:
    room = free_room(TWO_KINDS, [Hold(gpu(1, model="a100"))])
    assert shortage(gpu(1, model="a100"), room) is Reason.CAPABILITY_ATTRIBUTE
    assert shortage(gpu(2, model="a10"), room) is None
    assert shortage(gpu(3), room) is Reason.CAPABILITY_COUNT


def test_whoever_takes_any_leaves_the_particular_to_whoever_needs_it() -> None:
    both = Requirement(
        capabilities=(
            CapabilityRequest(name="gpu"),
            CapabilityRequest(name="gpu", count=2, attributes=A10),
        )
    )
    assert shortage(both, whole_room(TWO_KINDS)) is None


def test_the_lowest_free_devices_are_picked() -> None:
    whole = whole_room(NAMED)
    assert pick_devices(gpu(2), whole) == {"gpu": ("0", "9")}
    rest = free_room(NAMED, [Hold(gpu(2), {"gpu": ("0", "10")})])
    assert pick_devices(gpu(1, model="a10"), rest) == {"gpu": ("9",)}
    assert shortage(gpu(2), rest) is Reason.CAPABILITY_COUNT


def test_a_hold_without_named_devices_counts_all_the_same() -> None:
    """Reserved while the machine booted, when nobody knew its devices."""
    rest = free_room(NAMED, [Hold(gpu(2))])
    assert shortage(gpu(1), rest) is None
    assert shortage(gpu(2), rest) is Reason.CAPABILITY_COUNT


# -- filters -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, None),
        ({"phase": NodePhase.STOPPING}, Reason.NODE_NOT_RUNNING),
        ({"phase": NodePhase.STARTING}, Reason.NODE_NOT_RUNNING),
        ({"health": Health.SUSPECT}, Reason.UNREACHABLE),
        ({"cordon": Cordon(by="ops", reason="", at_ms=0)}, Reason.CORDONED),
        ({"drain": Drain(by="ops", deadline_at_ms=1)}, Reason.DRAINING),
        ({"phase": NodePhase.DRAINING}, Reason.DRAINING),
        ({"retire_reason": RetireReason.IDLE}, Reason.DRAINING),
        ({"is_inventory_reported": False}, Reason.NOT_REPORTED),
        ({"shape": Shape(capacity=3)}, Reason.CAPACITY),
        ({"is_spare": True}, Reason.SPARE_RESERVED),
        ({"lease_count": 1}, Reason.LEASED),
    ],
)
def test_each_filter_has_its_reason(changes: dict[str, Any], expected: Reason | None) -> None:
    assert refusal(a_demand(), a_place(a_node(**changes))) is expected


def test_the_first_reason_in_their_order_is_recorded_and_all_can_be_asked_for() -> None:
    node = a_node(
        health=Health.SUSPECT,
        cordon=Cordon(by="ops", reason="", at_ms=0),
        shape=Shape(capacity=1, cores_milli=1),
        is_spare=True,
        lease_count=1,
        reliability=Reliability.INTERRUPTIBLE,
    )
    here = domains_of(node)
    demand = a_demand(
        requirement=Requirement(capacity=4, cores_milli=2),
        avoided=frozenset({node.node_id}),
        rules=tuple(
            spread_rules((SpreadRule(over=SpreadOver.PROVIDER, is_required=True),), (here,))
        ),
        is_reliable_required=True,
    )
    found = list(refusals(demand, a_place(node)))
    order = list(Reason)
    assert found == sorted(found, key=order.index)
    assert len(found) == 10
    assert refusal(demand, a_place(node)) is Reason.UNREACHABLE
    assert all(isinstance(detail_of(reason, demand, a_place(node)), str) for reason in Reason)


@pytest.mark.parametrize(
    ("access", "spare_band", "expected"),
    [
        (SpareAccess.NEVER, None, Reason.SPARE_RESERVED),
        (SpareAccess.LAST, None, None),
        (SpareAccess.LAST, Band.SILVER, None),
        (SpareAccess.LAST, Band.GOLD, Reason.SPARE_RESERVED),
    ],
)
def test_a_spare_is_for_recoveries_of_its_band(
    access: SpareAccess, spare_band: Band | None, expected: Reason | None
) -> None:
    node = a_node(is_spare=True, spare_band=spare_band)
    assert refusal(a_demand(spares=access), a_place(node)) is expected


def test_an_unknown_zone_may_be_any() -> None:
    rule = (SpreadRule(over=SpreadOver.ZONE, is_required=True),)

    def place(zone: str, number: int) -> Domains:
        return Domains(NodeId(f"n-{number}"), zone, "p/own", "own hardware")

    def is_broken(zone: str, *others: str) -> bool:
        siblings = [place(other, number) for number, other in enumerate(others, 1)]
        rules = spread_rules(rule, siblings)
        return broken_rules(rules, place(zone, 0), is_required=True) != ()

    assert not is_broken("")
    assert not is_broken("a", "b", "c")
    assert is_broken("a", "b", "a")
    assert is_broken("", "b")
    assert is_broken("a", "")


# -- scores --------------------------------------------------------------------------------------


def best(demand: Demand, *places: Place) -> str:
    """Return the node that would be chosen."""
    return min(
        (scored(demand, place, Market()) for place in places), key=lambda s: s.order
    ).place.node.node_id


def test_the_parts_of_a_score_have_names() -> None:
    assert len(scored(a_demand(), a_place(), Market()).parts) == len(PARTS)


def test_best_fit_then_fewer_of_the_bundle_then_the_lower_id() -> None:
    roomy, tight = a_place(a_node("n-1")), a_place(a_node("n-2", shape=Shape(capacity=5)))
    assert best(a_demand(), roomy, tight) == "n-2"
    same = a_place(a_node("n-3"))
    assert best(a_demand(), same, roomy) == "n-1"
    crowded = a_demand(bundle_count_by_node={NodeId("n-1"): 1})
    assert best(crowded, roomy, same) == "n-3"


def test_a_node_with_devices_is_left_to_who_needs_them() -> None:
    plain = a_place(a_node("n-2", shape=Shape(capacity=10)))
    special = a_place(a_node("n-1", shape=TWO_KINDS))
    assert best(a_demand(), special, plain) == "n-2"


def test_spares_come_first_for_gold_and_last_for_others() -> None:
    spare = a_place(a_node("n-1", is_spare=True))
    ordinary = a_place(a_node("n-2", shape=Shape(capacity=4)))
    assert best(a_demand(spares=SpareAccess.FIRST), spare, ordinary) == "n-1"
    assert best(a_demand(spares=SpareAccess.LAST), spare, ordinary) == "n-2"


def test_a_kept_rule_counts_more_than_a_spare() -> None:
    spare = a_place(a_node("n-1", is_spare=True, zone="a"))
    ordinary = a_place(a_node("n-2", zone="b"))
    demand = a_demand(
        spares=SpareAccess.FIRST,
        rules=tuple(
            spread_rules(
                (SpreadRule(over=SpreadOver.ZONE),),
                (Domains(NodeId("n-9"), "a", "p/own", "own hardware"),),
            )
        ),
    )
    assert best(demand, spare, ordinary) == "n-2"


# -- traces --------------------------------------------------------------------------------------


def test_a_trace_counts_everything_and_names_some() -> None:
    fleet = Fleet()
    small, ample = Shape(capacity=1), Shape(capacity=10)
    records = [a_node(f"n-{n:06}", shape=small if n % 2 else ample) for n in range(100)]
    fleet.load(records, revision=1, event_seq=0, now_ms=0)
    survey = survey_of(a_demand(), fleet, "p", "own")
    attempt = attempt_of("p", "own", survey=survey, outcome="placed")
    assert attempt.candidate_count == attempt.filtered_count + attempt.scored_count == 100
    assert attempt.filtered_by_reason == {"capacity": 50}
    assert len(attempt.filtered) == TRACE_NODES_MAX
    assert len(attempt.scored) == CANDIDATES_KEPT_MAX
    assert summary([attempt]) == "p/own: 50 of 100 nodes fit (50 capacity), placed"


def test_the_latest_decisions_are_kept() -> None:
    trace: Trace | None = None
    for at_ms in range(5):
        decision = Decision(at_ms=at_ms, is_recovery=False, outcome="failed")
        trace = with_decision(trace, ReplicaId("b/main/0"), decision, 3)
    assert trace is not None
    assert [decision.at_ms for decision in trace.decisions] == [2, 3, 4]
    assert msgspec.json.decode(msgspec.json.encode(trace), type=Trace) == trace
