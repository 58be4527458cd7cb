"""Growth: the one place where a node is asked for.

Placing asks because a replica fits nowhere, sizing because warm nodes, spares or waiting leases
are short. Both ask here, so that the bounds on machines hold however many ask within a step: the
new record counts from the moment it is written (G-012), long before a machine exists.
"""

from __future__ import annotations

from typing import Final

from hostler.base.ids import NodeId
from hostler.core import aging, limits
from hostler.core.budgets import hold_back, node_refusal, reserve_ms_of
from hostler.core.events import EventKind
from hostler.core.keys import tier_key
from hostler.core.provider_pauses import paused_until_ms
from hostler.core.sizing_targets import elastic_count, sizes_of
from hostler.core.slots import misfit
from hostler.core.txn import Txn
from hostler.core.uses import offer_key
from hostler.core.versions import version_of
from hostler.model import Node, Pool, ProviderState
from hostler.model.node import NodePhase, Origin
from hostler.model.pool import Band, Offer, SpareTarget, Tier, TierKind
from hostler.model.reason import Reason
from hostler.model.shape import NOTHING_REQUIRED, Requirement

_SOON: Final = (Reason.LAUNCHES_IN_FLIGHT, Reason.LAUNCH_RATE)
"""What would serve cheaper comes in a moment, so nothing dearer is bought meanwhile."""


def request_node(
    txn: Txn,
    pool: Pool,
    tier: Tier,
    offer: Offer,
    *,
    is_spare: bool = False,
    spare_band: Band | None = None,
) -> Node | Reason:
    """Ask for one more node of an offer; provisioning sends the launch in the same step.

    Returns:
        The new node, REQUESTED and counted; or the reason why none may be asked for now.
    """
    obstacle = growth_obstacle(txn, pool, tier, offer)
    if obstacle is not None:
        return obstacle
    node = txn.put(
        Node(
            node_id=NodeId(txn.mint("n")),
            pool=pool.name,
            tier=tier.name,
            provider=tier.provider,
            offer=offer.name,
            origin=Origin.LAUNCHED,
            zone=tier.zone,
            reliability=tier.reliability_of(offer),
            price_microusd_per_hour=offer.price_microusd_per_hour,
            shape=offer.shape,
            provided=offer.provided,
            has_agent=tier.has_agents,
            phase=NodePhase.REQUESTED,
            phase_since_at_ms=txn.now_ms,
            created_at_ms=txn.now_ms,
            boot_ms=tier.boot_ms,
            health_since_at_ms=txn.now_ms,
            is_spare=is_spare,
            spare_band=spare_band,
            slot_count=pool.slot_count,
            reserve_ms=reserve_ms_of(pool, tier),
            version=version_of(tier, offer),
        )
    )
    if pool.age_ms_max is not None:
        node = txn.change(node, **aging.times_of(pool, node.node_id, node.created_at_ms))
    _count_launch(txn, pool, tier)
    txn.emit(
        EventKind.NODE_REQUESTED,
        {"node": node.node_id, "pool": pool.name},
        tier=tier.name,
        offer=offer.name,
        is_spare=is_spare,
    )
    return node


def growth_obstacle(txn: Txn, pool: Pool, tier: Tier, offer: Offer) -> Reason | None:
    """Return why no node of this offer may be asked for now, or `None` when one may.

    Whatever bounds growth is asked here, and so holds for all who grow: counts, and money.
    """
    index = txn.fleet.index
    if not pool.is_enabled:
        return Reason.POOL_DISABLED
    if tier.kind is not TierKind.ELASTIC:
        return Reason.NO_CAPACITY
    if _is_at_limit(txn, pool, tier, offer):
        return Reason.LIMIT_REACHED
    if is_stopped(txn, pool, tier):
        return Reason.GROWTH_STOPPED
    if is_cooling_down(txn, pool, tier, offer):
        return Reason.OFFER_COOLING_DOWN
    if paused_until_ms(txn.fleet, tier.provider) is not None:
        return Reason.PROVIDER_PAUSED
    requested_count = index.nodes_by_pool_phase.count(f"{pool.name}/{NodePhase.REQUESTED.value}")
    if requested_count >= pool.launch_count_max:
        return Reason.LAUNCHES_IN_FLIGHT
    obstacle = _provider_obstacle(txn, tier.provider)
    if obstacle is not None:
        return obstacle
    refusal = node_refusal(txn.fleet, pool, tier, offer)
    if refusal is None:
        return None
    hold_back(txn, refusal)
    return refusal.reason


def _provider_obstacle(txn: Txn, provider: str) -> Reason | None:
    """Return why a provider is asked for nothing more now, by the limits that it was given."""
    settings = txn.fleet.settings
    bounds = None if settings is None else settings.provider_limits(provider)
    if bounds is None:
        return None
    launching_count = txn.fleet.index.nodes_launching.count(provider)
    if bounds.launch_count_max is not None and launching_count >= bounds.launch_count_max:
        return Reason.LAUNCHES_IN_FLIGHT
    state = txn.fleet.providers.get(provider)
    is_early = state is not None and (state.launch_next_at_ms or 0) > txn.now_ms
    return Reason.LAUNCH_RATE if bounds.launches_per_minute_max is not None and is_early else None


def _count_launch(txn: Txn, pool: Pool, tier: Tier) -> None:
    """Let the next launch at this provider, or the next trial in this tier, come later."""
    breaker = txn.fleet.breakers.get(tier_key(pool.name, tier.name))
    if breaker is not None and breaker.stopped_at_ms is not None:
        txn.change(breaker, trial_at_ms=txn.now_ms + limits.BOOT_TRIAL_MS)
    settings = txn.fleet.settings
    bounds = None if settings is None else settings.provider_limits(tier.provider)
    if bounds is None or bounds.launches_per_minute_max is None:
        return
    state = txn.fleet.providers.get(tier.provider) or txn.put(
        ProviderState(name=tier.provider, next_list_at_ms=txn.now_ms)
    )
    apart_ms = -(-60_000 // bounds.launches_per_minute_max)
    txn.change(state, launch_next_at_ms=txn.now_ms + apart_ms)


def has_room(txn: Txn, pool: Pool) -> bool:
    """Say whether one more machine may exist somewhere in the pool."""
    return any(
        tier.kind is TierKind.ELASTIC and not _is_at_limit(txn, pool, tier, offer)
        for tier in pool.tiers
        for offer in tier.offers
    )


def is_stopped(txn: Txn, pool: Pool, tier: Tier) -> bool:
    """Say whether so many machines of the tier failed to boot that none is launched there now."""
    breaker = txn.fleet.breakers.get(tier_key(pool.name, tier.name))
    if breaker is None or breaker.stopped_at_ms is None:
        return False
    return breaker.trial_at_ms is None or breaker.trial_at_ms > txn.now_ms


def _is_at_limit(txn: Txn, pool: Pool, tier: Tier, offer: Offer) -> bool:
    """Say whether the tier, the offer or the pool has as many machines as it may have."""
    index = txn.fleet.index
    if index.nodes_by_tier.count(tier_key(pool.name, tier.name)) >= tier.node_count_max:
        return True
    if offer.node_count_max is not None:
        key = offer_key(pool.name, tier.name, offer.name)
        if index.nodes_by_offer.count(key) >= offer.node_count_max:
            return True
    count_max = sizes_of(txn.fleet, pool).node_count_max
    return count_max is not None and elastic_count(txn.fleet, pool) >= count_max


def is_cooling_down(txn: Txn, pool: Pool, tier: Tier, offer: Offer) -> bool:
    """Say whether the offer lately failed to launch and is still left alone."""
    cooldown = txn.fleet.cooldowns.get(offer_key(pool.name, tier.name, offer.name))
    return cooldown is not None and not cooldown.is_over and cooldown.until_at_ms > txn.now_ms


def request_for(
    txn: Txn, pool: Pool, requirement: Requirement, *, spare: SpareTarget | None = None
) -> Node | Reason:
    """Ask for a node whose every slot serves the requirement, from the first tier that can.

    An offer of which a node stands idle while somebody in line wants the like does not hold
    what it promises, and is passed over: more of it would not help.

    Returns:
        The new node; or the reason why the last tier and offer that would serve could bring none.
    """
    reason = Reason.NO_CAPACITY
    for tier in pool.tiers:
        if tier.kind is not TierKind.ELASTIC or (spare is not None and not tier.has_agents):
            continue  # spares are for jobs
        for offer in tier.offers:
            if misfit(offer.shape, pool.slot_count, requirement, tier.labels) is not None or (
                spare is None and is_promise_broken(txn, pool, tier, offer, requirement)
            ):
                reason = Reason.NO_OFFER_FITS if reason is Reason.NO_CAPACITY else reason
                continue
            found = request_node(
                txn,
                pool,
                tier,
                offer,
                is_spare=spare is not None,
                spare_band=None if spare is None else spare.band,
            )
            if isinstance(found, Node):
                return found
            reason = found
            if reason in _SOON:
                return reason
    return reason


def is_promise_broken(
    txn: Txn, pool: Pool, tier: Tier, offer: Offer, requirement: Requirement
) -> bool:
    """Say whether a node of this offer stands idle that cannot serve what the offer should."""
    if requirement == NOTHING_REQUIRED:
        return False
    idle = txn.fleet.index.nodes_idle_by_offer
    return idle.count(offer_key(pool.name, tier.name, offer.name)) > 0
