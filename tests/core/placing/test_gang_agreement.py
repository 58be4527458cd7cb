"""Gangs compared with trying every way to put all members on the nodes of a small fleet."""

from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st

from hostler.core.fleet import Fleet
from hostler.model.reason import Reason
from hostler.testing.builders import a_job, a_node
from tests.core.placing.naive import doubled, overcommitted
from tests.core.placing.theatre import Theatre, own_pool


def fits_together(fleet: Fleet, members: list[tuple[str, int]]) -> bool:
    """Say whether some way to place all members, two of one job never on one node, has room."""
    free = {
        node.node_id: (node.shape.capacity or 0)
        - sum(
            a.requirement.capacity
            for a in fleet.allocations.rows.values()
            if a.is_live and a.node_id == node.node_id
        )
        for node in fleet.nodes.in_order()
    }
    for choice in product(sorted(free), repeat=len(members)):
        places = [(job, node_id) for (job, _), node_id in zip(members, choice, strict=True)]
        used = dict.fromkeys(free, 0)
        for (_, size), node_id in zip(members, choice, strict=True):
            used[node_id] += size
        if len(set(places)) == len(places) and all(used[n] <= free[n] for n in free):
            return True
    return False


@settings(max_examples=120)
@given(data=st.data())
def test_a_gang_is_placed_exactly_when_it_can_be(data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 3))
    nodes = [a_node(f"n-90000{number}", incarnation=1) for number in range(count)]
    world = Theatre(own_pool(), *nodes)
    for number in range(data.draw(st.integers(0, 3))):
        world.submit(f"b{number}", a_job(capacity=data.draw(st.integers(1, 6))))
    sizes = data.draw(st.lists(st.integers(1, 7), min_size=1, max_size=3))
    jobs = [a_job(f"j{number}", capacity=size) for number, size in enumerate(sizes)]
    replica_count = data.draw(st.integers(1, 2)) if len(sizes) < 3 else 1
    members = [(job.name, job.requirement.capacity) for job in jobs for _ in range(replica_count)]
    expected = fits_together(world.fleet, members)
    before = world.fleet.index.allocations_by_bundle.count("g")
    world.submit("g", *jobs, replica_count=replica_count, is_gang=True)
    placed = world.fleet.index.allocations_by_bundle.count("g")
    assert before == 0
    assert placed == (len(members) if expected else 0)
    assert not overcommitted(world.fleet)
    assert not doubled(world.fleet)
    if not expected:
        waiting = [r for r in world.fleet.replicas.in_order() if r.bundle_id == "g"]
        assert {r.reason for r in waiting} == {Reason.GANG_INCOMPLETE}
    world.check_calm()
