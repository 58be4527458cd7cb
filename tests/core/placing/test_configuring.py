"""Configurations of jobs: delivered in place, exactly the latest, and kept for the next life."""

from typing import Any

import pytest
from msgspec.structs import replace

from hostler.base.ids import BundleId
from hostler.core.inputs import FullScan
from hostler.core.job_inputs import ConfigureJob
from hostler.core.replies import Accepted, Refused
from hostler.engine.translate import agent_command
from hostler.model.allocation import Allocation, EndCause, Ended
from hostler.model.launch import JobConfig, Launch
from hostler.model.rollout import Steering
from hostler.testing.builders import a_job
from hostler.wire import agent as wire
from hostler.wire.work import Config
from tests.core.placing.conftest import NewTheatre
from tests.core.placing.test_services import a_service
from tests.core.placing.theatre import Theatre, n1, n2, own_pool

OLD, NEW = Launch(argv=("old",)), Launch(argv=("new",))
REPLICA = "b1/main/0"


def a_config(title: str) -> JobConfig:
    """Return a configuration that says so."""
    return JobConfig(values_json=f'{{"title":"{title}"}}')


def submit(world: Theatre, config: JobConfig | None, launch: Launch = OLD, count: int = 1) -> None:
    """Submit the bundle with this configuration."""
    world.submit("b1", a_job(launch=launch, config=config), replica_count=count)


def a_fleet(theatre: NewTheatre, config: JobConfig | None = None) -> Theatre:
    """Return a bundle whose only copy is ready, and was started with this configuration."""
    world = theatre(own_pool(), n1(), n2())
    submit(world, config)
    copy = place(world)
    world.report(copy, "ready", config_written=0 if config is None else 1)
    return world


def place(world: Theatre) -> Allocation:
    """Return where the replica is."""
    found = world.allocation_of(REPLICA)
    assert found is not None
    return found


def sent(world: Theatre) -> list[tuple[str, int, str]]:
    """Return what is on its way: command, number and content."""
    found = []
    for key in world.commands("configure_allocation"):
        entry = world.fleet.commands[key]
        message = agent_command(world.fleet, entry.command_id, entry.command)  # type: ignore[arg-type]  # it is one of an agent
        assert isinstance(message, wire.ConfigureAllocation)
        found.append((key, message.config.number, message.config.values_json))
    return found


def started_with(world: Theatre) -> wire.StartAllocation:
    """Return the start of the replica's present copy as it would leave now."""
    (key,) = world.commands("start_allocation")
    entry = world.fleet.commands[key]
    message = agent_command(world.fleet, entry.command_id, entry.command)  # type: ignore[arg-type]  # it is one of an agent
    assert isinstance(message, wire.StartAllocation)
    return message


def test_a_start_carries_the_configuration_of_its_time(theatre: NewTheatre) -> None:
    world = theatre(own_pool(), n1())
    submit(world, a_config("news"))
    assert started_with(world).config == Config(number=1, values_json='{"title":"news"}')
    submit(world, a_config("film"))
    config = started_with(world).config
    assert config is not None
    assert (config.number, config.values_json) == (2, '{"title":"film"}')
    assert world.commands("configure_allocation") == []


def test_a_job_without_configuration_is_started_as_ever(theatre: NewTheatre) -> None:
    world = theatre(own_pool(), n1())
    submit(world, None)
    assert started_with(world).config is None


def test_s_034_a_known_jobs_configuration_is_updated_and_nothing_is_placed_anew(
    theatre: NewTheatre,
) -> None:
    """Given a known job, when its config is updated to C, then jobs() shows C, the callback gets
    (id, C), nothing is re-placed; for an unknown job nothing happens."""
    world = a_fleet(theatre, a_config("news"))
    before = place(world)
    submit(world, a_config("film"))
    key = f"{before.allocation_id}/configure/2"
    assert sent(world) == [(key, 2, '{"title":"film"}')]
    world.report(before, "ready", config_written=2)
    world.succeed(key)
    world.report(before, "ready", config_written=2, config_applied=2)
    after = place(world)
    assert after.allocation_id == before.allocation_id
    assert (after.config_written, after.config_applied) == (2, 2)
    assert world.events().count("replica_configured") == 1
    bundle = world.fleet.bundles["b1"]
    assert bundle.observed_generation == bundle.generation == 2
    assert "b1" not in world.fleet.rollouts


def test_a_job_that_had_none_gets_one_and_one_that_loses_it_gets_an_empty_one(
    theatre: NewTheatre,
) -> None:
    world = a_fleet(theatre)
    submit(world, a_config("news"))
    assert [number for _, number, _ in sent(world)] == [2]
    world.succeed(sent(world)[0][0])
    submit(world, None)
    assert [content for _, _, content in sent(world)] == ["{}"]
    generation = world.fleet.bundles["b1"].generation
    submit(world, None)
    assert world.fleet.bundles["b1"].generation == generation


def test_of_several_changes_only_the_latest_is_on_its_way(theatre: NewTheatre) -> None:
    world = a_fleet(theatre, a_config("a"))
    for title in ("b", "c", "d"):
        submit(world, a_config(title))
    assert [(number, content) for _, number, content in sent(world)] == [(4, '{"title":"d"}')]


def test_going_back_to_an_older_content_is_a_change_with_a_number_of_its_own(
    theatre: NewTheatre,
) -> None:
    world = a_fleet(theatre, a_config("a"))
    submit(world, a_config("b"))
    submit(world, a_config("a"))
    assert [(number, content) for _, number, content in sent(world)] == [(3, '{"title":"a"}')]


def test_asking_for_what_is_there_sends_nothing(theatre: NewTheatre) -> None:
    world = a_fleet(theatre, a_config("a"))
    submit(world, a_config("a"))
    assert world.fleet.bundles["b1"].generation == 1
    assert sent(world) == []


def test_another_change_of_the_bundle_keeps_the_number(theatre: NewTheatre) -> None:
    world = a_fleet(theatre, a_config("a"))
    submit(world, a_config("a"), count=2)
    assert world.fleet.bundles["b1"].generation == 2
    assert sent(world) == []


def test_what_could_not_be_written_is_tried_again_until_it_is(theatre: NewTheatre) -> None:
    world = a_fleet(theatre, a_config("a"))
    submit(world, a_config("b"))
    (key, *_), *_ = sent(world)
    world.fail(key, "refused", "config_not_written: no space left on device")
    assert world.fleet.commands[key].last_message.endswith("no space left on device")
    world.run(FullScan())
    world.advance(world.now_ms + 60_000)
    assert world.fleet.commands[key].attempt_count > 1
    world.succeed(key)
    assert place(world).config_written == 2


@pytest.mark.parametrize("how", ["ended", "stopped"])
def test_nothing_is_sent_to_a_copy_that_ends(theatre: NewTheatre, how: str) -> None:
    world = a_fleet(theatre, a_config("a"))
    submit(world, a_config("b"))
    if how == "ended":
        world.report(place(world), "ended", ended=Ended(cause=EndCause.EXITED, exit_code=1))
    else:
        world.stop_job("b1", "main")
    assert sent(world) == []


def test_the_next_life_begins_with_the_latest(theatre: NewTheatre) -> None:
    world = a_fleet(theatre, a_config("a"))
    submit(world, a_config("b"))
    world.report(place(world), "ended", ended=Ended(cause=EndCause.EXITED, exit_code=1))
    world.advance(world.now_ms + 120_000)
    config = started_with(world).config
    assert config is not None
    assert config.values_json == '{"title":"b"}'


def test_a_copy_of_the_old_version_keeps_its_configuration(theatre: NewTheatre) -> None:
    world = a_fleet(theatre, a_config("a"))
    old = place(world)
    submit(world, a_config("b"), NEW)
    assert sent(world) == []
    world.finish_stops()
    new_copy = place(world)
    assert new_copy.allocation_id != old.allocation_id
    config = started_with(world).config
    assert config is not None
    assert (config.number, config.values_json) == (2, '{"title":"b"}')


def test_what_was_on_its_way_when_another_version_came_is_sent_after_the_way_back(
    theatre: NewTheatre,
) -> None:
    world = theatre(own_pool(), n1(), n2())
    submit(world, a_config("a"), count=2)
    for allocation in list(world.fleet.allocations.in_order()):
        world.report(allocation, "ready", config_written=1)
    submit(world, a_config("b"), count=2)
    assert len(sent(world)) == 2
    submit(world, a_config("b"), NEW, count=2)
    assert sent(world) == []
    assert place(world).phase == "ready", "the primary is replaced last"
    world.steer(Steering.UNDO)
    assert [(key, number) for key, number, _ in sent(world)] == [
        (f"{place(world).allocation_id}/configure/2", 2)
    ]


def test_a_roll_back_brings_the_former_configuration_under_a_new_number(
    theatre: NewTheatre,
) -> None:
    world = a_fleet(theatre, a_config("a"))
    submit(world, a_config("b"), NEW)
    world.steer(Steering.UNDO)
    config = world.fleet.bundles["b1"].jobs[0].config
    assert config is not None
    assert (config.generation, config.values_json) == (3, '{"title":"a"}')


def test_an_older_report_takes_nothing_back(theatre: NewTheatre) -> None:
    world = a_fleet(theatre, a_config("a"))
    submit(world, a_config("b"))
    world.succeed(sent(world)[0][0])
    world.report(place(world), "ready", config_written=1)
    assert place(world).config_written == 2


def configure(world: Theatre, config: JobConfig | None, **wanted: Any) -> Accepted | Refused:
    """Let the only job work by this configuration."""
    named = {"bundle_id": BundleId("b1"), "job": "main", **wanted}
    return world.ask(ConfigureJob, config=config, **named)


def test_one_job_is_configured_without_its_bundle_being_submitted_again(
    theatre: NewTheatre,
) -> None:
    world = a_fleet(theatre, a_config("news"))
    before = place(world)
    answer = configure(world, a_config("film"), if_generation=1)
    assert isinstance(answer, Accepted)
    assert not answer.is_repeat
    assert [(number, content) for _, number, content in sent(world)] == [(2, '{"title":"film"}')]
    assert place(world).allocation_id == before.allocation_id
    assert world.fleet.bundles["b1"].generation == 2
    again = configure(world, a_config("film"))
    assert isinstance(again, Accepted)
    assert again.is_repeat
    assert "b1" not in world.fleet.rollouts
    # Its next life starts with it.
    world.report(place(world), "ready", config_written=2)
    world.end()
    world.advance(world.now_ms + 60_000)
    config = started_with(world).config
    assert config is not None
    assert config.number == 2


def test_a_configuration_that_is_taken_away_leaves_an_empty_one(theatre: NewTheatre) -> None:
    world = a_fleet(theatre, a_config("news"))
    configure(world, None)
    assert [content for _, _, content in sent(world)] == ["{}"]


@pytest.mark.parametrize(
    ("wanted", "code"),
    [
        ({"if_generation": 7}, "bundle_changed"),
        ({"job": "other"}, "job_not_found"),
        ({"bundle_id": BundleId("b2")}, "bundle_not_found"),
        ({"bundle_id": BundleId("service.router")}, "service_configured"),
    ],
)
def test_what_cannot_be_configured_is_refused_and_nothing_changes(
    theatre: NewTheatre, wanted: dict[str, Any], code: str
) -> None:
    world = a_fleet(theatre, a_config("news"))
    world.configure(own_pool(), services=(a_service(),))
    answer = configure(world, a_config("film"), **wanted)
    assert isinstance(answer, Refused)
    assert answer.code == code
    assert sent(world) == []
    assert world.fleet.bundles["b1"].generation == 1


def test_the_audit_says_who_and_which_job_and_nothing_of_the_content(theatre: NewTheatre) -> None:
    world = a_fleet(theatre, a_config("news"))
    configure(world, a_config("secret"))
    entry = max(world.fleet.audit.rows.values(), key=lambda each: each.number)
    assert (entry.action, entry.about["bundle"]) == ("configure_job", "b1")
    assert "secret" not in repr(entry)


def test_a_node_service_gets_another_configuration_in_place(theatre: NewTheatre) -> None:
    world = theatre(own_pool(), n1())
    service = a_service()

    def apply(title: str) -> None:
        job = replace(service.job, config=a_config(title))
        world.configure(own_pool(), services=(replace(service, job=job),))

    apply("news")
    config = started_with(world).config
    assert config is not None
    assert config.number == 1
    (copy,) = world.fleet.allocations.rows.values()
    world.report(copy, "ready", config_written=1)
    apply("news")
    assert sent(world) == []
    apply("film")
    assert [(number, content) for _, number, content in sent(world)] == [(2, '{"title":"film"}')]
    assert set(world.fleet.allocations.rows) == {copy.allocation_id}
