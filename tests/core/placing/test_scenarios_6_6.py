"""spec/placement.md 6.6: placement and dispatch.

A job is a replica, `nodeForJob` its live allocation's node, a create-node call a LaunchMachine
command, `startJob` a StartAllocation command. Counters of attempts are what events count.

Not here: S-066 (a result naming an unknown tier): a decision holds the tier's record, so there is
none to be unknown. S-078 (determinism) is `test_agreement.py`.
"""

from hostler.core.replies import Refused
from hostler.model.allocation import AllocationPhase
from hostler.model.command import LaunchMachine
from hostler.model.constraint import SpreadOver, SpreadRule
from hostler.model.node import NodePhase
from hostler.model.pool import Band, Reliability
from hostler.model.reason import Reason
from hostler.model.replica import ReplicaPhase
from hostler.testing.builders import a_fixed_tier, a_job, a_pool, an_elastic_tier
from tests.core.placing.conftest import NewTheatre
from tests.core.placing.theatre import N1, N2, fixture, n1, n2, own_pool, pool_p


def test_s_056_a_free_node_gets_one_start(theatre: NewTheatre) -> None:
    """Given `n1` free, when `j1` is placed, then one `startJob(j1, primary, n1)`, `nodeForJob` =
    `n1`, attempted 1, succeeded 1, one decision callback of kind `place` with pool `p`, tier
    `own`."""
    world = theatre(*fixture())
    world.submit()
    allocation = world.live()
    assert (allocation.node_id, allocation.role) == (N1, "primary")
    assert world.commands("start_allocation") == ["a-000001/start/1"]
    assert world.count("replica_placed") == 1
    assert world.count("replica_placement_failed") == 0
    (decision,) = world.fleet.traces["b1/main/0"].decisions
    assert (decision.outcome, decision.node_id) == ("placed", N1)
    assert [(a.pool, a.tier, a.outcome) for a in decision.attempts] == [("p", "own", "placed")]


def test_s_057_roles_follow_the_index(theatre: NewTheatre) -> None:
    """Given a bundle with 4 replicas, then roles are primary, backup, replica-2, replica-3."""
    world = theatre(*fixture())
    world.submit(replica_count=4)
    roles = [world.replica(f"b1/main/{index}").role for index in range(4)]
    assert roles == ["primary", "backup", "replica-2", "replica-3"]


def test_s_058_a_machine_is_launched_where_nothing_fits(theatre: NewTheatre) -> None:
    """Given no existing node fits (requirement 50), when placed, then one create-AWS-node with
    region `eu-1`, type `large`, ...; `nodes()` shows it as starting."""
    world = theatre(*fixture())
    world.submit("b1", a_job(capacity=50))
    (node,) = world.launched()
    assert (node.phase, node.offer, node.tier, node.zone) == (
        NodePhase.REQUESTED,
        "large",
        "cloud",
        "eu-1",
    )
    (command_id,) = world.commands("launch_machine")
    command = world.fleet.commands[command_id].command
    assert isinstance(command, LaunchMachine)
    assert (command.node_id, command.offer) == (node.node_id, "large")
    assert world.live().phase is AllocationPhase.RESERVED
    assert not world.commands("start_allocation")
    world.boot()
    assert world.live().phase is AllocationPhase.STARTING


def test_s_060_capacity_that_appears_is_used_at_once(theatre: NewTheatre) -> None:
    """Given a pool with tier `own` only and both nodes full, when `j1` is to be placed, then
    decision of kind failure, `onPlacementFailed` with code and tried pools [`p`], ...; when
    capacity appears 10 ms later, then it is placed at once."""
    world = theatre(own_pool(), n1(), n2())
    world.submit("full", a_job(capacity=10), replica_count=2)
    world.submit()
    replica = world.replica()
    assert (replica.phase, replica.reason) == (ReplicaPhase.PENDING, Reason.NO_CAPACITY)
    assert "p/own: 0 of 2 nodes fit (2 capacity), exhausted" in replica.reason_detail
    assert world.count("replica_placement_failed") == 1
    assert world.place() is None
    world.advance(10)
    node = world.join()
    assert world.place() == node.node_id
    assert world.live().created_at_ms == 10


def test_s_061_a_failure_is_said_once(theatre: NewTheatre) -> None:
    """Given a failed placement and 100 inventories that change nothing relevant, then the failure
    is reported once, not 101 times."""
    world = theatre(own_pool(), n1())
    world.submit("full", a_job(capacity=10))
    world.submit()
    revision = world.fleet.revision
    for _ in range(100):
        world.hear_inventory(N1)
    assert world.count("replica_placement_failed") == 1
    assert world.fleet.revision == revision
    assert len(world.fleet.traces["b1/main/0"].decisions) == 1


def test_s_062_one_dispatch_while_it_is_unanswered(theatre: NewTheatre) -> None:
    """Given initial attempts at t=0, 0.999, 1.000 s by repeated updates with the start RPC
    unanswered, then one dispatch as long as the first is unanswered."""
    world = theatre(*fixture())
    for at_ms in (0, 999, 1_000):
        world.advance(at_ms)
        answer = world.submit()
        assert answer.is_repeat is (at_ms > 0)
    sent = [str(d.command_id) for delta in world.deltas for d in delta.dispatches]
    assert sent.count("a-000001/start/1") == 1
    assert world.ended("b1/main/0") == []


def test_s_064_a_refused_start_is_tried_elsewhere(theatre: NewTheatre) -> None:
    """Given a start RPC refused by the Manager, then `placementForJob` is empty, dispatch-failed 1,
    and the job is retried within the backoff."""
    world = theatre(own_pool(), n1(), n2())
    world.submit()
    world.fail("a-000001/start/1", "refused")
    assert world.ended("b1/main/0") == ["a-000001"]
    assert world.place() == N2
    assert world.replica().restart_at_ms == ()


def test_s_065_without_pools_a_bundle_is_refused(theatre: NewTheatre) -> None:
    """Given no pools, then one error that names the job, no engine run, no counter."""
    world = theatre()
    answer = world.try_submit()
    assert isinstance(answer, Refused)
    assert [(p.path, p.code) for p in answer.problems] == [("pool", "pool_unknown")]
    assert not world.fleet.bundles.rows
    assert not world.events()


def test_s_068_a_planned_node_counts(theatre: NewTheatre) -> None:
    """Given replica 0 being provisioned (node starting, no inventory) and a rule "replicas on
    different nodes", when replica 1 is placed, then it does not share that node, and the trace
    names the planned node."""
    world = theatre(a_pool())
    world.submit()
    (first,) = world.launched()
    world.submit(replica_count=2)
    assert world.place("b1/main/1") not in (None, first.node_id)
    (decision,) = world.fleet.traces["b1/main/1"].decisions
    (attempt,) = decision.attempts
    assert [(f.node_id, f.reason) for f in attempt.filtered] == [
        (first.node_id, Reason.SPREAD_NODE)
    ]


def test_a_planned_node_takes_all_that_fits_its_offer(theatre: NewTheatre) -> None:
    """N small jobs do not create N machines (G-039)."""
    world = theatre(a_pool())
    for number in range(5):
        world.submit(f"b{number}", a_job(capacity=5))
    assert len(world.launched()) == 3
    world.boot()
    assert len(world.commands("start_allocation")) == 5


def test_s_069_a_missed_preference_is_said(theatre: NewTheatre) -> None:
    """Given two replicas, rule "different clouds" preferred, only AWS available, then replica 1 is
    placed, `onResilienceDegraded` fires once with the rule's name."""
    world = theatre(a_pool())
    world.submit(replica_count=2, spread=(SpreadRule(over=SpreadOver.PROVIDER),))
    assert world.live("b1/main/0").degraded_by == ()
    assert world.live("b1/main/1").degraded_by == ("spread_provider",)
    told = [
        event.data["degraded_by"]
        for delta in world.deltas
        for event in delta.events
        if event.kind.value == "replica_placed"
    ]
    assert told == ["", "spread_provider"]


def test_a_new_machine_that_keeps_the_rules_beats_a_degraded_node(theatre: NewTheatre) -> None:
    """C-076: meets all rules on a new machine, before degraded on an existing node."""
    world = theatre(*fixture())
    world.submit(replica_count=2, spread=(SpreadRule(over=SpreadOver.TIER),))
    assert world.live("b1/main/0").node_id == N1
    assert world.fleet.nodes[world.live("b1/main/1").node_id].tier == "cloud"


def test_a_required_rule_lets_a_replica_wait(theatre: NewTheatre) -> None:
    world = theatre(own_pool(), n1(), n2())
    world.submit(replica_count=2, spread=(SpreadRule(over=SpreadOver.TIER, is_required=True),))
    replica = world.replica("b1/main/1")
    assert (replica.phase, replica.reason) == (ReplicaPhase.PENDING, Reason.SPREAD_TIER)


def test_s_070_an_interruptible_primary_is_marked(theatre: NewTheatre) -> None:
    """Given only interruptible capacity for replica 0, then placed with the interruptible-primary
    flag true; given on-demand, the flag's key is absent."""
    spot = an_elastic_tier("spot", reliability=Reliability.INTERRUPTIBLE)
    world = theatre(a_pool(tiers=(spot,)), a_pool("q"))
    world.submit("b1", replica_count=2)
    world.submit("b2", pool="q")
    assert world.live("b1/main/0").degraded_by == ("interruptible_primary",)
    assert world.live("b1/main/1").degraded_by == ()
    assert world.live("b2/main/0").degraded_by == ()


def test_a_primary_that_must_not_be_interrupted_is_not(theatre: NewTheatre) -> None:
    spot = an_elastic_tier("spot", reliability=Reliability.INTERRUPTIBLE)
    world = theatre(a_pool(tiers=(spot, an_elastic_tier("on-demand"))), a_pool("q", tiers=(spot,)))
    world.submit("b1", replica_count=2, is_primary_interruptible=False)
    tiers = [world.fleet.nodes[world.place(f"b1/main/{n}") or ""].tier for n in (0, 1)]
    assert tiers == ["on-demand", "spot"]
    world.submit("b2", pool="q", is_primary_interruptible=False)
    assert world.replica("b2/main/0").reason is Reason.RELIABILITY


def test_s_072_a_node_that_is_gone_is_not_chosen(theatre: NewTheatre) -> None:
    """Given `n1` stopped 60 s ago (retention 900 s) with its last inventory cached, when a job is
    placed, then not on `n1`."""
    gone = n1(phase=NodePhase.RETIRED, idle_since_at_ms=None, phase_since_at_ms=0)
    world = theatre(own_pool(), gone, n2(), now_ms=60_000)
    world.submit()
    assert world.place() == N2


def test_s_073_gold_goes_first(theatre: NewTheatre) -> None:
    """Given a pool with tier `own` only, pending bronze (older), silver, gold jobs of capacity 6
    and room for one, when capacity comes, then gold is placed."""
    world = theatre(own_pool())
    for at_ms, band in enumerate((Band.BRONZE, Band.SILVER, Band.GOLD)):
        world.advance(at_ms)
        world.submit(band.value, a_job(capacity=6, band=band))
    world.join()
    assert list(world.places()) == ["gold/main/0"]


def test_s_074_a_tier_has_a_limit(theatre: NewTheatre) -> None:
    """Given a tier limit of 3 machines and 5 jobs that each need one, then 3 creates; two jobs
    pending with code limit reached."""
    world = theatre(a_pool(tiers=(an_elastic_tier(node_count_max=3),)))
    for number in range(5):
        world.submit(f"b{number}", a_job(capacity=100))
    assert len(world.commands("launch_machine")) == 3
    waiting = [r for r in world.fleet.replicas.in_order() if r.phase is ReplicaPhase.PENDING]
    assert [(r.bundle_id, r.reason) for r in waiting] == [
        ("b3", Reason.LIMIT_REACHED),
        ("b4", Reason.LIMIT_REACHED),
    ]


def test_s_076_an_empty_machine_goes_when_it_has_lingered(theatre: NewTheatre) -> None:
    """Given an empty provisioned machine after `jobDeleted`, when the linger passes with no use,
    then it is terminated once."""
    world = theatre(a_pool())
    world.submit()
    world.boot()
    world.become_ready()
    world.delete()
    world.finish_stops()
    assert not world.commands("stop_machine")
    world.advance(300_000)
    assert len(world.commands("stop_machine")) == 1


def test_s_077_a_node_of_another_pool_is_never_chosen(theatre: NewTheatre) -> None:
    """Given a node without `pool` tag, then it is never chosen."""
    world = theatre(own_pool(), a_pool("q", tiers=(a_fixed_tier(),)), n1(pool="q"))
    world.submit()
    assert world.replica().reason is Reason.NO_CAPACITY


def test_fallback_pools_are_walked_in_order(theatre: NewTheatre) -> None:
    """C-015, C-016: more than one pool can be tried; attempts are labelled by pool."""
    world = theatre(own_pool(), pool_p(name="q"), n1(pool="q"))
    world.submit(fallback_pools=("q",))
    assert world.place() == N1
    (decision,) = world.fleet.traces["b1/main/0"].decisions
    assert [(a.pool, a.tier) for a in decision.attempts] == [("p", "own"), ("q", "own")]
    assert all(a.filtered_count + a.scored_count == a.candidate_count for a in decision.attempts)
