"""Allocations in the agent's core: one start, honest ends, epochs honoured."""

from typing import Any

import msgspec
import pytest

from hostler.agent.core.effects import (
    KillProcess,
    KillSupervisor,
    RemoveFolder,
    StartSupervisor,
    StopProcess,
)
from hostler.agent.core.inputs import (
    AllocationKey,
    FoundAllocation,
    ProcessSeen,
    ProcessView,
    Started,
    StopAsked,
    SupervisorFailed,
    SupervisorLost,
    SupervisorStarted,
)
from hostler.wire.agent import AllocationReported, CommandAnswered, Shutdown
from hostler.wire.work import (
    DelayReadiness,
    EndCause,
    ExecReadiness,
    HttpReadiness,
    Inventory,
    Launch,
)
from tests.agent.bench import (
    Bench,
    a_launch,
    a_process,
    a_start,
    a_stop,
    answers,
    of,
    phases,
    reports,
    sent,
)

KEY = AllocationKey("a-1", 1)


def connected(**settings: Any) -> Bench:
    bench = Bench(**settings)
    bench.trust_the_link()
    return bench


def test_a_start_is_answered_once_it_would_survive_the_agent() -> None:
    bench = connected()
    first = bench.hear(a_start())
    assert [each.key for each in of(first, StartSupervisor)] == [KEY]
    assert answers(first) == []
    assert answers(bench.feed(SupervisorStarted(key=KEY))) == [("a-1/start/1", "done", "")]


def test_the_same_start_again_is_the_same_start() -> None:
    bench = connected()
    bench.hear(a_start())
    again = bench.hear(a_start(), a_start(command_id="other"))
    assert of(again, StartSupervisor) == []
    assert answers(bench.feed(SupervisorStarted(key=KEY))) == [
        ("a-1/start/1", "done", ""),
        ("other", "done", ""),
    ]
    later = bench.hear(a_start())
    assert of(later, StartSupervisor) == []
    assert answers(later) == [("a-1/start/1", "done", "")]


def test_a_lower_epoch_is_refused() -> None:
    bench = connected()
    bench.run(epoch=3)
    assert answers(bench.hear(a_start(epoch=2))) == [("a-1/start/2", "refused", "epoch_stale")]
    assert answers(bench.hear(a_stop(epoch=2))) == [("a-1/stop/2", "refused", "epoch_stale")]
    assert bench.phase(AllocationKey("a-1", 3)) == "ready"


def test_a_command_of_an_earlier_node_epoch_is_refused() -> None:
    bench = connected()
    bench.hear(a_start("a-2", node_epoch=5))
    effects = bench.hear(a_start(node_epoch=4), a_stop("a-2", node_epoch=4))
    assert [code for _, _, code in answers(effects)] == ["node_epoch_stale", "node_epoch_stale"]
    assert not of(effects, StartSupervisor)
    assert not of(effects, StopProcess)


def test_a_higher_epoch_starts_only_after_the_lower_has_ended() -> None:
    bench = connected()
    old = bench.run()
    effects = bench.hear(a_start(epoch=2))
    assert [each.key for each in of(effects, StopProcess)] == [old]
    assert of(effects, StartSupervisor) == []
    ended = bench.ends(old, exit_code=0)
    assert [each.key for each in of(ended, StartSupervisor)] == [AllocationKey("a-1", 2)]


def test_a_stop_of_something_unknown_is_done_and_a_late_start_is_refused() -> None:
    bench = connected()
    assert answers(bench.hear(a_stop())) == [("a-1/stop/1", "done", "")]
    late = bench.hear(a_start())
    assert of(late, StartSupervisor) == []
    assert answers(late) == [("a-1/start/1", "refused", "allocation_ended")]
    assert of(bench.hear(a_start(epoch=2)), StartSupervisor)


def test_a_stop_signals_then_kills_then_kills_the_supervisor() -> None:
    bench = connected()
    key = bench.run()
    stopping = bench.hear(a_stop(grace_ms=2_000))
    assert [(e.signal, e.grace_ms) for e in of(stopping, StopProcess)] == [("SIGTERM", 2_000)]
    assert phases(stopping) == ["stopping"]
    assert of(bench.later(1_999), KillProcess) == []
    assert of(bench.later(1), KillProcess) == [KillProcess(key=key)]
    assert of(bench.later(5_000), KillSupervisor) == [KillSupervisor(key=key)]
    assert of(bench.later(5_000), KillSupervisor) == []
    ended = bench.feed(SupervisorLost(key=key))
    assert [each.ended.cause for each in reports(ended) if each.ended] == [EndCause.SUPERVISOR_LOST]


def test_the_report_of_the_end_goes_out_before_the_answer_to_the_stop() -> None:
    bench = connected()
    key = bench.run()
    bench.hear(a_stop())
    ended = sent(bench.ends(key, signal="SIGTERM"))
    assert [type(each) for each in ended] == [AllocationReported, CommandAnswered]
    report = ended[0]
    assert isinstance(report, AllocationReported)
    assert report.report.ended is not None
    assert report.report.ended.cause is EndCause.STOPPED
    assert report.report.ended.signal == "SIGTERM"


def test_a_repeated_stop_changes_nothing_unless_its_patience_is_shorter() -> None:
    bench = connected()
    bench.run()
    bench.hear(a_stop(grace_ms=9_000))
    assert of(bench.hear(a_stop(grace_ms=9_000)), StopProcess) == []
    shorter = of(bench.hear(a_stop(grace_ms=10)), StopProcess)
    assert [each.grace_ms for each in shorter] == [10]


def test_a_job_that_ends_by_itself_is_reported_with_its_code() -> None:
    bench = connected()
    report = reports(bench.ends(bench.run(), exit_code=4))[-1]
    assert report.ended is not None
    assert (report.ended.cause, report.ended.exit_code) == (EndCause.EXITED, 4)
    assert report.pid is None


def test_what_cannot_be_started_ends_as_start_failed() -> None:
    bench = connected()
    bench.hear(a_start())
    effects = bench.feed(SupervisorFailed(key=KEY, message="no space left"))
    assert answers(effects) == [("a-1/start/1", "done", "")]
    assert reports(effects)[-1].ended is not None
    bench.hear(a_start("a-2"))
    view = a_process(start_error="no such file")
    effects = bench.feed(ProcessSeen(key=AllocationKey("a-2", 1), process=view))
    ended = reports(effects)[-1].ended
    assert ended is not None
    assert ended.cause is EndCause.START_FAILED


def test_a_machine_that_cannot_take_a_job_on_refuses_it() -> None:
    bench = connected()
    bench.hear(a_start())
    effects = bench.feed(SupervisorFailed(key=KEY, message="disk full", is_refusal=True))
    ended = reports(effects)[-1].ended
    assert ended is not None
    assert (ended.cause, ended.message) == (EndCause.REJECTED, "disk full")


def test_a_supervisor_that_never_answers_is_given_up() -> None:
    bench = connected()
    bench.hear(a_start())
    assert of(bench.later(30_000), KillProcess) == [KillProcess(key=KEY)]
    assert of(bench.later(5_000), KillSupervisor) == [KillSupervisor(key=KEY)]


@pytest.mark.parametrize(
    "launch",
    [
        a_launch(argv=[]),
        a_launch(argv=["a\0b"]),
        a_launch(readiness=HttpReadiness(port=0)),
        a_launch(readiness=ExecReadiness(argv=[])),
        msgspec.structs.replace(a_launch(), env={"A=B": "1"}),
        msgspec.structs.replace(a_launch(), stop_signal="SIGNOTHING"),
        msgspec.structs.replace(a_launch(), log_file_count_max=0),
    ],
)
def test_an_impossible_launch_is_rejected_without_a_try(launch: Launch) -> None:
    bench = connected()
    effects = bench.hear(a_start(launch=launch))
    assert of(effects, StartSupervisor) == []
    ended = reports(effects)[-1].ended
    assert ended is not None
    assert ended.cause is EndCause.REJECTED


def test_a_job_not_ready_in_time_is_stopped_as_a_failed_start() -> None:
    bench = connected()
    launch = a_launch(readiness=DelayReadiness(delay_ms=60_000), ready_within_ms=5_000)
    key = bench.run(launch=launch)
    assert of(bench.later(4_999), StopProcess) == []
    assert [each.key for each in of(bench.later(1), StopProcess)] == [key]
    ended = reports(bench.ends(key, signal="SIGTERM"))[-1].ended
    assert ended is not None
    assert (ended.cause, ended.message) == (EndCause.START_FAILED, "not ready within 5s")


def test_ended_allocations_are_forgotten_by_age_and_by_count() -> None:
    bench = connected(ended_count_max=1, ended_keep_ms=60_000)
    first, second = bench.run("a-1"), bench.run("a-2")
    assert of(bench.ends(first, exit_code=0), RemoveFolder) == []
    bench.now_ms += 1
    assert of(bench.ends(second, exit_code=0), RemoveFolder) == [RemoveFolder(key=first)]
    assert of(bench.later(60_000), RemoveFolder) == [RemoveFolder(key=second)]
    assert bench.state.allocations == {}
    assert answers(bench.hear(a_start("a-2"))) == [("a-2/start/1", "refused", "allocation_ended")]


def test_an_end_that_nobody_was_told_is_not_forgotten() -> None:
    bench = connected(ended_count_max=0)
    key = bench.run()
    bench.cut_off()
    bench.state.link.session_id = None
    assert of(bench.ends(key, exit_code=0), RemoveFolder) == []
    assert of(bench.connect("s-2"), RemoveFolder) == [RemoveFolder(key=key)]


def found(allocation_id: str, process: ProcessView | None, **more: bool) -> FoundAllocation:
    facts = {"is_supervised": True, "was_ready": False} | more
    return FoundAllocation(start=a_start(allocation_id), process=process, **facts)


def test_a_new_life_takes_over_what_runs_and_tells_what_does_not() -> None:
    readiness = HttpReadiness(port=80)
    ready = FoundAllocation(
        start=a_start("ready", launch=a_launch(readiness=readiness)),
        process=a_process(),
        is_supervised=True,
        was_ready=True,
    )
    bench = Bench(
        Started(
            inventory=Inventory(),
            authority_until_at_ms=1_009_000,
            found=[
                ready,
                found("gone", a_process(), is_supervised=False),
                found("over", a_process(exit_code=3), is_supervised=False),
                found("young", None, is_supervised=False),
                found("booting", None),
            ],
        )
    )
    assert [each.key.allocation_id for each in of(bench.last, StartSupervisor)] == ["young"]
    told = {key.allocation_id: each.report() for key, each in bench.state.allocations.items()}
    assert {name: str(each.phase) for name, each in told.items()} == {
        "ready": "ready",
        "gone": "ended",
        "over": "ended",
        "young": "starting",
        "booting": "starting",
    }
    causes = {name: each.ended.cause for name, each in told.items() if each.ended}
    assert causes == {"gone": EndCause.SUPERVISOR_LOST, "over": EndCause.EXITED}


def test_a_stop_begun_in_an_earlier_life_goes_on() -> None:
    view = ProcessView(pid=1, started_at_ms=999_000, is_stopping=True)
    bench = Bench(
        Started(inventory=Inventory(), found=[found("a-1", view)], authority_until_at_ms=1_009_000)
    )
    assert bench.phase(KEY) == "stopping"
    assert of(bench.later(3_000), KillProcess) == [KillProcess(key=KEY)]


def test_a_shutdown_stops_the_work_first_and_takes_no_more() -> None:
    bench = connected()
    key = bench.run()
    effects = bench.hear(Shutdown(reason="retired"), a_start("a-2"))
    assert [each.key for each in of(effects, StopProcess)] == [key]
    assert answers(effects) == [("a-2/start/1", "refused", "agent_stopping")]
    assert "Exit" not in {type(each).__name__ for each in effects}
    assert "Exit" in {type(each).__name__ for each in bench.ends(key, signal="SIGTERM")}


def test_an_agent_stopped_for_an_upgrade_leaves_the_work_alone() -> None:
    bench = connected()
    bench.run()
    effects = bench.feed(StopAsked(is_work_stopped=False))
    assert of(effects, StopProcess) == []
    assert [type(each).__name__ for each in effects] == ["Exit"]
