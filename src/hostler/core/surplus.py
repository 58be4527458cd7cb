"""Surplus: machines of a pool or tier beyond what it may have now, as after a lower maximum."""

from __future__ import annotations

from collections.abc import Iterator

from hostler.core.fleet import Fleet
from hostler.core.keys import tier_key
from hostler.core.sizing_targets import elastic_count, sizes_of
from hostler.core.uses import offer_key
from hostler.model import Pool
from hostler.model.pool import Tier, TierKind


def surpluses(fleet: Fleet, pool: Pool) -> Iterator[tuple[tuple[Tier, ...], int]]:
    """Yield tiers, and how many machines they have together beyond what they may.

    What is on its way out counts no more. The pool as a whole comes first, its last tier foremost.
    """
    index = fleet.index
    count_max = sizes_of(fleet, pool).node_count_max
    tiers = tuple(tier for tier in pool.tiers if tier.kind is TierKind.ELASTIC)
    if count_max is not None:
        leaving = sum(index.nodes_leaving.count(tier_key(pool.name, tier.name)) for tier in tiers)
        surplus = elastic_count(fleet, pool) - leaving - count_max
        if surplus > 0:
            yield tiers[::-1], surplus
    for tier in tiers:
        key = tier_key(pool.name, tier.name)
        surplus = index.nodes_by_tier.count(key) - tier.node_count_max
        if surplus > 0:
            surplus -= index.nodes_leaving.count(key)
        if surplus > 0:
            yield (tier,), surplus


def has_idle_surplus(fleet: Fleet, pool: Pool) -> bool:
    """Say whether a machine beyond what the pool may have stands idle, to be let go at once."""
    idle = fleet.index.nodes_idle_by_offer
    return any(
        idle.count(offer_key(pool.name, tier.name, offer.name))
        for tiers, _ in surpluses(fleet, pool)
        for tier in tiers
        for offer in tier.offers
    )
