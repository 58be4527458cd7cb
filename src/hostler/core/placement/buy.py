"""Buy: which machine a tier would launch for a demand, and what of it an offer cannot meet.

The machine is chosen for all who wait and not only for the one whose turn it is: what costs least
in sum once they have all been given a place, as far as can be seen from here. Whether one may be
launched now (limits, launches in flight, cooling down) is not asked here: that is for `growth`, and
the caller brings the answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from hostler.core.placement.demand import Demand
from hostler.core.placement.resilience import (
    Domains,
    broken_node_rules,
    broken_rules,
    domains_of_new,
)
from hostler.core.placement.room import Hold, Room, less, shortage, shortages, whole_room
from hostler.model import Pool
from hostler.model.pool import Offer, Reliability, Tier, TierKind
from hostler.model.reason import Reason
from hostler.model.shape import Requirement


class Wanted(msgspec.Struct, frozen=True):
    """What somebody else who waits would put on a new machine."""

    requirement: Requirement
    job: tuple[str, str] = ("", "")
    """Bundle and job: two replicas of one job never share a machine."""
    is_reliable_required: bool = False


def tier_refusal(demand: Demand, pool: Pool, tier: Tier) -> Reason | None:
    """Return why no machine of a tier would do, whatever its size; `None` when one might."""
    if tier.kind is not TierKind.ELASTIC:
        return Reason.NO_CAPACITY
    if not tier.has_agents:
        return Reason.NO_AGENT
    if demand.is_reliable_required and not any(_is_reliable(tier, each) for each in tier.offers):
        return Reason.RELIABILITY
    place = domains_of_new(pool, tier)
    by_place = broken_rules(demand.rules, place, is_required=True)
    by_node = broken_node_rules(demand.node_rules, place, is_required=True)
    # Which offers are allowed is asked of each of them.
    told = [reason for reason in (*by_place, *by_node) if reason is not Reason.OFFER_NOT_ALLOWED]
    return next(iter(told), None)


def preferences_broken(demand: Demand, place: Domains) -> tuple[Reason, ...]:
    """Return the preferred rules that a place would break."""
    return (
        *broken_rules(demand.rules, place, is_required=False),
        *broken_node_rules(demand.node_rules, place, is_required=False),
    )


def fitting_offers(demand: Demand, pool: Pool, tier: Tier) -> list[Offer]:
    """Return the offers of a tier that a demand may have and fits into.

    Those first that break fewest preferred rules, then the cheapest.
    """
    fitting = [
        offer
        for offer in tier.offers
        if (not demand.is_reliable_required or _is_reliable(tier, offer))
        and shortage(demand.requirement, whole_room(offer.shape)) is None
    ]
    if not demand.node_rules:
        return sorted(fitting, key=_price)
    places = {offer.name: domains_of_new(pool, tier, offer) for offer in fitting}
    allowed = [
        offer
        for offer in fitting
        if not broken_node_rules(demand.node_rules, places[offer.name], is_required=True)
    ]
    broken = {each.name: len(preferences_broken(demand, places[each.name])) for each in allowed}
    fewest = min(broken.values(), default=0)
    return sorted((each for each in allowed if broken[each.name] == fewest), key=_price)


def by_price(offers: Sequence[Offer], crowd: Sequence[Wanted], tier: Tier) -> list[Offer]:
    """Order offers by what it costs in sum to serve a crowd if the first machine is one of them.

    The first of the crowd fits into each of these offers. What a machine leaves unserved is
    reckoned on the cheapest kind of machine for it; whoever fits into none is left out.

    Args:
        offers: What the first of the crowd may have, cheapest first.
        crowd: Who waits, the most urgent first.
        tier: Where the offers are.
    """
    if len(offers) < 2 or len(crowd) < 2:
        return list(offers)
    kinds = [_Kind(tier, offer) for offer in sorted(tier.offers, key=_price)]
    by_name = {kind.offer.name: kind for kind in kinds}
    crowd = [crowd[0], *(each for each in crowd[1:] if any(kind.takes(each) for kind in kinds))]
    sums = {
        offer.name: offer.price_microusd_per_hour
        + _cheapest_for(by_name[offer.name].left_of(crowd), kinds)
        for offer in offers
    }
    return sorted(offers, key=lambda offer: (sums[offer.name], _price(offer)))


class _Kind:
    """One kind of machine, to be filled in thought."""

    def __init__(self, tier: Tier, offer: Offer) -> None:
        self.offer = offer
        self._room = whole_room(offer.shape)
        self._is_reliable = _is_reliable(tier, offer)

    def takes(self, wanted: Wanted) -> bool:
        """Say whether an empty machine would do."""
        return self._may_have(wanted) and shortage(wanted.requirement, self._room) is None

    def left_of(self, crowd: Sequence[Wanted]) -> list[Wanted]:
        """Fill one machine, in order, and return who has no place on it."""
        room: Room = self._room
        jobs: set[tuple[str, str]] = set()
        left: list[Wanted] = []
        for each in crowd:
            is_apart = each.job not in jobs
            if is_apart and self._may_have(each) and shortage(each.requirement, room) is None:
                room = less(room, Hold(each.requirement))
                jobs.add(each.job)
            else:
                left.append(each)
        return left

    def _may_have(self, wanted: Wanted) -> bool:
        return self._is_reliable or not wanted.is_reliable_required


def _cheapest_for(crowd: Sequence[Wanted], kinds: Sequence[_Kind]) -> int:
    """Return what serving a crowd costs with the one kind of machine that is best for it.

    Who cannot be served by that one kind has the cheapest that takes them alone.
    """
    if not crowd:
        return 0
    return min(_price_of_serving(crowd, kind, kinds) for kind in kinds)


def _price_of_serving(crowd: Sequence[Wanted], kind: _Kind, kinds: Sequence[_Kind]) -> int:
    total, left = 0, list(crowd)
    while left:
        rest = kind.left_of(left)
        if len(rest) == len(left):
            return total + sum(_price_alone(each, kinds) for each in rest)
        total += kind.offer.price_microusd_per_hour
        left = rest
    return total


def _price_alone(wanted: Wanted, kinds: Sequence[_Kind]) -> int:
    return next(k.offer.price_microusd_per_hour for k in kinds if k.takes(wanted))


def _is_reliable(tier: Tier, offer: Offer) -> bool:
    return tier.reliability_of(offer) is Reliability.RELIABLE


def _price(offer: Offer) -> int:
    return offer.price_microusd_per_hour


def hopeless_parts(requirement: Requirement, tiers: list[Tier]) -> list[Reason] | None:
    """Return what no offer of these tiers can meet, or `None` while any place could.

    A fixed tier could: nobody knows what will join it. An empty list says that each part is met
    by some offer, and all of them by none.
    """
    if any(tier.kind is TierKind.FIXED for tier in tiers):
        return None
    short = [set(each) for each in _offer_shortages(requirement, tiers)]
    if not all(short):
        return None
    return sorted(set.intersection(*short)) if short else []


def _offer_shortages(requirement: Requirement, tiers: list[Tier]) -> Iterator[list[Reason]]:
    for tier in tiers:
        for offer in tier.offers:
            yield list(shortages(requirement, whole_room(offer.shape)))
