"""Settings, tokens and events."""

from __future__ import annotations

import msgspec

from hostler.core.events import Event
from hostler.model import Settings, Token
from hostler.ports.store import StoredEvent
from hostler.wire.http import EventView, SettingsView, TokenView


def settings(record: Settings) -> SettingsView:
    """Show the fleet-wide numbers in force."""
    plain = msgspec.to_builtins(record)
    return msgspec.convert(
        {name: plain[name] for name in SettingsView.__struct_fields__}, SettingsView
    )


def token(record: Token) -> TokenView:
    """Show a token; never its hash, which is nobody's business."""
    return TokenView(
        token_id=record.token_id,
        name=record.name,
        role=record.role,
        created_at_ms=record.created_at_ms,
        created_by=record.created_by,
        expires_at_ms=record.expires_at_ms,
        pool=record.pool,
        tier=record.tier,
        is_revoked=record.is_revoked,
    )


_DECODER = msgspec.json.Decoder(Event)


def event(stored: StoredEvent) -> EventView:
    """Show a committed event."""
    told = _DECODER.decode(stored.body)
    return EventView(
        seq=stored.seq, kind=told.kind, at_ms=told.at_ms, about=told.about, data=told.data
    )
