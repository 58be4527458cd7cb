"""Every way of saying no, as a problem document (RFC 9457)."""

from __future__ import annotations

import re
import traceback
from http import HTTPStatus
from typing import Any, Final

import msgspec
import structlog
from litestar import Request, Response
from litestar.enums import ScopeType
from litestar.exceptions import HTTPException
from litestar.types import Scope

from hostler.api.limits import RETRY_AFTER_MS
from hostler.base.errors import Defect, Failed, HostlerError, Rejected
from hostler.core.replies import Refused
from hostler.wire.documents import DocumentRejected
from hostler.wire.http import PROBLEM_MEDIA_TYPE, Problem, ProblemError, problem

HttpRequest = Request[Any, Any, Any]

_log = structlog.get_logger(__name__)

_ENCODER: Final = msgspec.json.Encoder()


class Denied(Rejected):
    """The request is not taken, with the status that says why."""

    def __init__(self, status: int, code: str, message: str, **fields: object) -> None:
        self.status = status
        super().__init__(code, message, **fields)


class Invalid(Denied):
    """Something in the request is not as it must be; `errors` says what, one by one."""

    def __init__(self, status: int, code: str, message: str, errors: list[ProblemError]) -> None:
        self.errors = errors
        super().__init__(status, code, message)


_CODES: Final = {
    400: "bad_request",
    404: "path_unknown",
    405: "method_not_allowed",
    413: "body_too_large",
}

_DETAILS: Final = {
    404: "there is nothing at this path; /openapi.json lists what there is",
    405: "this path does not take this method",
    413: "the body is too large",
}


def refused(result: Refused) -> Denied:
    """Make an error of the core's refusal."""
    match result:
        case Refused(is_missing=True):
            status = HTTPStatus.NOT_FOUND
        case Refused(code="overloaded"):
            status = HTTPStatus.TOO_MANY_REQUESTS
        case Refused(code="not_holder"):
            status = HTTPStatus.FORBIDDEN
        case Refused(is_conflict=True):
            status = HTTPStatus.CONFLICT
        case _:
            status = HTTPStatus.UNPROCESSABLE_ENTITY
    errors = [
        ProblemError(path=one.path, code=one.code, message=one.message) for one in result.problems
    ]
    if errors:
        return Invalid(status, result.code, result.message, errors)
    return Denied(status, result.code, result.message)


def missing(kind: str, key: str) -> Denied:
    """Say that a record is not there."""
    return Denied(404, f"{kind}_not_found", f"there is no {kind} {key!r}")


def problem_of(error: Exception) -> Problem:
    """Write any error as a problem."""
    match error:
        case Invalid():
            return _problem(error.status, error, errors=error.errors)
        case Denied(status=429):
            return _problem(429, error, retry_after_ms=RETRY_AFTER_MS)
        case Denied():
            return _problem(error.status, error)
        case DocumentRejected():
            return _problem(
                422,
                error,
                errors=[
                    ProblemError(path=one.path, code=one.code, message=one.message, line=one.line)
                    for one in error.problems
                ],
            )
        case Rejected():
            return _problem(422, error)
        case Failed(code="overloaded"):
            return _problem(429, error, retry_after_ms=error.retry_after_ms or RETRY_AFTER_MS)
        case Failed():
            return _problem(503, error, retry_after_ms=error.retry_after_ms or RETRY_AFTER_MS)
        case HTTPException():
            return _library_problem(error)
        case _:
            return problem(
                500,
                "Internal Server Error",
                "internal_error",
                "something is wrong in the server; its log says what",
            )


def _problem(
    status: int,
    error: HostlerError,
    *,
    errors: list[ProblemError] | None = None,
    retry_after_ms: int | None = None,
) -> Problem:
    fields = {
        name: value if isinstance(value, str | int | None) else str(value)
        for name, value in error.fields.items()
    }
    if isinstance(error, Failed):
        fields["effect"] = error.effect
    return problem(
        status,
        HTTPStatus(status).phrase,
        error.code,
        error.message,
        errors=errors,
        fields=fields,
        retry_after_ms=retry_after_ms,
    )


def _library_problem(error: HTTPException) -> Problem:
    """Write what Litestar says about paths, methods, parameters and sizes."""
    status = error.status_code
    return problem(
        status,
        HTTPStatus(status).phrase,
        _CODES.get(status, "bad_request" if status < 500 else "internal_error"),
        _DETAILS.get(status, error.detail),
    )


def answer_error(request: HttpRequest, error: Exception) -> Response[bytes]:
    """Answer an error; the one place where everything is caught on the way to a client."""
    if isinstance(error, Denied):
        request.app.state.api.refusals.note(request, error)
    told = problem_of(error)
    if told.status == HTTPStatus.INTERNAL_SERVER_ERROR or isinstance(error, Defect):
        _log_defect("request_failed", error)
    headers = dict(error.headers or {}) if isinstance(error, HTTPException) else {}
    if told.retry_after_ms is not None:
        headers["Retry-After"] = str(max(1, -(-told.retry_after_ms // 1_000)))
    if told.status == HTTPStatus.UNAUTHORIZED:
        headers["WWW-Authenticate"] = "Bearer"
    return Response(
        _ENCODER.encode(told),
        status_code=told.status,
        media_type=PROBLEM_MEDIA_TYPE,
        headers=headers,
    )


async def log_socket_error(error: Exception, scope: Scope) -> None:
    """Log what ended a WebSocket: its client sees no more than that it is closed."""
    if scope["type"] is ScopeType.WEBSOCKET and not isinstance(error, HostlerError | HTTPException):
        _log_defect("socket_failed", error)


def _log_defect(event: str, error: Exception) -> None:
    # As text, because a log that shows variables beside a traceback would show tokens.
    _log.error(event, traceback="".join(traceback.format_exception(error)))


_AT: Final = re.compile(r"^(?P<what>.*?)(?: - at `\$\.?(?P<path>.*)`)?$", re.DOTALL)


def from_validation(error: msgspec.MsgspecError, *, where: str = "the body") -> Invalid:
    """Say what is wrong with what was decoded."""
    if not isinstance(error, msgspec.ValidationError):
        return Invalid(
            400,
            "bad_json",
            f"{where} is not valid JSON",
            [ProblemError(path="", code="bad_json", message=str(error))],
        )
    found = _AT.match(str(error))
    what, path = (found["what"], found["path"] or "") if found else (str(error), "")
    return Invalid(
        422,
        "invalid",
        f"{where} is not as it must be: {what}" + (f" (at {path})" if path else ""),
        [ProblemError(path=path, code="invalid", message=what)],
    )
