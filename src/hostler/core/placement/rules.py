"""Rules: what a bundle's wishes about other replicas come to for one of its replicas.

Each wish becomes the domains that are closed to the replica as things are, or the only ones that
are open. Whoever is placed also keeps away from those who, by a required rule, want to be apart
from it: a rule holds whoever of the two came first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from hostler.base.ids import BACKUP, PRIMARY
from hostler.core.peer_index import is_peer, wishes_about
from hostler.core.placement.open_domains import open_domains_of
from hostler.core.placement.resilience import NODE, DomainRule, Domains, spread_rules
from hostler.model import Allocation, Bundle, Replica
from hostler.model.bundle import Job
from hostler.model.constraint import Affinity, Peers
from hostler.model.pool import Reliability
from hostler.model.reason import Reason

if TYPE_CHECKING:
    from hostler.core.fleet import Fleet

_LEAVING = (Reason.NODE_NOT_RUNNING, Reason.UNREACHABLE, Reason.DRAINING)


def rules_of(
    fleet: Fleet, bundle: Bundle, job: Job, replica: Replica, others: list[Allocation]
) -> tuple[DomainRule, ...]:
    """Work out every rule about other replicas for one replica.

    Args:
        fleet: As it is.
        bundle: The replica's.
        job: The replica's.
        replica: The one that wants a place; where it is now does not count.
        others: The live allocations of its bundle that are not its own.
    """
    siblings = [each for each in others if each.job == job.name]
    found: list[DomainRule] = []
    if siblings:
        where = [_domains(fleet, each) for each in siblings]
        skewed = [rule.domain for rule in bundle.spread if rule.skew_max is not None]
        open_domains = _open_domains(fleet, bundle, job, replica, skewed) if skewed else None
        found += spread_rules(bundle.spread, where, open_domains)
        found += _apart_from_pair(fleet, bundle, replica, siblings)
    for affinity in job.affinities:
        found += _affinity(fleet, bundle, job, replica, affinity)
    watchers = fleet.index.peers.watchers(bundle, job)
    if watchers:
        found += _kept_away(fleet, watchers, bundle, job, replica)
    if bundle.is_colocated:
        anchors = anchors_of(fleet, replica, others)
        if anchors:
            allowed = frozenset(each.node_id for each in anchors)
            found.append(DomainRule(NODE, Reason.COLOCATION, is_required=True, allowed=allowed))
    return tuple(found)


def anchors_of(fleet: Fleet, replica: Replica, others: list[Allocation]) -> list[Allocation]:
    """Return the other jobs of a replica that have a place to stay, so that it belongs there."""
    return [
        each
        for each in others
        if each.replica_index == replica.index
        and each.job != replica.job
        and not each.stop_reason
        and not _is_moving_from(fleet, each)
        and not is_left(fleet.index.places.of(fleet, each.node_id).standing)
    ]


def _is_moving_from(fleet: Fleet, allocation: Allocation) -> bool:
    """Say whether a second copy is to take over from an allocation, wherever that will be."""
    owner = fleet.replicas.get(allocation.replica_id)
    migration = None if owner is None else owner.migration
    is_source = migration is not None and migration.source_id == allocation.allocation_id
    return is_source and migration is not None and not migration.is_cancelled


def is_left(standing: Iterable[Reason]) -> bool:
    """Say whether a node is one that its work has to leave, or may be lost with."""
    return any(reason in _LEAVING for reason in standing)


def _domains(fleet: Fleet, allocation: Allocation) -> Domains:
    return fleet.index.places.of(fleet, allocation.node_id).domains


def _open_domains(
    fleet: Fleet, bundle: Bundle, job: Job, replica: Replica, domains: list[str]
) -> Mapping[str, set[str]]:
    pools = (bundle.pool, *bundle.fallback_pools)
    is_strict = replica.role == PRIMARY and not bundle.is_primary_interruptible
    wanted = (Reliability.RELIABLE,) if is_strict else tuple(Reliability)
    return {
        domain: open_domains_of(fleet, pools, job.node_rules, wanted, domain) for domain in domains
    }


def _apart_from_pair(
    fleet: Fleet, bundle: Bundle, replica: Replica, siblings: list[Allocation]
) -> Iterator[DomainRule]:
    """Keep primary and backup apart, whichever of the two is placed."""
    rule = bundle.backup_apart
    other = {PRIMARY: BACKUP, BACKUP: PRIMARY}.get(replica.role)
    if rule is None or other is None:
        return
    pair = [each for each in siblings if each.role == other]
    if pair:
        yield _closed(fleet, rule.domain, Reason.FAILURE_DOMAIN, pair, is_required=rule.is_required)


def _affinity(
    fleet: Fleet, bundle: Bundle, job: Job, replica: Replica, affinity: Affinity
) -> Iterator[DomainRule]:
    found = list(_peers(fleet, bundle, affinity.peers, replica))
    if affinity.is_apart:
        if found:
            yield _closed(
                fleet,
                affinity.domain,
                Reason.ANTI_AFFINITY,
                found,
                is_required=affinity.is_required,
            )
        return
    values = _values(fleet, affinity.domain, found)
    is_first = not found and is_peer(bundle.bundle_id, affinity.peers, bundle, job, replica.index)
    # The first of those who want to be near each other has nobody to be near to.
    if not is_first:
        yield DomainRule(
            affinity.domain,
            Reason.AFFINITY,
            affinity.is_required,
            allowed=values - {""},
        )


def _closed(
    fleet: Fleet,
    domain: str,
    reason: Reason,
    allocations: Iterable[Allocation],
    *,
    is_required: bool,
) -> DomainRule:
    values = _values(fleet, domain, allocations)
    return DomainRule(domain, reason, is_required, refused=values - {""}, is_hopeless="" in values)


def _values(fleet: Fleet, domain: str, allocations: Iterable[Allocation]) -> frozenset[str]:
    """Return the domains of a kind that allocations are in; empty for one that nobody knows."""
    node_ids = {each.node_id for each in allocations}
    if domain == NODE:
        return frozenset(node_ids)
    place = fleet.index.places.of
    return frozenset([place(fleet, each).domains.value(domain) or "" for each in node_ids])


def _peers(fleet: Fleet, owner: Bundle, peers: Peers, replica: Replica) -> Iterator[Allocation]:
    """Give the live allocations of those whom a bundle means, but for the replica itself."""
    is_by_label = bool(peers.labels) and not peers.bundle_id
    names = (
        fleet.index.peers.labelled(peers.labels)
        if is_by_label
        else [peers.bundle_id or owner.bundle_id]
    )
    for name in names:
        bundle = fleet.bundles.get(name)
        if bundle is None:
            continue
        for each in _live_of(fleet, name):
            job = bundle.job(each.job)
            if (
                each.replica_id != replica.replica_id
                and job is not None
                and is_peer(owner.bundle_id, peers, bundle, job, each.replica_index)
            ):
                yield each


def _kept_away(
    fleet: Fleet, watchers: list[str], bundle: Bundle, job: Job, replica: Replica
) -> Iterator[DomainRule]:
    """Stay out of the domains of those who must be apart from this replica."""
    apart: dict[str, list[Allocation]] = {}
    for name in watchers:
        owner = fleet.bundles[name]
        for theirs, affinity in wishes_about(owner, bundle, job, replica.index):
            if not (affinity.is_apart and affinity.is_required):
                continue
            apart.setdefault(affinity.domain, []).extend(
                each
                for each in _live_of(fleet, name)
                if each.job == theirs.name and each.replica_id != replica.replica_id
            )
    for domain, found in apart.items():
        if found:
            yield _closed(fleet, domain, Reason.ANTI_AFFINITY, found, is_required=True)


def _live_of(fleet: Fleet, bundle_id: str) -> Iterator[Allocation]:
    for key in fleet.index.allocations_by_bundle.keys(bundle_id):
        allocation = fleet.allocations[key]
        if allocation.node_id in fleet.nodes:
            yield allocation
