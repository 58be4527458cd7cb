"""Helping: what capacity, tier by tier, would give a waiting replica a place.

Goes by the outcome of each attempt, whatever decided it; for the outcomes that a number would
change, it works the number out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from hostler.core.explain.amounts import amount_text, requirement_text
from hostler.core.fleet import Fleet
from hostler.core.keys import tier_key
from hostler.core.placement.demand import Demand
from hostler.core.placement.largest import shortfalls
from hostler.core.placement.room import Hold, less, shortage, whole_room
from hostler.core.placement.walk import EXHAUSTED
from hostler.core.sentences import SENTENCES
from hostler.core.uses import offer_key
from hostler.model import Pool
from hostler.model.pool import Offer, Tier
from hostler.model.reason import Reason
from hostler.model.trace import Attempt

_OUT_OF_USE = (Reason.CORDONED, Reason.DRAINING, Reason.UNREACHABLE)
"""Why a node takes nothing from anybody, whatever room it has."""
_PER_MACHINE_MAX = 1_000
"""Replicas counted on one machine at most."""


class Help(msgspec.Struct, frozen=True, kw_only=True):
    """What would help in one tier."""

    text: str
    at_ms: int | None = None
    """When it is tried again by itself."""


def help_for(
    fleet: Fleet, demand: Demand, attempts: Sequence[Attempt], count: int
) -> tuple[Help, ...]:
    """Return what would give so many replicas of one demand a place, tier by tier."""
    found = {(each.pool, each.tier): each for each in attempts}
    return tuple(_in_tier(fleet, demand, each, count) for each in found.values())


def _in_tier(fleet: Fleet, demand: Demand, attempt: Attempt, count: int) -> Help:
    where = tier_key(attempt.pool, attempt.tier) if attempt.tier else attempt.pool
    pool = fleet.pools.get(attempt.pool)
    tier = None if pool is None else pool.tier(attempt.tier)
    need = requirement_text(demand.requirement)
    if pool is None or tier is None:
        return Help(text=f"{where}: {_words(attempt.outcome)}")
    if attempt.outcome == EXHAUSTED:
        nearest = _nearest(fleet, demand, pool, tier) + _set_aside(attempt)
        return Help(text=f"{where}: a node with {need} free{nearest}")
    match attempt.outcome:
        case Reason.NO_OFFER_FITS:
            return Help(text=f"{where}: an offer with {need}")
        case Reason.LIMIT_REACHED | Reason.LAUNCHES_IN_FLIGHT | Reason.OFFER_COOLING_DOWN:
            return _machine(fleet, demand, count, pool, tier, Reason(attempt.outcome))
        case outcome:
            return Help(text=f"{where}: {_words(outcome)}")


def _words(outcome: str) -> str:
    return " ".join(SENTENCES[Reason(outcome)]) if outcome in set(Reason) else outcome


def _nearest(fleet: Fleet, demand: Demand, pool: Pool, tier: Tier) -> str:
    columns = fleet.index.places.in_tier(fleet, pool.name, tier.name)
    short = shortfalls(demand.requirement, columns)
    if short is None:
        return "; none there takes work"
    if not short:
        return "; each part is free somewhere, not all on one node that is open to it"
    told = ", ".join(
        f"{amount_text(name, most)} of {amount_text(name, need)}"
        for name, (need, most) in short.items()
    )
    return f"; on one node there is at most {told}"


def _set_aside(attempt: Attempt) -> str:
    """Tell of nodes that might do, were they not out of use."""
    told = [
        f"{count} {reason}"
        for reason, count in attempt.filtered_by_reason.items()
        if reason in _OUT_OF_USE
    ]
    return f" (besides {', '.join(told)})" if told else ""


def _machine(
    fleet: Fleet, demand: Demand, count: int, pool: Pool, tier: Tier, reason: Reason
) -> Help:
    where = tier_key(pool.name, tier.name)
    offers = sorted(_large_enough(demand, tier), key=lambda each: each.price_microusd_per_hour)
    if not offers:
        return Help(text=f"{where}: {_words(reason)}")
    machine_count = -(-count // _per_machine(demand, offers[0]))
    needed = f"{machine_count} more {offers[0].name}" if machine_count > 1 else offers[0].name
    node_count = fleet.index.nodes_by_tier.count(where)
    if reason is Reason.LAUNCHES_IN_FLIGHT:
        told = f"{pool.launch_count_max} launches under way (launch_count_max)"
        return Help(text=f"{where}: {needed}, once one of {told} is done")
    if reason is Reason.OFFER_COOLING_DOWN:
        keys = (offer_key(pool.name, tier.name, offer.name) for offer in offers)
        until = [cooldown.until_at_ms for key in keys if (cooldown := fleet.cooldowns.get(key))]
        told = f"{where}: {needed}, which could not be launched lately; or other offers"
        return Help(text=told, at_ms=min(until, default=None))
    if node_count >= tier.node_count_max:
        told = f"a node_count_max of {node_count + machine_count} (it has {node_count}"
        return Help(text=f"{where}: {told} of {tier.node_count_max} machines)")
    return Help(text=f"{where}: {needed}. {_words(reason)}")


def _large_enough(demand: Demand, tier: Tier) -> Iterator[Offer]:
    for offer in tier.offers:
        if shortage(demand.requirement, whole_room(offer.shape)) is None:
            yield offer


def _per_machine(demand: Demand, offer: Offer) -> int:
    """Return how many replicas of one demand a new machine holds."""
    room, held = whole_room(offer.shape), 0
    while held < _PER_MACHINE_MAX and shortage(demand.requirement, room) is None:
        room = less(room, Hold(demand.requirement))
        held += 1
    return max(held, 1)
