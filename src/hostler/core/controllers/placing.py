"""Placing: gives each replica that wants one a place, and starts what its node is ready for.

Reads:    replicas, allocations, nodes, bundles, pools, cooldowns, settings.
Writes:   replicas (pending to placed, or why not), allocations (reserved, starting), nodes (held;
          new ones through growth), traces.
Sends:    StartAllocation `"{allocation_id}/start/{epoch}"`.
Keeps:    INV-ALLOC-3, INV-REPLICA-4, INV-ROOM-1, INV-SPREAD-1, INV-SPARE-1.
Waits on: every reason of `placement.walk`, BUNDLE_BROKEN.

Who is tried: whoever began to want a place, and of those who wait already only the groups (equal
demand) for which something has opened: a node that changed and would do, a machine that may be
launched again, a sibling that is gone. Who has a place and wants a second one (a migration) stands
in the same lines, behind everybody who has none. A group that fits nowhere is given up for this
step after its first member. Most urgent first over all groups: by band, then by age.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from hostler.base.ids import replica_id
from hostler.core import assigning, growth
from hostler.core.keys import pending_line, pending_order
from hostler.core.placement.demand import Demand, demand_of, plain
from hostler.core.placement.feasible import refusal, standing_of
from hostler.core.placement.walk import Verdict, decide
from hostler.core.tables import Order
from hostler.core.txn import Txn
from hostler.model import Allocation, Bundle, Cooldown, Node, Pool, Replica, Settings
from hostler.model.bundle import Job
from hostler.model.node import NodePhase
from hostler.model.pool import Offer, Tier
from hostler.model.reason import Reason
from hostler.model.replica import ReplicaPhase

READS: Final = (Replica, Allocation, Node, Bundle, Pool, Cooldown, Settings)


def reconcile(txn: Txn) -> None:
    """Start what can start, then place who can be placed."""
    nodes = txn.changed(Node)
    for node in nodes:
        assigning.start_reserved(txn, node)
    groups = _groups_to_try(txn, nodes)
    while groups:
        tried = _Pass(txn)
        tried.run(groups)
        groups = _groups_let_in(txn, tried)


# -- who is tried ------------------------------------------------------------------------------


def _groups_to_try(txn: Txn, nodes: Sequence[Node]) -> list[str]:
    """Return the demands under which somebody should be looked at in this round."""
    waiting = txn.fleet.index.replicas_pending.buckets()
    fresh = {pending_line(replica) for replica in _freshly_pending(txn)}
    if not waiting:
        return []
    if txn.changed_keys(Pool) or txn.changed_keys(Cooldown) or txn.changed_keys(Settings):
        return waiting
    openings = [node for node in nodes if not standing_of(node) and node.lease_count == 0]
    growth_pools = _pools_that_may_grow(txn, nodes)
    if not openings and not growth_pools:
        return sorted(fresh)
    return [
        group
        for group in waiting
        if group in fresh or _has_opening(txn, group, openings, growth_pools)
    ]


def _groups_let_in(txn: Txn, tried: _Pass) -> list[str]:
    """Return the demands for which what was just placed opens something.

    Spares that are none any more have something left; and somebody may have waited to be near.
    """
    used = [txn.fleet.nodes[node_id] for node_id in tried.used_spares]
    openings = [node for node in used if not standing_of(node)]
    watching = _bundles_watching(txn, tried.placed)
    if not openings and not watching:
        return []
    lines = {pending_line(replica) for replica in _placeable_of(txn, watching)}
    return [
        group
        for group in txn.fleet.index.replicas_pending.buckets()
        if group in lines or _has_opening(txn, group, openings, frozenset())
    ]


def _freshly_pending(txn: Txn) -> Iterator[Replica]:
    """Give the pending replicas that changed, and those whose siblings or bundle did."""
    replicas = txn.changed(Replica)
    yield from (replica for replica in replicas if replica.is_placeable)
    bundles: dict[str, None] = dict.fromkeys(replica.bundle_id for replica in replicas)
    bundles.update(dict.fromkeys(a.bundle_id for a in txn.changed(Allocation) if not a.is_live))
    bundles.update(dict.fromkeys(bundle.bundle_id for bundle in txn.changed(Bundle)))
    bundles.update(_bundles_watching(txn, txn.changed(Allocation)))
    if any(standing_of(node) for node in txn.changed(Node)):
        bundles.update(dict.fromkeys(txn.fleet.index.peers.levelling()))
    yield from _placeable_of(txn, bundles)


def _placeable_of(txn: Txn, bundles: Iterable[str]) -> Iterator[Replica]:
    for bundle_id in bundles:
        for key in txn.fleet.index.replicas_placeable.keys(bundle_id):
            yield txn.fleet.replicas[key]


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
    return frozenset(
        node.pool
        for node in nodes
        if node.phase_since_at_ms == txn.now_ms and node.phase is not NodePhase.REQUESTED
    )


def _has_opening(txn: Txn, group: str, openings: list[Node], growth_pools: frozenset[str]) -> bool:
    head = txn.fleet.index.replicas_pending.first(group)
    asked = None if head is None else _asked(txn, txn.fleet.replicas[head])
    if asked is None:
        return False
    demand = plain(asked)
    if not growth_pools.isdisjoint(demand.pools):
        return True
    place = txn.fleet.index.places.of
    return any(
        node.pool in demand.pools and refusal(demand, place(txn.fleet, node.node_id)) is None
        for node in openings
    )


def _asked(txn: Txn, replica: Replica) -> Demand | None:
    found = _spec_of(txn, replica)
    return None if found is None else demand_of(txn.fleet, *found, replica, txn.now_ms)


def _spec_of(txn: Txn, replica: Replica) -> tuple[Bundle, Job] | None:
    bundle = txn.fleet.bundles.get(replica.bundle_id)
    job = None if bundle is None else bundle.job(replica.job)
    return None if bundle is None or job is None else (bundle, job)


# -- trying ------------------------------------------------------------------------------------


class _Pass:
    """One go over the groups that may have a chance, most urgent member first."""

    def __init__(self, txn: Txn) -> None:
        self.txn = txn
        self.lines: dict[str, Iterator[str]] = {}
        self.queue: list[tuple[Order, str, str]] = []
        self.used_spares: list[str] = []
        self.placed: list[Allocation] = []

    def run(self, groups: list[str]) -> None:
        """Try the members of each group until it is empty or given up."""
        for group in groups:
            self.lines[group] = _line(self.txn, group)
            self._queue_next(group)
        while self.queue:
            _, key, group = heapq.heappop(self.queue)
            replica = self.txn.fleet.replicas[key]
            # Its turn may have come before, beside another job of its replica.
            verdict = self._try(replica) if replica.is_placeable else None
            if verdict is None or verdict.option is not None or verdict.is_particular:
                self._queue_next(group)
            else:
                self._give_up(group, verdict)

    def _queue_next(self, group: str) -> None:
        key = next(self.lines[group], None)
        if key is not None:
            order = pending_order(self.txn.fleet.replicas[key])
            heapq.heappush(self.queue, (order, key, group))

    def _try(self, replica: Replica) -> Verdict | None:
        """Place a replica or say why not; `None` when it is not its turn, whatever there is."""
        spec = _spec_of(self.txn, replica)
        if spec is None:
            return None
        if assigning.is_broken(self.txn, replica.bundle_id):
            assigning.hold_back(self.txn, replica)
            return None
        if replica.moving_to is not None:
            # The room that was held for it is its own now.
            replica = self.txn.change(replica, moving_to=None)
        demand = demand_of(self.txn.fleet, *spec, replica, self.txn.now_ms)
        verdict = decide(demand, self.txn.fleet, self._obstacle)
        if verdict.option is None:
            assigning.refuse(self.txn, replica, verdict)
        else:
            found = assigning.assign(self.txn, replica, *spec, verdict, verdict.option)
            self.placed.append(found)
            place = verdict.option.place
            if place is not None and place.node.is_spare:
                self.used_spares.append(found.node_id)
            if spec[0].is_colocated:
                self._bring_along(spec[0], replica)
        return verdict

    def _bring_along(self, bundle: Bundle, replica: Replica) -> None:
        """Give the other jobs of a replica their place beside it, before anybody takes the room."""
        for job in bundle.jobs:
            other = self.txn.fleet.replicas.get(
                replica_id(bundle.bundle_id, job.name, replica.index)
            )
            if other is not None and other.phase is ReplicaPhase.PENDING:
                self._try(other)

    def _obstacle(self, pool: Pool, tier: Tier, offer: Offer) -> Reason | None:
        return growth.growth_obstacle(self.txn, pool, tier, offer)

    def _give_up(self, group: str, verdict: Verdict) -> None:
        """Say of everybody in a group what has just been found out for its most urgent one."""
        for key in self.txn.fleet.index.replicas_pending.keys(group):
            replica = self.txn.fleet.replicas[key]
            if replica.waiting_reason is verdict.reason:
                continue
            if assigning.is_broken(self.txn, replica.bundle_id):
                assigning.hold_back(self.txn, replica)
            else:
                assigning.refuse(self.txn, replica, verdict)


def _line(txn: Txn, group: str) -> Iterator[str]:
    """Give the members of a group, most urgent first, each once; sorted only if it must be."""
    index = txn.fleet.index.replicas_pending
    given: set[str] = set()
    while (key := index.first(group)) is not None and key not in given:
        given.add(key)
        yield key
    yield from (key for key in index.keys(group) if key not in given)
