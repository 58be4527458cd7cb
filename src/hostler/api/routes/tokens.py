"""Tokens: made, listed, revoked. Secrets leave once, in the answer that makes them."""

from __future__ import annotations

import re
import secrets
from typing import Final

from litestar import Response, delete, get, post

from hostler.api.context import api_of, caller_of
from hostler.api.convert import fleet as views
from hostler.api.errors import Denied, HttpRequest
from hostler.api.gateway import common, record_of, submit
from hostler.api.http import PAGING, Operation, Query, answer, body_of, described, page, path_text
from hostler.core.inputs import CreateToken, RevokeToken
from hostler.engine.keys import token_hash
from hostler.model import Token
from hostler.model.token import Role
from hostler.wire.http import CreatedToken, CreateTokenRequest, Page, TokenView

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")


@post(
    "/v1/tokens",
    **described(
        Operation(
            summary="Make a token",
            body=CreateTokenRequest,
            answer=CreatedToken,
            status=201,
            role=Role.ADMIN,
            statuses=(404, 409),
        )
    ),
)
async def create(request: HttpRequest) -> Response[bytes]:
    """The secret is in this answer and nowhere else.

    It follows from the server's key and the `Idempotency-Key`, so that the same request, sent again
    because its answer was lost, gets the same secret.
    """
    api, caller = api_of(request), caller_of(request)
    asked = await body_of(request, CreateTokenRequest)
    if not _NAME.fullmatch(asked.name):
        raise Denied(422, "name_invalid", "a name has 1 to 64 letters, digits and any of . _ @ -")
    shared = common(request, caller)
    secret = api.engine.keys.token_secret(
        caller.principal, shared["idempotency_key"] or secrets.token_hex(16)
    )
    sha256 = token_hash(secret)
    before = api.engine.token_of(sha256)
    expires_at_ms = None
    if asked.expires_in_ms is not None:
        # Sent again, it is the same request, although time has passed.
        now_ms = api.engine.clock.now_ms()
        expires_at_ms = before.expires_at_ms if before else now_ms + asked.expires_in_ms
    accepted = await submit(
        api,
        CreateToken(
            name=asked.name,
            role=Role(asked.role),
            sha256=sha256,
            expires_at_ms=expires_at_ms,
            pool=asked.pool,
            tier=asked.tier,
            **shared,
        ),
    )
    token = record_of(api, Token, accepted.subject_id)
    return answer(CreatedToken(token=views.token(token), secret=secret), 201)


@get(
    "/v1/tokens",
    **described(
        Operation(summary="List tokens", answer=Page[TokenView], role=Role.ADMIN, parameters=PAGING)
    ),
)
async def list_all(request: HttpRequest) -> Response[bytes]:
    """All tokens, revoked ones too, without their secrets."""
    return await page(
        request,
        Query(request),
        lambda fleet: fleet.tokens.rows,
        lambda fleet, key: views.token(fleet.tokens[key]),
    )


@delete(
    "/v1/tokens/{token_id:str}",
    **described(
        Operation(
            summary="Make a token worthless",
            answer=TokenView,
            role=Role.ADMIN,
            statuses=(404, 409),
        )
    ),
)
async def revoke(request: HttpRequest) -> Response[bytes]:
    """From this answer on it opens nothing; what it began goes on."""
    token_id = path_text(request, "token_id")
    api, caller = api_of(request), caller_of(request)
    await submit(api, RevokeToken(token_id=token_id, **common(request, caller)))
    return answer(views.token(record_of(api, Token, token_id)))


ROUTES = [create, list_all, revoke]
