"""A node service: a job that runs once on each node of some pools, and adds to what these have."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from hostler.base.ids import BundleId
from hostler.model.record import Value
from hostler.model.shape import Capability

SERVICE_PREFIX: Final = "service."
"""How the bundle behind a service is called; no bundle that people submit has a dot in its name."""


class ServiceLife(StrEnum):
    """When a service runs on a node."""

    EAGER = "eager"
    """As long as the node is there."""
    LAZY = "lazy"
    """While work that needs it is on the node, and for a while after."""


class ServiceSpec(Value, frozen=True, kw_only=True):
    """Makes a bundle a node service: on which nodes it runs and what they have by it."""

    life: ServiceLife = ServiceLife.EAGER
    pools: tuple[str, ...]
    tiers: tuple[str, ...] = ()
    """As `POOL/TIER`; none: all tiers of its pools."""
    provides: tuple[Capability, ...] = ()
    patience_ms: int = 30_000
    """How long it may be away, or its node not be meant any more, before that has consequences."""
    linger_ms: int = 300_000
    """How long a lazy one stays when the last that needs it has gone."""

    def is_for(self, pool: str, tier: str) -> bool:
        """Say whether it runs in a tier of a pool."""
        return pool in self.pools and (not self.tiers or f"{pool}/{tier}" in self.tiers)


class ServiceState(Value, frozen=True, kw_only=True):
    """How a service is on one node."""

    provides: tuple[str, ...] = ()
    """Names of the capabilities that the node has by it."""
    is_ready: bool = False
    is_offered: bool = True
    """What it provides counts as something that the node has: it is ready, or expected to be."""
    since_at_ms: int
    """When it last became ready or ceased to be; at first when it was wanted."""
    deadline_at_ms: int | None = None
    """Not ready by then: it is offered no more. `None` while it is ready or need not be."""
    unused_since_at_ms: int | None = None
    """Since when nothing on the node needs it; kept for lazy ones."""
    unmeant_since_at_ms: int | None = None
    """Since when the node is not among those on which it is to run."""


def service_bundle_id(name: str) -> BundleId:
    """Return the id of the bundle behind a service."""
    return BundleId(f"{SERVICE_PREFIX}{name}")


def service_name(bundle_id: str) -> str:
    """Return a service's name by the id of its bundle."""
    return bundle_id.removeprefix(SERVICE_PREFIX)
