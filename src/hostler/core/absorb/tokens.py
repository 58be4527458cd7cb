"""Requests about tokens: remembered by the hash of their secret, and made worthless."""

from __future__ import annotations

import re
from typing import Final

from hostler.core.events import EventKind
from hostler.core.inputs import CreateToken, RevokeToken
from hostler.core.replies import Refused
from hostler.core.txn import Txn
from hostler.model import Pool, Token
from hostler.model.pool import TierKind
from hostler.model.token import Role

_SHA256: Final = re.compile(r"[0-9a-f]{64}")


def create(txn: Txn, one: CreateToken) -> None:
    """Remember a token."""
    refusal = _refusal(txn, one)
    if refusal is not None:
        txn.reply(one.request_id, refusal)
        return
    token = txn.put(
        Token(
            token_id=txn.mint("t"),
            name=one.name,
            role=one.role,
            sha256=one.sha256,
            created_at_ms=txn.now_ms,
            created_by=one.principal,
            expires_at_ms=one.expires_at_ms,
            pool=one.pool,
            tier=one.tier,
        )
    )
    txn.emit(
        EventKind.TOKEN_CREATED,
        {"token": token.token_id, "principal": one.principal},
        name=one.name,
        role=one.role.value,
    )
    txn.accept(one.request_id, token.token_id)


def _refusal(txn: Txn, one: CreateToken) -> Refused | None:
    if not _SHA256.fullmatch(one.sha256):
        return Refused(code="token_hash_invalid", message="sha256 is 64 hexadecimal digits")
    if txn.fleet.index.tokens_by_hash.count(one.sha256):
        return Refused(
            code="token_exists", message="a token with this secret exists", is_conflict=True
        )
    if one.expires_at_ms is not None and one.expires_at_ms <= txn.now_ms:
        return Refused(code="token_expired", message="expires_at_ms lies in the past")
    return _scope_refusal(txn.fleet.pools.get(one.pool), one)


def _scope_refusal(pool: Pool | None, one: CreateToken) -> Refused | None:
    if one.role is Role.AGENT and not (one.pool and one.tier):
        return Refused(
            code="token_scope_missing", message="an agent's token names its pool and tier"
        )
    if one.tier and one.role is not Role.AGENT:
        return Refused(
            code="token_scope_invalid", message="only an agent's token is bound to a tier"
        )
    if one.pool and pool is None:
        return Refused(code="pool_not_found", message=f"there is no pool named {one.pool!r}")
    if pool is None or not one.tier:
        return None
    tier = pool.tier(one.tier)
    if tier is None:
        return Refused(
            code="tier_not_found", message=f"pool {pool.name} has no tier named {one.tier!r}"
        )
    if tier.kind is not TierKind.FIXED:
        return Refused(
            code="token_scope_invalid",
            message=f"tier {tier.name} launches its machines itself; agents join fixed tiers",
        )
    return None


def revoke(txn: Txn, one: RevokeToken) -> None:
    """Make a token worthless, for good."""
    token = txn.fleet.tokens.get(one.token_id)
    if token is None:
        txn.refuse(
            one.request_id,
            "token_not_found",
            f"there is no token {one.token_id!r}",
            is_missing=True,
        )
        return
    if token.is_revoked:
        txn.accept(one.request_id, token.token_id, is_repeat=True)
        return
    txn.change(token, is_revoked=True)
    txn.emit(
        EventKind.TOKEN_REVOKED,
        {"token": token.token_id, "principal": one.principal},
        name=token.name,
    )
    txn.accept(one.request_id, token.token_id)
