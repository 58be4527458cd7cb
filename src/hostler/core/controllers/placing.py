"""Placing: gives each replica that wants one a place, and starts what its node is ready for.

Reads:    replicas, allocations, nodes, bundles, pools, cooldowns, breakers, providers, settings,
          budgets.
Writes:   replicas (pending to placed, or why not), allocations (reserved, starting), nodes (held;
          new ones through growth), traces.
Sends:    StartAllocation `"{allocation_id}/start/{epoch}"`.
Keeps:    INV-ALLOC-3, INV-REPLICA-4, INV-ROOM-1, INV-SPREAD-1, INV-SPARE-1.
Waits on: every reason of `placement.walk`, BUNDLE_BROKEN, GANG_INCOMPLETE.

Who is tried: whoever began to want a place, and of those who wait already only the groups (equal
demand) for which something has opened (`core/openings`). Who has a place and wants a second one (a
migration) stands in the same lines, behind everybody who has none. A group that fits nowhere is
given up for this step after its first member. Most urgent first over all groups: by band and age
(`core/pending_index`). A gang is placed whole or not at all (`core/gangs`).
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from hostler.base.ids import replica_id
from hostler.core import assigning, gangs, growth
from hostler.core.crowd import crowd_of
from hostler.core.keys import pending_line
from hostler.core.limits import PREEMPTION_FRONT_MAX
from hostler.core.openings import freshly_pending, groups_let_in, groups_to_try
from hostler.core.placement.buy import Wanted
from hostler.core.placement.demand import Demand, demand_of, spec_of
from hostler.core.placement.walk import Verdict, decide
from hostler.core.tables import Order
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
from hostler.model.allocation import AllocationPhase
from hostler.model.pool import Offer, Tier
from hostler.model.reason import Reason
from hostler.model.replica import ReplicaPhase

READS: Final = (
    Replica,
    Allocation,
    Node,
    Bundle,
    Pool,
    Cooldown,
    Breaker,
    ProviderState,
    Settings,
    Budget,
)


def reconcile(txn: Txn) -> None:
    """Start what can start, then place who can be placed."""
    if not txn.fleet.replicas.rows and not txn.fleet.allocations.rows:
        return  # a fleet that only lends its nodes
    nodes = txn.changed(Node)
    for node in (*nodes, *_reserved_for_changed(txn), *_nodes_whose_time_has_come(txn)):
        assigning.start_reserved(txn, node)
    fresh: dict[str, list[str]] = {}
    for replica in freshly_pending(txn):
        fresh.setdefault(pending_line(replica), []).append(replica.replica_id)
    groups = groups_to_try(txn, nodes, fresh)
    while groups:
        tried = _Pass(txn, fresh)
        tried.run(groups)
        groups = groups_let_in(txn, tried.opened, tried.placed)


def _reserved_for_changed(txn: Txn) -> Iterator[Node]:
    """Give the nodes of gangs that may start: they are none any more, or miss nobody now."""
    asleep = [each for each in txn.changed(Replica) if each.phase is ReplicaPhase.DORMANT]
    ids = [*txn.changed_keys(Bundle), *(each.bundle_id for each in asleep)]
    for bundle_id in dict.fromkeys(ids):
        for key in txn.fleet.index.allocations_by_bundle.keys(bundle_id):
            allocation = txn.fleet.allocations[key]
            if allocation.phase is AllocationPhase.RESERVED:
                yield txn.fleet.nodes[allocation.node_id]


def _nodes_whose_time_has_come(txn: Txn) -> Iterator[Node]:
    """Give the nodes of what was reserved ahead and may start now."""
    for allocation in txn.changed(Allocation):
        if (
            allocation.start_at_ms is not None
            and allocation.phase is AllocationPhase.RESERVED
            and allocation.start_at_ms <= txn.now_ms
        ):
            yield txn.fleet.nodes[allocation.node_id]


# -- trying ------------------------------------------------------------------------------------


class _Pass:
    """One go over the groups that may have a chance, most urgent member first."""

    def __init__(self, txn: Txn, fresh: Mapping[str, Sequence[str]]) -> None:
        self.txn = txn
        self.lines: dict[str, Iterator[str]] = {}
        self.queue: list[tuple[Order, str, str]] = []
        self.fresh = fresh
        self.gangs: dict[str, Verdict] = {}
        """Gangs that have been tried in vain, and why."""
        self.tried_jobs: set[tuple[str, str, str]] = set()
        """Line, bundle and job of those refused whom nothing sets apart from others of the job."""
        self.opened: list[str] = []
        """Nodes on which there may be room that nobody could have before."""
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
            order = self.txn.fleet.index.replicas_pending.order_of(key)
            heapq.heappush(self.queue, (order, key, group))

    def _try(self, replica: Replica) -> Verdict | None:  # noqa: C901  # one way out after another
        """Place a replica or say why not; `None` when it is not its turn, whatever there is."""
        spec = spec_of(self.txn.fleet, replica)
        if spec is None:
            return None
        if assigning.is_broken(self.txn, replica.bundle_id):
            assigning.hold_back(self.txn, replica)
            return None
        if replica.moving_to is not None:
            # The room that was held for it is its own now.
            self.opened.append(replica.moving_to)
            replica = self.txn.change(replica, moving_to=None)
        is_moving = replica.migration is not None
        if spec[0].is_gang and not is_moving:
            return self._try_gang(spec[0], replica)
        name = (pending_line(replica), replica.bundle_id, replica.job)
        is_alike = not replica.avoided and not is_moving and self._are_copies_alike(spec[0])
        if is_alike and name in self.tried_jobs and replica.reason is not None:
            return None
        demand = demand_of(self.txn.fleet, *spec, replica, self.txn.now_ms)
        verdict = decide(demand, self.txn.fleet, self._obstacle, self._crowd)
        if verdict.option is None:
            assigning.refuse(self.txn, replica, verdict)
            if is_alike:
                self.tried_jobs.add(name)
        else:
            found = assigning.assign(self.txn, replica, *spec, verdict, verdict.option)
            self.placed.append(found)
            place = verdict.option.place
            if place is not None and place.node.is_spare:
                self.opened.append(found.node_id)
            if replica.claim is not None:
                self.opened.append(replica.claim.node_id)
            if spec[0].is_colocated:
                self._bring_along(spec[0], replica)
        return verdict

    def _try_gang(self, bundle: Bundle, replica: Replica) -> Verdict | None:
        """Place all of a gang that wants a place, or say to whoever asks why not."""
        verdict = self.gangs.get(bundle.bundle_id)
        if verdict is None:
            before = {each.allocation_id: each for each in gangs.live(self.txn, bundle)}
            lack = gangs.place(self.txn, bundle, self._obstacle, self._crowd)
            after = {each.allocation_id: each for each in gangs.live(self.txn, bundle)}
            given = [after[key] for key in after if key not in before]
            left = [before[key] for key in before if key not in after]
            self.placed += given
            # What it was given may have been a spare, and is none any more; what it left is free.
            self.opened += [each.node_id for each in (*given, *left)]
            if lack is None:
                return None
            verdict = self.gangs[bundle.bundle_id] = gangs.refusal_of(lack)
        assigning.refuse(self.txn, replica, verdict)
        return verdict

    def _are_copies_alike(self, bundle: Bundle) -> bool:
        """Say whether no rule tells one copy of a job from another."""
        is_told_apart = bundle.backup_apart is not None or bundle.is_colocated
        return not is_told_apart and not self.txn.fleet.index.peers.has_wishes

    def _bring_along(self, bundle: Bundle, replica: Replica) -> None:
        """Give the other jobs of a replica their place beside it, before anybody takes the room."""
        for job in bundle.jobs:
            other = self.txn.fleet.replicas.get(
                replica_id(bundle.bundle_id, job.name, replica.index)
            )
            if other is not None and other.is_placeable:
                self._try(other)

    def _obstacle(self, pool: Pool, tier: Tier, offer: Offer) -> Reason | None:
        return growth.growth_obstacle(self.txn, pool, tier, offer)

    def _crowd(self, demand: Demand, pool: Pool) -> Sequence[Wanted]:
        return crowd_of(self.txn, demand, pool, self.queue)

    def _give_up(self, group: str, verdict: Verdict) -> None:
        """Say to those who have just come what was found out for the most urgent of their group.

        Whoever has waited for long knows a reason; that it may have become another one is told by
        who stands first (`core/waiting`), so that a long line costs nothing. But who waits near the
        front for a launch that was put off learns that there is none: others may give way then.
        """
        for key in (*self.fresh.get(group, ()), *self._put_off(group, verdict)):
            replica = self.txn.fleet.replicas.get(key)
            if replica is None or not replica.is_placeable:
                continue
            if replica.waiting_reason is verdict.reason or pending_line(replica) != group:
                continue
            if assigning.is_broken(self.txn, replica.bundle_id):
                assigning.hold_back(self.txn, replica)
            else:
                assigning.refuse(self.txn, replica, verdict)

    def _put_off(self, group: str, verdict: Verdict) -> Iterator[str]:
        """Give those near the front who wait for a launch that will not be made now."""
        if verdict.reason is not Reason.LAUNCHES_IN_FLIGHT:
            for _, key in self.txn.fleet.index.replicas_pending.front(group, PREEMPTION_FRONT_MAX):
                if self.txn.fleet.replicas[key].reason is Reason.LAUNCHES_IN_FLIGHT:
                    yield key


def _line(txn: Txn, group: str) -> Iterator[str]:
    """Give the members of a group, most urgent first, each once; sorted only if it must be."""
    index = txn.fleet.index.replicas_pending
    given: set[str] = set()
    while (key := index.first(group)) is not None and key not in given:
        given.add(key)
        yield key
    # Who has got a place meanwhile, beside another job of its replica, stands in line no more.
    yield from (key for key in index.keys(group) if key not in given and index.has(key))
