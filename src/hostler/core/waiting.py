"""Why a lease or a replica waits, told from the present state.

The record keeps the reason as of when it was last looked at, which for those far back in line may
be long ago. Whoever explains one to a person asks here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from hostler.base.units import format_instant
from hostler.core.budgets import lease_refusal, node_refusal
from hostler.core.keys import pending_line
from hostler.core.placement.feasible import PARTICULAR
from hostler.core.provider_pauses import paused_until_ms
from hostler.core.sizing_targets import elastic_count, sizes_of
from hostler.core.slot_choice import slot_for
from hostler.core.slots import misfit
from hostler.model import Lease, Pool, Replica
from hostler.model.node import NodePhase
from hostler.model.pool import Offer, Tier, TierKind
from hostler.model.reason import Reason
from hostler.model.replica import ReplicaPhase
from hostler.model.selector import selector_text

if TYPE_CHECKING:
    from hostler.core.fleet import Fleet


class Why(NamedTuple):
    """A reason, and the number that would change it."""

    reason: Reason
    detail: str


_OWN = frozenset({*PARTICULAR, Reason.BUNDLE_BROKEN, Reason.GANG_INCOMPLETE, Reason.ROOM_CLAIMED})
"""Reasons that a replica need not share with who stands before it in line."""


def why_in_line(fleet: Fleet, replica: Replica) -> Why | None:
    """Say what a replica waits for now: what who stands first in its line was last told."""
    if replica.reason is None:
        return None
    own = Why(replica.reason, replica.reason_detail)
    if replica.phase is not ReplicaPhase.PENDING or replica.reason in _OWN:
        return own
    key = fleet.index.replicas_pending.first(pending_line(replica))
    first = fleet.replicas.get(key)
    if first is None or first.reason is None or first.reason in _OWN:
        return own
    return Why(first.reason, first.reason_detail)


def why_waiting(fleet: Fleet, lease: Lease) -> Why:
    """Say what holds a waiting lease back now."""
    pool = fleet.pools.get(lease.pool)
    if pool is None or not pool.is_enabled:
        return Why(Reason.POOL_DISABLED, f"pool {lease.pool} takes no new work")
    cap = pool.lease_per_key_max
    held_count = fleet.index.leases_waiting.held_count(pool.name, lease.fairness_key)
    if cap is not None and held_count >= cap:
        return Why(
            Reason.KEY_CAP_REACHED,
            f"the leases of key {lease.fairness_key!r} are on {held_count} nodes"
            f" (lease_per_key_max {cap})",
        )
    free = slot_for(fleet, lease)
    refusal = None if free is None else lease_refusal(fleet, pool, lease, free)
    if refusal is not None:
        return Why(refusal.reason, refusal.detail)
    if lease.is_pinned:
        return Why(Reason.AFFINITY_WAIT, _why_not_there(fleet, lease))
    count_of = fleet.index.nodes_by_pool_phase.count
    starting_count = sum(
        count_of(f"{pool.name}/{phase.value}")
        for phase in (NodePhase.REQUESTED, NodePhase.STARTING)
    )
    if starting_count:
        return _why_paused(fleet, pool) or Why(
            Reason.MACHINE_STARTING, f"{starting_count} machines of the pool are starting"
        )
    return _why_not_growing(fleet, pool, lease)


def _why_paused(fleet: Fleet, pool: Pool) -> Why | None:
    """Say it when nothing that was asked for is made now: all is with providers left alone."""
    if fleet.index.nodes_by_pool_phase.count(f"{pool.name}/{NodePhase.STARTING.value}"):
        return None
    untils = {
        tier.provider: paused_until_ms(fleet, tier.provider) for tier in pool.tiers if tier.offers
    }
    if None in untils.values() or not untils:
        return None
    told = ", ".join(
        f"{name} is left alone until {format_instant(at_ms or 0)}" for name, at_ms in untils.items()
    )
    return Why(Reason.PROVIDER_PAUSED, told)


_SOONEST: Final = (
    Reason.PROVIDER_PAUSED,
    Reason.BUDGET_IN_USE,
    Reason.BUDGET_SPENT,
    Reason.OFFER_COOLING_DOWN,
    Reason.GROWTH_STOPPED,
    Reason.LIMIT_REACHED,
)
"""Of several reasons, the one that may pass first is told."""


def _why_not_growing(fleet: Fleet, pool: Pool, lease: Lease) -> Why:
    count_max = sizes_of(fleet, pool).node_count_max
    node_count = elastic_count(fleet, pool)
    if count_max is not None and node_count >= count_max:
        told = f"pool {pool.name} has {node_count} machines (node_count_max {count_max})"
        return Why(Reason.LIMIT_REACHED, told)
    found: list[Why] = []
    for tier in pool.tiers:
        offers = [
            offer
            for offer in tier.offers
            if misfit(offer.shape, pool.slot_count, lease.requirement, tier.labels) is None
        ]
        if tier.kind is not TierKind.ELASTIC or not offers:
            continue
        why = _why_not_here(fleet, pool, tier, offers)
        if why is None:
            return Why(Reason.NO_CAPACITY, _in_use(fleet, pool))
        found.append(why)
    for reason in _SOONEST:
        if told := "; ".join(why.detail for why in found if why.reason is reason):
            return Why(reason, told)
    if lease.requirement.node_labels and not found:
        told = f"no slot is free on a node with {selector_text(lease.requirement.node_labels)}"
        return Why(Reason.NODE_LABELS, f"{told}, and no tier launches such nodes")
    return Why(Reason.NO_CAPACITY, f"{_in_use(fleet, pool)}, and no tier launches more")


def _why_not_here(fleet: Fleet, pool: Pool, tier: Tier, offers: Sequence[Offer]) -> Why | None:
    """Say why none of the offers of a tier is launched now; `None` when one may be."""
    node_count = fleet.index.nodes_by_tier.count(f"{pool.name}/{tier.name}")
    if node_count >= tier.node_count_max:
        told = f"tier {tier.name} has {node_count} machines (node_count_max {tier.node_count_max})"
        return Why(Reason.LIMIT_REACHED, told)
    breaker = fleet.breakers.get(f"{pool.name}/{tier.name}")
    if breaker is not None and breaker.stopped_at_ms is not None:
        last = breaker.failures[-1]
        told = f"tier {tier.name}: {breaker.failure_count} boots failed in a row, the last of"
        return Why(Reason.GROWTH_STOPPED, f"{told} {last.node_id}: {last.code}: {last.message}")
    paused_ms = paused_until_ms(fleet, tier.provider)
    if paused_ms is not None:
        return Why(
            Reason.PROVIDER_PAUSED,
            f"{tier.provider} is left alone until {format_instant(paused_ms)}",
        )
    obstacles = [_obstacle(fleet, pool, tier, offer) for offer in offers]
    if None in obstacles:
        return None
    refusal = next((each for each in obstacles if isinstance(each, Why)), None)
    if refusal is not None:
        return refusal
    until_at_ms = min(each for each in obstacles if isinstance(each, int))
    told = f"tier {tier.name} could launch nothing lately, until {format_instant(until_at_ms)}"
    return Why(Reason.OFFER_COOLING_DOWN, told)


def _obstacle(fleet: Fleet, pool: Pool, tier: Tier, offer: Offer) -> Why | int | None:
    """Return why a budget admits no machine of an offer, or until when the offer is left alone."""
    refusal = node_refusal(fleet, pool, tier, offer)
    if refusal is not None:
        return Why(refusal.reason, refusal.detail)
    cooldown = fleet.cooldowns.get(f"{pool.name}/{tier.name}/{offer.name}")
    is_cooling = cooldown is not None and cooldown.until_at_ms > fleet.now_ms
    return cooldown.until_at_ms if cooldown is not None and is_cooling else None


def _why_not_there(fleet: Fleet, lease: Lease) -> str:
    """Say what keeps a lease from the one node that it waits for."""
    node = fleet.nodes.get(lease.affinity_node_id)
    if node is None:
        return f"node {lease.affinity_node_id} is not known"
    free_at = format_instant(lease.requested_at_ms + lease.affinity_wait_ms)
    until = (
        "and it takes no other"
        if lease.is_affinity_required
        else f"until {free_at}, then it takes another"
    )
    if not node.takes_work:
        return f"node {node.node_id} takes no new work, {until}"
    return f"{node.lease_count} of {node.slot_count} slots of {node.node_id} are held, {until}"


def _in_use(fleet: Fleet, pool: Pool) -> str:
    ready_count = fleet.index.nodes_by_pool_phase.count(f"{pool.name}/{NodePhase.READY.value}")
    held_count = fleet.index.leases_held.count(pool.name)
    return f"no slot is free on {ready_count} ready nodes with {held_count} leases"
