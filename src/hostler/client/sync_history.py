"""The part of the blocking client that is about what has happened."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hostler.client.history import FOLLOW_MS
from hostler.client.paging import PAGE_COUNT
from hostler.wire.http import AuditView, LifeView

if TYPE_CHECKING:
    from hostler.client.background import BackgroundLoop
    from hostler.client.client import Client


class SyncHistory:
    """What can be asked of the past; `SyncClient` adds the rest."""

    _loop: BackgroundLoop
    _client: Client

    def audit(
        self,
        *,
        by: str | None = None,
        subject: str | None = None,
        action: str | None = None,
        outcome: str | None = None,
        since_at_ms: int | None = None,
        until_at_ms: int | None = None,
        count: int = 100,
    ) -> list[AuditView]:
        """As `Client.audit`."""
        asked = self._client.audit(
            by=by,
            subject=subject,
            action=action,
            outcome=outcome,
            since_at_ms=since_at_ms,
            until_at_ms=until_at_ms,
            count=count,
        )
        return self._loop.run(asked)

    def audit_after(
        self,
        audit_id: str,
        *,
        by: str | None = None,
        subject: str | None = None,
        wait_ms: int = FOLLOW_MS,
    ) -> list[AuditView]:
        """As `Client.audit_after`."""
        asked = self._client.audit_after(audit_id, by=by, subject=subject, wait_ms=wait_ms)
        return self._loop.run(asked)

    def life(self, about: str, *, count: int = PAGE_COUNT) -> LifeView:
        """As `Client.life`."""
        return self._loop.run(self._client.life(about, count=count))
