"""spec/placement.md 6.9: inventory and reservation, and S-108 of 6.8.

What a worker reports as reserved is not read at all: what is free follows from the allocations
that the books hold, so a report can neither free nor take anything.

Not here: S-113 (an inventory without a node's name): the link that brings it belongs to a node.
"""

from hostler.model.allocation import EndCause
from hostler.model.shape import Shape
from hostler.testing.builders import a_job
from tests.core.placing.conftest import NewTheatre
from tests.core.placing.theatre import N1, Theatre, n1, own_pool


def free_capacity(world: Theatre, node_id: str = N1) -> int | None:
    """Return what placing sees as free on a node."""
    return world.fleet.index.places.of(world.fleet, node_id).room.capacity


def test_s_108_what_was_stopped_is_not_placed_again_by_a_refusal(theatre: NewTheatre) -> None:
    """Given a rejection of a dormant or terminal job, then not re-placed."""
    world = theatre(own_pool(), n1())
    world.submit()
    world.stop_job()
    world.end(cause=EndCause.REJECTED)
    assert world.place() is None
    world.advance(600_000)
    world.hear_inventory(N1)
    assert (world.place(), world.count("replica_placed")) == (None, 1)


def test_s_109_what_is_bound_counts_whatever_the_worker_says(theatre: NewTheatre) -> None:
    """Given `n1` (10) with bound jobs of 3 and 4 and wire figures 0, then a job of 4 does not fit,
    one of 3 does."""
    world = theatre(own_pool(), n1())
    world.submit("three", a_job(capacity=3))
    world.submit("four", a_job(capacity=4))
    world.hear_inventory(N1, Shape(capacity=10, cores_milli=8_000, memory_bytes=16 * 2**30))
    world.submit("more", a_job(capacity=4))
    assert world.place("more/main/0") is None
    world.submit("fits", a_job(capacity=3))
    assert world.place("fits/main/0") == N1


def test_s_110_a_job_that_was_just_bound_is_held_room(theatre: NewTheatre) -> None:
    """Given wire reserved 3 that lists only the first job, and a second job of 4 just bound, then
    free is 3."""
    world = theatre(own_pool(), n1())
    world.submit("three", a_job(capacity=3))
    world.become_ready("three/main/0")
    world.submit("four", a_job(capacity=4))
    node = world.fleet.nodes[N1]
    world.run(world.hello(node))
    assert free_capacity(world) == 3


def test_s_112_a_larger_requirement_counts_when_the_copy_is_replaced(theatre: NewTheatre) -> None:
    """Given a bundle update raising the requirement from 4 to 8 while the old instance runs, then
    the reservation stays 4 until the instance is replaced."""
    world = theatre(own_pool(), n1())
    world.submit()
    world.become_ready()
    world.submit("b1", a_job(capacity=8))
    assert free_capacity(world) == 6
    assert world.live().requirement.capacity == 4
    for _ in range(3):
        world.finish_stops()
        world.advance(world.now_ms + 10_000)
    assert world.live().requirement.capacity == 8
    assert free_capacity(world) == 2


def test_s_114_a_node_shows_what_it_has_and_what_is_free(theatre: NewTheatre) -> None:
    """Given `inventory(n1)`, then raw worker figures; given the node view, effective ones."""
    world = theatre(own_pool(), n1())
    world.submit()
    assert world.fleet.nodes[N1].shape.capacity == 10
    assert free_capacity(world) == 6
