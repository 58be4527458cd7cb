"""Replacing: lets machines go that are out of date or old, no faster than others come.

Reads:    pools, nodes, sizes.
Writes:   nodes (when they age out, why another is to take their place, why they go).
Sends:    nothing (sizing asks for others, retirement stops).
Keeps:    INV-ROLL-1 (what is as its pool wants it is not replaced).
Waits on: Reason.REPLACING.

A node is out of date when its tier or offer makes other machines now than it was made by, and it is
up to date again when the change is taken back. Idle ones go, the longest idle first, while the
floors lack no more than the rollout allows; sizing keeps a few more than the floors as long as some
are left. So a rollout whose new machines do not boot comes to a halt by itself, with at most
`unavailable_count_max` machines fewer. What is held is left alone until it is released; where
several leases share a node, a few at a time are closed to new ones. Nothing moves an allocation.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from hostler.core import aging
from hostler.core.growth import has_room
from hostler.core.sizing_targets import idle_floor
from hostler.core.txn import Txn
from hostler.core.uses import Replaceable, Use, replaceable_key, replaceable_of, use_key
from hostler.core.versions import version_of
from hostler.model import Node, Pool, Sizes
from hostler.model.node import NodePhase, Origin, RetireReason
from hostler.model.pool import TierKind
from hostler.model.reason import Reason

READS: Final = (Pool, Node, Sizes)

_THERE: Final = (NodePhase.READY, NodePhase.DRAINING)
_OVER: Final = (NodePhase.STOPPING, NodePhase.RETIRED)


def reconcile(txn: Txn) -> None:
    """Say of each node whether it is to be replaced, then go on where something has changed."""
    fleet = txn.fleet
    names = dict.fromkeys(txn.changed_keys(Sizes))
    for name in txn.changed_keys(Pool):
        names[name] = None
        pool = fleet.pools.get(name)
        if pool is not None:
            _judge_all(txn, pool)
    others: dict[str, None] = {}
    for node in txn.changed(Node):
        if node.ages_out_at_ms is not None:
            node = _judge_age(txn, node)  # noqa: PLW2901  # the same node, as it is now
        (others if node.replace_reason is None else names)[node.pool] = None
    for name in others:
        # Whatever becomes of any node, an idle one more or less, may let one that waits go.
        if name not in names and _count(txn, name):
            names[name] = None
    for name in names:
        pool = fleet.pools.get(name)
        if pool is not None and pool.is_enabled:
            _roll(txn, pool)


# -- who is to be replaced -------------------------------------------------------------------


def _judge_all(txn: Txn, pool: Pool) -> None:
    """Compare every node of a pool with what the pool makes now."""
    versions = {
        (tier.name, offer.name): version_of(tier, offer)
        for tier in pool.tiers
        if tier.kind is TierKind.ELASTIC
        for offer in tier.offers
    }
    tiers = {tier.name: tier for tier in pool.tiers}
    for key in txn.fleet.index.nodes_by_pool.keys(pool.name):
        node = txn.fleet.nodes[key]
        if node.origin is not Origin.LAUNCHED or node.phase in _OVER:
            continue
        reason = None
        if node.tier not in tiers:
            reason = RetireReason.SURPLUS
        elif node.version and node.version != versions.get((node.tier, node.offer)):
            reason = RetireReason.OUTDATED
        times = aging.times_of(pool, node.node_id, node.created_at_ms)
        tier = tiers.get(node.tier)
        is_of_tier = tier is not None and tier.provider == node.provider
        has_agent = tier.has_agents if tier is not None and is_of_tier else node.has_agent
        node = txn.change(node, replace_reason=reason, is_aging=False, has_agent=has_agent, **times)
        _judge_age(txn, node)


def _judge_age(txn: Txn, node: Node) -> Node:
    if node.phase not in _THERE:
        return node
    soon_at_ms = aging.replace_at_ms(node)
    if node.replace_reason is None and soon_at_ms is not None and soon_at_ms <= txn.now_ms:
        node = txn.change(node, replace_reason=RetireReason.AGED)
    if node.leases_until_at_ms is not None and node.leases_until_at_ms <= txn.now_ms:
        return _judge_aging(txn, node)
    is_too_old = node.ages_out_at_ms is not None and node.ages_out_at_ms <= txn.now_ms
    if is_too_old and node.retire_reason is None and replaceable_of(node) is not None:
        return txn.change(node, retire_reason=node.replace_reason)
    return node


def _judge_aging(txn: Txn, node: Node) -> Node:
    """Let no lease begin that might have to end because of the node's age.

    One that holds nothing is of no more use.
    """
    if not node.is_aging:
        node = txn.change(node, is_aging=True)
    is_leased = node.phase is NodePhase.READY and node.lease_count > 0
    is_too_old = node.ages_out_at_ms is not None and node.ages_out_at_ms <= txn.now_ms
    is_due = (is_leased and is_too_old) or (node.takes_work and not node.lease_count)
    if is_due and not node.allocation_count and not node.cleaning_count:
        return txn.change(node, retire_reason=node.retire_reason or node.replace_reason)
    return node


# -- who goes now ----------------------------------------------------------------------------


def _roll(txn: Txn, pool: Pool) -> None:
    line = txn.fleet.index.nodes_to_replace
    for node in list(_standing(txn, pool, Replaceable.INCOMING)):
        txn.change(node, retire_reason=node.replace_reason)
    left_count = line.count(replaceable_key(pool.name, Replaceable.IDLE))
    for _ in range(min(left_count, _idle_room(txn, pool))):
        _retire_first(txn, pool, Replaceable.IDLE)
    _close_shared(txn, pool)
    left_count = _count(txn, pool.name)
    if left_count:
        txn.note(pool.name, Reason.REPLACING, f"{left_count} to be replaced")
    else:
        txn.clear_note(pool.name)


def _count(txn: Txn, pool: str) -> int:
    """Return how many of the pool's nodes are to be replaced."""
    line = txn.fleet.index.nodes_to_replace
    return sum(line.count(replaceable_key(pool, how)) for how in Replaceable)


def _standing(txn: Txn, pool: Pool, how: Replaceable) -> Iterator[Node]:
    for key in txn.fleet.index.nodes_to_replace.keys(replaceable_key(pool.name, how)):
        yield txn.fleet.nodes[key]


def _retire_first(txn: Txn, pool: Pool, how: Replaceable) -> None:
    key = txn.fleet.index.nodes_to_replace.first(replaceable_key(pool.name, how))
    node = txn.fleet.nodes.get(key)
    if node is not None:
        txn.change(node, retire_reason=node.replace_reason)


def _idle_room(txn: Txn, pool: Pool) -> int:
    """Return how many idle nodes may go: what the floors, less what they may lack, can spare.

    A pool that is full has no room for one more, so there one has to go before another can come.
    """
    counts = txn.fleet.index.nodes_by_use
    lacking_max = pool.rollout.unavailable_count_max
    if lacking_max == 0 and not has_room(txn, pool):
        lacking_max = 1
    idle_count = sum(counts.count(use_key(pool.name, use)) for use in (Use.WARM, Use.SPARE))
    floor = idle_floor(txn.fleet, pool) + pool.spare_count
    return max(0, idle_count - max(0, floor - lacking_max))


def _close_shared(txn: Txn, pool: Pool) -> None:
    """Close nodes that several leases share: they might never be idle by themselves."""
    line = txn.fleet.index.nodes_to_replace
    leased_count = line.count(replaceable_key(pool.name, Replaceable.LEASED))
    if pool.slot_count == 1 or not leased_count:
        return
    at_once = max(1, pool.rollout.surge_count_max + pool.rollout.unavailable_count_max)
    room = at_once - line.count(replaceable_key(pool.name, Replaceable.CLOSING))
    for _ in range(min(leased_count, room)):
        _retire_first(txn, pool, Replaceable.LEASED)
