"""Node services: what is configured, and how they are on each node."""

from __future__ import annotations

import msgspec

from hostler.wire.http.shapes import CapabilityView, RequirementView


class ServiceOnNodeView(msgspec.Struct, frozen=True, kw_only=True):
    """A service on one node."""

    node_id: str
    state: str
    """`ready`, `starting`, `away` (not ready, and still counted on), `withdrawn` (counted on no
    more), or `on_demand` (a lazy one that nothing needs now)."""
    since_at_ms: int
    """When it last became ready, or ceased to be."""
    deadline_at_ms: int | None
    """Not ready by then: what needs it moves on."""
    consumer_count: int
    """Allocations on the node that need it."""
    allocation_id: str | None
    allocation_phase: str | None
    reason: str | None
    """Why its copy has no place, while it has none."""
    reason_detail: str


class ServiceView(msgspec.Struct, frozen=True, kw_only=True):
    """A node service."""

    name: str
    bundle_id: str
    """The bundle behind it: its copies are replicas of that."""
    life: str
    """`eager` or `lazy`."""
    phase: str
    pools: list[str]
    tiers: list[str]
    consumes: RequirementView
    provides: list[CapabilityView]
    patience_ms: int
    linger_ms: int
    argv: list[str]
    generation: int
    observed_generation: int
    """The generation that all copies are up to."""
    node_count: int
    """Nodes on which it is, or would be if it were needed."""
    ready_count: int
    withdrawn_count: int
    nodes: list[ServiceOnNodeView] = []
    """Of one service that is asked for, those that are not well first; in lists left out."""


class ServicesView(msgspec.Struct, frozen=True, kw_only=True):
    """All node services."""

    items: list[ServiceView]
