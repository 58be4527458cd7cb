"""Requests of people as inputs of the core, and their answers."""

from __future__ import annotations

import secrets
from typing import Any, Final, TypeVar

import msgspec

from hostler.api.context import AnyConnection, Api, Caller, remote_of
from hostler.api.errors import HttpRequest, Invalid, missing, refused
from hostler.api.http import idempotency_key_of, raw_body
from hostler.base.errors import Defect
from hostler.core.inputs import AnyRequest
from hostler.core.replies import Accepted, Refused, Result
from hostler.model.audit import Origin
from hostler.model.record import Record
from hostler.wire.documents import BundleDocument, check_value
from hostler.wire.http import ProblemError

R = TypeVar("R", bound=Record)
D = TypeVar("D", bound=msgspec.Struct)

_PROCESS: Final = secrets.token_hex(6)
_numbers = iter(range(1, 1 << 62))


def new_request_id() -> str:
    """Return an id that no other request has, of this process or another."""
    return f"{_PROCESS}-{next(_numbers)}"


async def submit(api: Api, request: AnyRequest) -> Accepted:
    """Have a request done, and return its answer once it is durable.

    Raises:
        Denied: The core refused it.
        Failed: It could not be made durable, or the engine has stopped.
    """
    return accepted_of(await api.engine.submit(request))


def accepted_of(result: Result) -> Accepted:
    """Return a good answer.

    Raises:
        Denied: The core refused it.
    """
    match result:
        case Accepted() as accepted:
            return accepted
        case Refused() as refusal:
            raise refused(refusal)


def common(request: HttpRequest, caller: Caller) -> dict[str, Any]:
    """Give the fields that every request of the core has."""
    return {**of_holder(request, caller), "origin": origin_of(request, caller)}


def of_holder(request: HttpRequest, caller: Caller) -> dict[str, Any]:
    """Give the same but for the origin, which nobody asks for where nothing is audited."""
    return {
        "request_id": new_request_id(),
        "principal": caller.principal,
        "idempotency_key": idempotency_key_of(request),
    }


def origin_of(connection: AnyConnection, caller: Caller) -> Origin:
    """Say from where a request comes."""
    return Origin(token_id=caller.token_id, remote=remote_of(connection))


def record_of(api: Api, kind: type[R], key: str) -> R:
    """Return a committed record.

    Raises:
        Denied: It is not there.
    """
    found = api.engine.peek(kind.KIND, key)
    if found is None:
        raise missing(kind.KIND, key)
    if not isinstance(found, kind):
        raise Defect("record_of_other_kind", "a table holds another kind", kind=kind.KIND, key=key)
    return found


async def bundle_document(request: HttpRequest) -> BundleDocument:
    """Read a bundle out of the body; all that is wrong with it is told at once.

    Raises:
        Denied: Not JSON, or not a bundle.
    """
    return await document_of(request, BundleDocument, "bundle")


async def document_of(request: HttpRequest, kind: type[D], noun: str) -> D:
    """Read what a person has written out of the body.

    Raises:
        Denied: Not JSON, or not of that kind; all that is wrong is told.
    """
    raw = await raw_body(request)
    try:
        value = msgspec.json.decode(raw or b"null")
    except (msgspec.MsgspecError, RecursionError) as error:
        raise Invalid(
            400,
            "bad_json",
            "the body is not valid JSON",
            [ProblemError(path="", code="bad_json", message=str(error))],
        ) from error
    reading = check_value(value, kind)
    if reading.document is None:
        raise Invalid(
            422,
            "document_invalid",
            f"this {noun} cannot be accepted as it stands",
            [
                ProblemError(path=one.path, code=one.code, message=one.message)
                for one in reading.problems
            ],
        )
    return reading.document
