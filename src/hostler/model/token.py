"""A token: who may do what. The record keeps a hash; the secret is shown once and never stored."""

from __future__ import annotations

from enum import StrEnum
from typing import ClassVar

from hostler.model.record import Record


class Role(StrEnum):
    """What a token may do; each role may also do what the narrower ones may."""

    VIEWER = "viewer"
    """Read."""
    LESSEE = "lessee"
    """Take, renew and release its own leases, run commands under them, and read."""
    OPERATOR = "operator"
    """Bundles, cordons, drains, any lease."""
    ADMIN = "admin"
    """Everything, tokens and configuration too."""
    AGENT = "agent"
    """Enrol nodes into one pool and tier; nothing else."""


class Token(Record, frozen=True, kw_only=True):
    """One credential."""

    KIND: ClassVar[str] = "token"

    token_id: str
    name: str
    role: Role
    sha256: str
    """Of the secret, which has 256 random bits, so that a plain hash is enough."""
    created_at_ms: int
    created_by: str
    expires_at_ms: int | None = None
    pool: str = ""
    """For agents: the pool that they join. For lessees: the only pool they may lease from."""
    tier: str = ""
    is_revoked: bool = False

    @property
    def key(self) -> str:
        """The token's id."""
        return self.token_id
