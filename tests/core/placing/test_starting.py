"""What was reserved on a machine that was still to come starts when the machine is there."""

from hostler.core.inputs import ContactResumed, SilenceNoticed
from hostler.model.allocation import AllocationPhase, EndCause
from hostler.model.pool import Band, Offer
from hostler.model.replica import ReplicaPhase
from hostler.model.shape import Capability, CapabilityRequest, Device, Requirement, Shape
from hostler.testing.builders import a_job, a_node, a_pool, an_elastic_tier
from tests.core.placing.conftest import NewTheatre
from tests.core.placing.theatre import N1, n1, n2, own_pool

GPU = Requirement(capacity=1, capabilities=(CapabilityRequest(name="gpu"),))
TWO_GPUS = Shape(
    capacity=10,
    capabilities=(Capability(name="gpu", count=2),),
    devices=(Device(kind="gpu", device_id="0"), Device(kind="gpu", device_id="1")),
)


def test_two_jobs_never_share_a_device(theatre: NewTheatre) -> None:
    """G-045: the chosen GPU is in the result, sent to the agent and reserved."""
    world = theatre(own_pool(), n1(shape=TWO_GPUS))
    for number in range(3):
        world.submit(f"b{number}", a_job(requirement=GPU))
    devices = {key: world.live(key).devices for key in world.places()}
    assert devices == {"b0/main/0": {"gpu": ("0",)}, "b1/main/0": {"gpu": ("1",)}}
    world.become_ready()
    world.delete("b0")
    world.finish_stops()
    assert world.live("b2/main/0").devices == {"gpu": ("0",)}


def test_devices_of_a_machine_that_booted_are_given_when_they_are_known(
    theatre: NewTheatre,
) -> None:
    promised = Shape(capacity=10, capabilities=(Capability(name="gpu", count=2),))
    offers = (Offer(name="gpu", shape=promised),)
    world = theatre(a_pool(tiers=(an_elastic_tier(offers=offers),)))
    for number in range(2):
        world.submit(f"b{number}", a_job(requirement=GPU))
    assert world.live("b0/main/0").devices == {}
    world.succeed(world.commands("launch_machine")[0])
    (node,) = world.launched()
    world.run(world.hello(a_node(node.node_id, shape=TWO_GPUS)))
    assert world.live("b0/main/0").devices == {"gpu": ("0",)}
    assert world.live("b1/main/0").devices == {"gpu": ("1",)}


def test_a_machine_that_is_smaller_than_promised_starts_what_it_can(theatre: NewTheatre) -> None:
    """The rest has failed to start, which counts: machines that are too small must not be bought
    for ever."""
    world = theatre(a_pool())
    world.submit("b1", a_job(capacity=5, band=Band.SILVER))
    world.submit("b2", a_job(capacity=5, band=Band.GOLD))
    world.succeed(world.commands("launch_machine")[0])
    (node,) = world.launched()
    world.run(world.hello(a_node(node.node_id, shape=Shape(capacity=7))))
    assert world.live("b2/main/0").phase is AllocationPhase.STARTING
    (ended,) = world.ended("b1/main/0")
    how = world.fleet.allocations[ended].ended
    assert how is not None
    assert how.cause is EndCause.START_FAILED
    assert "less than its offer promised: capacity" in how.message
    assert world.replica("b1/main/0").restart_at_ms == (0,)
    assert len(world.launched()) == 2


def test_nothing_is_placed_on_a_silent_node(theatre: NewTheatre) -> None:
    world = theatre(own_pool(), n1())
    world.fall_silent(N1)
    world.advance(15_000)
    world.submit()
    assert world.replica().phase is ReplicaPhase.PENDING
    world.run(ContactResumed(node_id=n1().node_id))
    assert world.place() == N1


def test_a_blink_moves_nothing(theatre: NewTheatre) -> None:
    world = theatre(own_pool(), n1(), n2())
    world.submit()
    world.become_ready()
    before = world.live()
    world.run(SilenceNoticed(node_id=before.node_id, since_at_ms=0))
    world.advance(20_000)
    world.run(ContactResumed(node_id=before.node_id))
    assert world.live() == before
