"""Who asks, and from where: what every input and every request has, and what the audit is told."""

from __future__ import annotations

import msgspec

from hostler.model.audit import Origin


class Input(msgspec.Struct, frozen=True, kw_only=True):
    """Something that happened outside."""


class Request(Input, frozen=True, kw_only=True):
    """Something that a person or a client wants, and that gets exactly one reply."""

    request_id: str
    principal: str
    idempotency_key: str = ""
    """The same key from the same principal is the same request: it is done once and answered alike
    (`core/absorb/receipts.py`). Empty: each is a request of its own."""
    origin: Origin | None = None
    """From where, for the audit; left out where nothing is audited."""


class AccessNoted(Input, frozen=True, kw_only=True, tag="access_noted"):
    """Somebody was refused, or let do something that changes no record of ours."""

    principal: str
    """Empty for somebody unknown."""
    origin: Origin
    action: str
    about: dict[str, str] = {}
    code: str = ""
    """Why they were refused; empty: they were not."""
    count: int = 1
