"""Silence: suspect, lost, fenced and back; what the provider says; the brake."""

from msgspec.structs import replace

from hostler.base.ids import NodeId
from hostler.core.allocation_fact import AllocationFact
from hostler.core.inputs import (
    AgentSaidHello,
    ConfirmLoss,
    ContactResumed,
    FenceLimitKept,
    SilenceNoticed,
)
from hostler.core.replies import Accepted, Refused
from hostler.core.silence import lost_after_ms
from hostler.model.allocation import AllocationPhase, EndCause
from hostler.model.launch import Disconnect, JobConfig, Launch
from hostler.model.lease import LeaseOutcome
from hostler.model.node import Health, NodePhase, RetireReason
from hostler.model.pool import Band
from hostler.testing.builders import a_fixed_tier, a_job, a_pool, an_elastic_tier
from tests.core.nodes.conftest import NewStable
from tests.core.nodes.stable import a_launched_node, an_own_node, an_own_pool

SUSPECT_MS, LOST_MS = 15_000, 60_000
KEPT = a_job(launch=Launch(argv=("run",), disconnect=Disconnect.KEEP))
BOTH = (a_fixed_tier(), an_elastic_tier())


def test_a_silent_node_takes_no_new_work_and_a_word_from_it_is_enough(stable: NewStable) -> None:
    world = stable(an_own_pool(), an_own_node())
    world.silence()
    world.advance(SUSPECT_MS - 1)
    assert world.node().health is Health.LIVE
    world.advance(SUSPECT_MS)
    assert world.node().health is Health.SUSPECT
    assert not world.node().takes_work
    world.contact()
    assert world.node().health is Health.LIVE
    assert world.events() == ["node_suspected", "node_heard_again"]


def test_silence_counts_from_its_earliest_beginning(stable: NewStable) -> None:
    world = stable(an_own_pool(), an_own_node())
    world.advance(10_000)
    world.silence(since_at_ms=9_000)
    world.silence(since_at_ms=4_000)
    world.silence(since_at_ms=8_000)
    world.advance(4_000 + SUSPECT_MS)
    assert world.node().health is Health.SUSPECT


def test_a_node_that_is_silent_for_long_is_lost_and_what_it_held_is_over(
    stable: NewStable,
) -> None:
    world = stable(an_own_pool(), an_own_node("n-1"), an_own_node("n-2"), an_own_node("n-3"))
    lease = world.acquire(lease_ms=600_000)
    allocation = world.run_allocation(world.place())
    assert lease.node_id is not None
    world.silence(lease.node_id, allocation.node_id)
    world.advance(LOST_MS - 1)
    assert world.fleet.allocations[allocation.allocation_id].is_live
    world.advance(LOST_MS)
    lost = world.node(allocation.node_id)
    assert (lost.health, lost.epoch, lost.phase) == (Health.LOST, 2, NodePhase.READY)
    ended = world.fleet.allocations[allocation.allocation_id].ended
    assert ended is not None
    assert ended.cause is EndCause.NODE_LOST
    assert world.fleet.leases[lease.lease_id].outcome is LeaseOutcome.NODE_LOST
    moved = world.allocation_of("b/main/0")
    assert moved is not None
    assert moved.node_id not in (lease.node_id, allocation.node_id)


def test_a_long_stop_grace_is_waited_for_before_work_moves(stable: NewStable) -> None:
    world = stable(an_own_pool(), an_own_node())
    slow = a_job(launch=Launch(argv=("run",), stop_grace_ms=50_000))
    world.run_allocation(world.place("b", slow))
    settings = world.fleet.settings
    assert settings is not None
    assert lost_after_ms(settings, world.node()) == 35_000 + 50_000 + 1_000
    world.silence()
    world.advance(85_999)
    assert world.node().health is Health.SUSPECT
    world.advance(86_000)
    assert world.node().health is Health.LOST


def test_shorter_limits_count_for_a_node_once_its_agent_says_that_it_goes_by_them(
    stable: NewStable,
) -> None:
    world = stable(an_own_pool(), an_own_node("n-1"), an_own_node("n-2"))
    world.configure(an_own_pool(), fence_after_ms=11_000, lost_after_ms=20_000)
    settings = world.fleet.settings
    assert settings is not None
    assert lost_after_ms(settings, world.node("n-1")) == 35_000 + 1_000
    world.run(FenceLimitKept(node_id=NodeId("n-2"), fence_after_ms=11_000))
    world.silence("n-1", "n-2")
    world.advance(20_000)
    assert world.node("n-1").health is Health.SUSPECT
    assert world.node("n-2").health is Health.LOST
    world.advance(36_000)
    assert world.node("n-1").health is Health.LOST


def test_a_job_that_keeps_running_when_cut_off_stays_and_nothing_else_starts(
    stable: NewStable,
) -> None:
    world = stable(an_own_pool(), an_own_node("n-1"), an_own_node("n-2"))
    allocation = world.run_allocation(world.place("b", KEPT))
    world.silence(allocation.node_id)
    world.advance(10 * LOST_MS)
    assert world.node(allocation.node_id).health is Health.LOST
    assert world.allocation_of("b/main/0") == world.fleet.allocations[allocation.allocation_id]
    assert world.fleet.notes[allocation.allocation_id]["fencing"].reason == "fence_pending"
    fact = AllocationFact(
        allocation_id=allocation.allocation_id, epoch=allocation.epoch, phase="ready"
    )
    world.hello(allocation.node_id, fact)
    assert world.node(allocation.node_id).health is Health.LIVE
    assert world.allocation_of("b/main/0") is not None
    assert not world.commands("stop_allocation")


def test_what_had_not_started_on_a_lost_node_is_no_failure(stable: NewStable) -> None:
    world = stable(an_own_pool(), an_own_node("n-1"), an_own_node("n-2"))
    allocation = world.place()
    world.silence(allocation.node_id)
    world.advance(LOST_MS)
    assert world.fleet.allocations[allocation.allocation_id].phase is AllocationPhase.ENDED
    assert world.allocation_of("b/main/0") is not None


def test_a_lost_node_that_comes_back_is_told_to_stop_what_has_moved(stable: NewStable) -> None:
    world = stable(an_own_pool(), an_own_node("n-1"), an_own_node("n-2"))
    allocation = world.run_allocation(world.place())
    world.silence(allocation.node_id)
    world.advance(LOST_MS)
    world.contact(allocation.node_id)
    assert world.node(allocation.node_id).health is Health.LOST
    old = AllocationFact(
        allocation_id=allocation.allocation_id, epoch=allocation.epoch, phase="running"
    )
    world.hello(allocation.node_id, old)
    assert world.node(allocation.node_id).health is Health.LIVE
    assert world.commands("stop_allocation") == [f"{allocation.allocation_id}/stop/1"]
    stop = world.fleet.commands[f"{allocation.allocation_id}/stop/1"].command
    assert stop.node_epoch == 2  # type: ignore[union-attr]  # a stop has one


def test_a_hello_is_not_forgotten_when_silence_follows_at_once(stable: NewStable) -> None:
    """The disk was slow, so both came in one step; the session went on, and no hello came again."""
    world = stable(an_own_pool(), an_own_node("n-1"))
    world.silence("n-1")
    world.advance(LOST_MS)
    node_id = NodeId("n-1")
    world.run(
        ContactResumed(node_id=node_id),
        AgentSaidHello(node_id=node_id, incarnation=1, shape=world.node("n-1").shape),
        SilenceNoticed(node_id=node_id, since_at_ms=world.now_ms, is_link_down=True),
    )
    assert world.node("n-1").health is Health.LOST
    world.contact("n-1")
    assert world.node("n-1").health is Health.LIVE


def test_commands_that_outlive_a_loss_carry_the_new_epoch(stable: NewStable) -> None:
    world = stable(an_own_pool(), an_own_node("n-1"))
    allocation = world.run_allocation(world.place("b", KEPT))
    world.ask_to_delete("b")
    world.silence("n-1")
    world.advance(LOST_MS)
    stop = world.fleet.commands[f"{allocation.allocation_id}/stop/1"].command
    assert stop.node_epoch == 2  # type: ignore[union-attr]  # a stop has one


def test_a_configuration_that_outlives_a_loss_carries_the_new_epoch(stable: NewStable) -> None:
    """Simulator seed 211: an agent refused it for ever, as of an epoch before its own."""
    world = stable(an_own_pool(), an_own_node("n-1"))
    allocation = world.run_allocation(world.place("b", KEPT))
    configured = replace(KEPT, config=JobConfig(values_json='{"title":"film"}'))
    world.submit("b", configured)
    world.silence("n-1")
    world.advance(LOST_MS)
    (key,) = world.commands("configure_allocation")
    assert world.fleet.commands[key].command.node_epoch == 2  # type: ignore[union-attr]  # it has one
    assert key.startswith(allocation.allocation_id)


def test_a_launched_node_that_is_lost_is_retired_and_its_machine_stopped(
    stable: NewStable,
) -> None:
    world = stable(a_pool(), a_launched_node())
    world.silence()
    world.advance(LOST_MS)
    node = world.node()
    assert (node.phase, node.retire_reason) == (NodePhase.STOPPING, RetireReason.LOST)
    assert world.commands("stop_machine") == ["n-900001/stop/2"]


def test_a_cut_link_asks_the_provider_at_once_and_gone_is_lost_at_once(
    stable: NewStable,
) -> None:
    world = stable(a_pool(tiers=BOTH), a_launched_node(), an_own_node("n-900002"))
    world.advance(5_000)
    world.silence(cut=True)
    assert world.commands("check_machine") == ["n-900001/check/1"]
    world.succeed("n-900001/check/1")
    node = world.node()
    assert (node.health, node.phase) == (Health.LOST, NodePhase.RETIRED)
    assert node.retire_reason is RetireReason.GONE
    assert not world.commands("stop_machine")


def test_a_machine_that_is_there_is_asked_about_again_while_its_agent_is_silent(
    stable: NewStable,
) -> None:
    world = stable(a_pool(), a_launched_node())
    world.silence(cut=True)
    asked_at_ms = []
    while world.node().health is not Health.LOST:
        if world.commands("check_machine"):
            asked_at_ms.append(world.now_ms)
            world.succeed("n-900001/check/1", world.machine(world.node()))
        world.advance(world.now_ms + 5_000)
    assert asked_at_ms == [0, 15_000, 30_000, 45_000]


def test_a_word_from_the_node_takes_the_question_back(stable: NewStable) -> None:
    world = stable(a_pool(warm_count=1), a_launched_node())
    world.silence(cut=True)
    world.contact()
    assert not world.commands("check_machine")
    assert world.node().checked_at_ms is None


def test_many_nodes_falling_silent_at_once_are_held_back(stable: NewStable) -> None:
    names = [f"n-{n}" for n in range(5)]
    world = stable(an_own_pool(), *(an_own_node(each) for each in names), lost_node_count_max=2)
    world.silence(*names)
    world.advance(LOST_MS)
    health = [node.health.value for node in world.fleet.nodes.in_order()]
    assert health == ["lost", "lost", "suspect", "suspect", "suspect"]
    assert world.events().count("recovery_held_back") == 1
    assert world.fleet.notes["n-4"]["liveness"].reason == "mass_loss_brake"
    world.contact("n-4")
    assert world.node("n-4").health is Health.LIVE
    world.advance(LOST_MS + 300_000)
    assert [world.node(each).health.value for each in ("n-2", "n-3")] == ["lost", "lost"]


def test_the_brake_may_be_a_share_of_the_nodes(stable: NewStable) -> None:
    names = [f"n-{n}" for n in range(5)]
    world = stable(an_own_pool(), *(an_own_node(each) for each in names), lost_node_percent_max=40)
    world.silence(*names)
    world.advance(LOST_MS)
    health = [node.health.value for node in world.fleet.nodes.in_order()]
    assert health == ["lost", "lost", "suspect", "suspect", "suspect"]


def test_an_operator_releases_the_brake_for_nodes_that_are_really_gone(stable: NewStable) -> None:
    """B67: the brake is released by an operator's word, but never before the fence is certain."""
    names = [f"n-{n}" for n in range(4)]
    world = stable(an_own_pool(), *(an_own_node(each) for each in names), lost_node_count_max=1)
    world.silence(*names)
    early = world.ask(ConfirmLoss, node_id="n-3")
    assert isinstance(early, Accepted)
    world.advance(LOST_MS - 1)
    assert world.node("n-3").health is Health.SUSPECT
    world.advance(LOST_MS)
    assert [world.node(each).health.value for each in names] == ["lost", *["suspect"] * 2, "lost"]
    world.ask(ConfirmLoss, node_id="n-1")
    assert world.node("n-1").health is Health.LOST
    world.contact("n-2")
    heard = world.ask(ConfirmLoss, node_id="n-2")
    assert isinstance(heard, Refused)
    assert heard.code == "node_not_silent"


def test_the_brake_does_not_hold_back_what_the_provider_says_is_gone(stable: NewStable) -> None:
    names = [f"n-{n}" for n in range(3)]
    world = stable(a_pool(), *(a_launched_node(each) for each in names), lost_node_count_max=1)
    world.silence(*names)
    world.advance(LOST_MS)
    assert [world.node(each).health.value for each in names] == ["lost", "suspect", "suspect"]
    world.succeed("n-2/check/1")
    assert world.node("n-2").phase is NodePhase.RETIRED


def test_bronze_work_is_dropped_with_its_node(stable: NewStable) -> None:
    world = stable(an_own_pool(), an_own_node("n-1"), an_own_node("n-2"))
    allocation = world.run_allocation(world.place("b", a_job(band=Band.BRONZE)))
    world.silence(allocation.node_id)
    world.advance(LOST_MS)
    assert world.allocation_of("b/main/0") is None


def test_a_box_of_our_own_of_which_nothing_runs_is_lost_at_once_and_welcome_again(
    stable: NewStable,
) -> None:
    own = a_fixed_tier(provider="fake")
    world = stable(a_pool(tiers=(own,)), an_own_node("n-1", provider="fake", machine_id="box-1"))
    allocation = world.run_allocation(world.place())
    world.silence("n-1", cut=True)
    world.succeed("n-1/check/1")
    ended = world.fleet.allocations[allocation.allocation_id].ended
    assert ended is not None
    assert ended.cause is EndCause.NODE_LOST
    node = world.node("n-1")
    assert (node.health, node.phase, node.retire_reason) == (Health.LOST, NodePhase.READY, None)
    world.hello("n-1", incarnation=2)
    assert world.node("n-1").takes_work
    assert world.node("n-1").epoch == 2
