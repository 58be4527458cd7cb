"""How the API says no: RFC 9457 problem details with a stable code."""

from __future__ import annotations

from typing import Final

import msgspec

PROBLEM_MEDIA_TYPE: Final = "application/problem+json"

PROBLEM_TYPE_PREFIX: Final = "urn:hostler:problem:"
"""A problem's `type` is this and its code; a URN, since nothing needs to be fetched."""


class ProblemError(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One thing that is wrong with what was sent."""

    path: str
    """Where in the body, such as `jobs[0].run.argv`; the parameter's name for a query."""
    code: str
    message: str
    line: int | None = None
    """Of the server's configuration file, where the problem is in it."""


class Problem(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Why a request was not done."""

    type: str = "about:blank"
    title: str
    """The HTTP status in words."""
    status: int
    code: str
    """Stable; programs branch on it."""
    detail: str
    """One sentence for people: what is wrong and what to change."""
    errors: list[ProblemError] = []
    fields: dict[str, str | int | bool | None] = {}
    """The values that the detail speaks of."""
    retry_after_ms: int | None = None
    """Least wait before the same request makes sense again; also in `Retry-After`."""


def problem(
    status: int,
    title: str,
    code: str,
    detail: str,
    *,
    errors: list[ProblemError] | None = None,
    fields: dict[str, str | int | bool | None] | None = None,
    retry_after_ms: int | None = None,
) -> Problem:
    """Make a problem whose type follows from its code."""
    return Problem(
        type=PROBLEM_TYPE_PREFIX + code,
        title=title,
        status=status,
        code=code,
        detail=detail,
        errors=errors or [],
        fields=fields or {},
        retry_after_ms=retry_after_ms,
    )
