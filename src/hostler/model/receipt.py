"""A receipt: the answer that a request with an idempotency key once got."""

from __future__ import annotations

from typing import ClassVar

from hostler.model.record import Record


class Receipt(Record, frozen=True, kw_only=True):
    """Remembered so that the same request, sent again, gets the same answer."""

    KIND: ClassVar[str] = "receipt"

    receipt_id: str
    """Principal and key, joined."""
    request_digest: str
    """Of what was asked: the same key with another request is refused."""
    subject_id: str
    """The record that the request made or changed."""
    expires_at_ms: int

    @property
    def key(self) -> str:
        """The receipt's id."""
        return self.receipt_id
