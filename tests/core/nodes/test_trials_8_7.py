"""Trials of trials/placement.md 8.7, and of 8.1 about agents that were cut off: tried on ours.

B67 is in test_silence.py. B73 is told by tests/core/placing/test_promotion.py: the backup of a
lost primary is promoted in the step that gives the node up, which is after its agent's own limit
(INV-FENCE-1). B02 and B07 are the simulator's and the store's: two live copies at any instant
(`sim/truth.py`), and a second server that is fenced (tests/engine). B08 does not apply before there
are followers: who loads the store has all that was committed.
"""

from msgspec.structs import replace

from hostler.base.ids import NodeId
from hostler.core.allocation_fact import AllocationFact
from hostler.core.inputs import DrainNode, ServerStarted, SilenceNoticed
from hostler.model import Allocation
from hostler.model.allocation import AllocationPhase, EndCause, Ended
from hostler.model.bundle import RolloutPolicy
from hostler.model.launch import Disconnect, Launch
from hostler.model.lease import LeasePhase
from hostler.model.node import Health, NodePhase
from hostler.model.pool import Band
from hostler.testing.builders import a_fixed_tier, a_job, a_pool, an_elastic_tier
from tests.core.nodes.conftest import NewStable
from tests.core.nodes.stable import Stable, a_launched_node, an_own_node, an_own_pool
from tests.core.placing.conftest import NewTheatre, theatre
from tests.core.placing.test_services import a_service
from tests.core.placing.theatre import Theatre, own_pool

__all__ = ["theatre"]

LOST_MS = 60_000
FIVE_MINUTES_MS = 300_000


def fact(
    allocation: Allocation, phase: str = "ready", ended: Ended | None = None
) -> AllocationFact:
    """Return what an agent says of an allocation."""
    return AllocationFact(
        allocation_id=allocation.allocation_id, epoch=allocation.epoch, phase=phase, ended=ended
    )


def starts(world: Stable | Theatre) -> int:
    """Return how many starts have been sent."""
    sent = [each.command_id for delta in world.deltas for each in delta.dispatches]
    return len({each for each in sent if "/start/" in each})


# -- 8.1 -------------------------------------------------------------------------------------


def test_b001_who_can_run_nowhere_else_is_kept_and_nothing_is_started(stable: NewStable) -> None:
    """B01: pinned job, its node cut off and back: no new copy, the original kept, starts = 1."""
    world = stable(an_own_pool(), an_own_node("n-1"), an_own_node("n-2", labels={"rack": "b"}))
    launch = Launch(argv=("run",), disconnect=Disconnect.KEEP)
    job = a_job(capacity=8, launch=launch)
    old = world.run_allocation(world.place("b", job))
    world.silence(old.node_id)
    world.advance(2 * LOST_MS)
    assert world.node(old.node_id).health is Health.LOST
    world.hello(old.node_id, fact(world.fleet.allocations[old.allocation_id]))
    assert world.fleet.allocations[old.allocation_id].phase is AllocationPhase.READY
    assert starts(world) == 1
    assert not world.commands("stop_allocation")


def test_b005_when_all_agents_begin_anew_each_node_has_one_copy_of_a_service(
    theatre: NewTheatre,
) -> None:
    """B05: services everywhere, all ten nodes reboot: one copy a node at every instant."""
    names = [f"n-{900001 + number}" for number in range(10)]
    world = theatre(own_pool(), *(an_own_node(each) for each in names))
    world.configure(own_pool(), services=(a_service(),))
    world.become_ready()
    for name in reversed(names):
        world.run(world.hello(world.fleet.nodes[name], incarnation=2))  # and knows of nothing
        assert max(copies(world).values()) == 1
    world.advance(world.now_ms + 60_000)
    world.become_ready()
    assert copies(world) == dict.fromkeys(names, 1)


def copies(world: Theatre) -> dict[str, int]:
    """Return how many live copies each node has that has any."""
    found: dict[str, int] = {}
    for each in world.fleet.allocations.in_order():
        if each.is_live:
            found[each.node_id] = found.get(each.node_id, 0) + 1
    return found


def test_b011_a_node_whose_work_does_nothing_is_not_idle(stable: NewStable) -> None:
    """B11: a live but idle worker's node was judged idle and removed."""
    world = stable(a_pool(tiers=(an_elastic_tier(),), idle_ms=1_000), a_launched_node())
    world.run_allocation(world.place())
    world.advance(3_600_000)
    assert world.node().phase is NodePhase.READY
    assert not world.commands("stop_machine")


# -- 8.7 -------------------------------------------------------------------------------------


def test_b065_old_times_make_nobody_lost_after_a_restart(theatre: NewTheatre) -> None:
    """B65: server off for five minutes: nobody is lost in the first window; then exactly three."""
    names = [f"n-{900001 + number}" for number in range(100)]
    world = theatre(own_pool(), *(an_own_node(each) for each in names))
    world.run(*(SilenceNoticed(node_id=NodeId(each), since_at_ms=0) for each in names))
    world.advance(LOST_MS - 1)
    world.restart()
    world.run(ServerStarted(), at_ms=world.now_ms + FIVE_MINUTES_MS)
    began_ms = world.now_ms
    world.advance(began_ms + LOST_MS - 1)
    assert world.count("node_lost") == 0
    for each in names[3:]:
        world.run(world.hello(world.fleet.nodes[each], incarnation=1))
    world.advance(began_ms + 3 * LOST_MS)
    lost = [node.node_id for node in world.fleet.nodes.in_order() if node.health is Health.LOST]
    assert lost == names[:3]


def test_b068_a_lost_node_disturbs_no_update_elsewhere(theatre: NewTheatre) -> None:
    """B68: a node is cut off while another job is being updated: that job is untouched."""
    names = ("n-900001", "n-900002", "n-900003")
    world = theatre(own_pool(), *(an_own_node(each) for each in names))
    world.submit("b1", a_job(capacity=6))
    world.submit("b2", a_job(capacity=6))
    world.become_ready()
    policy = RolloutPolicy(healthy_after_ms=600_000)
    world.submit("b2", a_job(capacity=6, launch=Launch(argv=("new",))), rollout=policy)
    world.finish_stops()
    world.become_ready()
    under_way = world.rollout("b2")
    allocation = world.live("b2/main/0")
    bystander = next(each for each in names if each not in world.places().values())
    world.lose(bystander)
    assert world.live("b2/main/0") == allocation
    assert replace(world.rollout("b2"), waits_for="") == replace(under_way, waits_for="")
    assert len(world.places()) == 2


def test_b070_what_failed_while_nobody_heard_of_it_comes_to_its_end(stable: NewStable) -> None:
    """B70: fail a job during the partition, heal: a final state, and its holds are freed."""
    world = stable(an_own_pool(), an_own_node("n-1"), an_own_node("n-2"))
    old = world.run_allocation(world.place("b", a_job(capacity=8)))
    world.silence(old.node_id)
    world.advance(LOST_MS // 4)
    died = Ended(cause=EndCause.EXITED, exit_code=1)
    world.contact(old.node_id)
    world.hello(old.node_id, fact(old, "ended", died))
    ended = world.fleet.allocations[old.allocation_id]
    assert (ended.is_live, ended.ended) == (False, died)
    assert world.node(old.node_id).allocation_count <= 1
    again = world.allocation_of("b/main/0")
    assert again is not None
    assert again.allocation_id != old.allocation_id


def test_b071_an_agent_that_begins_anew_keeps_what_runs(stable: NewStable) -> None:
    """B71: restart the agent with seven jobs running: all adopted, none started again."""
    world = stable(an_own_pool(), an_own_node("n-1"))
    held = [world.run_allocation(world.place(f"b{n}", a_job(capacity=1))) for n in range(7)]
    started = starts(world)
    world.hello("n-1", *(fact(each) for each in held), incarnation=2)
    world.advance(FIVE_MINUTES_MS)
    for each in held:
        assert world.fleet.allocations[each.allocation_id].phase is AllocationPhase.READY
    assert starts(world) == started
    assert all(each.restart_at_ms == () for each in world.fleet.replicas.in_order())


def test_b074_no_lease_is_given_on_a_machine_that_was_deleted_behind_our_back(
    stable: NewStable,
) -> None:
    """B74: gone from the lease list within lost time, and no lease on it ever after."""
    world = stable(a_pool(tiers=(an_elastic_tier(),)), a_launched_node())
    lease = world.acquire(timeout_ms=600_000)
    assert lease.node_id == "n-900001"
    world.silence(cut=True)
    world.succeed(world.commands("check_machine")[0])  # its provider has no such machine
    assert world.fleet.leases[lease.lease_id].phase is LeasePhase.SETTLED
    assert world.node().phase is NodePhase.RETIRED
    later = world.acquire(timeout_ms=600_000)
    assert later.phase is LeasePhase.WAITING
    world.boot()
    assert world.fleet.leases[later.lease_id].node_id != "n-900001"


def test_b076_a_list_that_does_not_show_a_new_machine_yet_erases_no_record(
    stable: NewStable,
) -> None:
    """B76: listed only later; server killed right after create; then found by its label."""
    world = stable(a_pool(warm_count=1, tiers=(an_elastic_tier(boot_ms=600_000),)))
    world.run(ServerStarted())
    for _ in range(2):
        world.list()
        assert world.node("n-000001").phase is NodePhase.REQUESTED
    world.list(world.machine(world.node("n-000001"), machine_id="m-1"))
    node = world.node("n-000001")
    assert (node.phase, node.machine_id) == (NodePhase.STARTING, "m-1")
    world.hello("n-000001")
    assert world.node("n-000001").phase is NodePhase.READY
    assert world.events().count("orphan_found") == 0


def test_b077_a_machine_of_somebodys_own_is_never_ended(stable: NewStable) -> None:
    """B77: a persistent machine that stood still, an interrupted restart, no capacity: it stays."""
    tier = a_fixed_tier(provider="fake")
    world = stable(a_pool(tiers=(tier,)), an_own_node("n-1", provider="fake", machine_id="box-1"))
    world.run_allocation(world.place("b", a_job(band=Band.GOLD)))
    world.silence("n-1", cut=True)
    world.succeed("n-1/check/1")  # it does not run
    world.advance(FIVE_MINUTES_MS)
    world.run(
        DrainNode(
            request_id="r",
            principal="ann",
            node_id=NodeId("n-1"),
            deadline_ms=0,
            is_forced=True,
            then_retire=True,
        )
    )
    world.advance(2 * FIVE_MINUTES_MS)
    world.configure()
    world.advance(3 * FIVE_MINUTES_MS)
    sent = [each.command_id for delta in world.deltas for each in delta.dispatches]
    assert not [each for each in sent if each.startswith("n-1/stop/")]
