"""Entries of the audit."""

from __future__ import annotations

from hostler.model import AuditEntry
from hostler.wire.http import AuditView


def entry(record: AuditEntry) -> AuditView:
    """Show one entry."""
    return AuditView(
        audit_id=record.key,
        at_ms=record.at_ms,
        principal=record.principal,
        token_id=record.origin.token_id,
        remote=record.origin.remote,
        action=record.action,
        about=record.about,
        data=record.data,
        changed=list(record.changed),
        changed_count=record.changed_count,
        outcome=record.outcome.value,
        code=record.code,
        count=record.count,
        request_id=record.request_id,
        event_seq=record.event_seq,
    )
