"""Demand: what one replica asks of a place, as a value that no longer needs the fleet."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

import msgspec

from hostler.base.encoding import digest, encode
from hostler.base.ids import NodeId, ReplicaId
from hostler.core.placement.resilience import Domains, domains_of
from hostler.model import Bundle, Replica
from hostler.model.bundle import Fallback, Job, SpreadRule
from hostler.model.pool import Band
from hostler.model.shape import Requirement

if TYPE_CHECKING:
    from hostler.core.fleet import Fleet


class SpareAccess(StrEnum):
    """Whether a spare is open to a replica."""

    NEVER = "never"
    LAST = "last"
    """When no ordinary node of the tier fits."""
    FIRST = "first"
    """Before any ordinary node."""


class Demand(msgspec.Struct, frozen=True, kw_only=True):
    """What one replica asks of a place."""

    replica_id: ReplicaId
    line: str = ""
    """Digest of what it asks, equal for replicas that ask alike; only a hint."""
    band: Band
    requirement: Requirement
    pools: tuple[str, ...]
    """The bundle's own, then its fallbacks."""
    fallback: Fallback = Fallback.WHEN_FULL
    """When the pools after the first are open to it."""
    spread: tuple[SpreadRule, ...] = ()
    siblings: tuple[Domains, ...] = ()
    """Where the other live replicas of the same job are."""
    bundle_count_by_node: dict[NodeId, int] = {}
    """How many of the bundle's allocations are on each node."""
    is_primary: bool = False
    is_reliable_required: bool = False
    spares: SpareAccess = SpareAccess.NEVER
    avoided: frozenset[NodeId] = frozenset()
    """Nodes on which it lately failed; used again only when nothing else fits."""
    rejected: frozenset[NodeId] = frozenset()
    """Nodes whose agents lately refused it; not used."""
    left: NodeId | None = None
    """The node that a migration is to leave; not used."""


def demand_of(fleet: Fleet, bundle: Bundle, job: Job, replica: Replica, now_ms: int) -> Demand:
    """Return what a replica asks of a place now."""
    siblings: list[Domains] = []
    counts: dict[NodeId, int] = {}
    for key in fleet.index.allocations_by_bundle.keys(bundle.bundle_id):
        allocation = fleet.allocations[key]
        counts[allocation.node_id] = counts.get(allocation.node_id, 0) + 1
        node = fleet.nodes.get(allocation.node_id)
        is_sibling = allocation.job == job.name and allocation.replica_id != replica.replica_id
        if node is not None and is_sibling:
            siblings.append(domains_of(node))
    avoided = [each for each in replica.avoided if each.until_at_ms >= now_ms]
    is_recovery = replica.is_recovery and replica.migration is None
    return Demand(
        replica_id=replica.replica_id,
        line=replica.demand,
        band=job.band,
        requirement=job.requirement,
        pools=pools_of(bundle),
        fallback=bundle.fallback,
        spread=bundle.spread,
        siblings=tuple(siblings),
        bundle_count_by_node=counts,
        is_primary=replica.index == 0,
        is_reliable_required=is_reliable_required(bundle, replica.index),
        spares=spare_access(job.band, is_recovery=is_recovery),
        avoided=frozenset(each.node_id for each in avoided if not each.is_rejection),
        rejected=frozenset(each.node_id for each in avoided if each.is_rejection),
        left=_node_left(fleet, replica),
    )


def _node_left(fleet: Fleet, replica: Replica) -> NodeId | None:
    """Return the node that a migration is to leave, which is no place for its target."""
    migration = replica.migration
    source = None if migration is None else fleet.allocations.get(migration.source_id)
    if migration is None or source is None or migration.may_stay:
        return None
    return source.node_id


def plain(demand: Demand) -> Demand:
    """Return what a demand asks whoever asks it: without siblings and bad memories."""
    return msgspec.structs.replace(
        demand, spread=(), siblings=(), avoided=frozenset(), rejected=frozenset(), left=None
    )


def spare_access(band: Band, *, is_recovery: bool) -> SpareAccess:
    """Return what a band may do with spares: they are for recoveries, and not for bronze."""
    if not is_recovery or band is Band.BRONZE:
        return SpareAccess.NEVER
    return SpareAccess.FIRST if band is Band.GOLD else SpareAccess.LAST


def pools_of(bundle: Bundle) -> tuple[str, ...]:
    """Return the pools that a bundle may use, in order."""
    return (bundle.pool, *bundle.fallback_pools)


def is_reliable_required(bundle: Bundle, index: int) -> bool:
    """Say whether a replica must not be on capacity that its provider may take back."""
    return index == 0 and not bundle.is_primary_interruptible


def demand_digest(bundle: Bundle, job: Job, index: int) -> str:
    """Return the digest under which replicas that ask alike stand in one line.

    A gang asks as a whole, so each has lines of its own.
    """
    asked = (
        job.band,
        job.requirement,
        pools_of(bundle),
        bundle.fallback,
        is_reliable_required(bundle, index),
        bundle.bundle_id if bundle.is_gang else "",
    )
    return digest(encode(asked))
