"""Node services: which are on a node, what depends on them, and in what order they come.

A service is a bundle with one replica for each node, which has its place on that node and no other.
So its copies are allocations like any: epochs, fencing, restarts, ceilings. What they provide
is part of the node's shape while it is offered, so whatever matches shapes sees it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from hostler.base.ids import ReplicaId
from hostler.core.provided import with_provided
from hostler.model import Allocation, Bundle, Node, Pool
from hostler.model.bundle import BundlePhase, Job
from hostler.model.pool import Offer, Tier
from hostler.model.service import ServiceSpec
from hostler.model.shape import Capability, Requirement

if TYPE_CHECKING:
    from hostler.core.fleet import Fleet


class NodeService(msgspec.Struct, frozen=True, kw_only=True):
    """A node service as it is configured."""

    name: str
    job: Job
    spec: ServiceSpec


def services_of(fleet: Fleet) -> list[Bundle]:
    """Return every service that is not being taken away, by name."""
    bundles = (fleet.bundles[key] for key in fleet.index.bundles_of_services.keys("all"))
    return [bundle for bundle in bundles if bundle.phase is BundlePhase.ACTIVE]


def service_replica_id(bundle: Bundle, node_id: str) -> ReplicaId:
    """Return the id of a service's copy on a node."""
    return ReplicaId(f"{bundle.bundle_id}/{bundle.jobs[0].name}/{node_id}")


def provided_in(fleet: Fleet, pool: str) -> list[Capability]:
    """Return what services provide, or will provide, on nodes of a pool."""
    return [
        each
        for bundle in services_of(fleet)
        if bundle.service is not None and pool in bundle.service.pools
        for each in bundle.service.provides
    ]


def provided_names(bundle: Bundle) -> frozenset[str]:
    """Return the names of what a service provides."""
    return frozenset(() if bundle.service is None else (c.name for c in bundle.service.provides))


def needs(requirement: Requirement, names: Iterable[str]) -> bool:
    """Say whether a requirement asks for any of these capabilities."""
    return not {each.name for each in requirement.capabilities}.isdisjoint(names)


def consumers_on(fleet: Fleet, node: Node, names: Iterable[str]) -> Iterator[Allocation]:
    """Give the live allocations on a node that need what services add there by these names."""
    added = frozenset(names).intersection(node.provided)
    for key in fleet.index.allocations_by_node.keys(node.node_id) if added else ():
        allocation = fleet.allocations[key]
        if needs(allocation.requirement, added):
            yield allocation


def missing_service(node: Node, requirement: Requirement) -> str | None:
    """Return the service on a node that a requirement needs and that is not ready, if any."""
    if not node.provided or not requirement.capabilities:
        return None
    for name, state in sorted(node.services.items()):
        if not state.is_ready and needs(requirement, {*state.provides}.intersection(node.provided)):
            return name
    return None


def with_promises(pool: Pool, bundles: Sequence[Bundle]) -> Pool:
    """Return a pool whose machines promise what services will add to them when they are there."""

    def promised(tier: Tier, offer: Offer) -> Offer:
        added = [
            each
            for bundle in bundles
            if bundle.service is not None and bundle.service.is_for(pool.name, tier.name)
            for each in bundle.service.provides
        ]
        shape, names = with_provided(offer.shape, added)
        return replace(offer, shape=shape, provided=names) if names else offer

    return replace(
        pool,
        tiers=tuple(
            replace(tier, offers=tuple(promised(tier, offer) for offer in tier.offers))
            for tier in pool.tiers
        ),
    )


def in_order(bundles: Sequence[Bundle]) -> list[Bundle]:
    """Return services with those first that others need; what is in a circle is left out."""
    left = sorted(bundles, key=lambda each: each.bundle_id)
    ordered: list[Bundle] = []
    while True:
        waiting = frozenset(name for each in left for name in provided_names(each))
        free = [each for each in left if not needs(each.jobs[0].requirement, waiting)]
        if not free:
            return ordered
        ordered += free
        left = [each for each in left if each not in free]
