"""Readiness, leased commands and log streams in the agent's core."""

from typing import Any

from msgspec.structs import replace

from hostler.agent.core.effects import (
    ClearLease,
    CloseStream,
    Effect,
    Exit,
    GiveCredit,
    KillExec,
    OpenLogs,
    Probe,
    RememberReady,
    SignalExec,
    StartExec,
    WriteExec,
)
from hostler.agent.core.inputs import (
    AllocationKey,
    ExecFinished,
    LeaseCleared,
    LeaseKey,
    LogsFinished,
    ProbeAnswered,
    ProcessSeen,
    ProcessView,
    Started,
    StopAsked,
)
from hostler.agent.core.limits import EXECS_MAX, LOG_STREAMS_MAX
from hostler.wire.agent import (
    CancelStream,
    EndLease,
    ExecEnded,
    ExecInput,
    ExecSignal,
    ExecStart,
    LogEnded,
    ReadLogs,
    StreamCredit,
)
from hostler.wire.work import DelayReadiness, HttpReadiness, Inventory, SdNotifyReadiness
from tests.agent.bench import FENCE_AFTER_MS, Bench, a_launch, answers, of, sent

HTTP = HttpReadiness(port=80, interval_ms=1_000, timeout_ms=500)


def connected(**settings: Any) -> Bench:
    bench = Bench(**settings)
    bench.trust_the_link()
    return bench


def probed(bench: Bench, key: AllocationKey, probe: Probe, *, is_success: bool) -> list[Effect]:
    return bench.feed(ProbeAnswered(key=key, probe_id=probe.probe_id, is_success=is_success))


def test_a_job_without_a_check_is_ready_when_it_runs() -> None:
    bench = connected()
    assert bench.phase(bench.run()) == "ready"
    assert of(bench.last, RememberReady)


def test_a_delay_counts_from_the_start_of_the_process() -> None:
    bench = connected()
    key = bench.run(launch=a_launch(readiness=DelayReadiness(delay_ms=4_000)))
    assert bench.next_wake_at_ms == bench.now_ms + 4_000
    bench.later(3_999)
    assert bench.phase(key) == "running"
    bench.later(1)
    assert bench.phase(key) == "ready"


def test_sd_notify_says_ready_and_takes_it_back() -> None:
    bench = connected()
    key = bench.run(launch=a_launch(readiness=SdNotifyReadiness()))
    assert bench.phase(key) == "running"
    bench.feed(ProcessSeen(key=key, process=ProcessView(pid=77, is_ready=True)))
    assert bench.phase(key) == "ready"
    bench.feed(ProcessSeen(key=key, process=ProcessView(pid=77, is_ready=False)))
    assert bench.phase(key) == "unready"


def test_probes_go_out_one_at_a_time_in_their_rhythm() -> None:
    bench = connected()
    key = bench.run(launch=a_launch(readiness=HTTP))
    (first,) = of(bench.last, Probe)
    assert of(bench.later(1_000), Probe) == []
    assert of(probed(bench, key, first, is_success=True), Probe) != []
    assert bench.phase(key) == "ready"


def test_three_failures_in_a_row_make_a_ready_job_unready() -> None:
    bench = connected()
    key = bench.run(launch=a_launch(readiness=HTTP))
    (probe,) = of(bench.last, Probe)
    probed(bench, key, probe, is_success=True)
    for phase in ("ready", "ready", "unready"):
        (probe,) = of(bench.later(1_000), Probe)
        probed(bench, key, probe, is_success=False)
        assert bench.phase(key) == phase
    (probe,) = of(bench.later(1_000), Probe)
    probed(bench, key, probe, is_success=True)
    assert bench.phase(key) == "ready"


def test_a_probe_without_an_answer_counts_as_failed_and_its_late_answer_for_nothing() -> None:
    bench = connected()
    key = bench.run(launch=a_launch(readiness=HTTP))
    (first,) = of(bench.last, Probe)
    assert len(of(bench.later(2_500), Probe)) == 1
    probed(bench, key, first, is_success=True)
    assert bench.phase(key) == "running"


def an_exec(request_id: str = "r-1", lease_id: str = "l-1", epoch: int = 1) -> ExecStart:
    return ExecStart(request_id=request_id, lease_id=lease_id, lease_epoch=epoch, argv=["true"])


def an_end(lease_id: str = "l-1", epoch: int = 1, node_epoch: int = 1) -> EndLease:
    return EndLease(
        command_id=f"{lease_id}/end/{epoch}", node_epoch=node_epoch, lease_id=lease_id, epoch=epoch
    )


def test_a_leased_command_runs_takes_input_and_tells_its_code() -> None:
    bench = connected()
    assert of(bench.hear(an_exec()), StartExec) == [StartExec(start=an_exec())]
    assert of(bench.hear(an_exec()), StartExec) == []
    data = ExecInput(request_id="r-1", data=b"x")
    passed = bench.hear(data, ExecSignal(request_id="r-1", signal="SIGINT"))
    assert of(passed, WriteExec) == [WriteExec(data=data)]
    assert of(passed, SignalExec) == [SignalExec(request_id="r-1", signal="SIGINT")]
    credited = bench.hear(StreamCredit(request_id="r-1", bytes_count=5))
    assert of(credited, GiveCredit) == [GiveCredit(request_id="r-1", bytes_count=5)]
    assert sent(bench.feed(ExecFinished(request_id="r-1", exit_code=3))) == [
        ExecEnded(request_id="r-1", exit_code=3)
    ]
    assert of(bench.hear(data), WriteExec) == []


def test_ending_a_lease_clears_it_and_nothing_starts_under_it_again() -> None:
    bench = connected()
    bench.hear(an_exec())
    assert of(bench.hear(an_end()), ClearLease) == [ClearLease(key=LeaseKey("l-1", 1))]
    assert of(bench.hear(an_end()), ClearLease) == []
    done = bench.feed(LeaseCleared(key=LeaseKey("l-1", 1)))
    assert sent(done)[0] == ExecEnded(request_id="r-1", error="lease_ended")
    assert answers(done) == [("l-1/end/1", "done", "")]
    assert sent(bench.hear(an_exec("r-2"))) == [ExecEnded(request_id="r-2", error="lease_ended")]


def test_ending_an_unknown_lease_is_done_and_a_lower_epoch_is_refused() -> None:
    bench = connected()
    assert answers(bench.hear(an_end("l-9"))) == [("l-9/end/1", "done", "")]
    bench.hear(an_exec(epoch=4))
    assert answers(bench.hear(an_end(epoch=3))) == [("l-1/end/3", "refused", "epoch_stale")]
    stale = sent(bench.hear(an_exec("r-2", epoch=3)))
    assert stale == [ExecEnded(request_id="r-2", error="lease_epoch_stale")]


END_AND_CLEAN = replace(an_end(), clean_up=["scrub"], clean_up_ms=5_000)


def cleaning(bench: Bench, end: EndLease = END_AND_CLEAN) -> str:
    """End a lease that a clean-up follows, and return what that runs as."""
    bench.hear(an_exec())
    assert of(bench.hear(end), StartExec) == []
    (begun,) = of(bench.feed(LeaseCleared(key=LeaseKey("l-1", 1))), StartExec)
    assert begun.start.argv[-1] == "scrub"
    assert answers(bench.last) == []
    return begun.start.request_id


def test_a_slot_is_cleaned_up_once_nothing_is_left_and_cleared_again() -> None:
    bench = connected()
    clean_up = cleaning(bench)
    assert bench.hear(END_AND_CLEAN) == []  # asked again, it goes on
    ended = bench.feed(ExecFinished(request_id=clean_up, exit_code=0))
    assert of(ended, ClearLease) == [ClearLease(key=LeaseKey("l-1", 1))]
    assert sent(ended) == []
    done = bench.feed(LeaseCleared(key=LeaseKey("l-1", 1)))
    assert answers(done) == [("l-1/end/1", "done", "")]


def test_a_clean_up_that_fails_is_a_refusal() -> None:
    bench = connected()
    clean_up = cleaning(bench)
    bench.feed(ExecFinished(request_id=clean_up, exit_code=3))
    done = bench.feed(LeaseCleared(key=LeaseKey("l-1", 1)))
    assert answers(done) == [("l-1/end/1", "refused", "clean_up_failed")]


def test_a_clean_up_that_takes_too_long_is_killed_and_has_failed() -> None:
    bench = connected()
    clean_up = cleaning(bench)
    assert of(bench.later(4_999), KillExec) == []
    assert of(bench.later(1), KillExec) == [KillExec(request_id=clean_up)]
    bench.feed(ExecFinished(request_id=clean_up, signal="SIGKILL"))
    done = bench.feed(LeaseCleared(key=LeaseKey("l-1", 1)))
    assert answers(done) == [("l-1/end/1", "refused", "clean_up_failed")]


def test_a_clean_up_of_another_slot_is_not_disturbed_by_the_next_holder() -> None:
    bench = connected()
    cleaning(bench)
    begun = bench.hear(replace(an_exec("r-2", "l-2", epoch=2), held_lease_ids=["l-2"]))
    assert of(begun, ClearLease) == []
    assert [each.start.request_id for each in of(begun, StartExec)] == ["r-2"]


def test_a_clean_up_that_is_cut_off_with_the_agent_is_not_answered() -> None:
    bench = connected()
    clean_up = cleaning(bench)
    bench.feed(StopAsked(is_work_stopped=True))
    bench.feed(ExecFinished(request_id=clean_up, signal="SIGKILL"))
    assert answers(bench.feed(LeaseCleared(key=LeaseKey("l-1", 1)))) == []


def test_a_slot_that_is_clean_is_not_cleaned_up_again() -> None:
    """Simulator seed 167: asked again while the answer was on its way, it did so beside the next
    holder's command."""
    bench = connected()
    clean_up = cleaning(bench)
    bench.feed(ExecFinished(request_id=clean_up, exit_code=0))
    bench.feed(LeaseCleared(key=LeaseKey("l-1", 1)))
    again = bench.hear(END_AND_CLEAN)
    assert not of(again, StartExec)
    assert not of(again, ClearLease)
    assert answers(again) == [("l-1/end/1", "done", "")]


def test_a_clean_up_that_a_fence_has_cut_off_begins_anew_with_the_next_grant() -> None:
    bench = Bench()
    bench.connect()
    clean_up = cleaning(bench, replace(END_AND_CLEAN, clean_up_ms=60_000))
    bench.cut_off()
    assert ClearLease(key=LeaseKey("l-1", 1)) in bench.later(FENCE_AFTER_MS)
    bench.connect()
    bench.feed(ExecFinished(request_id=clean_up, signal="SIGKILL"))
    (begun,) = of(bench.feed(LeaseCleared(key=LeaseKey("l-1", 1))), StartExec)
    assert answers(bench.last) == []
    bench.feed(ExecFinished(request_id=begun.start.request_id, exit_code=0))
    done = bench.feed(LeaseCleared(key=LeaseKey("l-1", 1)))
    assert answers(done) == [("l-1/end/1", "done", "")]


def test_a_lease_that_nothing_ran_under_is_cleaned_up_too() -> None:
    bench = connected()
    assert of(bench.hear(END_AND_CLEAN), ClearLease) == [ClearLease(key=LeaseKey("l-1", 1))]
    assert len(of(bench.feed(LeaseCleared(key=LeaseKey("l-1", 1))), StartExec)) == 1


def test_a_new_holder_of_a_lease_waits_until_the_old_one_is_cleared_away() -> None:
    bench = connected()
    bench.hear(an_exec())
    effects = bench.hear(an_exec("r-2", epoch=2))
    assert of(effects, ClearLease) == [ClearLease(key=LeaseKey("l-1", 1))]
    assert of(effects, StartExec) == []
    cleared = bench.feed(LeaseCleared(key=LeaseKey("l-1", 1)))
    assert of(cleared, StartExec) == [StartExec(start=an_exec("r-2", epoch=2))]


def test_a_cancelled_command_is_killed() -> None:
    bench = connected()
    bench.hear(an_exec())
    assert of(bench.hear(CancelStream(request_id="r-1")), KillExec) == [KillExec(request_id="r-1")]


def test_what_an_earlier_life_left_under_leases_is_cleared_away() -> None:
    key = LeaseKey("l-1", 1)
    bench = Bench(Started(inventory=Inventory(), found_leases=[key]))
    assert of(bench.last, ClearLease) == [ClearLease(key=key)]


def test_an_agent_that_ends_takes_its_leased_commands_along() -> None:
    bench = connected()
    bench.hear(an_exec())
    effects = bench.feed(StopAsked(is_work_stopped=False))
    assert of(effects, ClearLease)
    assert of(effects, Exit) == []
    assert of(bench.feed(LeaseCleared(key=LeaseKey("l-1", 1))), Exit)


def test_a_log_of_something_unknown_ends_at_once() -> None:
    bench = connected()
    effects = bench.hear(ReadLogs(request_id="r", allocation_id="nobody"))
    assert sent(effects) == [LogEnded(request_id="r", error="allocation_unknown")]


def test_a_log_is_read_from_the_newest_epoch_until_it_is_cancelled() -> None:
    bench = connected()
    bench.ends(bench.run(epoch=1), exit_code=0)
    newest = bench.run(epoch=2)
    effects = bench.hear(ReadLogs(request_id="r", allocation_id="a-1", follow=True, tail_bytes=9))
    assert of(effects, OpenLogs) == [
        OpenLogs(request_id="r", key=newest, is_followed=True, tail_bytes=9)
    ]
    assert of(bench.hear(CancelStream(request_id="r")), CloseStream)
    assert sent(bench.feed(LogsFinished(request_id="r"))) == [LogEnded(request_id="r")]


def test_a_new_session_ends_the_streams_of_the_old_one() -> None:
    bench = connected()
    bench.run()
    bench.hear(an_exec(), ReadLogs(request_id="r", allocation_id="a-1"))
    bench.cut_off()
    effects = bench.connect("s-2")
    assert of(effects, KillExec) == [KillExec(request_id="r-1")]
    assert of(effects, CloseStream) == [CloseStream(request_id="r")]
    late = bench.feed(
        ExecFinished(request_id="r-1", signal="SIGKILL"), LogsFinished(request_id="r")
    )
    assert sent(late) == []


def test_a_resumed_session_keeps_its_streams() -> None:
    bench = connected()
    bench.hear(an_exec())
    bench.cut_off()
    assert of(bench.connect(resumes=True), KillExec) == []


def test_a_lease_that_was_cleared_but_not_ended_may_be_used_again() -> None:
    key = LeaseKey("l-1", 1)
    bench = Bench(Started(inventory=Inventory(), found_leases=[key]))
    bench.trust_the_link()
    assert of(bench.hear(an_exec()), StartExec) == []
    assert of(bench.feed(LeaseCleared(key=key)), StartExec) == [StartExec(start=an_exec())]


def test_a_command_that_waits_is_cancelled_without_ever_running() -> None:
    bench = connected()
    bench.hear(an_exec())
    bench.hear(an_exec("r-2", epoch=2))
    effects = bench.hear(CancelStream(request_id="r-2"))
    assert sent(effects) == [ExecEnded(request_id="r-2", error="cancelled")]
    assert of(bench.feed(LeaseCleared(key=LeaseKey("l-1", 1))), StartExec) == []


def test_what_is_no_command_is_not_started() -> None:
    bench = connected()
    nothing = ExecStart(request_id="r-1", lease_id="l-1", lease_epoch=1, argv=[])
    assert sent(bench.hear(nothing)) == [ExecEnded(request_id="r-1", error="argv_invalid")]
    bench.feed(StopAsked(is_work_stopped=False))
    assert sent(bench.hear(an_exec())) == [ExecEnded(request_id="r-1", error="agent_stopping")]


def test_commands_and_log_streams_are_bounded() -> None:
    bench = connected()
    bench.run()
    bench.hear(*(an_exec(f"r-{number}") for number in range(EXECS_MAX)))
    assert sent(bench.hear(an_exec("one-more"))) == [
        ExecEnded(request_id="one-more", error="too_many_commands")
    ]
    bench.hear(
        *(ReadLogs(request_id=f"s-{n}", allocation_id="a-1") for n in range(LOG_STREAMS_MAX))
    )
    assert sent(bench.hear(ReadLogs(request_id="one-more", allocation_id="a-1"))) == [
        LogEnded(request_id="one-more", error="too_many_streams")
    ]
