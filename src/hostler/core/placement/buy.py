"""Buy: which machine a tier would launch for a demand, and what of it an offer cannot meet.

Whether one may be launched now (limits, launches in flight, cooling down) is not asked here: that
is for `growth`, and the caller brings the answer.
"""

from __future__ import annotations

from collections.abc import Iterator

from hostler.core.placement.demand import Demand
from hostler.core.placement.resilience import (
    Domains,
    broken_node_rules,
    broken_rules,
    domains_of_new,
)
from hostler.core.placement.room import shortage, shortages, whole_room
from hostler.model import Pool
from hostler.model.pool import Offer, Reliability, Tier, TierKind
from hostler.model.reason import Reason
from hostler.model.shape import Requirement


def tier_refusal(demand: Demand, pool: Pool, tier: Tier) -> Reason | None:
    """Return why no machine of a tier would do, whatever its size; `None` when one might."""
    if tier.kind is not TierKind.ELASTIC:
        return Reason.NO_CAPACITY
    if demand.is_reliable_required and tier.reliability is Reliability.INTERRUPTIBLE:
        return Reason.RELIABILITY
    place = domains_of_new(pool, tier)
    by_place = broken_rules(demand.rules, place, is_required=True)
    by_node = broken_node_rules(demand.node_rules, place, is_required=True)
    # Which offers are allowed is asked of each of them.
    told = [reason for reason in (*by_place, *by_node) if reason is not Reason.OFFER_NOT_ALLOWED]
    return next(iter(told), None)


def broken_by_new(demand: Demand, place: Domains) -> tuple[Reason, ...]:
    """Return the preferred rules that a machine would break."""
    return (
        *broken_rules(demand.rules, place, is_required=False),
        *broken_node_rules(demand.node_rules, place, is_required=False),
    )


def fitting_offers(demand: Demand, pool: Pool, tier: Tier) -> list[Offer]:
    """Return the offers of a tier that would serve, those that break fewest rules first."""
    need = demand.requirement
    fitting = [o for o in tier.offers if shortage(need, whole_room(o.shape)) is None]
    if not demand.node_rules:
        return sorted(fitting, key=lambda o: o.price_microusd_per_hour)
    places = {offer.name: domains_of_new(pool, tier, offer) for offer in fitting}
    allowed = [
        offer
        for offer in fitting
        if not broken_node_rules(demand.node_rules, places[offer.name], is_required=True)
    ]
    return sorted(
        allowed,
        key=lambda o: (len(broken_by_new(demand, places[o.name])), o.price_microusd_per_hour),
    )


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
