"""What a request is answered with, once its step is durable."""

from __future__ import annotations

import msgspec


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that is wrong with a request, and where."""

    path: str
    """Such as `jobs[0].requirement.capacity`."""
    code: str
    message: str


class Accepted(msgspec.Struct, frozen=True, kw_only=True, tag="accepted"):
    """The request is recorded."""

    subject_id: str = ""
    """The record that it made or changed."""
    is_repeat: bool = False
    """True: it had been done before, and nothing was changed now."""


class Refused(msgspec.Struct, frozen=True, kw_only=True, tag="refused"):
    """The request cannot be accepted as it stands; nothing was changed."""

    code: str
    message: str
    problems: tuple[Problem, ...] = ()
    is_missing: bool = False
    """True: what it names does not exist."""
    is_conflict: bool = False
    """True: it does not fit the present state, though it may fit another."""


Result = Accepted | Refused


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to one request."""

    request_id: str
    result: Result
