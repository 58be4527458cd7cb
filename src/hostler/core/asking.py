"""What every input has, and what every request has besides: who asks, and from where."""

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
