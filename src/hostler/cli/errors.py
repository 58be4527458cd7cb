"""Every way in which a command can fail: one clear message on standard error, one exit code.

Commands raise; only this file says how an error reads and what the process exits with. There is
never a traceback, unless HOSTLER_DEBUG is set for whoever mends Hostler itself.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, Final, ParamSpec, TypeGuard, TypeVar

import typer

from hostler.base.errors import Rejected
from hostler.cli.terminal import shown

if TYPE_CHECKING:
    from hostler.client.errors import ClientError

P = ParamSpec("P")
R = TypeVar("R")

DEBUG_VARIABLE: Final = "HOSTLER_DEBUG"


class ExitCode(IntEnum):
    """What scripts go by."""

    OK = 0
    """Done."""
    FAILED = 1
    """The world did not cooperate: a full disk, a deadline that passed, a defect of ours."""
    BAD_INPUT = 2
    """The command line or a file must change."""
    NOT_FOUND = 3
    """There is nothing of that id; the message names near ones."""
    REFUSED = 4
    """The fleet's state does not allow it."""
    UNAUTHORISED = 5
    """No token, a wrong one, or one whose role is not enough."""
    UNREACHABLE = 6
    """No server answers there."""
    HOSTLER_FAILED_RUN = 125
    """Of `hostler run`: not the command failed but Hostler, as with env(1) and timeout(1)."""
    INTERRUPTED = 130
    """Ctrl-C; as if ended by SIGINT."""
    BROKEN_PIPE = 141
    """Whoever read our output has gone; as if ended by SIGPIPE."""


_CODE_BY_STATUS: Final = {
    400: ExitCode.BAD_INPUT,
    401: ExitCode.UNAUTHORISED,
    403: ExitCode.UNAUTHORISED,
    404: ExitCode.NOT_FOUND,
    409: ExitCode.REFUSED,
    413: ExitCode.BAD_INPUT,
    415: ExitCode.BAD_INPUT,
    422: ExitCode.REFUSED,
}

_HINTS: Final = {
    401: "give a token in HOSTLER_TOKEN, with --token-file, or in the client's configuration;"
    " an admin makes one with `hostler token create`",
    403: "ask an admin for a token whose role allows it",
}


class CommandError(Exception):
    """A command cannot go on; says it and ends the process.

    Attributes:
        message: One sentence, lower case, no full stop.
        code: What the process exits with.
        hint: What to do next; may be empty.
        details: Lines that come before the message, one for each thing that is wrong.
    """

    def __init__(
        self,
        message: str,
        *,
        code: ExitCode = ExitCode.FAILED,
        hint: str = "",
        details: Sequence[str] = (),
    ) -> None:
        self.message = message
        self.code = code
        self.hint = hint
        self.details = tuple(details)
        super().__init__(message)


def guarded(function: Callable[P, R]) -> Callable[P, R]:
    """Let a command end with one message and its exit code, whatever it raises."""

    @functools.wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except (typer.Exit, typer.Abort, typer.BadParameter):
            raise
        except BrokenPipeError:
            # Nobody reads on. Python would complain once more when it flushes at its end.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(ExitCode.BROKEN_PIPE) from None
        except KeyboardInterrupt:
            raise typer.Exit(ExitCode.INTERRUPTED) from None
        except Exception as error:
            if os.environ.get(DEBUG_VARIABLE):
                raise
            raise typer.Exit(report(error)) from None

    return run


def report(error: Exception) -> ExitCode:
    """Tell an error on standard error; return what to exit with."""
    code, lines = told(error)
    for line in lines:
        sys.stderr.write(shown(line) + "\n")
    return code


def told(error: Exception) -> tuple[ExitCode, list[str]]:
    """Give the exit code and the lines for an error."""
    from hostler.base.errors import Defect, HostlerError
    from hostler.wire.documents import DocumentRejected

    match error:
        case CommandError():
            return error.code, [*error.details, *_headline(error.message), *_hinted(error.hint)]
        case DocumentRejected():
            return ExitCode.BAD_INPUT, [*error.lines(), *_headline(error.message)]
        case Defect():
            return ExitCode.FAILED, _defect_lines(error)
        case HostlerError() if _is_from_server(error):
            return _told_by_server(error)
        case HostlerError(code="unreachable"):
            return ExitCode.UNREACHABLE, _headline(error.message)
        case Rejected():
            return _told_locally(error)
        case HostlerError():
            return ExitCode.FAILED, _headline(str(error))
        case OSError():
            return ExitCode.FAILED, _headline(_os_error_text(error))
        case _:
            return ExitCode.FAILED, _defect_lines(error)


def _is_from_server(error: Exception) -> TypeGuard[ClientError]:
    """Say whether a server said it; without the client, which is slow to load, none did."""
    client = sys.modules.get("hostler.client.errors")
    return client is not None and isinstance(error, client.ClientError)


def _told_by_server(error: ClientError) -> tuple[ExitCode, list[str]]:
    code = _CODE_BY_STATUS.get(error.status, ExitCode.FAILED)
    if error.errors and error.status == 422:
        code = ExitCode.BAD_INPUT
    lines = [
        ": ".join(
            part for part in (f"line {one.line}" if one.line else "", one.path, one.message) if part
        )
        for one in error.errors
    ]
    return code, [*lines, *_headline(error.message), *_hinted(_HINTS.get(error.status, ""))]


def _told_locally(error: Rejected) -> tuple[ExitCode, list[str]]:
    """Tell a refusal that carries no problem document: of a file, a lease, or an agent's join."""
    status = error.fields.get("status")
    if isinstance(status, int):
        code = _CODE_BY_STATUS.get(status, ExitCode.FAILED)
        return code, _headline(error.message)
    if "lease_id" in error.fields:
        detail = error.fields.get("detail")
        why = f"{error.code}: {detail}" if detail else error.code
        return ExitCode.REFUSED, _headline(f"{error.message}: {why}")
    return ExitCode.BAD_INPUT, _headline(str(error))


def _headline(message: str) -> list[str]:
    return [f"hostler: {message}"]


def _hinted(hint: str) -> Iterator[str]:
    if hint:
        yield f"hint: {hint}"


def _os_error_text(error: OSError) -> str:
    why = (error.strerror or str(error) or type(error).__name__).lower()
    return f"{error.filename}: {why}" if error.filename else why


def _defect_lines(error: Exception) -> list[str]:
    return [
        *_headline(f"a defect of Hostler itself: {type(error).__name__}: {error}"),
        f"hint: set {DEBUG_VARIABLE}=1 to see where, and report it with what you did",
    ]
