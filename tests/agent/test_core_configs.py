"""Configurations of running jobs: written once, only ever a later one, and answered when there."""

from msgspec.structs import replace

from hostler.agent.core.effects import RemoveFolder, WriteConfig
from hostler.agent.core.inputs import (
    AllocationKey,
    ConfigWritten,
    FoundAllocation,
    NoticeRead,
    ProcessSeen,
    ProcessView,
    Started,
    SupervisorStarted,
)
from hostler.wire.agent import AllocationReported, ConfigureAllocation
from hostler.wire.work import Config, Inventory
from tests.agent.bench import Bench, a_process, a_start, answers, of, sent

KEY = AllocationKey("a-1", 1)


def a_command(number: int, epoch: int = 1, *, node_epoch: int = 1) -> ConfigureAllocation:
    return ConfigureAllocation(
        command_id=f"a-1/configure/{number}",
        node_epoch=node_epoch,
        allocation_id="a-1",
        epoch=epoch,
        config=Config(number=number),
    )


def a_bench() -> Bench:
    bench = Bench()
    bench.trust_the_link()
    bench.run()
    return bench


def written(bench: Bench) -> list[int]:
    return [each.config.number for each in of(bench.last, WriteConfig)]


def told(bench: Bench) -> list[tuple[int, int]]:
    reports = [each.report for each in sent(bench.last) if isinstance(each, AllocationReported)]
    return [(each.config_written, each.config_applied) for each in reports]


def test_a_configuration_is_written_then_reported_then_answered() -> None:
    bench = a_bench()
    bench.hear(a_command(2))
    assert written(bench) == [2]
    assert answers(bench.last) == []
    bench.feed(ConfigWritten(key=KEY, number=2))
    assert told(bench) == [(2, 0)]
    assert answers(bench.last) == [("a-1/configure/2", "done", "")]
    assert type(sent(bench.last)[-1]).__name__ == "CommandAnswered"


def test_what_the_job_says_is_told_and_nothing_that_it_cannot_have() -> None:
    bench = a_bench()
    bench.hear(a_command(2))
    bench.feed(ConfigWritten(key=KEY, number=2))
    process = ProcessView(pid=77, started_at_ms=1_000_000, config_applied=2)
    bench.feed(ProcessSeen(key=KEY, process=process))
    assert told(bench) == [(2, 2)]
    process = ProcessView(pid=77, started_at_ms=1_000_000, config_applied=99)
    bench.feed(ProcessSeen(key=KEY, process=process))
    assert told(bench) == []


def test_the_same_and_an_older_one_are_not_written_again() -> None:
    bench = a_bench()
    bench.hear(a_command(2))
    bench.feed(ConfigWritten(key=KEY, number=2))
    for number in (2, 1):
        bench.hear(a_command(number))
        assert written(bench) == []
        assert answers(bench.last) == [(f"a-1/configure/{number}", "done", "")]


def test_of_several_that_come_while_one_is_written_the_latest_is_next() -> None:
    bench = a_bench()
    bench.hear(a_command(2))
    bench.hear(a_command(3), a_command(4))
    assert written(bench) == []
    bench.feed(ConfigWritten(key=KEY, number=2))
    assert written(bench) == [4]
    bench.feed(ConfigWritten(key=KEY, number=4))
    assert [command for command, _, _ in answers(bench.last)] == [
        "a-1/configure/3",
        "a-1/configure/4",
    ]


def test_a_full_disk_is_told_and_the_next_try_is_made() -> None:
    bench = a_bench()
    bench.hear(a_command(2))
    bench.feed(ConfigWritten(key=KEY, number=2, problem="no space left on device"))
    assert answers(bench.last) == [("a-1/configure/2", "refused", "config_not_written")]
    assert written(bench) == []
    bench.hear(a_command(2))
    assert written(bench) == [2]


def test_a_start_brings_one_along_and_a_later_one_waits_until_the_start_is_durable() -> None:
    bench = Bench()
    bench.trust_the_link()
    start = a_start()
    bench.hear(replace(start, config=Config(number=5)))
    bench.hear(a_command(6))
    assert written(bench) == []
    bench.feed(SupervisorStarted(key=KEY))
    assert written(bench) == [6]
    assert told(bench)[-1:] == [(5, 0)]


def test_what_is_unknown_ended_or_of_an_older_epoch_is_refused() -> None:
    bench = a_bench()
    bench.hear(a_command(2, epoch=7))
    assert answers(bench.last) == [("a-1/configure/2", "refused", "allocation_ended")]
    bench.hear(a_command(2, node_epoch=0))
    assert answers(bench.last) == [("a-1/configure/2", "refused", "node_epoch_stale")]
    bench.hear(a_command(3))
    bench.ends(KEY, exit_code=0)
    assert ("a-1/configure/3", "refused", "allocation_ended") in answers(bench.last)
    bench.feed(ConfigWritten(key=KEY, number=3))
    assert of(bench.last, RemoveFolder) == []


def test_the_next_life_knows_what_is_in_the_folder() -> None:
    found = FoundAllocation(
        start=a_start(),
        process=a_process(),
        is_supervised=True,
        was_ready=False,
        config_written=4,
    )
    bench = Bench(Started(inventory=Inventory(), found=[found], authority_until_at_ms=10**12))
    bench.connect()
    bench.hear(a_command(4))
    assert written(bench) == []
    assert answers(bench.last) == [("a-1/configure/4", "done", "")]


def test_a_notice_is_left_for_the_jobs_to_read() -> None:
    bench = a_bench()
    bench.feed(NoticeRead(kind="terminate", left_ms=5_000))
    assert [type(each).__name__ for each in bench.last][:1] == ["TellNotice"]
    bench.feed(NoticeRead(kind="terminate", left_ms=5_000))
    assert "TellNotice" not in [type(each).__name__ for each in bench.last]
