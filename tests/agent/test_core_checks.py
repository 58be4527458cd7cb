"""Ready checks in the agent's core: each try is answered once, in time, and leaves nothing."""

import pytest

from hostler.agent.core.effects import ClearLease, Effect, KillExec, StartExec
from hostler.agent.core.inputs import ExecFinished, LeaseCleared, StopAsked
from hostler.base.redact import redacted, tail_of
from hostler.wire.agent import CheckReady, CommandAnswered
from tests.agent.bench import Bench, of, sent


def connected() -> Bench:
    bench = Bench()
    bench.trust_the_link()
    return bench


def a_check(number: int = 0, *, node_epoch: int = 1) -> CheckReady:
    return CheckReady(
        command_id=f"n-1/ready/{number}", node_epoch=node_epoch, argv=["probe"], timeout_ms=500
    )


def the_answer(effects: list[Effect]) -> CommandAnswered:
    (answer,) = [each for each in sent(effects) if isinstance(each, CommandAnswered)]
    return answer


def started(bench: Bench, check: CheckReady | None = None) -> StartExec:
    (start,) = of(bench.hear(check or a_check()), StartExec)
    return start


def test_a_try_runs_in_a_folder_of_its_own_with_its_output_kept() -> None:
    bench = connected()
    first, second = started(bench), started(bench, a_check(1))
    assert first.start.argv == ["probe"]
    assert first.tail_bytes
    keys = {(each.start.lease_id, each.start.lease_epoch) for each in (first, second)}
    assert len(keys) == 2


def test_a_try_that_passes_is_answered_and_cleared_away() -> None:
    bench = connected()
    start = started(bench).start
    effects = bench.feed(ExecFinished(request_id=start.request_id, exit_code=0))
    answer = the_answer(effects)
    assert (answer.command_id, answer.outcome) == ("n-1/ready/0", "done")
    (clear,) = of(effects, ClearLease)
    assert clear.key == (start.lease_id, start.lease_epoch)
    assert bench.feed(LeaseCleared(key=clear.key)) == []


def test_a_try_that_fails_is_refused_with_how_and_the_end_of_what_it_wrote() -> None:
    bench = connected()
    start = started(bench).start
    told = "connecting to postgres://me:pw1@db\nPGPASSWORD=pw2 refused\n"
    effects = bench.feed(ExecFinished(request_id=start.request_id, exit_code=2, tail=told))
    answer = the_answer(effects)
    assert (answer.outcome, answer.code) == ("refused", "not_ready")
    assert answer.message.startswith("exit code 2: connecting to postgres://")
    assert "refused" in answer.message
    assert "pw1" not in answer.message
    assert "pw2" not in answer.message


def test_a_try_that_takes_too_long_is_killed_and_refused() -> None:
    bench = connected()
    start = started(bench).start
    assert of(bench.later(500), KillExec) == [KillExec(request_id=start.request_id)]
    assert of(bench.later(500), KillExec) == []
    effects = bench.feed(ExecFinished(request_id=start.request_id, signal="SIGKILL"))
    answer = the_answer(effects)
    assert answer.message == "took longer than 500ms"


def test_a_try_that_is_asked_for_again_is_the_same_try() -> None:
    bench = connected()
    started(bench)
    assert of(bench.hear(a_check()), StartExec) == []


def test_a_try_of_a_former_authority_is_refused() -> None:
    bench = connected()
    started(bench, a_check(node_epoch=2))
    answer = the_answer(bench.hear(a_check(1, node_epoch=1)))
    assert answer.code == "node_epoch_stale"


def test_an_agent_that_ends_begins_no_try() -> None:
    bench = connected()
    bench.feed(StopAsked(is_work_stopped=True))
    answer = the_answer(bench.hear(a_check()))
    assert (answer.outcome, answer.code) == ("refused", "not_now")


@pytest.mark.parametrize(
    "text",
    [
        "password: hunter2",
        'DB_PASSWORD="hunter2"',
        "run --api-key hunter2 --fast",
        "Authorization: Bearer hunter2",
        '{"client_secret": "hunter2"}',
        "https://me:hunter2@example.com/x",
        "-----BEGIN OPENSSH PRIVATE KEY-----\nhunter2\n-----END OPENSSH PRIVATE KEY-----",
        "key ghp_hunter2hunter2hunter2",
    ],
)
def test_what_looks_like_a_secret_is_taken_out(text: str) -> None:
    assert "hunter2" not in redacted(text)


def test_what_is_no_secret_stays() -> None:
    told = "tokens are checked at line 7: unexpected token near `fi`"
    assert redacted(told) == told


def test_the_end_of_a_text_begins_with_a_whole_line() -> None:
    assert tail_of("one\ntwo\nthree\n", 9) == "three"
    assert tail_of("short\n", 9) == "short"
