"""Machines without an agent of ours take leases and no jobs, and whoever asks is told so."""

from hostler.base.ids import NodeId
from hostler.core.explain.fit import fit_of
from hostler.core.replies import Refused
from hostler.model.bundle import Fallback
from hostler.model.lease import LeasePhase
from hostler.model.pool import SpareTarget
from hostler.model.reason import Reason
from hostler.testing.builders import SMALL, a_fixed_tier, a_node, a_pool, an_elastic_tier
from tests.core.placing.conftest import NewTheatre

BARE = an_elastic_tier("bare", has_agents=False)


def a_bare_node(node_id: str = "n-900001") -> object:
    return a_node(
        node_id, tier="bare", provider="fake", offer="small", has_agent=False, shape=SMALL
    )


def test_a_job_goes_past_a_node_that_has_no_agent(theatre: NewTheatre) -> None:
    world = theatre(a_pool(tiers=(BARE, an_elastic_tier())), a_bare_node())
    world.submit()
    (node,) = [each for each in world.launched() if each.node_id != "n-900001"]
    assert (node.tier, node.has_agent) == ("cloud", True)
    trace = world.fleet.traces["b1/main/0"]
    (decision,) = trace.decisions
    bare = next(each for each in decision.attempts if each.tier == "bare")
    assert bare.filtered_by_reason == {"no_agent": 1}
    assert bare.outcome == "no_agent"


def test_whoever_asks_for_one_node_is_told_that_it_has_no_agent(theatre: NewTheatre) -> None:
    world = theatre(a_pool(tiers=(BARE, a_fixed_tier())), a_bare_node())
    world.submit()
    told = fit_of(world.fleet, world.replica(), NodeId("n-900001"), [], now_ms=world.now_ms)
    assert Reason.NO_AGENT in {each.reason for each in told.checks}
    assert not told.ways


def test_a_bundle_that_only_such_machines_could_take_is_refused(theatre: NewTheatre) -> None:
    world = theatre(a_pool(tiers=(BARE,)), a_pool("q", tiers=(a_fixed_tier(),)))
    answer = world.try_submit()
    assert isinstance(answer, Refused)
    assert [(each.path, each.code) for each in answer.problems] == [("pool", "no_agents")]
    world.submit(fallback_pools=("q",), fallback=Fallback.WHEN_FULL)


def test_a_lease_gets_such_a_node_and_a_spare_is_never_one(theatre: NewTheatre) -> None:
    world = theatre(
        a_pool(tiers=(BARE, an_elastic_tier()), spares=(SpareTarget(count=1),)), a_bare_node()
    )
    assert world.acquire().phase is LeasePhase.HELD
    (spare,) = [each for each in world.launched() if each.node_id != "n-900001"]
    assert (spare.tier, spare.is_spare) == ("cloud", True)


def test_a_tier_that_loses_its_agents_gets_no_more_jobs(theatre: NewTheatre) -> None:
    world = theatre(a_pool(tiers=(an_elastic_tier(has_agents=True),)))
    world.submit()
    world.boot()
    world.configure(a_pool(tiers=(an_elastic_tier(has_agents=False),)))
    node = world.fleet.nodes[world.place() or ""]
    assert not node.has_agent
