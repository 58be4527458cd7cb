"""What is kept and followed gives what looking at every node anew would give."""

from collections import Counter
from itertools import combinations, product
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostler.base.ids import NodeId, ReplicaId
from hostler.core.fleet import Fleet
from hostler.core.limits import CANDIDATES_KEPT_MAX, TRACE_NODES_MAX
from hostler.core.placement import overlay, ranking
from hostler.core.placement.columns import Columns
from hostler.core.placement.demand import Demand, SpareAccess
from hostler.core.placement.feasible import refusal
from hostler.core.placement.mix import Company
from hostler.core.placement.places import PlaceIndex
from hostler.core.placement.resilience import DomainRule, Domains, spread_rules
from hostler.core.placement.room import pick_devices
from hostler.core.placement.score import Market, scored
from hostler.core.placement.survey import survey_of
from hostler.core.txn import Txn
from hostler.model import Allocation, Node
from hostler.model.allocation import AllocationPhase
from hostler.model.constraint import NodeRule, SpreadOver, SpreadRule
from hostler.model.launch import Launch
from hostler.model.node import Cordon, Health, NodePhase, Origin
from hostler.model.pool import Band, Reliability
from hostler.model.reason import Reason
from hostler.model.shape import (
    AttributeMatch,
    Capability,
    CapabilityRequest,
    Device,
    MatchRule,
    Requirement,
    Shape,
)
from hostler.testing.builders import a_node

MODELS = ("a10", "l4", "t4")

wishes = st.builds(
    CapabilityRequest,
    name=st.sampled_from(["gpu", "input"]),
    count=st.integers(1, 3),
    attributes=st.sampled_from([{}, {}, {"model": "l4"}]),
    matches=st.sampled_from(
        [
            (),
            (AttributeMatch(attribute="model", rule=MatchRule.IN, values=("a10", "t4")),),
            (AttributeMatch(attribute="gib", rule=MatchRule.AT_LEAST, values=("24",)),),
        ]
    ),
)
shares = st.builds(
    CapabilityRequest, name=st.just("gpu"), milli=st.sampled_from([100, 300, 500, 900])
)
requirements = st.builds(
    Requirement,
    capacity=st.integers(0, 3),
    cores_milli=st.sampled_from([0, 0, 500, 3_000]),
    memory_bytes=st.sampled_from([0, 0, 2**30]),
    capabilities=st.lists(wishes | shares, max_size=2).map(tuple),
)


@st.composite
def shapes(draw: st.DrawFn) -> Shape:
    """Draw what a node has: named devices, alike or not, or a count, or nothing reported."""
    attributes = {
        "model": draw(st.sampled_from(MODELS)),
        "gib": draw(st.sampled_from(["16", "80"])),
    }
    count = draw(st.integers(0, 4))
    kind = draw(st.sampled_from(["named", "mixed", "counted", "unreported", "none"]))
    capabilities: tuple[Capability, ...] | None = (
        Capability(name="gpu", count=count, attributes=attributes),
        Capability(name="input", count=2),
    )
    devices: tuple[Device, ...] = ()
    if kind in ("named", "mixed"):
        own = [{"model": "l4"} if kind == "mixed" and n == 0 else {} for n in range(count)]
        devices = tuple(
            Device(kind="gpu", device_id=str(n), attributes=own[n]) for n in range(count)
        )
    elif kind in ("unreported", "none"):
        capabilities = None if kind == "unreported" else ()
    return Shape(
        capacity=draw(st.sampled_from([None, 2, 5])),
        cores_milli=draw(st.sampled_from([None, 2_000, 8_000])),
        memory_bytes=draw(st.sampled_from([None, 2**30, 2**33])),
        capabilities=capabilities,
        devices=devices,
    )


@st.composite
def nodes(draw: st.DrawFn, number: int) -> Node:
    """Draw a node in any state that matters."""
    return a_node(
        f"n-{number:06d}",
        shape=draw(shapes()),
        phase=draw(st.sampled_from([*[NodePhase.READY] * 5, NodePhase.STOPPING])),
        health=draw(st.sampled_from([*[Health.LIVE] * 5, Health.SUSPECT])),
        cordon=draw(st.sampled_from([*[None] * 5, Cordon(by="me", reason="", at_ms=0)])),
        is_inventory_reported=draw(st.sampled_from([True, True, True, False])),
        reliability=draw(st.sampled_from(Reliability)),
        is_spare=draw(st.sampled_from([False, False, True])),
        spare_band=draw(st.sampled_from([None, Band.GOLD, Band.SILVER])),
        zone=draw(st.sampled_from(["", "z1", "z2", "z3"])),
        offer="big" if number % 2 else "",
        labels=draw(st.sampled_from([{}, {}, {"rack": "r1"}, {"rack": "r2"}, {"rack": "3"}])),
        provider=draw(st.sampled_from(["", "fake"])),
        lease_count=draw(st.sampled_from([0, 0, 0, 1])),
    )


DOMAIN_VALUES = {
    "node": ["n-000000", "n-000001", "n-000002"],
    "zone": ["z1", "z2", "z9"],
    "tier": ["p/own", "p/cloud"],
    "provider": ["fake", "own hardware"],
    "label:rack": ["r1", "r2", "1", "2"],
}


@st.composite
def domain_rules(draw: st.DrawFn) -> DomainRule:
    """Draw a wish to be near to somebody, or apart."""
    domain = draw(st.sampled_from(sorted(DOMAIN_VALUES)))
    values = frozenset(draw(st.lists(st.sampled_from(DOMAIN_VALUES[domain]), max_size=2)))
    is_near = draw(st.booleans())
    return DomainRule(
        domain,
        Reason.AFFINITY if is_near else Reason.ANTI_AFFINITY,
        draw(st.booleans()),
        refused=frozenset() if is_near else values,
        allowed=values if is_near else None,
        is_hopeless=draw(st.sampled_from([False, False, False, True])),
    )


@st.composite
def node_rules(draw: st.DrawFn) -> NodeRule:
    """Draw a wish about the node itself."""
    fact = draw(st.sampled_from([*sorted(DOMAIN_VALUES), "offer"]))
    rule = draw(st.sampled_from(MatchRule))
    values = draw(st.lists(st.sampled_from(DOMAIN_VALUES.get(fact, ["big", "small"])), min_size=1))
    values = {MatchRule.IN: sorted(set(values)), MatchRule.AT_LEAST: ["2"]}.get(rule, [])
    return NodeRule(
        match=AttributeMatch(attribute=fact, rule=rule, values=tuple(values)),
        is_apart=draw(st.booleans()),
        is_required=draw(st.booleans()),
    )


@st.composite
def demands(draw: st.DrawFn, fleet: Fleet, requirement: Requirement) -> Demand:
    """Draw who asks."""
    ids = st.sampled_from(sorted(fleet.nodes.rows)).map(NodeId)
    siblings = draw(
        st.lists(
            st.builds(
                Domains,
                node_id=ids,
                zone=st.sampled_from(["", "z1", "z2", "z9"]),
                tier=st.sampled_from(["p/own", "p/cloud"]),
                provider=st.sampled_from(["fake", "own hardware"]),
                labels=st.sampled_from([{}, {"rack": "r1"}]),
            ),
            max_size=2,
        )
    )
    rules = st.builds(
        SpreadRule,
        over=st.sampled_from(SpreadOver),
        label=st.just("rack"),
        is_required=st.booleans(),
        skew_max=st.sampled_from([None, 1, 2]),
    )
    spread = draw(st.lists(rules, max_size=2, unique_by=lambda rule: rule.over))
    open_domains = {rule.domain: ("z1", "z2", "r1", "r2", "fake") for rule in spread}
    return Demand(
        replica_id=ReplicaId("b/j/0"),
        line=f"{requirement}",
        band=draw(st.sampled_from(Band)),
        requirement=requirement,
        pools=("p",),
        node_rules=draw(st.lists(node_rules(), max_size=2).map(tuple)),
        rules=(
            *spread_rules(spread, siblings, open_domains),
            *draw(st.lists(domain_rules(), max_size=2)),
        ),
        bundle_count_by_node=draw(st.dictionaries(ids, st.integers(1, 2), max_size=2)),
        is_reliable_required=draw(st.booleans()),
        spares=draw(st.sampled_from(SpareAccess)),
        avoided=frozenset(draw(st.lists(ids, max_size=1))),
        rejected=frozenset(draw(st.lists(ids, max_size=1))),
    )


def agrees(fleet: Fleet, demand: Demand) -> None:
    """Hold a survey to a walk over all nodes that keeps nothing."""
    survey = survey_of(demand, fleet, "p", "own")
    anew = PlaceIndex()
    places = [anew.of(fleet, key) for key in fleet.index.nodes_by_tier.keys("p/own")]
    looked = [(place, refusal(demand, place)) for place in places]
    refused = [(place, reason) for place, reason in looked if reason is not None]
    assert survey.candidate_count == len(places)
    assert survey.count_by_reason == Counter(reason for _, reason in refused)
    assert survey.fitting_count + len(refused) == len(places)
    first = [(place.node.node_id, reason) for place, reason in refused[:TRACE_NODES_MAX]]
    assert [(each.node_id, each.reason) for each in survey.shown] == first
    for reason in survey.count_by_reason:
        assert list(survey.refused_for(reason)) == [p for p, r in refused if r is reason]
    columns = Columns("p/own", [place.node.node_id for place in places])
    columns.refresh(lambda node_id: anew.of(fleet, node_id))
    market = columns.market(fleet.index.places.mix)
    ranked = [scored(demand, place, market) for place, reason in looked if reason is None]
    ranked.sort(key=lambda each: each.order)
    assert list(survey.ranked) == ranked[:CANDIDATES_KEPT_MAX]


def an_allocation(number: int, node: Node, requirement: Requirement, **changes: Any) -> Allocation:
    """Return what a replica holds of a node."""
    given: dict[str, Any] = {
        "allocation_id": f"a-{number:06d}",
        "replica_id": f"b/j/{number}",
        "bundle_id": "b",
        "job": "j",
        "replica_index": number,
        "role": "primary",
        "band": Band.SILVER,
        "node_id": node.node_id,
        "epoch": 1,
        "requirement": requirement,
        "launch": Launch(argv=("true",)),
        "phase": AllocationPhase.STARTING,
        "phase_since_at_ms": 0,
        "created_at_ms": 0,
    }
    return Allocation(**{**given, **changes})


def hold(txn: Txn, number: int, demand: Demand) -> None:
    """Put work on the best node, if there is one."""
    ranked = survey_of(demand, txn.fleet, "p", "own").ranked
    if ranked:
        place = ranked[0].place
        devices = pick_devices(demand.requirement, place.room)
        txn.put(an_allocation(number, place.node, demand.requirement, devices=devices))
        txn.change(place.node, allocation_count=place.node.allocation_count + 1)


def release(txn: Txn, key: str) -> None:
    """End what an allocation holds."""
    allocation = txn.fleet.allocations[key]
    node = txn.fleet.nodes[allocation.node_id]
    txn.remove(allocation)
    txn.change(node, allocation_count=node.allocation_count - 1)


@pytest.mark.slow
@given(st.data(), st.sampled_from([CANDIDATES_KEPT_MAX, 256]), st.sampled_from([1, 2, 128]))
def test_what_is_kept_is_what_a_look_at_every_node_finds(
    data: st.DataObject, kept: int, shown_among: int
) -> None:
    """Also when so few rows are kept or looked at one by one that the others count, too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ranking, "KEPT", kept)
        patch.setattr(overlay, "_SHOWN_AMONG", shown_among)
        _play(data)


def _play(data: st.DataObject) -> None:
    fleet = Fleet()
    txn = Txn(fleet, 0)
    for number in range(data.draw(st.integers(1, 12))):
        txn.put(data.draw(nodes(number)))
    fleet.keep(txn.close())
    asked = data.draw(st.lists(requirements, min_size=1, max_size=3))
    for number in range(data.draw(st.integers(1, 8))):
        txn = Txn(fleet, 0)
        demand = data.draw(demands(fleet, data.draw(st.sampled_from(asked))))
        agrees(fleet, demand)
        match data.draw(st.sampled_from(["hold", "hold", "hold", "release", "write", "join"])):
            case "release" if fleet.allocations.rows:
                release(txn, data.draw(st.sampled_from(sorted(fleet.allocations.rows))))
            case "write":
                old = fleet.nodes[data.draw(st.sampled_from(sorted(fleet.nodes.rows)))]
                new = data.draw(nodes(int(old.node_id[2:])))
                phase = data.draw(st.sampled_from([new.phase, NodePhase.RETIRED]))
                held = {"allocation_count": old.allocation_count, "phase": phase}
                txn.put(a_node(old.node_id, **{**_fields(new), **held}))
            case "join":
                txn.put(data.draw(nodes(data.draw(st.integers(0, 99)))))
            case _:
                hold(txn, number, demand)
        agrees(fleet, demand)
        delta = txn.close()
        if data.draw(st.booleans()):
            fleet.keep(delta)
        else:
            fleet.drop(delta)
        agrees(fleet, demand)


def _fields(node: Node) -> dict[str, Any]:
    names = [name for name in node.__struct_fields__ if name not in ("node_id", "pool", "tier")]
    return {name: getattr(node, name) for name in names}


_GPUS = Shape(
    capacity=4,
    cores_milli=4_000,
    memory_bytes=2**32,
    capabilities=(
        Capability(name="gpu", count=2, attributes={"model": "l4"}),
        Capability(name="input", count=1),
    ),
    devices=(Device(kind="gpu", device_id="0"), Device(kind="gpu", device_id="1")),
)


def _with(**fields: Any) -> dict[str, Any]:
    return {"shape": msgspec.structs.replace(_GPUS, **fields)}


def _of_model(model: str, **attributes: str) -> Capability:
    return Capability(name="gpu", count=2, attributes={"model": model, **attributes})


_MIXED = (
    Device(kind="gpu", device_id="0"),
    Device(kind="gpu", device_id="1", attributes={"model": "t4"}),
)
_STATES: tuple[dict[str, Any], ...] = (
    {},
    {"is_inventory_reported": False},
    {"phase": NodePhase.REQUESTED, "origin": Origin.LAUNCHED},
    {"reliability": Reliability.INTERRUPTIBLE},
    {"is_spare": True},
    {"is_spare": True, "spare_band": Band.GOLD},
    {"is_spare": True, "spare_band": Band.SILVER},
    {"lease_count": 1},
    _with(capacity=3),
    _with(capacity=None),
    _with(cores_milli=1_000),
    _with(cores_milli=None),
    _with(memory_bytes=2**31),
    _with(memory_bytes=None),
    _with(capabilities=None, devices=()),
    _with(capabilities=(_of_model("t4"),)),
    _with(capabilities=(_of_model("t4", gib="80"),)),
    _with(capabilities=(), devices=()),
    _with(capabilities=(Capability(name="gpu", count=0),), devices=()),
    _with(devices=(Device(kind="gpu", device_id="0"),)),
    _with(devices=(Device(kind="gpu", device_id="0", attributes={"model": "t4"}),)),
    _with(capabilities=(Capability(name="disk", count=2), _of_model("l4"))),
    _with(devices=()),
    {**_with(capabilities=(_of_model("l4"),), devices=_MIXED), "held": ("0", "1")},
    {**_with(devices=_MIXED), "held": ("1",)},
    _with(devices=_MIXED[:1]),
)
_WISHES = (
    Requirement(),
    Requirement(capacity=1, cores_milli=2_000, memory_bytes=2**31),
    Requirement(capacity=4),
    Requirement(capabilities=(CapabilityRequest(name="gpu", count=2),)),
    Requirement(capabilities=(CapabilityRequest(name="gpu", attributes={"model": "l4"}),)),
    Requirement(capabilities=(CapabilityRequest(name="gpu", milli=300),)),
    Requirement(capabilities=(CapabilityRequest(name="input"),)),
)


def test_places_that_look_alike_are_alike_to_whoever_has_no_rules() -> None:
    """A ranking takes what came out for one place for another that looks like it."""
    fleet = Fleet()
    txn = Txn(fleet, 0)
    for number, state in enumerate(_STATES):
        fields = {"shape": _GPUS, **state}
        held = fields.pop("held", ())
        node = a_node(f"n-{number:06d}", allocation_count=len(held[:1]), **fields)
        txn.put(node)
        if held:
            need = Requirement(capabilities=(CapabilityRequest(name="gpu", count=len(held)),))
            txn.put(an_allocation(number, node, need, devices={"gpu": held}))
    fleet.keep(txn.close())
    places = [fleet.index.places.of(fleet, key) for key in sorted(fleet.nodes.rows)]
    assert not any(place.standing for place in places)
    market = Market(
        {kind: Company(1_000, 1_500, 2**30) for kind in ("gpu", "input")},
        {"gpu": {(("model", "l4"),): 300, (("model", "t4"),): 700}},
    )
    told: list[list[object]] = [[] for _ in places]
    for need, spares, is_reliable in product(_WISHES, SpareAccess, (False, True)):
        asked = Demand(
            replica_id=ReplicaId("b/j/0"),
            line="",
            band=Band.GOLD,
            requirement=need,
            pools=("p",),
            is_reliable_required=is_reliable,
            spares=spares,
        )
        for place, verdicts in zip(places, told, strict=True):
            reason = refusal(asked, place)
            verdicts.append(reason or scored(asked, place, market).parts)
    for one, other in combinations(range(len(places)), 2):
        is_alike = places[one].look == places[other].look
        assert not is_alike or told[one] == told[other], (_STATES[one], _STATES[other])
    assert len({place.look for place in places}) > 1
