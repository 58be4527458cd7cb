"""Helping: what capacity, tier by tier, would give a waiting replica a place."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from hostler.core import growth
from hostler.core.explain.amounts import amount_text, requirement_text
from hostler.core.fleet import Fleet
from hostler.core.keys import tier_key
from hostler.core.placement.buy import fitting_offers, tier_refusal
from hostler.core.placement.demand import Demand
from hostler.core.placement.largest import shortfalls
from hostler.core.placement.room import Hold, less, shortage, whole_room
from hostler.core.sentences import SENTENCES
from hostler.core.txn import Txn
from hostler.core.uses import offer_key
from hostler.model import Pool
from hostler.model.pool import Offer, Tier, TierKind
from hostler.model.reason import Reason

_PER_MACHINE_MAX = 1_000
"""Replicas counted on one machine at most."""


class Help(msgspec.Struct, frozen=True, kw_only=True):
    """What would help in one tier."""

    text: str
    at_ms: int | None = None
    """When it is tried again by itself."""


def help_for(txn: Txn, demand: Demand, count: int) -> tuple[Help, ...]:
    """Return what would give so many replicas of one demand a place, tier by tier."""
    return tuple(_by_pool(txn, demand, count))


def _by_pool(txn: Txn, demand: Demand, count: int) -> Iterator[Help]:
    for name in demand.pools:
        pool = txn.fleet.pools.get(name)
        if pool is None or not pool.is_enabled:
            reason = Reason.POOL_NOT_CONFIGURED if pool is None else Reason.POOL_DISABLED
            yield Help(text=f"{name}: {SENTENCES[reason][1]}")
            continue
        for tier in pool.tiers:
            yield _in_tier(txn, demand, count, pool, tier)


def _in_tier(txn: Txn, demand: Demand, count: int, pool: Pool, tier: Tier) -> Help:
    where = tier_key(pool.name, tier.name)
    if tier.kind is TierKind.FIXED:
        need = requirement_text(demand.requirement)
        return Help(text=f"{where}: a node with {need} free{_nearest(txn.fleet, demand, where)}")
    refusal = tier_refusal(demand, pool, tier)
    if refusal is not None:
        return Help(text=f"{where}: {SENTENCES[refusal][0]} {SENTENCES[refusal][1]}")
    offers = fitting_offers(demand, pool, tier)
    if not offers:
        return Help(text=f"{where}: an offer with {requirement_text(demand.requirement)}")
    obstacles = [growth.growth_obstacle(txn, pool, tier, offer) for offer in offers]
    return _machine(txn.fleet, demand, count, pool, tier, offers, obstacles)


def _nearest(fleet: Fleet, demand: Demand, where: str) -> str:
    pool, _, tier = where.partition("/")
    short = shortfalls(demand.requirement, fleet.index.places.in_tier(fleet, pool, tier))
    if short is None:
        return "; none there takes work"
    if not short:
        return "; each part is free somewhere, not all on one node that is open to it"
    told = ", ".join(
        f"{amount_text(name, most)} of {amount_text(name, need)}"
        for name, (need, most) in short.items()
    )
    return f"; on one node there is at most {told}"


def _machine(
    fleet: Fleet,
    demand: Demand,
    count: int,
    pool: Pool,
    tier: Tier,
    offers: list[Offer],
    obstacles: list[Reason | None],
) -> Help:
    where = tier_key(pool.name, tier.name)
    machine_count = -(-count // _per_machine(demand, offers[0]))
    needed = f"{machine_count} more {offers[0].name}" if machine_count > 1 else offers[0].name
    if Reason.LAUNCHES_IN_FLIGHT in obstacles:
        told = f"{pool.launch_count_max} launches under way (launch_count_max)"
        return Help(text=f"{where}: {needed}, once one of {told} is done")
    if Reason.OFFER_COOLING_DOWN in obstacles:
        until = [
            cooldown.until_at_ms
            for offer in offers
            if (cooldown := fleet.cooldowns.get(offer_key(pool.name, tier.name, offer.name)))
        ]
        told = f"{where}: {needed}, which could not be launched lately; or other offers"
        return Help(text=told, at_ms=min(until, default=None))
    if Reason.LIMIT_REACHED in obstacles:
        node_count = fleet.index.nodes_by_tier.count(where)
        told = f"a node_count_max of {node_count + machine_count} (it has {node_count}"
        return Help(text=f"{where}: {told} of {tier.node_count_max} machines)")
    reasons = [reason for reason in obstacles if reason is not None]
    told = " ".join(SENTENCES[reasons[0]]) if reasons else "a machine is to be had."
    return Help(text=f"{where}: {needed}. {told}")


def _per_machine(demand: Demand, offer: Offer) -> int:
    """Return how many replicas of one demand a new machine holds."""
    room, held = whole_room(offer.shape), 0
    while held < _PER_MACHINE_MAX and shortage(demand.requirement, room) is None:
        room = less(room, Hold(demand.requirement))
        held += 1
    return max(held, 1)
