"""Room for gangs: lower work ends for a gang only where that gives every member a place.

Members that find a place as things are have it at once and hold it; room is made for the others and
kept until it is there (`core/claims`). Nothing of the gang starts before all have a place, and what
it holds is given back when the room does not come (`core/gangs`). All of it is tried by carrying it
out in one scratch, and taken back where a member is left without.
"""

from __future__ import annotations

from itertools import islice

from hostler.core import assigning, claims, gangs
from hostler.core.limits import GANG_ROOM_LOOKS_MAX, GANG_ROOM_WAYS_MAX, GANG_TRIES_MAX
from hostler.core.placement.feasible import refusal
from hostler.core.placement.places import hold_of, live_on
from hostler.core.placement.preempt import Sacrifice
from hostler.core.placement.room import Hold, free_room, shortage
from hostler.core.placement.walk import Obstacle, Verdict, alternatives, decide
from hostler.core.txn import Txn
from hostler.core.victims import Victims, beside_claims
from hostler.model import Allocation, Bundle, Replica
from hostler.model.allocation import AllocationPhase
from hostler.model.reason import Reason
from hostler.model.replica import Claim


def may_help(txn: Txn, bundle: Bundle, victims: Victims, node_ids: list[str]) -> bool:
    """Say whether some member has a way on one of these nodes, which may complete another's."""
    for member in gangs.waiting(txn, bundle):
        demand = beside_claims(txn, bundle, member.job, member.replica)
        places = (txn.fleet.index.places.of(txn.fleet, key) for key in node_ids)
        if any(refusal(demand, place) is None for place in places):
            return True
        if victims.cheapest(demand, member.replica, node_ids) is not None:
            return True
    return False


def make(txn: Txn, bundle: Bundle, victims: Victims, obstacle: Obstacle) -> list[Replica]:
    """Make room for all members of a gang that have no place, or for none of them.

    Jobs that are to be on one node are not helped: the room of one would be room for all of them.

    Args:
        txn: The step.
        bundle: A gang that has just been refused.
        victims: Who may be asked to give way.
        obstacle: What speaks against a new machine.

    Returns:
        Those for whom room is kept now; nobody where there is no way, or a launch to wait for.
    """
    members = gangs.waiting(txn, bundle)
    is_pending = gangs.is_late(txn, bundle) or any(each.replica.claim for each in members)
    if is_pending or (bundle.is_colocated and len(bundle.jobs) > 1):
        return []
    mark = txn.mark()
    plan = _Plan(txn, bundle, members, victims, obstacle)
    is_found, spared = plan.run(frozenset()), frozenset[str]()
    while is_found and (needless := plan.needless()):
        txn.rewind(mark)
        if not plan.run(spared | needless):
            txn.rewind(mark)
            is_found = plan.run(spared)
            break
        spared |= needless
    if not is_found:
        txn.rewind(mark)
    txn.forget_marks()
    return plan.claiming() if is_found else []


class _Plan:
    """One search for places and victims for all members, the most demanding first."""

    def __init__(
        self,
        txn: Txn,
        bundle: Bundle,
        members: list[gangs.Member],
        victims: Victims,
        obstacle: Obstacle,
    ) -> None:
        self._txn = txn
        self._bundle = bundle
        self._members = members
        self._victims = victims
        self._obstacle = obstacle
        self._tries_left = 0

    def run(self, spared: frozenset[str]) -> bool:
        """Give every member a place or room, without these victims; on false none of them."""
        looks = GANG_ROOM_LOOKS_MAX // max(1, len(self._txn.fleet.nodes))
        self._tries_left = max(len(self._members), min(looks, GANG_TRIES_MAX))
        self._victims.spared = spared
        is_found = self._place(0)
        self._victims.spared = frozenset()
        return is_found

    def claiming(self) -> list[Replica]:
        """Return the members for which room is kept."""
        found = (self._txn.fleet.replicas[each.replica.replica_id] for each in self._members)
        return [each for each in found if each.claim is not None]

    def needless(self) -> frozenset[str]:
        """Return the victims that may stay after all: what ends for the next member gave enough."""
        own: dict[str, list[Claim]] = {}
        for replica in self.claiming():
            if replica.claim is not None:
                own.setdefault(replica.claim.node_id, []).append(replica.claim)
        return frozenset(
            key for node_id, kept in own.items() for key in self._needless_on(node_id, kept)
        )

    def _needless_on(self, node_id: str, kept: list[Claim]) -> list[str]:
        fleet = self._txn.fleet
        staying = [
            hold_of(each)
            for each in live_on(fleet, node_id)
            if each.phase is not AllocationPhase.STOPPING
        ]
        victims = [fleet.allocations[key] for claim in kept for key in claim.allocation_ids]
        found: list[str] = []
        for victim in sorted(victims, key=_dearest_first):
            with_it = [*staying, hold_of(victim)]
            if self._has_room(node_id, with_it):
                staying = with_it
                found.append(victim.allocation_id)
        return found

    def _has_room(self, node_id: str, staying: list[Hold]) -> bool:
        """Say whether all that is kept on a node would fit beside what stays there."""
        fleet = self._txn.fleet
        claims_there = [
            claim
            for key in fleet.index.replicas_claiming.keys(node_id)
            if (claim := fleet.replicas[key].claim) is not None
        ]
        last = claims_there[-1].requirement
        holds = [*staying, *(Hold(claim.requirement) for claim in claims_there[:-1])]
        return shortage(last, free_room(fleet.nodes[node_id].shape, holds)) is None

    def _place(self, number: int) -> bool:
        """Place the members from one on; on false nothing of them is placed."""
        if number == len(self._members):
            return True
        txn, member = self._txn, self._members[number]
        for way in self._ways(member):
            if self._tries_left <= 0:
                return False
            self._tries_left -= 1
            mark = txn.mark()
            self._go(member, way)
            if self._place(number + 1):
                return True
            txn.rewind(mark)
        return False

    def _ways(self, member: gangs.Member) -> list[Verdict | Sacrifice]:
        """Return what a member could have: a place as things are, or else somebody's room."""
        fleet, replica = self._txn.fleet, member.replica
        demand = beside_claims(self._txn, self._bundle, member.job, replica)
        free = list(islice(alternatives(demand, fleet, self._obstacle), GANG_ROOM_WAYS_MAX))
        if not free:
            verdict = decide(demand, fleet, self._obstacle)
            if verdict.reason is Reason.LAUNCHES_IN_FLIGHT:
                self._tries_left = 0  # that is waited for, and nobody ends meanwhile
                return []
        made = self._victims.by_cost(demand, replica)
        return [*free, *made[:GANG_ROOM_WAYS_MAX]]

    def _go(self, member: gangs.Member, way: Verdict | Sacrifice) -> None:
        txn, replica = self._txn, self._txn.fleet.replicas[member.replica.replica_id]
        if isinstance(way, Sacrifice):
            claims.make(txn, replica, member.job.requirement, way)
        elif way.option is not None:
            assigning.assign(txn, replica, self._bundle, member.job, way, way.option)


def _dearest_first(allocation: Allocation) -> tuple[int, str]:
    return allocation.band.rank, allocation.allocation_id
