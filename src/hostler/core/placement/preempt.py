"""Preempt: the cheapest work of lower bands on a node whose end would let a replica fit there.

What it costs that a set of allocations ends, compared part by part: how many of them are of the
higher of the bands below (silver, for gold), how many there are, how many preferred rules the place
breaks, how many are primaries, how long they have run in sum; at last the node's id. A set is only
an answer when the replica then fits, by every filter, and no smaller part of it would do.

Spares and leased nodes stay what they are: spares hold nothing that could give way, and a lease is
not ended for a replica. What is ending anyway, of a lower band, counts as gone; and room that is
kept for a lower band is no obstacle.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from hostler.base.ids import ReplicaId
from hostler.core.limits import PREEMPTION_CHECKS_MAX
from hostler.core.placement.buy import preferences_broken
from hostler.core.placement.demand import Demand
from hostler.core.placement.feasible import Place, refusals
from hostler.core.placement.room import Hold, Room, free_room, shortage
from hostler.model import Allocation
from hostler.model.pool import Band
from hostler.model.shape import Requirement, Shape

Cost = tuple[int, int, int, int, int, str]
"""The parts named above; lower is cheaper."""


class Candidate(msgspec.Struct, frozen=True):
    """An allocation that may be asked to give way."""

    allocation: Allocation
    is_primary: bool
    age_ms: int
    """How long it has run: what is lost with it."""

    @property
    def hold(self) -> Hold:
        """What its end would give back."""
        return Hold(self.allocation.requirement, self.allocation.devices)

    @property
    def amounts(self) -> tuple[int, int, int]:
        """Capacity, cores and memory of that."""
        need = self.allocation.requirement
        return need.capacity, need.cores_milli, need.memory_bytes

    @property
    def is_upper(self) -> bool:
        """Of the two bands that may give way, it is of the higher one."""
        return self.allocation.band is Band.SILVER

    def is_like(self, other: Candidate) -> bool:
        """Say whether both give back the same, at the cost of the same bundle."""
        one, two = self.allocation, other.allocation
        return (
            one.band is two.band
            and one.bundle_id == two.bundle_id
            and one.devices == two.devices
            and one.requirement == two.requirement
        )

    @property
    def cost(self) -> tuple[int, int, str]:
        """What candidates of one band are compared by."""
        return int(self.is_primary), self.age_ms, self.allocation.allocation_id


class Stage(msgspec.Struct, frozen=True, kw_only=True):
    """A node as somebody sees it for whom others may give way."""

    place: Place
    stays: tuple[Hold, ...]
    """What stays whatever happens."""
    candidates: tuple[Candidate, ...]
    lower_claims: tuple[ReplicaId, ...] = ()
    """Replicas of lower bands that room is kept for; they would have to look elsewhere."""


class Sacrifice(msgspec.Struct, frozen=True, kw_only=True):
    """What is to end on a node."""

    place: Place
    victims: tuple[Candidate, ...]
    lower_claims: tuple[ReplicaId, ...]
    cost: Cost


class Allowance(msgspec.Struct, frozen=True):
    """How much may still give way within the window."""

    count: int
    by_bundle: dict[str, int]
    """Of each bundle that the candidates belong to."""

    def allows(self, victims: Sequence[Candidate]) -> bool:
        """Say whether so many may."""
        counts: dict[str, int] = {}
        for victim in victims:
            bundle_id = victim.allocation.bundle_id
            counts[bundle_id] = counts.get(bundle_id, 0) + 1
        return len(victims) <= self.count and all(
            count <= self.by_bundle[bundle_id] for bundle_id, count in counts.items()
        )


def cheapest_on(
    demand: Demand, stage: Stage, allowance: Allowance, bound: Cost | None = None
) -> Sacrifice | None:
    """Return the cheapest set of candidates whose end lets a replica onto a node.

    Args:
        demand: What asks.
        stage: The node.
        allowance: How much may give way.
        bound: The cost of an answer that is known already; what costs more is of no use.

    Returns:
        The set, which is empty where room comes by itself; `None` where nothing helps.
    """
    place = stage.place
    emptied = free_room(place.node.shape, stage.stays)
    if next(refusals(demand, msgspec.structs.replace(place, room=emptied)), None) is not None:
        return None
    victims = _Search(demand, stage, allowance, bound).cheapest()
    if victims is None:
        return None
    cost = _cost(demand, place, victims)
    if bound is not None and cost >= bound:
        return None
    return Sacrifice(place=place, victims=victims, lower_claims=stage.lower_claims, cost=cost)


def _cost(demand: Demand, place: Place, victims: Sequence[Candidate]) -> Cost:
    broken = preferences_broken(demand, place.domains)
    return (
        sum(each.is_upper for each in victims),
        len(victims),
        len(broken),
        sum(each.is_primary for each in victims),
        sum(each.age_ms for each in victims),
        place.node.node_id,
    )


class _Search:
    """The search on one node, from few victims to many."""

    def __init__(
        self, demand: Demand, stage: Stage, allowance: Allowance, bound: Cost | None
    ) -> None:
        self._need = demand.requirement
        self._stage = stage
        self._allowance = allowance
        self._bound = (len(stage.candidates), len(stage.candidates)) if bound is None else bound[:2]
        self._checks_left = PREEMPTION_CHECKS_MAX
        groups = _alike(stage.candidates)
        self._upper = [group for group in groups if group[0].is_upper]
        self._lower = [group for group in groups if not group[0].is_upper]
        self._short = _scalars(self._need, free_room(self._shape, self._holds_without(())))

    @property
    def _shape(self) -> Shape:
        return self._stage.place.node.shape

    def cheapest(self) -> tuple[Candidate, ...] | None:
        """Return the cheapest set; where there are too many to try, one without a needless part."""
        for upper_count in range(sum(map(len, self._upper)) + 1):
            for lower_count in range(sum(map(len, self._lower)) + 1):
                if (upper_count, upper_count + lower_count) > self._bound:
                    break
                if self._may_be_enough(upper_count, lower_count):
                    found = self._cheapest_of(upper_count, lower_count)
                    if found is not None:
                        return found
                    if self._checks_left <= 0:
                        return self._without_needless()
        return None

    def _cheapest_of(self, upper_count: int, lower_count: int) -> tuple[Candidate, ...] | None:
        best: tuple[Candidate, ...] | None = None
        for upper in _picks(self._upper, upper_count):
            for lower in _picks(self._lower, lower_count):
                victims = (*upper, *lower)
                self._checks_left -= 1
                if self._checks_left < 0:
                    return best
                if self._is_enough(victims) and (best is None or _rank(victims) < _rank(best)):
                    best = victims
        return best

    def _may_be_enough(self, upper_count: int, lower_count: int) -> bool:
        """Say whether the largest of so many would cover what is short, each part for itself."""
        for part, short in enumerate(self._short):
            most = sum(_largest(self._upper, part, upper_count))
            most += sum(_largest(self._lower, part, lower_count))
            if most < short:
                return False
        return True

    def _is_enough(self, victims: Sequence[Candidate]) -> bool:
        room = free_room(self._shape, self._holds_without(victims))
        return shortage(self._need, room) is None and self._allowance.allows(victims)

    def _holds_without(self, victims: Sequence[Candidate]) -> list[Hold]:
        gone = {each.allocation.allocation_id for each in victims}
        kept = [
            each.hold
            for each in self._stage.candidates
            if each.allocation.allocation_id not in gone
        ]
        return [*self._stage.stays, *kept]

    def _without_needless(self) -> tuple[Candidate, ...] | None:
        """Let all go, then take back one after the other, the dearest first, while it still fits.

        For nodes with so many different candidates that not all sets can be tried.
        """
        victims = sorted(self._stage.candidates, key=lambda each: (each.is_upper, each.cost))
        for candidate in reversed(tuple(victims)):
            rest = [each for each in victims if each is not candidate]
            room = free_room(self._shape, self._holds_without(rest))
            if shortage(self._need, room) is None:
                victims = rest
        return tuple(victims) if self._allowance.allows(victims) else None


def _rank(victims: Sequence[Candidate]) -> tuple[int, int, list[str]]:
    return (
        sum(each.is_primary for each in victims),
        sum(each.age_ms for each in victims),
        sorted(each.allocation.allocation_id for each in victims),
    )


def _alike(candidates: Sequence[Candidate]) -> list[list[Candidate]]:
    """Return candidates in groups of which only the cheapest members are ever worth a try."""
    groups: list[list[Candidate]] = []
    for candidate in sorted(candidates, key=lambda each: each.cost):
        for group in groups:
            if group[0].is_like(candidate):
                group.append(candidate)
                break
        else:
            groups.append([candidate])
    return groups


def _picks(groups: Sequence[list[Candidate]], count: int) -> Iterator[tuple[Candidate, ...]]:
    """Give every way to take so many, each group's cheapest first."""
    if not groups:
        if count == 0:
            yield ()
        return
    first, rest = groups[0], groups[1:]
    rest_count = sum(map(len, rest))
    for taken in range(max(0, count - rest_count), min(count, len(first)) + 1):
        for others in _picks(rest, count - taken):
            yield (*first[:taken], *others)


def _scalars(need: Requirement, room: Room) -> tuple[int, int, int]:
    """Return how much more capacity, cores and memory are needed than there is."""
    return (
        need.capacity - (room.capacity or 0),
        need.cores_milli - (room.cores_milli or 0),
        need.memory_bytes - (room.memory_bytes or 0),
    )


def _largest(groups: Sequence[list[Candidate]], part: int, count: int) -> list[int]:
    amounts = [each.amounts[part] for group in groups for each in group]
    return sorted(amounts, reverse=True)[:count]
