"""spec/placement.md 6.5 and 6.14 to 6.16: what is left of them.

Elsewhere: S-181, S-182 and S-192 are the simulator (`tests/sim`: random histories with invariants
after every step, replayed to the same digest, crashes at any point); S-172 is `test_planning.py`,
S-185 `test_policies.py`; S-189 (a gap in a stream) is of the numbered links and of the cursors of
the event stream; S-194 is S-062; S-169 and S-170 are about metrics.
Not here: S-054 (bundles of another product), S-180 (each setting is written in one way only).
"""

from hostler.core.planning import plan
from hostler.core.replies import Accepted, Refused
from hostler.model.allocation import AllocationPhase
from hostler.model.launch import Launch
from hostler.model.pool import Band
from hostler.model.replica import ReplicaPhase
from hostler.testing.builders import a_job, a_node
from tests.core.placing.conftest import NewTheatre
from tests.core.placing.theatre import N1, N2, fixture, n1, n2, own_pool


def test_s_052_a_deletion_goes_on_until_every_agent_has_obeyed(theatre: NewTheatre) -> None:
    """Given the delete RPC fails twice, then it is retried with growing delay until it succeeds,
    and no job of the bundle is placed in the meantime."""
    world = theatre(own_pool(), n1())
    world.submit()
    world.become_ready()
    world.delete()
    waits = []
    for _ in range(2):
        (command_id,) = world.commands("stop_allocation")
        world.fail(command_id, "unreachable")
        entry = world.fleet.commands[command_id]
        waits.append(entry.next_at_ms - world.now_ms)
        world.advance(entry.next_at_ms)
    assert waits[0] < waits[1]
    assert world.count("replica_placed") == 1
    world.finish_stops()
    assert not world.fleet.bundles.rows
    assert world.count("replica_placed") == 1


def test_s_053_what_is_unknown_cannot_be_stopped(theatre: NewTheatre) -> None:
    """Given an unknown bundle, when a stop time is set, then it fails."""
    world = theatre(*fixture())
    for answer in (world.stop_job("nobody"), world.delete("nobody")):
        assert isinstance(answer, Refused)
        assert answer.is_missing


def test_s_178_what_is_wrong_is_said_instead_of_a_plan(theatre: NewTheatre) -> None:
    """Given validation errors, then admission returns them and runs no dry run."""
    world = theatre(*fixture())
    jobs = (a_job(capacity=-1), a_job("main"), a_job("other", launch=Launch(argv=())))
    found = plan(world.fleet, world.submission("b1", *jobs, pool="nowhere"), world.now_ms)
    assert isinstance(found.result, Refused)
    assert len(found.result.problems) > 2
    assert not found.replicas


def test_s_184_gold_comes_back_before_silver_when_a_zone_is_lost(theatre: NewTheatre) -> None:
    """Given a zone loss that takes 20 of 50 nodes in one second, then every gold job is
    re-dispatched before any silver one, no node is over-committed, and no bundle is broken."""
    nodes = [
        a_node(f"n-9000{number:02}", incarnation=1, zone="lost" if number < 20 else "kept")
        for number in range(50)
    ]
    world = theatre(own_pool(), *nodes, lost_node_count_max=50)
    for number in range(40):
        band = Band.GOLD if number % 2 else Band.SILVER
        world.submit(f"b{number:02}", a_job(band=band, capacity=5))
    world.become_ready()
    lost = {node.node_id for node in nodes[:20]}
    hit = {key for key, node_id in world.places().items() if node_id in lost}
    assert len(hit) == 40
    before = len(world.deltas)
    world.lose(*sorted(lost))
    bands = [
        world.fleet.allocations[str(dispatch.command_id).partition("/")[0]].band
        for delta in world.deltas[before:]
        for dispatch in delta.dispatches
        if "/start/" in dispatch.command_id and dispatch.attempt == 1
    ]
    assert bands == [Band.GOLD] * 20 + [Band.SILVER] * 20
    assert world.count("bundle_broken") == 0


def test_s_186_a_change_is_made_to_what_was_seen(theatre: NewTheatre) -> None:
    """Given a bundle changed by another client between the controller's read and its stop-time
    write, then the write is refused or merged; the other client's change survives."""
    world = theatre(*fixture())
    world.submit("b1", if_generation=0)
    seen = world.bundle().generation
    world.submit("b1", a_job(capacity=5))
    answer = world.try_submit("b1", a_job(capacity=6), if_generation=seen)
    assert isinstance(answer, Refused)
    assert (answer.code, answer.is_conflict) == ("bundle_changed", True)
    assert "at generation 2, not 1" in answer.message
    assert world.bundle().jobs[0].requirement.capacity == 5
    assert isinstance(world.try_submit("b1", a_job(capacity=6), if_generation=2), Accepted)
    again = world.try_submit("b1", if_generation=0)
    assert isinstance(again, Refused)
    assert world.try_submit("b9", if_generation=1).code == "bundle_changed"  # type: ignore[union-attr]  # refused


def test_s_193_what_ran_on_a_node_that_never_comes_back_has_failed(theatre: NewTheatre) -> None:
    """Given a bronze job whose history ends in `running` on `n9` and `n9` absent from the running
    set, when hydrated, then it is treated as failed by band (dropped, one verdict sent); a gold one
    in the same position is recovered with spare preference and counted once."""
    spare = a_node("n-900003", is_spare=True, incarnation=1)
    world = theatre(own_pool(spare_count=1), n1(), n2(), spare)
    world.submit("bronze", a_job(band=Band.BRONZE))
    world.submit("gold", a_job(band=Band.GOLD))
    world.become_ready()
    assert set(world.places().values()) == {N1}
    world.restart()
    world.run(world.hello(world.fleet.nodes[N2]), world.hello(spare))
    world.give_up()
    assert world.replica("bronze/main/0").phase is ReplicaPhase.DROPPED
    assert world.place("gold/main/0") == spare.node_id
    assert len(world.replica("gold/main/0").restart_at_ms) == 1
    assert world.live("gold/main/0").phase is AllocationPhase.STARTING
    assert world.count("replica_dropped") == 1
