"""Openings: who has a chance of a place that they had not at the last look.

Whoever began to want a place is tried at once. Of those who wait already only the lines are tried
for which something has opened: a node that changed and would do, a machine that may be launched
again, a sibling that is gone, a rule that binds no more.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from hostler.core.keys import pending_line
from hostler.core.placement.demand import Demand, demand_of, plain, spec_of
from hostler.core.placement.feasible import refusal, standing_of
from hostler.core.placement.rules import is_left
from hostler.core.provider_pauses import pools_let_in
from hostler.core.txn import Txn
from hostler.model import (
    Allocation,
    Breaker,
    Budget,
    Bundle,
    Cooldown,
    Node,
    Pool,
    ProviderState,
    Replica,
    Settings,
)
from hostler.model.bundle import Fallback
from hostler.model.node import NodePhase


def groups_to_try(txn: Txn, nodes: Sequence[Node], fresh: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the demands under which somebody should be looked at in this round."""
    waiting = txn.fleet.index.replicas_pending.buckets()
    if not waiting:
        return []
    if any(txn.changed_keys(kind) for kind in (Pool, Cooldown, Breaker, Settings, Budget)) or any(
        state.launch_next_at_ms is not None for state in txn.changed(ProviderState)
    ):
        return waiting
    openings = [node for node in nodes if not standing_of(node) and node.lease_count == 0]
    growth_pools = _pools_that_may_grow(txn, nodes)
    closed_pools = frozenset(node.pool for node in nodes if standing_of(node))
    if not openings and not growth_pools and not closed_pools:
        return sorted(fresh)
    return [
        group
        for group in waiting
        if group in fresh or _has_opening(txn, group, openings, growth_pools, closed_pools)
    ]


def groups_let_in(txn: Txn, node_ids: Iterable[str], placed: Sequence[Allocation]) -> list[str]:
    """Return the demands for which what was just placed opens something.

    Nodes of which room was kept until now have some left; and somebody may have waited to be near.
    """
    opened = [txn.fleet.nodes[key] for key in node_ids if key in txn.fleet.nodes]
    openings = [node for node in opened if not standing_of(node)]
    watching = _bundles_watching(txn, placed)
    if not openings and not watching:
        return []
    lines = {pending_line(replica) for replica in _placeable_of(txn, watching)}
    return [
        group
        for group in txn.fleet.index.replicas_pending.buckets()
        if group in lines or _has_opening(txn, group, openings, frozenset(), frozenset())
    ]


def freshly_pending(txn: Txn) -> Iterator[Replica]:
    """Give the pending replicas that changed, and those whose siblings or bundle did."""
    replicas = txn.changed(Replica)
    yield from (replica for replica in replicas if replica.is_placeable)
    bundles: dict[str, None] = dict.fromkeys(replica.bundle_id for replica in replicas)
    left = [each for each in txn.changed(Allocation) if not each.is_live or each.stop_reason]
    bundles.update(dict.fromkeys(each.bundle_id for each in left))
    bundles.update(dict.fromkeys(bundle.bundle_id for bundle in txn.changed(Bundle)))
    bundles.update(_bundles_watching(txn, txn.changed(Allocation)))
    bundles.update(_bundles_unbound(txn))
    if any(standing_of(node) for node in txn.changed(Node)):
        bundles.update(dict.fromkeys(txn.fleet.index.peers.levelling()))
    yield from _placeable_of(txn, bundles)


def _placeable_of(txn: Txn, bundles: Iterable[str]) -> Iterator[Replica]:
    for bundle_id in bundles:
        for key in txn.fleet.index.replicas_placeable.keys(bundle_id):
            yield txn.fleet.replicas[key]


def _bundles_unbound(txn: Txn) -> Iterator[tuple[str, None]]:
    """Give the bundles of which something is on a node that is left: siblings need not join it."""
    for node in txn.changed(Node):
        if node.allocation_count and is_left(standing_of(node)):
            for key in txn.fleet.index.allocations_by_node.keys(node.node_id):
                yield txn.fleet.allocations[key].bundle_id, None


def _bundles_watching(txn: Txn, moved: Sequence[Allocation]) -> dict[str, None]:
    """Return the bundles with wishes about those who have come to a place or left one."""
    fleet, found = txn.fleet, dict[str, None]()
    if not fleet.index.peers.has_wishes:
        return found
    for allocation in moved:
        bundle = fleet.bundles.get(allocation.bundle_id)
        job = None if bundle is None else bundle.job(allocation.job)
        if bundle is None or job is None:
            # What it was called is forgotten, so whoever wishes anything may have meant it.
            return dict.fromkeys(fleet.index.peers.wishing())
        found.update(dict.fromkeys(fleet.index.peers.watchers(bundle, job)))
    return found


def _pools_that_may_grow(txn: Txn, nodes: Sequence[Node]) -> frozenset[str]:
    """Return the pools of nodes that have just moved on: a bound on machines may have eased."""
    moved = {
        node.pool
        for node in nodes
        if node.phase_since_at_ms == txn.now_ms and node.phase is not NodePhase.REQUESTED
    }
    return frozenset(moved.union(pools_let_in(txn.fleet, nodes, txn.now_ms)))


def _has_opening(
    txn: Txn,
    group: str,
    openings: list[Node],
    growth_pools: frozenset[str],
    closed_pools: frozenset[str],
) -> bool:
    """Say whether a line may have a chance that it did not have.

    Args:
        txn: The step.
        group: The line.
        openings: Nodes that changed and take work.
        growth_pools: Pools that may launch again.
        closed_pools: Pools of nodes that changed and take none: another pool may be open for that.
    """
    head = txn.fleet.index.replicas_pending.first(group)
    asked = None if head is None else _asked(txn, txn.fleet.replicas[head])
    if asked is None:
        return False
    demand = plain(asked)
    if not growth_pools.isdisjoint(demand.pools):
        return True
    if demand.fallback is Fallback.WHEN_UNAVAILABLE and not closed_pools.isdisjoint(demand.pools):
        return True
    place = txn.fleet.index.places.of
    return any(
        node.pool in demand.pools and refusal(demand, place(txn.fleet, node.node_id)) is None
        for node in openings
    )


def _asked(txn: Txn, replica: Replica) -> Demand | None:
    found = spec_of(txn.fleet, replica)
    return None if found is None else demand_of(txn.fleet, *found, replica, txn.now_ms)
