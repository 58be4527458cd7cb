"""Nodes that are little used are emptied so that their machines can go (issue 5, item 8)."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hostler.core.explain import explain_node
from hostler.core.inputs import CordonNode, DrainNode, UncordonNode
from hostler.core.replies import Refused
from hostler.model import Node, Pool
from hostler.model.allocation import AllocationPhase
from hostler.model.consolidation import ConsolidationPolicy
from hostler.model.disruption import DisruptionBudget
from hostler.model.node import NodePhase
from hostler.model.pool import Offer, Reuse
from hostler.model.reason import Reason
from hostler.testing.builders import LARGE, SMALL, a_fixed_tier, a_job, a_pool, an_elastic_tier
from tests.core.placing.theatre import Theatre, n1

MINUTE = 60_000
POLICY = ConsolidationPolicy()
LITTLE, MUCH = "little/main/0", "much/main/0"


def a_saving_pool(policy: ConsolidationPolicy | None = POLICY, **changes: Any) -> Pool:
    """Return a pool of launched machines that consolidates."""
    return a_pool(**{"consolidation": policy, **changes})


def a_big(name: str, capacity: int, **changes: Any) -> Any:
    """Return a job of some capacity of which two copies may run at once."""
    return a_job(name, capacity=capacity, can_overlap=True, **changes)


def half_empty(pool: Pool, *, is_settled: bool = True, **job: Any) -> Theatre:
    """Return a world with two machines: `little` is alone on one of them and would fit beside
    `much` on the other."""
    world = Theatre(pool)
    world.submit("gone", a_big("main", 6))
    settle(world)
    world.submit("much", a_big("main", 6))
    settle(world)
    world.submit("little", a_job(**{"capacity": 3, "can_overlap": True, **job}))
    settle(world)
    if world.place(LITTLE) == world.place(MUCH):
        world.delete("much")
        settle(world)
        world.submit("much", a_big("main", 6))
    world.delete("gone")
    settle(world)
    if is_settled:
        run_for(world, 11 * MINUTE)
    return world


def settle(world: Theatre) -> None:
    """Let machines come, agents start and stop what they are told to, and machines go."""
    step_count = -1
    while step_count != len(world.deltas):
        step_count = len(world.deltas)
        if world.commands("launch_machine"):
            world.boot()
        for node in list(world.fleet.nodes.in_order()):
            if node.phase is NodePhase.STARTING:
                world.run(world.hello(node))
        for allocation in list(world.fleet.allocations.in_order()):
            if allocation.phase in (AllocationPhase.STARTING, AllocationPhase.RUNNING):
                world.report(allocation, "ready")
        world.finish_stops()
        for command_id in world.commands("stop_machine"):
            world.succeed(command_id)


def run_for(world: Theatre, for_ms: int, every_ms: int = 30_000) -> None:
    """Let time pass while agents and the provider do what they are told."""
    until_ms = world.now_ms + for_ms
    while world.now_ms < until_ms:
        world.advance(min(until_ms, world.now_ms + every_ms))
        settle(world)


def machines(world: Theatre) -> list[str]:
    """Return the nodes whose machines are there or on their way."""
    return [node.node_id for node in world.launched() if node.phase is not NodePhase.STOPPING]


def node_of(world: Theatre, replica: str) -> Node:
    """Return the node that a replica is on."""
    return world.fleet.nodes[world.live(replica).node_id]


def why(world: Theatre, replica: str = LITTLE) -> list[Reason]:
    """Return why the node of a replica stays as it is."""
    told = explain_node(world.fleet, node_of(world, replica).node_id)
    assert told is not None
    return [each.reason for each in told.reasons if each.by == "consolidating"]


def test_a_node_that_is_little_used_is_emptied_and_its_machine_goes() -> None:
    world = half_empty(a_saving_pool(), is_settled=False)
    emptied = node_of(world, LITTLE)
    assert len(machines(world)) == 2
    run_for(world, 11 * MINUTE)
    assert world.place(LITTLE) == world.place(MUCH)
    assert world.count("node_consolidated") == 1
    run_for(world, 6 * MINUTE)
    assert emptied.node_id not in machines(world)
    assert len(machines(world)) == 1
    assert world.replica(LITTLE).restart_at_ms == ()


def test_the_second_copy_is_ready_before_the_first_one_ends() -> None:
    world = half_empty(a_saving_pool(), is_settled=False)
    first = world.live(LITTLE)
    while world.replica(LITTLE).migration is None:
        world.advance(world.now_ms + MINUTE)
    assert node_of(world, LITTLE).takes_work is False, "nothing comes while it is emptied"
    assert why(world) == [Reason.CONSOLIDATING]
    assert world.fleet.allocations[first.allocation_id].phase is AllocationPhase.READY
    settle(world)
    assert world.place(LITTLE) == world.place(MUCH)


def test_without_the_setting_nothing_is_moved() -> None:
    world = half_empty(a_saving_pool(None))
    run_for(world, 60 * MINUTE)
    assert len(machines(world)) == 2
    assert why(world) == []
    assert not len(world.fleet.consolidations)


def test_switching_it_off_calls_off_what_is_under_way() -> None:
    world = half_empty(a_saving_pool(), is_settled=False)
    while world.replica(LITTLE).migration is None:
        world.advance(world.now_ms + MINUTE)
    world.configure(a_saving_pool(None))
    settle(world)
    assert world.place(LITTLE) != world.place(MUCH)
    assert node_of(world, LITTLE).cordon is None
    assert not len(world.fleet.consolidations)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"used_percent_max": 20}, Reason.WELL_USED),
        ({"move_cost_micros": 100_000}, Reason.NO_NET_GAIN),
        ({"payback_ms": 0}, Reason.NO_NET_GAIN),
        ({"settle_ms": 60 * MINUTE, "spacing_ms": 60 * MINUTE}, Reason.NOT_SETTLED),
    ],
)
def test_a_policy_keeps_a_node_and_says_why(changes: dict[str, int], reason: Reason) -> None:
    world = half_empty(a_saving_pool(ConsolidationPolicy(**changes)))
    assert world.place(LITTLE) != world.place(MUCH)
    assert why(world) == [reason]


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"node_count_min": 2}, Reason.WARM_FLOOR),
        ({"warm_count": 1, "tiers": (an_elastic_tier(node_count_max=2),)}, Reason.WARM_FLOOR),
        ({"spare_count": 1, "tiers": (an_elastic_tier(node_count_max=2),)}, Reason.SPARE_TARGET),
    ],
)
def test_what_the_pool_would_keep_or_launch_again_is_not_emptied(
    changes: dict[str, Any], reason: Reason
) -> None:
    world = half_empty(a_saving_pool(), is_settled=False)
    world.configure(a_saving_pool(**changes))
    run_for(world, 11 * MINUTE)
    assert world.place(LITTLE) != world.place(MUCH)
    assert why(world) == [reason]


def test_what_may_not_run_twice_is_not_stopped_to_save_money() -> None:
    world = half_empty(a_saving_pool(), can_overlap=False)
    assert world.place(LITTLE) != world.place(MUCH)
    assert why(world) == [Reason.OVERLAP_FORBIDDEN]


def test_a_node_is_not_emptied_onto_one_that_stands_idle() -> None:
    world = Theatre(a_saving_pool(warm_count=1, tiers=(an_elastic_tier(),)))
    settle(world)
    world.submit("little", a_big("main", 3))
    settle(world)
    run_for(world, 120 * MINUTE)
    assert world.count("node_consolidation_started") == 0
    assert why(world) == [Reason.NO_CAPACITY]


def test_what_runs_on_launched_machines_moves_to_our_own() -> None:
    world = Theatre(
        a_saving_pool(tiers=(an_elastic_tier(), a_fixed_tier())),
    )
    world.submit("little", a_big("main", 3))
    settle(world)
    world.join()
    run_for(world, 30 * MINUTE)
    assert node_of(world, LITTLE).tier == "own"
    assert machines(world) == []


def test_budgets_bind_it() -> None:
    world = half_empty(a_saving_pool(), is_settled=False)
    nothing = DisruptionBudget(name="freeze", unavailable_count_max=0)
    world.submit("little", a_big("main", 3), disruption_budgets=(nothing,))
    settle(world)
    run_for(world, 30 * MINUTE)
    assert world.place(LITTLE) != world.place(MUCH)
    assert why(world) == [Reason.DISRUPTION_BUDGET]


def test_no_more_is_moved_within_a_window_than_may_be() -> None:
    world = Theatre(a_saving_pool(ConsolidationPolicy(move_count_max=1)))
    for name, capacity in (("gone", 5), ("little", 3), ("other", 2)):
        world.submit(name, a_big("main", capacity))
        settle(world)
    world.submit("stays", a_job(capacity=5))
    settle(world)
    world.delete("gone")
    settle(world)
    run_for(world, 30 * MINUTE)
    assert world.place(LITTLE) == world.place("other/main/0")
    assert why(world) == [Reason.MOVES_SPENT]
    world.configure(a_saving_pool())
    run_for(world, 30 * MINUTE)
    assert world.place(LITTLE) == world.place("other/main/0") == world.place("stays/main/0")


def test_a_second_copy_that_fails_ends_it_and_the_node_is_left_alone() -> None:
    world = half_empty(a_saving_pool(), is_settled=False)
    while world.replica(LITTLE).migration is None:
        world.advance(world.now_ms + MINUTE)
    moving = world.replica(LITTLE).migration
    assert moving is not None
    assert moving.target_id is not None
    world.report(world.fleet.allocations[moving.target_id], "ended")
    node = node_of(world, LITTLE)
    assert (node.cordon, world.count("node_consolidation_ended")) == (None, 1)
    assert world.place(LITTLE) != world.place(MUCH)
    run_for(world, 30 * MINUTE)
    assert world.count("node_consolidation_started") == 1, "it is not tried again so soon"


def test_a_move_that_never_succeeds_is_tried_ever_less_often() -> None:
    eager = ConsolidationPolicy(settle_ms=1_000, spacing_ms=1_000)
    world = half_empty(a_saving_pool(eager), is_settled=False)
    while world.count("node_consolidation_started") == 0:
        world.advance(world.now_ms + MINUTE)
    begun_at_ms: list[int] = []
    for _ in range(24 * 12):
        before = world.count("node_consolidation_started")
        world.advance(world.now_ms + 5 * MINUTE)  # no agent ever says that it is ready
        if world.count("node_consolidation_started") > before:
            begun_at_ms.append(world.now_ms)
        world.finish_stops()
    assert 2 <= len(begun_at_ms) <= 7


def test_who_was_moved_is_not_moved_again_before_its_time() -> None:
    world = half_empty(a_saving_pool())
    assert world.place(LITTLE) == world.place(MUCH)
    world.submit("big", a_big("main", 9))
    settle(world)
    world.delete("much")
    world.submit("big2", a_big("main", 6))
    world.delete("big")
    settle(world)
    run_for(world, 30 * MINUTE)
    if world.place(LITTLE) != world.place("big2/main/0"):
        assert why(world) == [Reason.MOVED_LATELY]


@pytest.mark.parametrize("verb", ["uncordon", "cordon", "drain"])
def test_an_operator_has_the_last_word(verb: str) -> None:
    world = half_empty(a_saving_pool(), is_settled=False)
    while world.replica(LITTLE).migration is None:
        world.advance(world.now_ms + MINUTE)
    node_id = node_of(world, LITTLE).node_id
    match verb:
        case "uncordon":
            world.ask(UncordonNode, node_id=node_id)
        case "cordon":
            world.ask(CordonNode, node_id=node_id, reason="mine")
        case _:
            world.ask(DrainNode, node_id=node_id, deadline_ms=600_000)
    settle(world)
    node = world.fleet.nodes[node_id]
    assert world.fleet.consolidations["p"].node_id is None
    if verb == "uncordon":
        assert (node.cordon, world.place(LITTLE)) == (None, node_id)
    else:
        assert node.cordon is not None
        assert node.cordon.by == "tester"
        assert (world.place(LITTLE) == node_id) is (verb == "cordon")


def test_a_node_that_is_lost_while_it_is_emptied_is_recovered_from_as_ever() -> None:
    world = half_empty(a_saving_pool(), is_settled=False)
    while world.replica(LITTLE).migration is None:
        world.advance(world.now_ms + MINUTE)
    world.lose(node_of(world, LITTLE).node_id)
    settle(world)
    assert world.fleet.consolidations["p"].node_id is None
    assert world.place(LITTLE) is not None


def test_a_restart_forgets_nothing_of_it() -> None:
    world = half_empty(a_saving_pool(), is_settled=False)
    while world.replica(LITTLE).migration is None:
        world.advance(world.now_ms + MINUTE)
    world.restart()
    settle(world)
    assert world.place(LITTLE) == world.place(MUCH)
    assert world.count("node_consolidated") == 1


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"used_percent_max": 101}, "used_percent_max"),
        ({"settle_ms": 0}, "settle_ms"),
        ({"spacing_ms": 1_000}, "spacing_ms"),
        ({"move_count_max": 0}, "move_count_max"),
    ],
)
def test_a_policy_that_would_not_come_to_rest_is_refused(
    changes: dict[str, int], field: str
) -> None:
    world = Theatre(a_pool())
    answer = world.configure(a_saving_pool(ConsolidationPolicy(**changes)))
    assert isinstance(answer, Refused)
    assert [each.path for each in answer.problems] == [f"pools[0].consolidation.{field}"]


@pytest.mark.slow
@settings(max_examples=12, deadline=None)
@given(data=st.data())
def test_with_nothing_changing_moves_end_and_no_machine_comes_or_goes(data: st.DataObject) -> None:
    """Whatever settings pass the check: no loop of machines that are let go and launched anew."""
    below: Callable[[int], int] = lambda bound: data.draw(st.integers(0, bound - 1))  # noqa: E731  # one word
    one_of: Callable[..., Any] = lambda *options: options[below(len(options))]  # noqa: E731  # one word
    settle_ms = one_of(1_000, MINUTE, 10 * MINUTE)
    policy = ConsolidationPolicy(
        used_percent_max=one_of(0, 50, 100),
        settle_ms=settle_ms,
        payback_ms=one_of(MINUTE, 60 * MINUTE),
        move_cost_micros=one_of(0, 10_000),
        move_count_max=one_of(1, 3, 100),
        window_ms=one_of(1_000, 60 * MINUTE),
        spacing_ms=settle_ms * one_of(1, 10),
    )
    offers = (
        Offer(name="small", shape=SMALL, price_microusd_per_hour=100_000),
        Offer(name="large", shape=LARGE, price_microusd_per_hour=900_000),
    )
    cloud = an_elastic_tier(offers=offers[: 1 + below(2)], zone=one_of("", "eu-1"))
    other = an_elastic_tier("other", offers=offers[:1], zone="eu-2")
    world = Theatre(
        a_saving_pool(
            policy,
            tiers=one_of((cloud,), (a_fixed_tier(), cloud), (cloud, other)),
            reuse=one_of(*Reuse),
            warm_count=below(3),
            node_count_min=below(4),
            spare_count=below(2),
            idle_ms=one_of(0, 5 * MINUTE),
        ),
        *((n1(),) if below(2) else ()),
    )
    names = [f"b{number}" for number in range(2 + below(4))]
    for name in names:
        job = a_big("main", one_of(1, 3, 6, 9))
        world.submit(name, job, replica_count=1 + below(3), spread=())
        settle(world)
    for name in names:
        if below(2):
            world.delete(name)
            settle(world)
    run_for(world, 5 * 60 * MINUTE, every_ms=5 * MINUTE)
    world.deltas.clear()
    run_for(world, 3 * 60 * MINUTE, every_ms=5 * MINUTE)
    told = set(world.events())
    assert not told & {"replica_migrating", "node_requested", "node_stopping", "node_cordoned"}
    world.check_calm()
