"""S-188 (G-158): the backup takes the primary's place when that is gone, and is told so.

Without it the outage lasts as long as a new copy needs, though a warm one runs.
"""

from typing import Any

from hostler.core.inputs import CommandFailed, CommandSettled
from hostler.model.allocation import EndCause
from hostler.model.bundle import RolloutPolicy
from hostler.model.constraint import SpreadOver, SpreadRule
from hostler.model.launch import Disconnect, Launch
from hostler.model.pool import Band, Reliability
from hostler.testing.builders import a_job, a_node
from tests.core.placing.conftest import NewTheatre
from tests.core.placing.theatre import N1, N2, Theatre, fixture, n1, n2, own_pool

N3 = "n-900003"
FIRST, SECOND, THIRD = (f"b1/main/{index}" for index in range(3))


def on_air(new: NewTheatre, *more: Any, count: int = 2, **fields: Any) -> Theatre:
    """Return a gold bundle of a primary and its backups, each ready on a node of its own."""
    world = new(own_pool(), n1(), n2(), a_node(N3, incarnation=1), *more)
    job = fields.pop("job", a_job(band=Band.GOLD, capacity=6))
    world.submit("b1", job, replica_count=count, is_backup_promoted=True, **fields)
    world.become_ready()
    return world


def roles(world: Theatre, bundle: str = "b1") -> dict[str, str]:
    """Return the role of each replica, which its copies have too."""
    found: dict[str, str] = {}
    for replica in world.fleet.replicas.in_order():
        if replica.bundle_id == bundle:
            found[replica.replica_id] = replica.role
            for key in world.fleet.index.allocations_by_replica.keys(replica.replica_id):
                assert world.fleet.allocations[key].role == replica.role
    return found


def test_s_188_a_backup_is_promoted_and_a_new_one_placed_elsewhere(theatre: NewTheatre) -> None:
    """Given a gold bundle with primary on `n1` and backup on `n2`, when `n1` stops, then the backup
    is promoted within 1 s of the event and one new backup is placed on another node than `n2`."""
    world = on_air(theatre)
    assert (world.place(FIRST), world.place(SECOND)) == (N1, N2)
    heir = world.live(SECOND)
    world.fall_silent(N1)
    assert world.count("replica_promoted") == 0, "silence is no loss yet"
    world.give_up()
    lost_at_ms = world.fleet.nodes[N1].health_since_at_ms
    assert roles(world) == {FIRST: "backup", SECOND: "primary"}
    promoted = [e for d in world.deltas for e in d.events if e.kind == "replica_promoted"]
    assert [(e.at_ms - lost_at_ms, e.about["replica"], e.data["instead_of"]) for e in promoted] == [
        (0, SECOND, FIRST)
    ]
    assert world.place(FIRST) == N3
    assert world.live(SECOND).allocation_id == heir.allocation_id, "it goes on as it is"
    assert world.commands("assign_role") == [f"{heir.allocation_id}/role/1"]
    world.succeed(f"{heir.allocation_id}/role/1")
    assert not world.commands("assign_role")
    assert world.live(SECOND).role_known == 1
    world.become_ready(FIRST)
    assert roles(world) == {FIRST: "backup", SECOND: "primary"}, "there is no way back by itself"
    world.check_calm()


def test_only_who_asks_for_it_is_promoted(theatre: NewTheatre) -> None:
    world = theatre(own_pool(), n1(), n2())
    world.submit("b1", a_job(band=Band.GOLD), replica_count=2)
    world.become_ready()
    world.end(FIRST)
    assert roles(world) == {FIRST: "primary", SECOND: "backup"}
    assert not world.commands("assign_role")


def test_nobody_is_promoted_before_the_primary_has_ever_run(theatre: NewTheatre) -> None:
    world = theatre(own_pool(), n1(), n2())
    world.submit("b1", a_job(), replica_count=2, is_backup_promoted=True)
    world.become_ready(SECOND)
    assert roles(world) == {FIRST: "primary", SECOND: "backup"}
    world.end(FIRST)
    assert roles(world) == {FIRST: "backup", SECOND: "primary"}


def test_a_backup_that_is_not_ready_is_promoted_when_it_is(theatre: NewTheatre) -> None:
    world = theatre(own_pool(), n1(), n2())
    world.submit("b1", a_job(capacity=10), replica_count=2, is_backup_promoted=True)
    world.become_ready(FIRST)
    world.lose(N1)
    assert roles(world) == {FIRST: "primary", SECOND: "backup"}
    world.become_ready(SECOND)
    assert roles(world) == {FIRST: "backup", SECOND: "primary"}


def test_the_next_in_rank_that_is_ready_is_taken(theatre: NewTheatre) -> None:
    world = on_air(theatre, count=3)
    world.end(SECOND)
    world.end(FIRST)
    assert roles(world) == {FIRST: "replica-2", SECOND: "backup", THIRD: "primary"}


def test_whom_nobody_hears_is_not_promoted(theatre: NewTheatre) -> None:
    world = on_air(theatre, count=3)
    world.fall_silent(N2)
    settings = world.fleet.settings
    assert settings is not None
    world.advance(world.now_ms + settings.suspect_after_ms)
    world.end(FIRST)
    assert roles(world)[THIRD] == "primary"


def test_a_copy_that_is_kept_on_a_cut_off_node_stays_primary(theatre: NewTheatre) -> None:
    """Its outputs still flow, for all that we know."""
    launch = Launch(argv=("encode",), disconnect=Disconnect.KEEP)
    world = on_air(theatre, job=a_job(band=Band.GOLD, capacity=6, launch=launch))
    world.lose(N1)
    assert roles(world) == {FIRST: "primary", SECOND: "backup"}


def test_a_planned_stop_of_the_primary_hands_over_first(theatre: NewTheatre) -> None:
    world = on_air(theatre)
    world.drain(N1)
    assert roles(world) == {FIRST: "backup", SECOND: "primary"}


def test_a_rollout_hands_over_once(theatre: NewTheatre) -> None:
    old, new = (a_job(capacity=6, launch=Launch(argv=(name,))) for name in ("old", "new"))
    world = on_air(theatre, job=old)
    policy = RolloutPolicy(healthy_after_ms=1_000)
    world.submit("b1", new, replica_count=2, is_backup_promoted=True, rollout=policy)
    for _ in range(8):
        world.finish_stops()
        world.become_ready()
        world.advance(world.now_ms + 5_000)
    assert {world.live(key).launch.argv for key in (FIRST, SECOND)} == {("new",)}
    assert world.count("replica_promoted") == 1
    assert sorted(roles(world).values()) == ["backup", "primary"]


def test_it_is_told_until_it_knows(theatre: NewTheatre) -> None:
    world = on_air(theatre)
    world.end(FIRST)
    command_id = f"{world.live(SECOND).allocation_id}/role/1"
    world.run(
        CommandSettled(
            command_id=world.fleet.commands[command_id].command_id,
            outcome=CommandFailed(code="unreachable", message="cut off"),
        )
    )
    assert world.commands("assign_role") == [command_id]
    world.restart()
    assert world.commands("assign_role") == [command_id]
    world.succeed(command_id)
    assert not world.commands("assign_role")


def test_a_role_given_and_taken_is_told_as_it_is_last(theatre: NewTheatre) -> None:
    world = on_air(theatre)
    second = world.live(SECOND).allocation_id
    world.end(FIRST)
    world.become_ready(FIRST)
    world.end(SECOND)
    assert roles(world) == {FIRST: "primary", SECOND: "backup"}
    assert second not in {each.partition("/")[0] for each in world.commands("assign_role")}
    first = world.live(FIRST)
    assert world.commands("assign_role") == [f"{first.allocation_id}/role/1"]


def test_the_jobs_of_one_copy_hold_together(theatre: NewTheatre) -> None:
    world = theatre(own_pool(), n1(), n2(), a_node(N3, incarnation=1))
    jobs = (a_job("encode", capacity=3), a_job("pack", capacity=3))
    world.submit("b1", *jobs, replica_count=2, is_backup_promoted=True, is_colocated=True)
    world.become_ready()
    world.end("b1/pack/0")
    assert roles(world) == {
        "b1/encode/0": "backup",
        "b1/encode/1": "primary",
        "b1/pack/0": "backup",
        "b1/pack/1": "primary",
    }


def test_jobs_that_had_heirs_of_their_own_have_one_primary_each_when_put_together(
    theatre: NewTheatre,
) -> None:
    """Simulator seed 438: another copy was the heir of one job than of the other."""
    jobs = (a_job("encode", capacity=2), a_job("pack", capacity=2))
    world = theatre(own_pool(), n1(), n2(), a_node(N3, incarnation=1))
    world.submit("b1", *jobs, replica_count=2, is_backup_promoted=True)
    world.become_ready()
    world.end("b1/encode/0")
    world.become_ready()
    assert roles(world)["b1/encode/1"] == roles(world)["b1/pack/0"] == "primary"
    world.submit("b1", *jobs, replica_count=2, is_backup_promoted=True, is_colocated=True)
    world.become_ready()
    world.end("b1/encode/1")
    found = roles(world)
    for job in ("encode", "pack"):
        assert sorted(found[f"b1/{job}/{index}"] for index in (0, 1)) == ["backup", "primary"]


def test_the_rules_of_the_primary_go_with_the_role(theatre: NewTheatre) -> None:
    """Who is to be primary next is asked to be on reliable capacity, and apart from the other."""
    spot = a_node("n-900004", incarnation=1, reliability=Reliability.INTERRUPTIBLE)
    world = theatre(own_pool(), n1(zone="a"), n2(zone="b"), spot)
    apart = SpreadRule(over=SpreadOver.NODE, is_required=True)
    world.submit(
        "b1",
        a_job(capacity=10),
        replica_count=2,
        is_backup_promoted=True,
        is_primary_interruptible=False,
        backup_apart=apart,
    )
    world.become_ready()
    assert world.place(FIRST) in {N1, N2}
    world.lose(world.place(FIRST) or "")
    assert roles(world) == {FIRST: "backup", SECOND: "primary"}
    assert world.place(FIRST) is not None, "as a backup it may be where a primary may not"


def test_without_the_wish_any_more_roles_stay_as_they_are(theatre: NewTheatre) -> None:
    world = on_air(theatre)
    world.end(FIRST)
    world.become_ready(FIRST)
    world.submit("b1", a_job(band=Band.GOLD, capacity=6), replica_count=2)
    world.end(SECOND)
    assert roles(world) == {FIRST: "backup", SECOND: "primary"}


def test_a_deleted_bundle_promotes_nobody(theatre: NewTheatre) -> None:
    world = theatre(*fixture())
    world.submit("b1", a_job(), replica_count=2, is_backup_promoted=True)
    world.become_ready()
    world.delete()
    assert world.count("replica_promoted") == 0


def test_who_stays_when_there_are_to_be_fewer_is_the_primary(theatre: NewTheatre) -> None:
    world = on_air(theatre, count=3)
    world.end(FIRST)
    world.become_ready(FIRST)
    assert roles(world) == {FIRST: "backup", SECOND: "primary", THIRD: "replica-2"}
    job = a_job(band=Band.GOLD, capacity=6)
    world.submit("b1", job, replica_count=1)
    world.finish_stops()
    assert roles(world) == {FIRST: "primary"}
    world.submit("b1", job, replica_count=2)
    assert roles(world) == {FIRST: "primary", SECOND: "backup"}


def test_a_job_that_leaves_and_comes_back_has_one_primary(theatre: NewTheatre) -> None:
    """Simulator seed 132: one copy was gone already, and the other on its way out."""
    encode, pack = a_job("encode", capacity=3), a_job("pack", capacity=3)
    world = theatre(own_pool(), n1(), n2())
    world.submit("b1", encode, pack, replica_count=2, is_backup_promoted=True)
    world.become_ready()
    world.submit("b1", encode, replica_count=2, is_backup_promoted=True)
    world.end("b1/pack/0", EndCause.STOPPED)
    world.submit("b1", encode, pack, replica_count=2, is_backup_promoted=True)
    world.finish_stops()
    assert roles(world) == {
        "b1/encode/0": "primary",
        "b1/encode/1": "backup",
        "b1/pack/0": "primary",
        "b1/pack/1": "backup",
    }
