"""What has happened: who changed what, and what became of one thing."""

from __future__ import annotations

from typing import Any, Final

from hostler.client.call import Call, getting
from hostler.client.paging import PAGE_COUNT, Paging
from hostler.wire.http import AuditView, LifeView, Page

FOLLOW_MS: Final = 30_000
"""How long the server is asked to wait for the next entry."""


def audit_call(**asked: Any) -> Call[Page[AuditView]]:
    """Ask for a page of the audit."""
    return getting("/v1/audit", Page[AuditView], **asked)


class History(Paging):
    """The part of a client that asks for what has happened."""

    async def audit(
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
        """Return who changed what, and who was refused, the newest first.

        Args:
            by: Only of this principal, or shown with this token id.
            subject: Only about this id, or from this address.
            action: Only this action, such as `drain_node`.
            outcome: Only `done`, or only `refused`.
            since_at_ms: Only from this instant on.
            until_at_ms: Only up to this instant.
            count: So many at most.
        """
        items: list[AuditView] = []
        cursor: str | None = None
        while True:
            page = await self._transport.send(
                audit_call(
                    by=by,
                    subject=subject,
                    action=action,
                    outcome=outcome,
                    since_at_ms=since_at_ms,
                    until_at_ms=until_at_ms,
                    cursor=cursor,
                    limit=min(count - len(items), PAGE_COUNT),
                )
            )
            items += page.items
            cursor = page.next_cursor
            if cursor is None or len(items) >= count:
                return items

    async def audit_after(
        self,
        audit_id: str,
        *,
        by: str | None = None,
        subject: str | None = None,
        wait_ms: int = FOLLOW_MS,
    ) -> list[AuditView]:
        """Return the entries after one, the oldest first; waits for a while for there to be one."""
        page = await self._transport.send(
            audit_call(after=audit_id, by=by, subject=subject, wait_ms=wait_ms, limit=PAGE_COUNT)
        )
        return page.items

    async def life(self, about: str, *, count: int = PAGE_COUNT) -> LifeView:
        """Return what became of one thing, also after it is gone.

        Args:
            about: Noun and id: `node/n-000001`, `replica/b/job/0`, `bundle/b`, `lease/l-000001`.
            count: So many events at most, the newest.
        """
        call = getting("/v1/life", LifeView, about=about, limit=count)
        return await self._transport.send(call)
