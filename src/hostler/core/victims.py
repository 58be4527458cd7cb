"""Victims: who on which nodes may be asked to give way, and how much of it is allowed.

What it costs is arithmetic (`placement.preempt`); here it is read off the records who may be asked
at all: of a lower band, of another bundle, not lately asked before, and not on the move.
"""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from hostler.base.ids import PRIMARY
from hostler.core.keys import bundle_phase_key
from hostler.core.limits import CLAIM_MARGIN_MS, PREEMPTION_NODES_MAX
from hostler.core.placement.demand import Demand, demand_of
from hostler.core.placement.feasible import Place
from hostler.core.placement.places import hold_of, live_on
from hostler.core.placement.preempt import Allowance, Candidate, Sacrifice, Stage, cheapest_on
from hostler.core.placement.resilience import domains_of, spread_rules
from hostler.core.placement.room import Hold, free_room
from hostler.core.txn import Txn
from hostler.model import Allocation, Bundle, Node, Replica
from hostler.model.allocation import AllocationPhase
from hostler.model.bundle import Job
from hostler.model.pool import Band
from hostler.model.replica import ReplicaPhase
from hostler.model.settings import Preemption


def leaves_until_ms(allocation: Allocation) -> int | None:
    """Return until when an allocation that is ending counts as gone; `None` for one that is not."""
    if allocation.phase is not AllocationPhase.STOPPING:
        return None
    return allocation.phase_since_at_ms + allocation.launch.stop_grace_ms + CLAIM_MARGIN_MS


def is_leaving(txn: Txn, allocation: Allocation) -> bool:
    """Say whether an allocation is ending, and has not taken longer over it than it may."""
    until_ms = leaves_until_ms(allocation)
    return until_ms is not None and until_ms > txn.now_ms


def other_claims(txn: Txn, node: Node, but: Replica) -> list[Hold]:
    """Return what is kept on a node for others."""
    keys = txn.fleet.index.replicas_claiming.keys(node.node_id)
    found = (txn.fleet.replicas[key].claim for key in keys if key != but.replica_id)
    return [Hold(claim.requirement) for claim in found if claim is not None]


def with_kept_room(txn: Txn, place: Place, replica: Replica) -> Place:
    """Return a place as it is for a replica for which room is kept there."""
    others = [
        *(hold_of(each) for each in live_on(txn.fleet, place.node.node_id)),
        *other_claims(txn, place.node, replica),
    ]
    return msgspec.structs.replace(place, room=free_room(place.node.shape, others))


def beside_claims(txn: Txn, bundle: Bundle, job: Job, replica: Replica) -> Demand:
    """Return what a replica asks of a place if its siblings were where room is made for them."""
    demand = demand_of(txn.fleet, bundle, job, replica, txn.now_ms)
    nodes = [
        txn.fleet.nodes.get(each.kept_room.node_id)
        for phase in (ReplicaPhase.PENDING, ReplicaPhase.PLACED)
        for each in _in_phase(txn, bundle, phase)
        if each.kept_room is not None and each.job == job.name and each.index != replica.index
    ]
    claimed = tuple(domains_of(node) for node in nodes if node is not None)
    if not claimed:
        return demand
    rules = [rule for rule in bundle.spread if rule.skew_max is None]
    return msgspec.structs.replace(demand, rules=(*demand.rules, *spread_rules(rules, claimed)))


def _in_phase(txn: Txn, bundle: Bundle, phase: ReplicaPhase) -> Iterator[Replica]:
    bucket = bundle_phase_key(bundle.bundle_id, phase)
    for key in txn.fleet.index.replicas_by_bundle_phase.keys(bucket):
        yield txn.fleet.replicas[key]


class Victims:
    """One look for those who could give way."""

    def __init__(self, txn: Txn, policy: Preemption) -> None:
        self.txn = txn
        self.policy = policy
        self.is_particular = False
        """What was last looked for in vain might be found for others who ask for the same."""
        self.spared: frozenset[str] = frozenset()
        """Allocations that are not asked."""

    def cheapest(
        self, demand: Demand, replica: Replica, node_ids: list[str] | None
    ) -> Sacrifice | None:
        """Return the least that would have to end for a replica, or `None` when nothing helps.

        Args:
            demand: What it asks.
            replica: The replica.
            node_ids: Where to look; `None` for everywhere that is open to it.
        """
        self.is_particular = bool(demand.rules or demand.avoided or demand.rejected)
        if not self._is_any_lower(demand):
            return None
        best: Sacrifice | None = None
        count_left = self.policy.victim_count_max - self._gave_way_count()
        for stage in self._stages(demand, replica, node_ids):
            allowance = Allowance(count_left, self._left_by_bundle(stage))
            bound = None if best is None else best.cost
            best = cheapest_on(demand, stage, allowance, bound) or best
        return best

    def by_cost(self, demand: Demand, replica: Replica) -> list[Sacrifice]:
        """Return the least that would have to end on each node that helps, the cheapest first."""
        if not self._is_any_lower(demand):
            return []
        count_left = self.policy.victim_count_max - self._gave_way_count()
        found = []
        for stage in self._stages(demand, replica, None):
            sacrifice = cheapest_on(
                demand, stage, Allowance(count_left, self._left_by_bundle(stage))
            )
            if sacrifice is not None:
                found.append(sacrifice)
        return sorted(found, key=lambda each: each.cost)

    def _gave_way_count(self) -> int:
        return self.txn.fleet.index.replicas_preempted.count("all")

    def _is_any_lower(self, demand: Demand) -> bool:
        by_band = self.txn.fleet.index.allocations_by_band
        return any(by_band.count(band) for band in Band if band.rank > demand.band.rank)

    def _left_by_bundle(self, stage: Stage) -> dict[str, int]:
        ids = dict.fromkeys(each.allocation.bundle_id for each in stage.candidates)
        return {bundle_id: self._left_of(bundle_id) for bundle_id in ids}

    def _left_of(self, bundle_id: str) -> int:
        fleet = self.txn.fleet
        keys = fleet.index.replicas_by_bundle.keys(bundle_id)
        gave_way = sum(fleet.replicas[key].preempted is not None for key in keys)
        return self.policy.victim_per_bundle_count_max - gave_way

    def _stages(
        self, demand: Demand, replica: Replica, node_ids: list[str] | None
    ) -> Iterator[Stage]:
        """Give the nodes on which something could give way, up to a bound."""
        count = 0
        for place in self._places(demand, node_ids):
            have, need = place.node.shape.capacity, demand.requirement.capacity
            is_too_small = have is not None and have < need
            if place.standing or place.node.lease_count or is_too_small:
                continue
            stage = self._stage(demand, replica, place)
            if stage is not None:
                yield stage
                count += 1
                if count >= PREEMPTION_NODES_MAX:
                    return

    def _places(self, demand: Demand, node_ids: list[str] | None) -> Iterator[Place]:
        fleet = self.txn.fleet
        index = fleet.index.places
        if node_ids is not None:
            nodes = [fleet.nodes[node_id] for node_id in node_ids]
            yield from (index.of(fleet, n.node_id) for n in nodes if self._is_open(demand, n))
            return
        for name in demand.pools:
            pool = fleet.pools.get(name)
            for tier in () if pool is None or not pool.is_enabled else pool.tiers:
                places = index.in_tier(fleet, name, tier.name).places
                yield from (each for each in places if each is not None)

    def _is_open(self, demand: Demand, node: Node) -> bool:
        pool = self.txn.fleet.pools.get(node.pool)
        is_home = pool is not None and pool.is_enabled and pool.tier(node.tier) is not None
        return is_home and node.pool in demand.pools

    def _stage(self, demand: Demand, replica: Replica, place: Place) -> Stage | None:
        """Return a node with who may give way there; `None` when nobody may and nobody leaves."""
        node = place.node
        if not node.allocation_count:
            return None
        stays: list[Hold] = []
        candidates: list[Candidate] = []
        is_leaving_any = False
        for allocation in live_on(self.txn.fleet, node.node_id):
            is_lower = allocation.band.rank > demand.band.rank
            if is_lower and is_leaving(self.txn, allocation):
                is_leaving_any = True
            elif is_lower and self._may_give_way(allocation, replica):
                candidates.append(self._candidate(allocation))
            else:
                stays.append(hold_of(allocation))
        lower_claims = []
        for key in self.txn.fleet.index.replicas_claiming.keys(node.node_id):
            other = self.txn.fleet.replicas[key]
            if other.band.rank > demand.band.rank:
                lower_claims.append(other.replica_id)
            elif other.claim is not None:
                stays.append(Hold(other.claim.requirement))
        if not candidates and not is_leaving_any and not lower_claims:
            return None
        return Stage(
            place=place,
            stays=tuple(stays),
            candidates=tuple(candidates),
            lower_claims=tuple(lower_claims),
        )

    def _may_give_way(self, allocation: Allocation, replica: Replica) -> bool:
        is_stopping = allocation.phase is AllocationPhase.STOPPING
        if is_stopping or allocation.allocation_id in self.spared:
            return False
        is_answer = replica.preempted is not None and replica.preempted.by == allocation.replica_id
        if is_answer or allocation.bundle_id == replica.bundle_id:
            self.is_particular = True
            return False
        victim = self.txn.fleet.replicas.get(allocation.replica_id)
        return (
            victim is not None
            and victim.phase is ReplicaPhase.PLACED
            and victim.migration is None
            and victim.preempted is None
        )

    def _candidate(self, allocation: Allocation) -> Candidate:
        started_at_ms = allocation.started_at_ms
        age_ms = 0 if started_at_ms is None else max(0, self.txn.now_ms - started_at_ms)
        return Candidate(allocation, allocation.role == PRIMARY, age_ms)
