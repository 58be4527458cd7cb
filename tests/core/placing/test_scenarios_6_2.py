"""spec/placement.md 6.2: many things at once.

Nothing waits in the core: a slow provider or agent is a command whose outcome is still to come.

Not here: S-020 and S-021 are about callbacks that raise; the core calls nobody back.
"""

import pytest

from hostler.core.allocation_fact import AllocationFact
from hostler.core.inputs import AllocationReported, CommandSettled, Succeeded
from hostler.model.allocation import EndCause, Ended
from hostler.model.node import NodePhase
from hostler.model.replica import ReplicaPhase
from hostler.testing.builders import a_job, a_pool, an_elastic_tier
from tests.core.placing.conftest import NewTheatre
from tests.core.placing.theatre import N1, N2, Theatre, fixture, n1, n2, own_pool


def test_s_022_a_slow_launch_holds_nothing_up(theatre: NewTheatre) -> None:
    """Given a create RPC that takes 300 s, when during it `n2` (hosting `j2`) stops, then the
    recovery of `j2` is dispatched at once."""
    world = theatre(*fixture())
    world.submit("b1", a_job(capacity=50))
    world.submit("full", a_job(capacity=10))
    world.submit("b2", a_job(capacity=10))
    assert world.place("b2/main/0") == N2
    world.delete("full")
    world.finish_stops()
    world.advance(100_000)
    assert world.commands("launch_machine")
    world.end("b2/main/0")
    assert world.place("b2/main/0") == N1
    allocation = world.live("b2/main/0")
    assert f"{allocation.allocation_id}/start/2" in world.outbox


def test_s_024_a_start_that_is_overtaken_by_a_deletion_leaves_nothing(theatre: NewTheatre) -> None:
    """Given a start RPC in flight from a sweep, when the job is deleted and then the RPC succeeds,
    then no binding, no reservation and no placement record exist for it, and a stop is sent."""
    world = theatre(*fixture())
    world.submit()
    allocation = world.live()
    start = world.fleet.commands["a-000001/start/1"]
    world.delete()
    assert "a-000001/start/1" not in world.outbox
    assert "a-000001/stop/1" in world.outbox
    world.run(CommandSettled(command_id=start.command_id, outcome=Succeeded()))
    assert "a-000001/stop/1" in world.outbox
    world.report(allocation, "ended", ended=Ended(cause=EndCause.STOPPED))
    assert not world.fleet.bundles.rows
    assert not world.fleet.replicas.rows
    assert not world.fleet.traces.rows
    assert world.fleet.nodes[N1].allocation_count == 0
    assert world.events()[-1] == "bundle_deleted"


@pytest.mark.slow
def test_s_025_launches_are_bounded_and_all_are_served(theatre: NewTheatre) -> None:
    """Given 500 pending jobs that all need a machine and a provider limit of 10 in parallel, when a
    sweep runs, then at no instant are more than 10 creates in flight and all are served in the
    end."""
    world = theatre(a_pool(launch_count_max=10, tiers=(an_elastic_tier(node_count_max=500),)))
    world.run(
        *(
            world.submission(f"b{number:03}", a_job(capacity=10), replica_count=100)
            for number in range(5)
        )
    )
    round_count = 0
    while len(world.places()) < 500 or world.commands("launch_machine"):
        assert len(world.commands("launch_machine")) == 10
        world.boot()
        round_count += 1
    assert round_count == 50
    assert len(set(world.places().values())) == 500
    assert all(node.phase is NodePhase.READY for node in world.launched())


def test_s_026_one_end_is_one_recovery(theatre: NewTheatre) -> None:
    """Given the same `nodeStopping` twice, then one recovery, restart count 1."""
    world = theatre(own_pool(), n1(), n2())
    world.submit()
    said = AllocationReported(
        node_id=world.live().node_id,
        fact=AllocationFact(
            allocation_id=world.live().allocation_id,
            epoch=1,
            phase="ended",
            ended=Ended(cause=EndCause.EXITED, exit_code=1),
        ),
    )
    world.run(said, said)
    world.run(said)
    assert world.count("replica_recovering") == 1
    assert world.replica().restart_at_ms == (0,)
    assert (world.replica().phase, world.place()) == (ReplicaPhase.PLACED, N2)


@pytest.mark.slow
@pytest.mark.parametrize("is_together", [True, False])
def test_a_thousand_replicas_fill_a_hundred_nodes(theatre: NewTheatre, is_together: bool) -> None:
    """1,000 pending replicas and 100 nodes of ten: each gets ten, in whatever order they come."""
    world: Theatre = theatre(
        a_pool(tiers=(an_elastic_tier(offers=an_elastic_tier().offers[:1]),), launch_count_max=100)
    )
    world.run(
        *(
            world.submission(f"b{number:03}", a_job(capacity=1), replica_count=1)
            for number in range(1_000)
        )
    )
    world.boot(is_together=is_together)
    counts = [node.allocation_count for node in world.launched()]
    assert counts == [10] * 100
