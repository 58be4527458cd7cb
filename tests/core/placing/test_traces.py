"""Every decision leaves a trace that adds up, is bounded, and can be asked about at any time.

C-045, C-090 to C-092: in every attempt filtered + scored = candidates; the tier, the score's parts
and the first nodes refused are kept, and the rest is counts per reason.
"""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostler.base.ids import NodeId, ReplicaId
from hostler.core.explain import explain_replica, pending
from hostler.core.explain.fit import fit_of
from hostler.core.explain.rerun import decide_again
from hostler.core.limits import CANDIDATES_KEPT_MAX, TRACE_NODES_MAX
from hostler.core.placement.score import PARTS
from hostler.core.planning import plan
from hostler.model.pool import Band
from hostler.model.reason import Reason
from hostler.model.replica import ReplicaPhase
from hostler.model.settings import Retention
from hostler.model.shape import CapabilityRequest, Requirement, Shape
from hostler.model.trace import Attempt
from hostler.testing.builders import a_job, a_node, a_pool
from tests.core.mirror import places_are_true
from tests.core.placing.conftest import NewTheatre
from tests.core.placing.naive import may_take
from tests.core.placing.test_agreement import gpus, happen, nodes, pools
from tests.core.placing.theatre import N1, Theatre, n1, n2, own_pool

_SOFT = frozenset({Reason.EXCLUDED_RECENT_FAILURE})
"""What the naive search does not know: the memory that gives way when nothing else is there."""


def adds_up(attempt: Attempt) -> None:
    """Hold one attempt to what every one must keep."""
    assert attempt.filtered_count + attempt.scored_count == attempt.candidate_count
    assert sum(attempt.filtered_by_reason.values()) == attempt.filtered_count
    assert set(attempt.filtered_by_reason) <= set(Reason)
    assert len(attempt.filtered) == min(attempt.filtered_count, TRACE_NODES_MAX)
    assert len(attempt.scored) == min(attempt.scored_count, CANDIDATES_KEPT_MAX)
    assert all(len(each.score) == len(PARTS) for each in attempt.scored)


def traces_add_up(world: Theatre) -> None:
    """Hold every trace to what it must keep."""
    for trace in world.fleet.traces.in_order():
        assert 0 < len(trace.decisions) <= Retention().decision_count_max
        for decision in trace.decisions:
            assert (decision.outcome == "failed") == (decision.reason is not None)
            assert (decision.outcome == "launched") == bool(decision.offer)
            assert 0 < decision.revision <= world.fleet.revision
            for attempt in decision.attempts:
                adds_up(attempt)


def explains_itself(world: Theatre) -> None:
    """Ask everything about everybody who waits: it is true, and leaves nothing behind."""
    fleet = world.fleet
    before = fleet.digest()
    for replica in list(fleet.replicas.in_order()):
        if replica.phase is not ReplicaPhase.PENDING:
            continue
        bundle = fleet.bundles[replica.bundle_id]
        job = bundle.job(replica.job)
        assert job is not None
        for node in list(fleet.nodes.in_order()):
            found = fit_of(fleet, replica, node.node_id, now_ms=fleet.now_ms)
            hard = {check.reason for check in found.checks} - _SOFT
            assert (not hard) == may_take(fleet, bundle, job, replica, node), found
            assert (found.comparison is None) == bool(found.checks)
            for way in found.ways:
                changes = [each.alteration for each in way.changes]
                after = fit_of(fleet, replica, node.node_id, changes, now_ms=fleet.now_ms)
                assert not after.checks, way
        if replica.reason is not Reason.BUNDLE_BROKEN:
            decision = decide_again(fleet, replica, (), now_ms=fleet.now_ms).decision
            assert decision is not None
            assert decision.outcome == "failed"
            for attempt in decision.attempts:
                adds_up(attempt)
    told = pending(fleet)
    assert sum(group.count for group in told.groups) == told.replica_count + told.lease_count
    assert fleet.digest() == before
    assert places_are_true(fleet)


@pytest.mark.slow
@given(st.data())
def test_after_anything_traces_add_up_and_explanations_are_true(data: st.DataObject) -> None:
    drawn = data.draw(pools())
    names = [pool.name for pool in drawn]
    world = Theatre(*drawn, *data.draw(nodes(names)))
    for number in range(data.draw(st.integers(1, 8))):
        happen(data, world, names, number)
        traces_add_up(world)
    explains_itself(world)
    world.check_calm()


def test_a_decision_keeps_what_was_chosen_by_which_rule(theatre: NewTheatre) -> None:
    gpu = Shape(capacity=10, cores_milli=8_000, memory_bytes=2**34, **gpus(2, is_named=True))
    world = theatre(a_pool(), own_pool(name="q"), a_node(N1, pool="q", shape=gpu, incarnation=1))
    asked = Requirement(capacity=4, capabilities=(CapabilityRequest(name="gpu"),))
    world.submit("b1", a_job(requirement=asked), pool="q")
    (decision,) = world.fleet.traces["b1/main/0"].decisions
    assert (decision.node_id, decision.devices, decision.offer) == (N1, {"gpu": ("0",)}, "")
    assert decision.rule == "best fit in the first tier that has room"
    world.submit("b2", a_job(capacity=4))
    (launched,) = world.fleet.traces["b2/main/0"].decisions
    assert (launched.outcome, launched.node_id, launched.offer) == (
        "launched",
        "n-000001",
        "small",
    )
    assert launched.revision == decision.revision + 1


def test_a_trace_names_the_first_nodes_and_counts_the_rest(theatre: NewTheatre) -> None:
    """C-092: bounded, with counts per reason for what is left out."""
    fleet = [a_node(f"n-9{number:05}", incarnation=1) for number in range(TRACE_NODES_MAX + 10)]
    world = theatre(own_pool(), *fleet)
    world.submit("b1", a_job(capacity=11))
    (decision,) = world.fleet.traces["b1/main/0"].decisions
    (attempt,) = decision.attempts
    assert attempt.filtered_by_reason == {"capacity": TRACE_NODES_MAX + 10}
    assert [each.node_id for each in attempt.filtered] == [
        node.node_id for node in fleet[:TRACE_NODES_MAX]
    ]


def test_the_settings_say_how_many_decisions_are_kept(theatre: NewTheatre) -> None:
    world = theatre(own_pool(), n1(), n2(), retention=Retention(decision_count_max=3))
    world.submit("b1", a_job(band=Band.GOLD))
    for number in range(5):
        world.end_at(number * 5_000)
    decisions = world.fleet.traces["b1/main/0"].decisions
    assert len(decisions) == 3
    assert [each.at_ms for each in decisions] == sorted(each.at_ms for each in decisions)
    assert all(each.is_recovery for each in decisions)


def test_s_078_the_same_request_twice_gives_the_same_answer_and_trace() -> None:
    """S-078: given the same request twice, then identical result and trace (determinism), for
    1 000 random requests. (C-004)"""
    draw = random.Random(78)
    rows = [
        a_node(f"n-9{number:05}", shape=Shape(capacity=draw.randint(1, 20)), incarnation=1)
        for number in range(40)
    ]
    worlds = [Theatre(own_pool(), *order) for order in (rows, rows[::-1])]
    for number in range(1_000):
        capacity, count = draw.randint(0, 20), draw.randint(1, 3)
        answers = []
        for world in worlds:
            submission = world.submission("b1", a_job(capacity=capacity), replica_count=count)
            plans = [plan(world.fleet, submission, number) for _ in range(2)]
            assert plans[0] == plans[1]
            answers.append(plans[0])
        assert answers[0] == answers[1]


def test_s_173_only_replicas_that_there_are_can_be_asked_about(theatre: NewTheatre) -> None:
    """S-173: given replica count 2, then dry runs for -1 and 2 give nothing, for 0 and 1 a result;
    an unknown job name gives nothing. (A replica is named whole here, so no job is taken for one
    that was not named.)"""
    world = theatre(own_pool(), n1(), n2())
    world.submit("b1", replica_count=2)
    ids = ["b1/main/-1", "b1/main/2", "b1/other/0", "b1//0"]
    assert [explain_replica(world.fleet, ReplicaId(key), NodeId(N1)) for key in ids] == [None] * 4
    for key in ("b1/main/0", "b1/main/1"):
        found = explain_replica(world.fleet, ReplicaId(key), NodeId(N1))
        assert found is not None
        assert found.fit is not None
