"""Placing as one would write it without any thought of speed: straight from the records.

Knows nothing of rooms that are remembered, groups that are given up or nodes that changed. What it
finds for a pending replica, the core must have found too.
"""

from hostler.core.fleet import Fleet
from hostler.model import Allocation, Bundle, Node, Replica
from hostler.model.bundle import Job
from hostler.model.node import NodePhase
from hostler.model.pool import Band, Reliability, TierKind
from hostler.model.replica import ReplicaPhase
from hostler.model.shape import Requirement
from tests.core.placing.naive_rules import NEW, Where, rules_hold, takes_work, where_is


def live_on(fleet: Fleet, node: Node) -> list[Allocation]:
    """Return the live allocations on a node."""
    rows = fleet.allocations.rows.values()
    return [a for a in rows if a.is_live and a.node_id == node.node_id]


def overcommitted(fleet: Fleet) -> list[str]:
    """Return the nodes on which more is held than they have."""
    found: list[str] = []
    for node in fleet.nodes.rows.values():
        held = live_on(fleet, node)
        gpu_count = sum(c.count for c in node.shape.capabilities or () if c.name == "gpu")
        asked = sum(c.count for a in held for c in a.requirement.capabilities)
        given = [device for a in held for ids in a.devices.values() for device in ids]
        if (
            sum(a.requirement.capacity for a in held) > (node.shape.capacity or 0)
            or asked > gpu_count
            or len(given) != len(set(given))
        ):
            found.append(node.node_id)
    return found


def doubled(fleet: Fleet) -> list[tuple[str, str, str]]:
    """Return where two replicas of one job share a node."""
    places = [(a.bundle_id, a.job, a.node_id) for a in fleet.allocations.rows.values() if a.is_live]
    return [place for place in places if places.count(place) > 1]


def unplaced_though_possible(fleet: Fleet) -> list[tuple[str, str]]:
    """Return pending replicas with a place that they could have had."""
    found: list[tuple[str, str]] = []
    for replica in fleet.replicas.rows.values():
        bundle = fleet.bundles[replica.bundle_id]
        job = bundle.job(replica.job)
        if replica.phase is not ReplicaPhase.PENDING or job is None or _is_broken(fleet, bundle):
            continue
        found += [
            (replica.replica_id, node.node_id)
            for node in fleet.nodes.rows.values()
            if may_take(fleet, bundle, job, replica, node)
        ]
        found += [(replica.replica_id, offer) for offer in launchable(fleet, bundle, job, replica)]
    return found


def _is_broken(fleet: Fleet, bundle: Bundle) -> bool:
    return any(
        r.bundle_id == bundle.bundle_id and r.phase is ReplicaPhase.BROKEN
        for r in fleet.replicas.rows.values()
    )


def may_take(fleet: Fleet, bundle: Bundle, job: Job, replica: Replica, node: Node) -> bool:
    """Say whether a node may take a replica, beyond the soft memory of failures."""
    pool = fleet.pools.get(node.pool)
    is_rejected = any(
        each.node_id == node.node_id and each.is_rejection and each.until_at_ms >= fleet.now_ms
        for each in replica.avoided
    )
    return (
        pool is not None
        and pool.is_enabled
        and node.pool in (bundle.pool, *bundle.fallback_pools)
        and takes_work(node)
        and node.lease_count == 0
        and not is_rejected
        and _has_room(fleet, job, replica, node)
        and rules_hold(fleet, bundle, job, replica, where_is(fleet, node))
        and _is_reliable_enough(bundle, replica, node.reliability)
        and _is_spare_open(job, replica, node)
    )


def claimed_by_others(fleet: Fleet, replica: Replica, node: Node) -> list[Requirement]:
    """Return what is kept on a node for other replicas that wait."""
    return [
        each.claim.requirement
        for each in fleet.replicas.rows.values()
        if each.claim is not None
        and each.claim.node_id == node.node_id
        and each.replica_id != replica.replica_id
    ]


def _has_room(fleet: Fleet, job: Job, replica: Replica, node: Node) -> bool:
    held = [a.requirement for a in live_on(fleet, node)]
    held += claimed_by_others(fleet, replica, node)
    capacity = (node.shape.capacity or 0) - sum(each.capacity for each in held)
    has = sum(c.count for c in node.shape.capabilities or () if c.name == "gpu")
    gpu_count = has - sum(c.count for each in held for c in each.capabilities)
    return job.requirement.capacity <= capacity and (
        sum(c.count for c in job.requirement.capabilities) <= gpu_count
    )


def _is_reliable_enough(bundle: Bundle, replica: Replica, reliability: Reliability) -> bool:
    is_strict = replica.index == 0 and not bundle.is_primary_interruptible
    return not (is_strict and reliability is Reliability.INTERRUPTIBLE)


def _is_spare_open(job: Job, replica: Replica, node: Node) -> bool:
    is_open = replica.is_recovery and job.band is not Band.BRONZE
    return not node.is_spare or (is_open and node.spare_band in (None, job.band))


def launchable(fleet: Fleet, bundle: Bundle, job: Job, replica: Replica) -> list[str]:
    """Return the offers that could be launched for a replica now."""
    found: list[str] = []
    for name in (bundle.pool, *bundle.fallback_pools):
        pool = fleet.pools.get(name)
        if pool is None or not pool.is_enabled:
            continue
        here = [n for n in fleet.nodes.rows.values() if n.pool == name]
        asked = [n for n in here if n.phase is NodePhase.REQUESTED]
        for tier in pool.tiers:
            there = [n for n in here if n.tier == tier.name and n.phase is not NodePhase.RETIRED]
            if (
                tier.kind is not TierKind.ELASTIC
                or len(there) >= tier.node_count_max
                or len(asked) >= pool.launch_count_max
                or not _is_reliable_enough(bundle, replica, tier.reliability)
            ):
                continue
            for offer in tier.offers:
                key = f"{name}/{tier.name}"
                new = Where(NEW, tier.zone, key, tier.provider, offer.name, tier.labels)
                if not rules_hold(fleet, bundle, job, replica, new):
                    continue
                cooldown = fleet.cooldowns.get(f"{name}/{tier.name}/{offer.name}")
                is_cold = cooldown is not None and cooldown.until_at_ms > fleet.now_ms
                gpu_count = sum(c.count for c in offer.shape.capabilities or ())
                if (
                    not is_cold
                    and job.requirement.capacity <= (offer.shape.capacity or 0)
                    and sum(c.count for c in job.requirement.capabilities) <= gpu_count
                ):
                    found.append(offer.name)
    return found
