"""Why a lease waits, told from the present state.

The record keeps the reason as of when the lease was last looked at, which for those far back in
line may be long ago. Whoever explains a lease to a person asks here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from hostler.core.slots import misfit
from hostler.model import Lease, Pool
from hostler.model.node import NodePhase
from hostler.model.pool import Offer, Tier, TierKind
from hostler.model.reason import Reason

if TYPE_CHECKING:
    from hostler.core.fleet import Fleet


class Why(NamedTuple):
    """A reason, and the number that would change it."""

    reason: Reason
    detail: str


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
    if lease.is_pinned:
        return Why(Reason.AFFINITY_WAIT, _why_not_there(fleet, lease))
    count_of = fleet.index.nodes_by_pool_phase.count
    starting_count = sum(
        count_of(f"{pool.name}/{phase.value}")
        for phase in (NodePhase.REQUESTED, NodePhase.STARTING)
    )
    if starting_count:
        return Why(Reason.MACHINE_STARTING, f"{starting_count} machines of the pool are starting")
    return _why_not_growing(fleet, pool, lease)


def _why_not_growing(fleet: Fleet, pool: Pool, lease: Lease) -> Why:
    full: list[str] = []
    cooling: list[str] = []
    for tier in pool.tiers:
        offers = [
            offer
            for offer in tier.offers
            if misfit(offer.shape, pool.slot_count, lease.requirement) is None
        ]
        if tier.kind is not TierKind.ELASTIC or not offers:
            continue
        node_count = fleet.index.nodes_by_tier.count(f"{pool.name}/{tier.name}")
        if node_count >= tier.node_count_max:
            full.append(
                f"tier {tier.name} has {node_count} machines (node_count_max {tier.node_count_max})"
            )
            continue
        until_at_ms = _cooling_until(fleet, pool, tier, offers)
        if until_at_ms is None:
            return Why(Reason.NO_CAPACITY, _in_use(fleet, pool))
        cooling.append(f"tier {tier.name} could launch nothing lately, until {until_at_ms}")
    if cooling:
        return Why(Reason.OFFER_COOLING_DOWN, "; ".join(cooling))
    if full:
        return Why(Reason.LIMIT_REACHED, "; ".join(full))
    return Why(Reason.NO_CAPACITY, f"{_in_use(fleet, pool)}, and no tier launches more")


def _why_not_there(fleet: Fleet, lease: Lease) -> str:
    """Say what keeps a lease from the one node that it waits for."""
    node = fleet.nodes.get(lease.affinity_node_id)
    if node is None:
        return f"node {lease.affinity_node_id} is not known"
    until = (
        "and it takes no other"
        if lease.is_affinity_required
        else f"until {lease.requested_at_ms + lease.affinity_wait_ms}, then it takes another"
    )
    if not node.takes_work:
        return f"node {node.node_id} takes no new work, {until}"
    return f"{node.lease_count} of {node.slot_count} slots of {node.node_id} are held, {until}"


def _cooling_until(fleet: Fleet, pool: Pool, tier: Tier, offers: Sequence[Offer]) -> int | None:
    """Return when the first of the offers may be tried again, or `None` if one may be now."""
    found = [fleet.cooldowns.get(f"{pool.name}/{tier.name}/{offer.name}") for offer in offers]
    untils = [each.until_at_ms for each in found if each and each.until_at_ms > fleet.now_ms]
    return min(untils) if len(untils) == len(offers) else None


def _in_use(fleet: Fleet, pool: Pool) -> str:
    ready_count = fleet.index.nodes_by_pool_phase.count(f"{pool.name}/{NodePhase.READY.value}")
    held_count = fleet.index.leases_held.count(pool.name)
    return f"no slot is free on {ready_count} ready nodes with {held_count} leases"
