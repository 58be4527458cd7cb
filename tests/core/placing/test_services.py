"""Node services: one copy on each node that is meant, and what the node has by it.

Scenarios of spec/placement.md 6.11: S-128 is left to the outbox (a refused start ends the
allocation, and recovery spaces the tries); the others are here.
"""

from typing import Any

from hostler.api.convert.services import service as service_view
from hostler.base.ids import NodeId
from hostler.core.allocation_fact import AllocationFact
from hostler.core.explain import pending
from hostler.core.inputs import CordonNode, DrainNode
from hostler.core.replies import Refused
from hostler.core.services import NodeService
from hostler.model import Node
from hostler.model.allocation import AllocationPhase, EndCause
from hostler.model.bundle import Job
from hostler.model.launch import Launch
from hostler.model.node import Cordon, NodePhase
from hostler.model.pool import Band
from hostler.model.reason import Reason
from hostler.model.replica import ReplicaPhase
from hostler.model.service import ServiceLife, ServiceSpec
from hostler.model.shape import Capability, CapabilityRequest, Requirement, Shape
from hostler.testing.builders import a_job, a_node, an_elastic_tier
from tests.core.placing.theatre import N1, N2, Theatre, n1, n2, own_pool, pool_p

NDI = Capability(name="ndi", count=4)


def a_service(name: str = "router", *, needs: tuple[str, ...] = (), **spec: Any) -> NodeService:
    """Return a service that provides four of `ndi`, unless told otherwise."""
    job = Job(
        name="main",
        launch=Launch(argv=(name,), ready_within_ms=20_000),
        band=Band.GOLD,
        requirement=Requirement(
            capacity=1, capabilities=tuple(CapabilityRequest(name=each) for each in needs)
        ),
    )
    given: dict[str, Any] = {"pools": ("p",), "provides": (NDI,), **spec}
    return NodeService(name=name, job=job, spec=ServiceSpec(**given))


def lazy(name: str = "router", **spec: Any) -> NodeService:
    return a_service(name, life=ServiceLife.LAZY, **spec)


def user(name: str = "main", capability: str = "ndi", **changes: Any) -> Job:
    """Return a job that needs one of what the service provides."""
    need = Requirement(capacity=2, capabilities=(CapabilityRequest(name=capability),))
    return a_job(name, **{"requirement": need, **changes})


def key(node_id: str, name: str = "router") -> str:
    return f"service.{name}/main/{node_id}"


def a_theatre(*services: NodeService, nodes: tuple[Node, ...] = (n1(),), **pool: Any) -> Theatre:
    world = Theatre(own_pool(**pool), *nodes)
    world.configure(own_pool(**pool), services=services)
    return world


def names(node: Node) -> list[str]:
    return [each.name for each in node.shape.capabilities or ()]


def test_an_eager_service_runs_on_each_node_of_its_pools_and_the_node_is_empty_all_the_same() -> (
    None
):
    world = a_theatre(a_service(), nodes=(n1(), n2(), a_node("n-900003", pool="q", incarnation=1)))
    assert world.place(key(N1)) == N1
    assert world.place(key(N2)) == N2
    assert world.place(key("n-900003")) is None
    node = world.fleet.nodes[N1]
    assert (node.allocation_count, node.is_held) == (0, False)
    world.become_ready()
    assert node.idle_since_at_ms == 0
    assert names(world.fleet.nodes[N1]) == ["ndi"]
    assert world.fleet.nodes[N1].services["router"].is_ready


def test_what_needs_a_service_is_placed_at_once_and_started_when_the_service_is_ready() -> None:
    world = a_theatre(a_service())
    world.submit("b1", user())
    waiting = world.live("b1/main/0")
    assert (waiting.node_id, waiting.phase) == (N1, AllocationPhase.RESERVED)
    assert world.fleet.notes[waiting.allocation_id]["placing"].reason is Reason.SERVICE_NOT_READY
    world.become_ready(key(N1))
    assert world.live("b1/main/0").phase is AllocationPhase.STARTING
    assert waiting.allocation_id not in world.fleet.notes


def test_a_service_that_is_not_ready_in_time_is_offered_no_more() -> None:
    world = a_theatre(a_service(), nodes=(n1(), n2(cordon=Cordon(by="x", reason="", at_ms=0))))
    world.submit("b1", user())
    world.report(world.live(key(N1)), "running")
    world.advance(29_999)
    assert world.place("b1/main/0") == N1
    world.advance(30_000)
    assert world.replica("b1/main/0").phase is ReplicaPhase.PENDING
    assert world.replica("b1/main/0").reason is Reason.NO_CAPACITY
    assert names(world.fleet.nodes[N1]) == []
    assert world.events().count("service_withdrawn") == 1
    world.become_ready(key(N1))  # late, and welcome
    assert world.place("b1/main/0") == N1


def test_a_machine_is_bought_for_what_a_service_will_bring() -> None:
    tier = an_elastic_tier()
    world = Theatre(pool_p(tiers=(tier,)))
    world.configure(pool_p(tiers=(tier,)), services=(a_service(),))
    world.submit("b1", user())
    node_id = world.place("b1/main/0") or ""
    assert world.fleet.nodes[node_id].phase is NodePhase.REQUESTED
    world.boot()
    assert world.place(key(node_id)) == node_id
    assert world.live("b1/main/0").phase is AllocationPhase.RESERVED
    world.become_ready(key(node_id))
    assert world.live("b1/main/0").phase is AllocationPhase.STARTING


def test_s_129_what_a_service_takes_itself_does_not_end_it() -> None:
    """Given `s` consumes 1 `card` of 1 and it is then reserved, then the service stays."""
    card = Shape(capacity=10, capabilities=(Capability(name="card", count=1),))
    world = a_theatre(a_service(needs=("card",)), nodes=(n1(shape=card),))
    world.become_ready()
    before = world.live(key(N1)).allocation_id
    world.advance(600_000)
    world.hear_inventory(N1, card)
    assert world.live(key(N1)).allocation_id == before
    assert names(world.fleet.nodes[N1]) == ["card", "ndi"]


def test_a_service_without_room_says_so_and_comes_when_there_is_some() -> None:
    world = a_theatre(a_service(needs=("card",)))
    replica = world.replica(key(N1))
    assert (replica.phase, replica.reason) == (ReplicaPhase.PENDING, Reason.CAPABILITY_MISSING)
    world.hear_inventory(N1, Shape(capacity=10, capabilities=(Capability(name="card", count=1),)))
    assert world.place(key(N1)) == N1


def test_s_130_a_service_outlives_what_passes_and_not_what_lasts() -> None:
    """Given a node that is not meant for less than its patience, it stays; for longer, it stops."""
    world = a_theatre(a_service(), nodes=(n1(), n2()))
    world.become_ready()
    world.configure(own_pool(), services=(a_service(tiers=("p/own",)),))
    assert world.commands("stop_allocation") == []
    other = own_pool(tiers=(own_pool().tiers[0], an_elastic_tier()))
    moved = a_service(tiers=("p/cloud",))
    world.configure(other, services=(moved,))
    world.advance(world.now_ms + 29_999)
    assert world.commands("stop_allocation") == []
    world.configure(other, services=(a_service(),))
    world.advance(world.now_ms + 60_000)
    assert world.commands("stop_allocation") == []
    world.configure(other, services=(moved,))
    world.advance(world.now_ms + 30_000)
    assert len(world.commands("stop_allocation")) == 2
    world.finish_stops()
    assert world.fleet.replicas.get(key(N1)) is None
    assert world.fleet.nodes[N1].services == {}
    assert names(world.fleet.nodes[N1]) == []


def test_a_cordon_ends_no_service() -> None:
    world = a_theatre(a_service())
    world.become_ready()
    world.ask(CordonNode, node_id=N1, reason="")
    world.advance(3_600_000)
    assert world.place(key(N1)) == N1
    assert world.fleet.nodes[N1].services["router"].is_ready


def test_s_132_a_lazy_service_comes_with_its_first_consumer_and_lingers_after_the_last() -> None:
    world = a_theatre(lazy())
    assert world.places() == {}
    assert names(world.fleet.nodes[N1]) == ["ndi"]
    world.submit("b1", user())
    assert set(world.places()) == {"b1/main/0", key(N1)}
    world.become_ready(key(N1))
    world.become_ready("b1/main/0")
    world.delete("b1")
    world.finish_stops()
    assert set(world.places()) == {key(N1)}
    gone_at_ms = world.now_ms
    world.advance(gone_at_ms + 299_999)
    assert world.commands("stop_allocation") == []
    world.advance(gone_at_ms + 300_000)
    world.finish_stops()
    assert world.places() == {}
    assert names(world.fleet.nodes[N1]) == ["ndi"]
    world.submit("b2", user())
    assert set(world.places()) == {"b2/main/0", key(N1)}


def test_s_133_a_copy_that_has_gone_from_outside_is_placed_again() -> None:
    world = a_theatre(a_service())
    world.become_ready()
    first = world.live(key(N1))
    world.end(key(N1), EndCause.SUPERVISOR_LOST)
    again = world.live(key(N1))
    assert again.epoch == first.epoch + 1
    assert again.phase is AllocationPhase.STARTING


def test_s_134_when_what_a_service_gave_is_gone_its_consumers_are_recovered_by_band() -> None:
    world = a_theatre(a_service(), nodes=(n1(), n2()))
    world.become_ready()
    world.submit("silver", user())
    world.submit("gold", user(band=Band.GOLD))
    for name in ("silver", "gold"):
        world.become_ready(f"{name}/main/0")
    home = world.place("gold/main/0") or ""
    world.report(world.live(key(home)), "running")  # ready no more
    world.advance(world.now_ms + 29_999)
    assert world.commands("stop_allocation") == []
    world.advance(world.now_ms + 1)
    assert world.fleet.nodes[home].services["router"].is_offered is False
    world.finish_stops()
    other = N2 if home == N1 else N1
    assert world.place("gold/main/0") == other
    assert world.place("silver/main/0") == other
    assert world.replica("gold/main/0").restart_at_ms == ()


def test_a_short_absence_of_a_service_disturbs_nobody() -> None:
    world = a_theatre(a_service())
    world.become_ready()
    world.submit("b1", user())
    world.become_ready("b1/main/0")
    world.end(key(N1))
    world.become_ready(key(N1))
    world.advance(world.now_ms + 600_000)
    assert world.live("b1/main/0").phase is AllocationPhase.READY


def test_services_start_in_the_order_in_which_they_need_each_other() -> None:
    clock = a_service("clock", provides=(Capability(name="ptp", count=9),))
    router = a_service(needs=("ptp",))
    world = a_theatre(router, clock)
    assert world.live(key(N1, "clock")).phase is AllocationPhase.STARTING
    assert world.live(key(N1)).phase is AllocationPhase.RESERVED
    world.become_ready(key(N1, "clock"))
    assert world.live(key(N1)).phase is AllocationPhase.STARTING


def test_services_that_need_each_other_in_a_circle_are_refused() -> None:
    clock = a_service("clock", provides=(Capability(name="ptp", count=9),), needs=("ndi",))
    outside = a_service("outside", provides=(), needs=("ptp",))
    world = Theatre(own_pool(), n1())
    answer = world.configure(own_pool(), services=(a_service(needs=("ptp",)), clock, outside))
    assert isinstance(answer, Refused)
    assert [(each.path, each.code) for each in answer.problems] == [
        ("services[0].consumes", "circle"),
        ("services[1].consumes", "circle"),
    ]


def test_whatever_is_wrong_with_services_is_told_at_once() -> None:
    world = Theatre(own_pool(), n1())
    answer = world.configure(
        own_pool(),
        services=(a_service(pools=("p", "x")), a_service("other", tiers=("p/cloud",))),
    )
    assert isinstance(answer, Refused)
    assert [(each.path, each.code) for each in answer.problems] == [
        ("services[0].pools[1]", "unknown_pool"),
        ("services[1].tiers[0]", "unknown_tier"),
        ("services[1].provides", "provided_twice"),
    ]


def test_a_changed_service_is_renewed_on_one_node_after_the_other() -> None:
    world = a_theatre(a_service(), nodes=(n1(), n2()))
    world.become_ready()
    changed = a_service()
    changed = NodeService(
        name=changed.name,
        job=Job(
            name="main",
            launch=Launch(argv=("router", "-v2")),
            band=Band.GOLD,
            requirement=changed.job.requirement,
        ),
        spec=changed.spec,
    )
    world.configure(own_pool(), services=(changed,))
    assert len(world.commands("stop_allocation")) == 1
    world.finish_stops()
    world.become_ready()
    assert len(world.commands("stop_allocation")) == 1
    world.finish_stops()
    world.become_ready()
    for node_id in (N1, N2):
        assert world.live(key(node_id)).launch.argv == ("router", "-v2")
    assert world.commands("stop_allocation") == []
    bundle = world.bundle("service.router")
    assert bundle.observed_generation == bundle.generation == 2


def test_a_service_that_leaves_the_configuration_ends_everywhere_and_its_consumers_move_on() -> (
    None
):
    world = a_theatre(a_service())
    world.become_ready()
    world.submit("b1", user())
    world.become_ready("b1/main/0")
    world.configure(own_pool())
    world.finish_stops()
    assert world.places() == {}
    assert "service.router" not in world.fleet.bundles
    assert world.fleet.nodes[N1].services == {}
    assert world.replica("b1/main/0").reason is Reason.NO_CAPACITY


def test_a_drain_leaves_services_until_the_machine_goes() -> None:
    world = a_theatre(a_service())
    world.become_ready()
    world.drain(N1)
    assert world.events().count("node_drained") == 1
    assert world.place(key(N1)) == N1


def test_a_service_that_breaks_on_one_node_does_well_on_others() -> None:
    world = a_theatre(a_service(), nodes=(n1(), n2()))
    world.become_ready()
    for _ in range(7):
        world.end(key(N1))
        world.advance(world.now_ms + 5_000)
    assert world.replica(key(N1)).phase is ReplicaPhase.BROKEN
    world.advance(world.now_ms + 60_000)
    world.end(key(N2))
    assert world.live(key(N2)).phase is AllocationPhase.STARTING
    world.start_job("service.router")
    assert world.place(key(N1)) == N1


def test_a_lease_is_not_given_what_a_service_has_yet_to_bring() -> None:
    world = a_theatre(a_service())
    need = Requirement(capabilities=(CapabilityRequest(name="ndi"),))
    lease = world.acquire(requirement=need, timeout_ms=60_000)
    assert lease.node_id is None
    world.become_ready(key(N1))
    assert world.fleet.leases[lease.lease_id].node_id == N1


def test_the_copies_on_a_machine_that_is_lost_are_forgotten_with_it() -> None:
    tier = an_elastic_tier()
    world = Theatre(pool_p(tiers=(tier,)))
    world.configure(pool_p(tiers=(tier,)), services=(a_service(),))
    world.submit("b1", user())
    node_id = world.place("b1/main/0") or ""
    world.boot()
    world.become_ready(key(node_id))
    world.lose(node_id)
    assert world.fleet.replicas.get(key(node_id)) is None


def test_a_copy_that_ends_on_a_cordoned_node_says_why_it_stays_away() -> None:
    world = a_theatre(a_service())
    world.become_ready()
    world.ask(CordonNode, node_id=N1, reason="")
    world.end(key(N1))
    assert world.replica(key(N1)).reason is Reason.CORDONED
    told = [(each.reason, each.examples) for each in pending(world.fleet).groups]
    assert told == [(Reason.CORDONED, (key(N1),))]


def test_what_waits_for_a_service_is_told_among_what_is_pending() -> None:
    world = a_theatre(a_service())
    world.submit("b1", user())
    told = [each for each in pending(world.fleet).groups if each.examples == ("b1/main/0",)]
    assert [(each.reason, each.detail) for each in told] == [
        (Reason.SERVICE_NOT_READY, f"service router is not ready on {N1}")
    ]


def shown(world: Theatre) -> list[tuple[str, str]]:
    """Return what people see of the service: its nodes, and how it is there."""
    view = service_view(world.fleet, world.fleet.bundles["service.router"], has_nodes=True)
    return sorted((each.node_id, each.state) for each in view.nodes)


def test_s_018_services_that_run_are_known_after_a_restart_and_not_started_again() -> None:
    """Given two running jobs tagged as instances of service `s` on `n1` and `n2`, when hydrated,
    then no create-job RPC is sent and `nodeServicePlacementsFor(s)` names both."""
    world = a_theatre(a_service(), nodes=(n1(), n2()))
    world.become_ready()
    for start in world.commands("start_allocation"):
        world.succeed(start)
    copies = dict(world.fleet.allocations.rows)
    world.restart()
    for copy in copies.values():
        fact = AllocationFact(allocation_id=copy.allocation_id, epoch=copy.epoch, phase="ready")
        world.run(world.hello(world.fleet.nodes[copy.node_id], fact))
    assert not world.commands("start_allocation")
    assert world.fleet.allocations.rows.keys() == copies.keys()
    assert shown(world) == [(N1, "ready"), (N2, "ready")]


def test_s_190_a_service_is_not_shown_on_a_node_that_is_gone_while_another_boots() -> None:
    """Given a service placed on a node that stops while the create call of the recovery takes 60 s,
    then during these 60 s `nodeServicePlacementsFor` no longer names the node."""
    world = a_theatre(a_service(), nodes=(n1(), n2()))
    world.become_ready()
    world.ask(DrainNode, node_id=NodeId(N1), deadline_ms=60_000, then_retire=True)
    world.finish_stops(N1)
    assert world.fleet.nodes[N1].phase is not NodePhase.READY
    assert shown(world) == [(N2, "ready")]
