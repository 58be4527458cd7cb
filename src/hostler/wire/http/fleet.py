"""The fleet as a whole: status, configuration, tokens, events and pages."""

from __future__ import annotations

from typing import Annotated, Any, Final, Generic, Literal, TypeVar

import msgspec
from msgspec import Meta

from hostler.wire.http.nodes import PoolView

V = TypeVar("V")

TOKEN_MS_MAX: Final = 10 * 366 * 86_400_000
"""Ten years: what lives longer is meant to live for ever, and says so."""


class Page(msgspec.Struct, Generic[V], frozen=True, kw_only=True):
    """Part of a list. All of it comes from one revision of the fleet."""

    items: list[V]
    next_cursor: str | None
    """Give it as `cursor` to go on; `null` on the last page."""
    revision: int
    event_seq: int
    """Position of the last event that this page knows of: a stream of events that begins after it
    misses nothing and repeats nothing."""


class EventView(msgspec.Struct, frozen=True, kw_only=True):
    """A committed fact."""

    seq: int
    """Position in the stream; rises by one with each event."""
    kind: str
    at_ms: int
    about: dict[str, str]
    """Ids by noun: `node`, `pool`, `bundle`, `replica`, `allocation`, `lease`, `principal`."""
    data: dict[str, str | int | bool | None]


class StatusView(msgspec.Struct, frozen=True, kw_only=True):
    """The server and the fleet in numbers."""

    version: str
    fleet_id: str
    """Empty before the first configuration."""
    revision: int
    event_seq: int
    started_at_ms: int
    now_ms: int
    is_development: bool
    """Requests without a token are taken, because only this machine can make them."""
    principal: str
    """Who asks, as the audit knows them."""
    role: str
    node_count_by_phase: dict[str, int]
    replica_count_by_phase: dict[str, int]
    allocation_count_by_phase: dict[str, int]
    lease_waiting_count: int
    lease_held_count: int
    outbox_count: int
    agent_count: int
    """Agents whose link is up."""


class SettingsView(msgspec.Struct, frozen=True, kw_only=True):
    """The fleet-wide numbers in force, in milliseconds and counts."""

    fleet_id: str
    generation: int
    heartbeat_ms: int
    suspect_after_ms: int
    fence_after_ms: int
    lost_after_ms: int
    list_every_ms: int
    orphan_grace_ms: int
    lost_node_count_max: int
    lost_node_percent_max: int | None = None
    brake_window_ms: int
    ageing_ms: int
    preemption: dict[str, Any]
    recovery: dict[str, Any]
    retention: dict[str, Any]
    spend: dict[str, Any]


class ConfigView(msgspec.Struct, frozen=True, kw_only=True):
    """The configuration in force."""

    settings: SettingsView | None
    """`null` before the first configuration."""
    pools: list[PoolView]


class TokenView(msgspec.Struct, frozen=True, kw_only=True):
    """Who may do what; never the secret."""

    token_id: str
    name: str
    role: str
    created_at_ms: int
    created_by: str
    expires_at_ms: int | None
    pool: str
    tier: str
    is_revoked: bool


class CreateTokenRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Make a token."""

    name: str
    """The principal's name in the audit."""
    role: Literal["viewer", "lessee", "operator", "admin", "agent"]
    expires_in_ms: Annotated[int, Meta(ge=1, le=TOKEN_MS_MAX)] | None = None
    """`null`: never."""
    pool: str = ""
    """For agents: the pool that they join. For lessees: the only pool they may lease from."""
    tier: str = ""
    """For agents: the tier that they join."""


class CreatedToken(msgspec.Struct, frozen=True, kw_only=True):
    """A new token, and its secret, which is shown this once."""

    token: TokenView
    secret: str
