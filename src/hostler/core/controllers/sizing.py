"""Sizing: asks for the machines that waiting leases, the warm floor and spares lack; lets go idle.

Reads:    pools, sizes, nodes, leases (the waiting line), cooldowns, breakers, providers, budgets.
Writes:   nodes (asks for new ones, designates spares, says why one is to go).
Sends:    nothing (provisioning launches, retirement stops).
Keeps:    INV-POOL-1 (neither pool nor tier grows above its maximum).
Waits on: Reason.LIMIT_REACHED, Reason.LAUNCHES_IN_FLIGHT, Reason.OFFER_COOLING_DOWN,
          Reason.GROWTH_STOPPED, Reason.PROVIDER_PAUSED, Reason.NO_OFFER_FITS, Reason.NO_CAPACITY,
          Reason.BUDGET_SPENT, Reason.BUDGET_IN_USE.

Per pool, and by counts only: what is on its way serves waiting leases first and the warm floor
next. Targets are floors of what is *idle*, whatever is held, and the same floors bound what may be
let go, so nothing is bought to be let go (G-27). Growing is done at once and letting go after
`idle_ms`: that is the hysteresis. While nodes are to be replaced, a few more than the floors are
kept, so that new ones are there before old ones go (`replacing`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from hostler.core import growth
from hostler.core.budgets import pools_about
from hostler.core.events import EventKind
from hostler.core.provider_pauses import pools_let_in, pools_of, pools_of_cooldown
from hostler.core.sizing_targets import idle_floor
from hostler.core.slots import misfit
from hostler.core.surplus import surpluses
from hostler.core.txn import Txn
from hostler.core.uses import (
    Replaceable,
    Use,
    offer_key,
    replaceable_key,
    spare_key,
    use_key,
    use_of,
)
from hostler.model import Breaker, Budget, Cooldown, Lease, Node, Pool, ProviderState, Sizes
from hostler.model.node import NodePhase, Origin, RetireReason
from hostler.model.pool import Band, Offer, SpareTarget, Tier
from hostler.model.reason import Reason
from hostler.model.shape import NOTHING_REQUIRED, Requirement

READS: Final = (Pool, Sizes, Node, Lease, Cooldown, Breaker, ProviderState, Budget)


def reconcile(txn: Txn) -> None:
    """Size every pool for which something has changed."""
    fleet = txn.fleet
    nodes = txn.changed(Node)
    names = dict.fromkeys(node.pool for node in nodes)
    names.update(dict.fromkeys(lease.pool for lease in txn.changed(Lease)))
    for key in (*txn.changed_keys(Cooldown), *txn.changed_keys(Breaker)):
        names.update(dict.fromkeys(pools_of_cooldown(fleet, key)))
    names.update(dict.fromkeys(txn.changed_keys(Sizes)))
    names.update(dict.fromkeys(pools_let_in(fleet, nodes, txn.now_ms)))
    for provider in txn.changed_keys(ProviderState):
        names.update(dict.fromkeys(pools_of(fleet, provider)))
    names.update(dict.fromkeys(pools_about(fleet, txn.changed_keys(Budget))))
    for node in nodes:
        _let_go_unwanted(txn, node)
    for name in txn.changed_keys(Pool):
        names[name] = None
        for key in fleet.index.nodes_by_pool.keys(name):
            _let_go_unwanted(txn, fleet.nodes[key])
    for name in names:
        pool = fleet.pools.get(name)
        if pool is not None and pool.is_enabled:
            _size(txn, pool)


def _let_go_unwanted(txn: Txn, node: Node) -> None:
    """Let a machine of ours go that its pool has no place for any more, once nothing is on it."""
    if node.is_held or node.retire_reason is not None or node.origin is not Origin.LAUNCHED:
        return
    if node.phase in (NodePhase.STOPPING, NodePhase.RETIRED):
        return
    pool = txn.fleet.pools.get(node.pool)
    if pool is None or not pool.is_enabled:
        txn.change(node, retire_reason=RetireReason.POOL_DISABLED)
    elif pool.tier(node.tier) is None and use_of(node) is None:
        txn.change(node, retire_reason=RetireReason.SURPLUS)  # what may be used is replaced


def _size(txn: Txn, pool: Pool) -> None:
    _let_go_surplus(txn, pool)
    obstacles = [
        _serve_line(txn, pool),
        _keep_spares(txn, pool),
        _keep_warm(txn, pool),
    ]
    _let_go_idle(txn, pool)
    reason = next((each for each in obstacles if each is not None), None)
    if reason is None:
        txn.clear_note(pool.name)
    else:
        txn.note(pool.name, reason, "it lacks machines and cannot ask for more now")


def _count(txn: Txn, pool: Pool, use: Use) -> int:
    return txn.fleet.index.nodes_by_use.count(use_key(pool.name, use))


# -- growing ---------------------------------------------------------------------------------


def _serve_line(txn: Txn, pool: Pool) -> Reason | None:
    """Ask for what waiting leases lack beyond what is on its way to them."""
    obstacle = None
    claimed: dict[str, int] = {}
    for requirement, wanted_count in txn.fleet.index.leases_waiting.demand(pool.name):
        lacking = -(-wanted_count // pool.slot_count)
        lacking -= _claim(txn, pool, requirement, lacking, claimed)
        while lacking > 0:
            asked = growth.request_for(txn, pool, requirement)
            if isinstance(asked, Reason):
                obstacle = obstacle or asked
                break
            key = offer_key(pool.name, asked.tier, asked.offer)
            claimed[key] = claimed.get(key, 0) + 1
            lacking -= 1
    return obstacle


def _claim(
    txn: Txn, pool: Pool, requirement: Requirement, count: int, claimed: dict[str, int]
) -> int:
    """Count how many of the nodes on their way will serve, and let nobody else count on them."""
    left = count
    for tier, offer in _offers(pool):
        if left <= 0 or misfit(offer.shape, pool.slot_count, requirement, tier.labels) is not None:
            continue
        key = offer_key(pool.name, tier.name, offer.name)
        taken = min(left, txn.fleet.index.nodes_incoming.count(key) - claimed.get(key, 0))
        claimed[key] = claimed.get(key, 0) + taken
        left -= taken
    return count - left


def _offers(pool: Pool) -> Iterator[tuple[Tier, Offer]]:
    for tier in pool.tiers:
        for offer in tier.offers:
            yield tier, offer


def _keep_warm(txn: Txn, pool: Pool) -> Reason | None:
    """Ask for what the warm floor lacks, beyond what is on its way to nobody in line."""
    floor = idle_floor(txn.fleet, pool) + _surge(txn, pool)
    if not floor:
        return None
    line_count = sum(count for _, count in txn.fleet.index.leases_waiting.demand(pool.name))
    unclaimed = _count(txn, pool, Use.INCOMING) - -(-line_count // pool.slot_count)
    lacking = floor - _count(txn, pool, Use.WARM) - max(0, unclaimed)
    while lacking > 0:
        asked = growth.request_for(txn, pool, NOTHING_REQUIRED)
        if isinstance(asked, Reason):
            return asked
        lacking -= 1
    return None


def _surge(txn: Txn, pool: Pool) -> int:
    """Return how many more than the floor there may be while idle nodes are to be replaced."""
    old_count = txn.fleet.index.nodes_to_replace.count(replaceable_key(pool.name, Replaceable.IDLE))
    return min(old_count, pool.rollout.surge_count_max)


# -- spares ----------------------------------------------------------------------------------


def _keep_spares(txn: Txn, pool: Pool) -> Reason | None:
    """Keep as many spares of each band as the pool wants, gold's before silver's."""
    if not pool.spares and not txn.fleet.index.nodes_spare.count(pool.name):
        return None
    _release_spares(txn, pool)
    obstacle = None
    for target in pool.spares:
        obstacle = _fill(txn, pool, target) or obstacle
    return obstacle


def _fill(txn: Txn, pool: Pool, target: SpareTarget) -> Reason | None:
    """Bring the spares of a band up to their target: idle nodes above the warm floor first."""
    lacking = target.count - _spare_count(txn, pool, target.band)
    if lacking <= 0:
        return None
    above_floor = _count(txn, pool, Use.WARM) - idle_floor(txn.fleet, pool)
    if above_floor > 0:
        lacking -= _designate(txn, pool, target, min(lacking, above_floor))
    while lacking > 0:
        asked = growth.request_for(txn, pool, NOTHING_REQUIRED, spare=target)
        if isinstance(asked, Reason):
            return asked
        lacking -= 1
    return None


def _spare_count(txn: Txn, pool: Pool, band: Band | None) -> int:
    return txn.fleet.index.nodes_spare_for.count(spare_key(pool.name, band))


def _spares_of(txn: Txn, pool: Pool, band: Band | None) -> list[Node]:
    """Return the spares of a band, those that would be the next to be ordinary nodes first.

    Those not there yet, then the oldest that we pay: it would be the next to be replaced. What is
    our own costs nothing and comes last.
    """
    spares = _of_use(txn, pool, Use.INCOMING_SPARE)[::-1]
    spares += sorted(
        _of_use(txn, pool, Use.SPARE),
        key=lambda node: (node.origin is not Origin.LAUNCHED, node.created_at_ms, node.node_id),
    )
    return [node for node in spares if node.spare_band is band]


def _designate(txn: Txn, pool: Pool, target: SpareTarget, count: int) -> int:
    """Make idle nodes spares: machines that cost nothing more first, then the longest idle."""
    fitting = [node for node in _of_use(txn, pool, Use.WARM) if node.has_agent]
    chosen = sorted(fitting, key=_spare_order)[:count]
    for node in chosen:
        txn.change(node, is_spare=True, spare_band=target.band)
        txn.emit(EventKind.SPARE_DESIGNATED, {"node": node.node_id, "pool": pool.name})
    return len(chosen)


def _spare_order(node: Node) -> tuple[bool, int, str]:
    return node.origin is Origin.LAUNCHED, node.idle_since_at_ms or 0, node.node_id


def _release_spares(txn: Txn, pool: Pool) -> None:
    """Give what a band has too many of to one that lacks some, or let it be ordinary."""
    wanted = {target.band: target.count for target in pool.spares}
    excess = {
        band: count
        for band in (*Band, None)
        if (count := _spare_count(txn, pool, band) - wanted.get(band, 0)) > 0
    }
    if not excess:
        return
    lacking = [
        target.band
        for target in pool.spares
        for _ in range(target.count - _spare_count(txn, pool, target.band))
    ]
    for band, count in excess.items():
        for node in reversed(_spares_of(txn, pool, band)[:count]):  # what is there goes first
            is_kept = bool(lacking)
            other = lacking.pop(0) if lacking else None
            txn.change(node, is_spare=is_kept, spare_band=other)


def _of_use(txn: Txn, pool: Pool, use: Use) -> list[Node]:
    keys = txn.fleet.index.nodes_by_use.keys(use_key(pool.name, use))
    return [txn.fleet.nodes[key] for key in keys]


# -- letting go ------------------------------------------------------------------------------


def _let_go_idle(txn: Txn, pool: Pool) -> None:
    """Let the longest idle go while more than the warm floor is there."""
    above_floor = _count(txn, pool, Use.WARM) - idle_floor(txn.fleet, pool)
    while above_floor > 0:
        node = txn.fleet.nodes.get(txn.fleet.index.nodes_warm_launched.first(pool.name))
        if node is None or (node.idle_since_at_ms or 0) + pool.idle_ms > txn.now_ms:
            return
        txn.change(node, retire_reason=RetireReason.IDLE)
        above_floor -= 1


def _let_go_surplus(txn: Txn, pool: Pool) -> None:
    """Let idle nodes go of a pool or tier that has more than it may have now."""
    for tiers, surplus in surpluses(txn.fleet, pool):
        idle = [node for tier in tiers for node in _idle_of_tier(txn, pool, tier)]
        for node in idle[:surplus]:
            txn.change(node, retire_reason=RetireReason.SURPLUS)


def _idle_of_tier(txn: Txn, pool: Pool, tier: Tier) -> Sequence[Node]:
    """Return what may go at once: not there yet, idle, spare; the newest of each first."""
    uses = (Use.INCOMING, Use.WARM, Use.INCOMING_SPARE, Use.SPARE)
    return [
        node
        for use in uses
        for node in reversed(_of_use(txn, pool, use))
        if node.tier == tier.name and node.origin is Origin.LAUNCHED and use_of(node) is use
    ]
