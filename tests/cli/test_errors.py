"""Every kind of error: its words and its exit code, in one place."""

import pytest
import typer

from hostler.base.errors import Defect, Failed, Rejected
from hostler.cli.errors import CommandError, ExitCode, guarded, told
from hostler.client.errors import ClientError, Unreachable
from hostler.client.lease import LeaseRefused
from hostler.wire.documents import read_config
from hostler.wire.documents.problem import DocumentRejected
from hostler.wire.http import ProblemError, problem


def refused(status: int, *errors: ProblemError) -> ClientError:
    return ClientError(problem(status, "No", "no", "it cannot be", errors=list(errors)))


def document_rejected() -> Exception:
    with pytest.raises(DocumentRejected) as caught:
        read_config("fleet: {id: A}\npool: {}\n", "hostler.yaml").require()
    return caught.value


CASES: list[tuple[Exception, ExitCode, list[str]]] = [
    (CommandError("it is so"), ExitCode.FAILED, ["hostler: it is so"]),
    (
        CommandError("no", code=ExitCode.NOT_FOUND, hint="look there", details=["a: b"]),
        ExitCode.NOT_FOUND,
        ["a: b", "hostler: no", "hint: look there"],
    ),
    (
        document_rejected(),
        ExitCode.BAD_INPUT,
        [
            (
                'hostler.yaml:1:9: fleet.id: "A" cannot stand here; allowed: lower-case letters,'
                " digits and hyphens, 63 at most"
            ),
            "hostler.yaml:2:1: pool: unknown key `pool`; did you mean `pools`?",
            "hostler: 2 problems in hostler.yaml",
        ],
    ),
    (
        Unreachable("http://x", "no connection"),
        ExitCode.UNREACHABLE,
        ["hostler: cannot reach the server at http://x: no connection"],
    ),
    (refused(404), ExitCode.NOT_FOUND, ["hostler: it cannot be"]),
    (refused(409), ExitCode.REFUSED, ["hostler: it cannot be"]),
    (refused(422), ExitCode.REFUSED, ["hostler: it cannot be"]),
    (
        refused(422, ProblemError(path="jobs[0]", code="c", message="is wrong")),
        ExitCode.BAD_INPUT,
        ["jobs[0]: is wrong", "hostler: it cannot be"],
    ),
    (refused(503), ExitCode.FAILED, ["hostler: it cannot be"]),
    (Rejected("port_taken", "port 1 is taken"), ExitCode.BAD_INPUT, ["hostler: port 1 is taken"]),
    (
        Rejected("unauthorized", "no such token", status=401),
        ExitCode.UNAUTHORISED,
        ["hostler: no such token"],
    ),
    (
        LeaseRefused("timed_out", "the lease was not granted", lease_id="l-1", detail=""),
        ExitCode.REFUSED,
        ["hostler: the lease was not granted: timed_out"],
    ),
    (Failed("store_full", "the disk is full"), ExitCode.FAILED, ["hostler: the disk is full"]),
    (
        PermissionError(13, "Permission denied", "/x"),
        ExitCode.FAILED,
        ["hostler: /x: permission denied"],
    ),
]


@pytest.mark.parametrize(("error", "code", "lines"), CASES, ids=lambda one: type(one).__name__)
def test_an_error_is_told_in_its_own_words(
    error: Exception, code: ExitCode, lines: list[str]
) -> None:
    assert told(error) == (code, lines)


@pytest.mark.parametrize("status", [401, 403])
def test_who_is_not_let_in_is_told_what_to_do(status: int) -> None:
    code, lines = told(refused(status))
    assert code is ExitCode.UNAUTHORISED
    assert lines[0] == "hostler: it cannot be"
    assert lines[1].startswith("hint: ")


@pytest.mark.parametrize("error", [Defect("d", "impossible"), ZeroDivisionError("oh")])
def test_a_defect_says_how_to_see_more(error: Exception) -> None:
    code, lines = told(error)
    assert code is ExitCode.FAILED
    assert lines[0].startswith("hostler: a defect of Hostler itself: ")
    assert "HOSTLER_DEBUG=1" in lines[1]


def test_a_traceback_is_for_whoever_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    @guarded
    def command() -> None:
        raise ZeroDivisionError

    with pytest.raises(typer.Exit) as end:
        command()
    assert end.value.exit_code == ExitCode.FAILED
    monkeypatch.setenv("HOSTLER_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        command()


@pytest.mark.parametrize(
    ("error", "code"), [(KeyboardInterrupt(), 130), (typer.Exit(7), 7)], ids=["Ctrl-C", "exit"]
)
def test_an_end_that_is_no_error_says_nothing(
    error: BaseException, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    @guarded
    def command() -> None:
        raise error

    with pytest.raises(typer.Exit) as end:
        command()
    assert end.value.exit_code == code
    assert capsys.readouterr() == ("", "")
