"""spec/placement.md 6.7: recovery.

A node that stops is a node that is lost, or a workload whose end its agent reports. Instants in
the names of the scenarios are in seconds, here in milliseconds.

Not here: promotion of a backup (G-158), which is of a later issue.
"""

from hostler.core.allocation_fact import AllocationFact
from hostler.model.allocation import EndCause
from hostler.model.launch import Launch
from hostler.model.pool import Band
from hostler.model.reason import Reason
from hostler.model.replica import ReplicaPhase
from hostler.testing.builders import a_job, a_node, a_pool
from tests.core.placing.conftest import NewTheatre
from tests.core.placing.theatre import N1, N2, fixture, n1, n2, own_pool


def test_s_080_gold_takes_the_spare_and_silver_the_ordinary_node(theatre: NewTheatre) -> None:
    """Given an idle spare and an ordinary free node, when a gold job's node stops, then it lands on
    the spare; a silver one lands on the ordinary node."""
    spare = a_node("n-900003", is_spare=True, incarnation=1)
    for band, expected in ((Band.GOLD, spare.node_id), (Band.SILVER, N2)):
        world = theatre(own_pool(spare_count=1), n1(), n2(), spare)
        world.submit("b1", a_job(band=band))
        assert world.place() == N1
        world.end()
        assert world.place() == expected
        assert world.count("spare_used") == (1 if band is Band.GOLD else 0)


def test_a_silver_recovery_takes_a_spare_when_nothing_else_fits(theatre: NewTheatre) -> None:
    """C-041: not while an ordinary node fits; a spare dedicated to a band is refused to others."""
    spare = a_node("n-900003", is_spare=True, incarnation=1)
    world = theatre(own_pool(spare_count=1), n1(), spare)
    world.submit("b1", a_job(capacity=10))
    world.submit("b2", a_job(capacity=10))
    assert world.replica("b2/main/0").reason is Reason.NO_CAPACITY
    world.end("b1/main/0")
    assert world.place("b1/main/0") == spare.node_id


def test_s_126_a_spare_for_gold_is_refused_to_silver(theatre: NewTheatre) -> None:
    """Given a spare dedicated to gold, when a silver recovery needs a node, then it is not used."""
    spare = a_node("n-900003", is_spare=True, spare_band=Band.GOLD, incarnation=1)
    world = theatre(own_pool(spare_count=1, spare_band=Band.GOLD), n1(), spare)
    world.submit("b1", a_job(capacity=10))
    world.lose(N1)
    assert world.place() is None
    assert world.replica().reason is Reason.NO_CAPACITY


def test_s_081_a_node_that_failed_is_left_alone_for_a_while(theatre: NewTheatre) -> None:
    """Given `n1` stopping at t=0 and back at once without inventory, when recoveries are made at
    30.000 and 30.001, then `n1` is excluded in the first and allowed in the second."""
    for at_ms, expected in ((30_000, N2), (30_001, N1)):
        third = a_node("n-900003", incarnation=1)
        world = theatre(own_pool(), n1(), n2(), third)
        world.submit()
        world.end(cause=EndCause.EXITED)
        assert world.place() == N2
        world.run(at_ms=at_ms)
        avoided = [a for a in world.replica().avoided if a.until_at_ms >= world.now_ms]
        assert [a.node_id for a in avoided] == ([N1] if at_ms == 30_000 else [])
        world.end(cause=EndCause.EXITED)
        assert world.place() == (third.node_id if expected == N2 else N1)


def test_the_only_node_is_used_again(theatre: NewTheatre) -> None:
    """Where nothing else fits, the node of the last failure is better than none."""
    world = theatre(own_pool(), n1())
    world.submit()
    world.end()
    assert world.place() == N1
    assert world.fleet.traces["b1/main/0"].decisions[-1].rule.startswith("no other place fits")


def test_s_082_a_node_that_is_simply_gone_has_its_jobs_recovered_once(theatre: NewTheatre) -> None:
    """Given `nodeStopped` without `nodeStopping`, then the jobs of the node are recovered once."""
    world = theatre(own_pool(), n1(), n2())
    world.submit("b1", a_job(capacity=2))
    world.submit("b2", a_job(capacity=2))
    world.lose(N1)
    assert world.places() == {"b1/main/0": N2, "b2/main/0": N2}
    assert world.count("replica_recovering") == 2
    assert [r.restart_at_ms for r in world.fleet.replicas.in_order()] == [(60_000,), (60_000,)]


def test_s_084_what_fits_nowhere_waits_for_room(theatre: NewTheatre) -> None:
    """Given a pool with tier `own` only and `n2` full, when `n1` (with `j1`) stops, then
    `nodeForJob(j1)` is empty and the job pending; when `n2` frees capacity, then it is placed
    there."""
    world = theatre(own_pool(), n1(), n2())
    world.submit()
    world.submit("full", a_job(capacity=10))
    world.lose(N1)
    assert world.place() is None
    assert world.replica().phase is ReplicaPhase.PENDING
    world.delete("full")
    world.finish_stops()
    assert world.place() == N2


def test_s_085_a_job_that_fails_on_a_healthy_node_is_recovered(theatre: NewTheatre) -> None:
    """Given `j1` failing on the healthy node `n1`, then it is recovered by its band, counted
    once."""
    world = theatre(own_pool(), n1(), n2())
    world.submit()
    world.end(cause=EndCause.EXITED, exit_code=1)
    assert world.place() == N2
    assert world.replica().restart_at_ms == (0,)
    assert world.live().epoch == 2


def test_s_086_recoveries_keep_their_distance(theatre: NewTheatre) -> None:
    """Given failures at t=0 and t=2, then placements at 0 and exactly 5.000 and none else; restart
    count 2; bundle not broken."""
    world = theatre(own_pool(), n1(), n2())
    world.submit()
    world.end()
    world.end_at(2_000)
    replica = world.replica()
    assert (replica.phase, replica.reason) == (ReplicaPhase.BACKING_OFF, Reason.BACKING_OFF)
    world.advance(4_999)
    assert world.place() is None
    world.advance(20_000)
    assert world.live().created_at_ms == 5_000
    assert world.replica().restart_at_ms == (0, 5_000)


def test_s_088_the_seventh_failure_breaks_the_bundle(theatre: NewTheatre) -> None:
    """Given a job that fails 0.5 s after each of its placements (first placement at 0), then
    recoveries are dispatched at 0.5, 5.5, 10.5, 15.5, 20.5, 25.5; the failure at 26.0 is the
    seventh and breaks the bundle; total dispatches 7."""
    world = theatre(own_pool(), n1(), n2())
    world.submit()
    placed_at_ms = []
    for _ in range(7):
        while world.place() is None:
            world.advance(world.now_ms + 500)
        placed_at_ms.append(world.live().created_at_ms)
        world.end_at(placed_at_ms[-1] + 500)
    assert placed_at_ms == [0, 500, 5_500, 10_500, 15_500, 20_500, 25_500]
    assert world.now_ms == 26_000
    assert world.replica().phase is ReplicaPhase.BROKEN
    world.advance(500_000)
    assert world.count("replica_placed") == 7


def test_s_089_a_recovery_leaves_the_window(theatre: NewTheatre) -> None:
    """Given six recoveries spread over 59 min and a seventh at 61 min after the first, then it is
    placed (the first has left the window)."""
    world = theatre(own_pool(), n1(), n2())
    world.submit()
    for number in range(6):
        world.end_at(number * 708_000)
    world.end_at(3_660_000)
    assert world.replica().phase is ReplicaPhase.PLACED
    assert len(world.replica().restart_at_ms) == 6


def test_s_090_nothing_places_a_broken_bundle(theatre: NewTheatre) -> None:
    """Given the ceiling reached, then `onBundleBroken` once, `bundlesBroken` 1, verdict sent until
    acknowledged; no path (recovery, sweep, update, timer) places any job of the bundle."""
    world = theatre(own_pool(), n1(), n2())
    world.submit(replica_count=2)
    for number in range(7):
        world.end_at(number * 5_000)
    assert world.count("replica_broken") == 1
    world.end("b1/main/1")
    world.submit(replica_count=3)
    world.hear_inventory(N1)
    world.join()
    world.advance(4_000_000)
    assert world.places() == {}
    reasons = [r.reason for r in world.fleet.replicas.in_order()]
    assert reasons == [Reason.RESTART_CEILING, Reason.BUNDLE_BROKEN, Reason.BUNDLE_BROKEN]


def test_an_operator_clears_a_broken_bundle(theatre: NewTheatre) -> None:
    world = theatre(own_pool(), n1(), n2())
    world.submit(replica_count=2)
    for number in range(7):
        world.end_at(number * 5_000)
    world.end("b1/main/1")
    world.start_job()
    assert len(world.places()) == 2
    assert world.replica().restart_at_ms == ()


def test_s_092_a_new_launch_mends_a_broken_bundle_and_a_label_does_not(
    theatre: NewTheatre,
) -> None:
    """Given a broken bundle, when an update changes its launch, then the flag and the verdict are
    cleared, the count is 0 and its jobs are placed; when an update changes only the stop time, then
    it stays broken."""
    world = theatre(own_pool(), n1(), n2())
    world.submit()
    for number in range(7):
        world.end_at(number * 5_000)
    world.submit(labels={"until": "noon"})
    assert world.replica().phase is ReplicaPhase.BROKEN
    world.submit("b1", a_job(launch=Launch(argv=("better",))), labels={"until": "noon"})
    assert world.replica().phase is ReplicaPhase.PLACED
    assert world.replica().restart_at_ms == ()
    assert world.live().launch.argv == ("better",)


def test_s_093_a_job_that_kills_its_nodes_reaches_the_ceiling(theatre: NewTheatre) -> None:
    """Given a job whose node comes up and dies after 60 s each time, then the ceiling still breaks
    the bundle at the seventh recovery."""
    world = theatre(a_pool())
    world.submit()
    for _ in range(7):
        world.boot()
        world.become_ready()
        world.advance(world.now_ms + 60_000)
        world.end(cause=EndCause.NODE_LOST)
        if world.place() is None and world.replica().retry_at_ms is not None:
            world.advance(world.replica().retry_at_ms or 0)
    assert world.replica().phase is ReplicaPhase.BROKEN


def test_a_replica_that_was_healthy_for_long_begins_anew(theatre: NewTheatre) -> None:
    world = theatre(own_pool(), n1(), n2())
    world.submit()
    world.end()
    world.become_ready()
    assert not world.replica().is_recovery
    world.advance(599_999)
    assert world.replica().restart_at_ms == (0,)
    world.advance(600_000)
    assert world.replica().restart_at_ms == ()


def test_s_094_a_retry_looks_at_what_is_so_then(theatre: NewTheatre) -> None:
    """Given a pending retry, when the job is deleted, made dormant or terminal, then nothing is
    placed at the retry instant; when another node was excluded meanwhile, then the retry respects
    it."""
    for change in ("deleted", "dormant"):
        world = theatre(own_pool(), n1(), n2())
        world.submit()
        world.end()
        world.end_at(1_000)
        assert world.replica().phase is ReplicaPhase.BACKING_OFF
        if change == "deleted":
            world.delete()
        else:
            world.submit("b1", a_job(is_dormant=True))
        world.advance(60_000)
        assert world.places() == {}


def test_s_096_a_planned_stop_is_no_failure(theatre: NewTheatre) -> None:
    """Given a planned stop (drain, scale-in), then no restart is counted and bronze is not
    dropped."""
    world = theatre(own_pool(), n1(), n2())
    world.submit("b1", a_job(band=Band.BRONZE))
    world.submit("b2", a_job(band=Band.SILVER))
    world.become_ready()
    assert set(world.places().values()) == {N1}
    world.drain(N1)
    world.finish_stops()
    world.finish_stops()
    assert set(world.places().values()) == {N2}
    assert [r.restart_at_ms for r in world.fleet.replicas.in_order()] == [(), ()]
    assert world.count("node_drained") == 1


def test_s_097_the_old_copy_is_told_to_stop_when_it_returns(theatre: NewTheatre) -> None:
    """Given a partitioned node declared stopping, when its job is recovered, then the new instance
    has a higher epoch and the old one is refused by the Manager or told to stop when it returns."""
    world = theatre(own_pool(), n1(), n2())
    world.submit()
    world.become_ready()
    old = world.live()
    world.lose(N1)
    new = world.live()
    assert (new.node_id, new.epoch) == (N2, old.epoch + 1)
    fact = AllocationFact(allocation_id=old.allocation_id, epoch=old.epoch, phase="ready")
    world.run(world.hello(world.fleet.nodes[N1], fact))
    assert f"{old.allocation_id}/stop/{old.epoch}" in world.outbox
    assert world.live() == new


def test_mass_loss_is_recovered_gold_first(theatre: NewTheatre) -> None:
    world = theatre(own_pool(), n1(), n2())
    world.submit("a-bronze", a_job(capacity=2, band=Band.BRONZE))
    world.submit("b-silver", a_job(capacity=2, band=Band.SILVER))
    world.submit("c-gold", a_job(capacity=2, band=Band.GOLD))
    world.submit("full", a_job(capacity=8))
    assert world.place("full/main/0") == N2
    world.lose(N1)
    assert world.place("c-gold/main/0") == N2
    assert world.replica("b-silver/main/0").reason is Reason.NO_CAPACITY
    assert world.replica("a-bronze/main/0").phase is ReplicaPhase.DROPPED


def test_s_098_and_s_104_a_refusal_is_not_a_failure(theatre: NewTheatre) -> None:
    """Given `j1` on `n1` rejected with reason "busy", then ... `j1` goes to `n2`. Given seven
    rejections of a silver job within an hour, then the bundle is not broken."""
    world = theatre(own_pool(), n1(), n2())
    world.submit()
    world.end(cause=EndCause.REJECTED, message="busy")
    assert world.place() == N2
    for _ in range(6):
        while world.place() is None:
            world.advance(world.now_ms + 1_000)
        world.end(cause=EndCause.REJECTED)
    assert world.replica().restart_at_ms == ()
    assert world.replica().phase is not ReplicaPhase.BROKEN


def test_s_105_two_nodes_that_refuse_are_asked_once_in_a_while(theatre: NewTheatre) -> None:
    """Given two nodes that both reject `j1`, then each is asked at most once per backoff; no
    ping-pong."""
    world = theatre(own_pool(), n1(), n2())
    world.submit()
    world.end(cause=EndCause.REJECTED)
    world.end(cause=EndCause.REJECTED)
    world.advance(30_000)
    assert world.place() is None
    assert world.replica().reason is Reason.EXCLUDED_RECENT_FAILURE
    assert world.count("replica_placed") == 2
    world.advance(30_001)
    assert world.place() in (N1, N2)


def test_s_106_a_refused_job_holds_no_room(theatre: NewTheatre) -> None:
    """Given a pool with tier `own` only, `n2` full and a rejection by `n1`, then `nodeForJob(j1)`
    is empty, `n1` has no reservation for it, and a later free node gets it."""
    world = theatre(own_pool(), n1(), n2())
    world.submit()
    world.submit("full", a_job(capacity=10))
    world.end("b1/main/0", cause=EndCause.REJECTED)
    assert world.place() is None
    assert world.fleet.nodes[N1].allocation_count == 0
    node = world.join()
    assert world.place() == node.node_id


def test_bronze_that_was_only_refused_is_not_dropped(theatre: NewTheatre) -> None:
    """G-071: it never ran; a race for capacity must not kill it."""
    world = theatre(*fixture())
    world.submit("b1", a_job(band=Band.BRONZE))
    world.end(cause=EndCause.REJECTED)
    assert world.place() == N2
