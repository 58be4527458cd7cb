"""Demand: what one replica asks of a place, as a value that no longer needs the fleet."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING

import msgspec

from hostler.base.encoding import digest, encode
from hostler.base.ids import PRIMARY, NodeId, ReplicaId
from hostler.core.placement.resilience import NODE, DomainRule
from hostler.core.placement.rules import anchors_of, rules_of
from hostler.model import Allocation, Bundle, Replica
from hostler.model.bundle import Fallback, Job
from hostler.model.constraint import NodeRule
from hostler.model.pool import Band
from hostler.model.reason import Reason
from hostler.model.shape import WHOLE_MILLI, CapabilityRequest, Requirement

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
    node_rules: tuple[NodeRule, ...] = ()
    """What it asks of the node itself, whoever is where."""
    rules: tuple[DomainRule, ...] = ()
    """What its wishes about other replicas come to as things are."""
    bundle_count_by_node: dict[NodeId, int] = {}
    """How many of the bundle's allocations are on each node."""
    is_primary: bool = False
    is_reliable_required: bool = False
    spares: SpareAccess = SpareAccess.NEVER
    avoided: frozenset[NodeId] = frozenset()
    """Nodes on which it lately failed; used again only when nothing else fits."""
    broken_count_max: int | None = None
    """Preferred rules that the place may break at most; `None`: any number."""
    rejected: frozenset[NodeId] = frozenset()
    """Nodes whose agents lately refused it; not used."""


def spec_of(fleet: Fleet, replica: Replica) -> tuple[Bundle, Job] | None:
    """Return the bundle and job of a replica; `None` once it has none any more."""
    bundle = fleet.bundles.get(replica.bundle_id)
    job = None if bundle is None else bundle.job(replica.job)
    return None if bundle is None or job is None else (bundle, job)


def demand_of(fleet: Fleet, bundle: Bundle, job: Job, replica: Replica, now_ms: int) -> Demand:
    """Return what a replica asks of a place now."""
    counts: dict[NodeId, int] = {}
    others: list[Allocation] = []
    for key in fleet.index.allocations_by_bundle.keys(bundle.bundle_id):
        allocation = fleet.allocations[key]
        counts[allocation.node_id] = counts.get(allocation.node_id, 0) + 1
        if allocation.replica_id != replica.replica_id and allocation.node_id in fleet.nodes:
            others.append(allocation)
    requirement, line = job.requirement, replica.demand
    if bundle.is_colocated and not anchors_of(fleet, replica, others):
        requirement, line = together(bundle.jobs), f"{line}/all"
    avoided = [each for each in replica.avoided if each.until_at_ms >= now_ms]
    is_recovery = replica.is_recovery and replica.migration is None
    return Demand(
        replica_id=replica.replica_id,
        line=line,
        band=job.band,
        requirement=requirement,
        pools=pools_of(bundle),
        fallback=bundle.fallback,
        node_rules=job.node_rules,
        rules=(*_node_left(fleet, replica), *rules_of(fleet, bundle, job, replica, others)),
        bundle_count_by_node=counts,
        broken_count_max=None if replica.migration is None else replica.migration.broken_count_max,
        is_primary=replica.role == PRIMARY,
        is_reliable_required=is_reliable_required(bundle, replica.role),
        spares=spare_access(job.band, is_recovery=is_recovery),
        avoided=frozenset(each.node_id for each in avoided if not each.is_rejection),
        rejected=frozenset(each.node_id for each in avoided if each.is_rejection),
    )


def _node_left(fleet: Fleet, replica: Replica) -> Iterator[DomainRule]:
    """Close the node that a migration is to leave: it is no place for its target."""
    migration = replica.migration
    source = None if migration is None else fleet.allocations.get(migration.source_id)
    if migration is not None and source is not None and not migration.may_stay:
        left = frozenset({source.node_id})
        yield DomainRule(NODE, Reason.SPREAD_NODE, is_required=True, refused=left)


def plain(demand: Demand) -> Demand:
    """Return what a demand asks whoever asks it: without other replicas and bad memories."""
    return msgspec.structs.replace(demand, rules=(), avoided=frozenset(), rejected=frozenset())


def together(jobs: Sequence[Job]) -> Requirement:
    """Return what all jobs of one replica need together."""
    needs = [job.requirement for job in jobs if not job.is_dormant]
    merged: list[CapabilityRequest] = []
    for request in (each for need in needs for each in need.capabilities):
        alike = [n for n, each in enumerate(merged) if _is_alike(each, request)]
        if alike:
            count = merged[alike[0]].count + request.count
            merged[alike[0]] = msgspec.structs.replace(request, count=count)
        else:
            merged.append(request)
    return Requirement(
        capacity=sum(need.capacity for need in needs),
        cores_milli=sum(need.cores_milli for need in needs),
        memory_bytes=sum(need.memory_bytes for need in needs),
        capabilities=tuple(merged),
    )


def _is_alike(one: CapabilityRequest, other: CapabilityRequest) -> bool:
    """Say whether the units of one would serve the other; shares are not units of one kind."""
    is_whole = one.milli == other.milli == WHOLE_MILLI
    return is_whole and msgspec.structs.replace(one, count=other.count) == other


def spare_access(band: Band, *, is_recovery: bool) -> SpareAccess:
    """Return what a band may do with spares: they are for recoveries, and not for bronze."""
    if not is_recovery or band is Band.BRONZE:
        return SpareAccess.NEVER
    return SpareAccess.FIRST if band is Band.GOLD else SpareAccess.LAST


def pools_of(bundle: Bundle) -> tuple[str, ...]:
    """Return the pools that a bundle may use, in order."""
    return (bundle.pool, *bundle.fallback_pools)


def is_reliable_required(bundle: Bundle, role: str) -> bool:
    """Say whether a replica must not be on capacity that its provider may take back."""
    return role == PRIMARY and not bundle.is_primary_interruptible


def demand_digest(bundle: Bundle, job: Job, role: str) -> str:
    """Return the digest under which replicas that ask alike stand in one line.

    A gang asks as a whole, so each has lines of its own.
    """
    asked = (
        job.band,
        together(bundle.jobs) if bundle.is_colocated else job.requirement,
        pools_of(bundle),
        bundle.fallback,
        is_reliable_required(bundle, role),
        job.node_rules,
        bundle.bundle_id if bundle.is_gang else "",
    )
    return digest(encode(asked))
