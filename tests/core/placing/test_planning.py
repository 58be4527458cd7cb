"""A plan says what submitting would do, and leaves the fleet as it was (S-172)."""

from hostler.core.fleet import Fleet
from hostler.core.planning import Change, Outcome, Plan, plan
from hostler.core.replies import Accepted, Refused
from hostler.model.launch import Launch
from hostler.model.reason import Reason
from hostler.testing.builders import a_job, a_pool
from tests.core.placing.conftest import NewTheatre
from tests.core.placing.theatre import N1, Theatre, fixture, n1, n2, own_pool


def state(fleet: Fleet) -> tuple[object, ...]:
    """Return everything of a fleet that a plan must not touch."""
    timers = {
        (kind, key): fleet.timers.get(kind, key)
        for kind, table in fleet.tables.items()
        for key in table.rows
    }
    pending = {
        b: fleet.index.replicas_pending.keys(b) for b in fleet.index.replicas_pending.buckets()
    }
    return fleet.digest(), fleet.revision, fleet.event_seq, fleet.now_ms, timers, pending


def planned(world: Theatre, *args: object, **fields: object) -> Plan:
    """Plan a submission, and hold the fleet to being as it was."""
    before = state(world.fleet)
    found = plan(world.fleet, world.submission(*args, **fields), world.now_ms + 1_000)  # type: ignore[arg-type]  # passed through
    assert state(world.fleet) == before
    assert world.fleet.open_delta is None
    return found


def told(found: Plan) -> list[tuple[str, Change, Outcome, str | None]]:
    """Return the gist of each planned replica."""
    return [(r.replica_id, r.change, r.outcome, r.node_id) for r in found.replicas]


def test_a_plan_is_what_happens(theatre: NewTheatre) -> None:
    world = theatre(*fixture())
    job = a_job(capacity=10)
    found = planned(world, "b1", job, replica_count=3)
    assert isinstance(found.result, Accepted)
    assert (found.change, found.launch_count) == (Change.CREATE, 1)
    assert found.launch_microusd_per_hour == 100_000
    assert [r.outcome for r in found.replicas] == [
        Outcome.PLACED,
        Outcome.PLACED,
        Outcome.LAUNCHING,
    ]
    world.submit("b1", job, replica_count=3)
    assert world.places() == {r.replica_id: r.node_id for r in found.replicas}
    assert found.revision == world.fleet.revision - 1


def test_a_plan_says_why_a_replica_would_wait(theatre: NewTheatre) -> None:
    world = theatre(own_pool(), n1())
    found = planned(world, replica_count=2)
    waiting = found.replicas[1]
    assert (waiting.outcome, waiting.reason) == (Outcome.WAITING, Reason.SPREAD_NODE)
    assert waiting.trace == "p/own: 0 of 1 nodes fit (1 spread_node), exhausted"
    assert waiting.decision is not None


def test_s_174_three_of_six_on_two_of_ten(theatre: NewTheatre) -> None:
    """Given a fixed pool with `n1`, `n2` (10 each, own tier only) and 3 replicas of capacity 6,
    then admission answers no capacity and names exactly one replica."""
    found = planned(theatre(own_pool(), n1(), n2()), "b1", a_job(capacity=6), replica_count=3)
    waiting = [r.replica_id for r in found.replicas if r.outcome is Outcome.WAITING]
    assert waiting == ["b1/main/2"]


def test_s_176_a_bundle_does_not_stand_in_its_own_way(theatre: NewTheatre) -> None:
    """Given a running bundle filling `n1`, when the same bundle is checked again as an update, then
    ok."""
    world = theatre(own_pool(), n1())
    world.submit("b1", a_job(capacity=10))
    found = planned(world, "b1", a_job(capacity=10))
    assert found.change is Change.KEEP
    assert told(found) == [("b1/main/0", Change.KEEP, Outcome.PLACED, N1)]


def test_a_plan_of_a_change_says_what_is_replaced_and_what_goes(theatre: NewTheatre) -> None:
    world = theatre(own_pool(), n1())
    world.submit("b1", a_job("a", capacity=2), a_job("b", capacity=2), a_job("c", capacity=2))
    world.become_ready()
    new = a_job("b", capacity=2, launch=Launch(argv=("new",)))
    found = planned(world, "b1", a_job("a", capacity=2), new, a_job("d", capacity=2))
    assert [(r.replica_id, r.change, r.outcome) for r in found.replicas] == [
        ("b1/a/0", Change.KEEP, Outcome.PLACED),
        ("b1/b/0", Change.UPDATE, Outcome.PLACED),
        ("b1/d/0", Change.CREATE, Outcome.PLACED),
        ("b1/c/0", Change.REMOVE, Outcome.GONE),
    ]


def test_a_plan_of_what_is_wrong_says_what(theatre: NewTheatre) -> None:
    found = planned(theatre(a_pool()), "b1", a_job(capacity=500))
    assert isinstance(found.result, Refused)
    assert [p.code for p in found.result.problems] == ["requirement_unsatisfiable"]
    assert found.replicas == ()


def test_a_plan_gives_back_the_instants_that_controllers_asked_for(theatre: NewTheatre) -> None:
    """What is due at the instant of the plan takes part in it, and is due again afterwards."""
    world = theatre(own_pool(), n1(), n2())
    world.submit()
    world.end()
    world.end_at(2_000)
    due_at_ms = world.fleet.timers.next_at_ms()
    plan(world.fleet, world.submission("b2"), 50_000)
    assert world.fleet.timers.next_at_ms() == due_at_ms
    world.advance(5_000)
    assert world.place() is not None
