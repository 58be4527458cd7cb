"""Collisions: when the timetable of a bundle asks for more than its pool will have.

Counted over a year ahead, so that both clock changes are in it, in sums over the whole pool: what
fits in sum may still not fit on any one node, which placing says when it comes to it. What touches
does not collide.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import msgspec

from hostler.core.calendar import DAY_MS, Span
from hostler.core.keys import tier_key
from hostler.core.timetable import FOR_EVER_MS, spans_of
from hostler.model import Bundle, Pool
from hostler.model.bundle import BundlePhase
from hostler.model.pool import TierKind
from hostler.model.shape import WHOLE_MILLI, Shape

if TYPE_CHECKING:
    from hostler.core.fleet import Fleet

HORIZON_MS: Final = 370 * DAY_MS


class Collision(msgspec.Struct, frozen=True, kw_only=True):
    """The first time that a resource of a pool is not enough."""

    pool: str
    resource: str
    """`capacity`, `cores_milli`, `memory_bytes`, or a capability's name (in thousandths)."""
    from_at_ms: int
    needed: int
    available: int
    bundles: tuple[str, ...]
    """The others that want of it at that time."""


def collisions_of(fleet: Fleet, bundle: Bundle) -> tuple[Collision, ...]:
    """Return the first collision of each resource that a bundle's timetable runs into."""
    pool = fleet.pools.get(bundle.pool)
    if bundle.timetable is None or pool is None:
        return ()
    supply, own = _supply(fleet, pool), _need(bundle)
    found = {}
    others = [
        each
        for each in fleet.bundles.in_order()
        if each.pool == bundle.pool
        and each.bundle_id != bundle.bundle_id
        and each.phase is BundlePhase.ACTIVE
    ]
    for resource, needed in sorted(own.items()):
        first = _first(fleet, bundle, others, resource, supply.get(resource, 0))
        if needed and first is not None:
            at_ms, total, names = first
            found[resource] = Collision(
                pool=pool.name,
                resource=resource,
                from_at_ms=at_ms,
                needed=total,
                available=supply.get(resource, 0),
                bundles=names,
            )
    return tuple(found.values())


def _first(
    fleet: Fleet, bundle: Bundle, others: list[Bundle], resource: str, available: int
) -> tuple[int, int, tuple[str, ...]] | None:
    """Sweep over the beginnings and ends of all who want a resource, ends first."""
    edges: list[tuple[int, int, str]] = []
    needs: dict[str, int] = {each.bundle_id: _need(each)[resource] for each in (bundle, *others)}
    for each in (bundle, *others):
        if needs[each.bundle_id]:
            for span in _spans(fleet, each):
                edges.append((span.from_at_ms, 1, each.bundle_id))
                edges.append((span.to_at_ms, 0, each.bundle_id))
    on: dict[str, int] = {}
    for at_ms, is_begin, bundle_id in sorted(edges):
        if not is_begin:
            on.pop(bundle_id, None)
            continue
        on[bundle_id] = needs[bundle_id]
        total = sum(on.values())
        if bundle.bundle_id in on and total > available:
            others_on = tuple(sorted(key for key in on if key != bundle.bundle_id))
            return max(at_ms, fleet.now_ms), total, others_on
    return None


def _spans(fleet: Fleet, bundle: Bundle) -> list[Span]:
    if bundle.timetable is None:
        return [Span(0, FOR_EVER_MS)]
    return spans_of(fleet, bundle.timetable, fleet.now_ms, fleet.now_ms + HORIZON_MS)


def _need(bundle: Bundle) -> Counter[str]:
    """Sum up what all copies of a bundle's jobs need that run by themselves."""
    need: Counter[str] = Counter()
    for job in bundle.jobs:
        if job.is_dormant:
            continue
        asked, count = job.requirement, bundle.replica_count
        need["capacity"] += asked.capacity * count
        need["cores_milli"] += asked.cores_milli * count
        need["memory_bytes"] += asked.memory_bytes * count
        for each in asked.capabilities:
            need[each.name] += each.count * each.milli * count
    return need


def _supply(fleet: Fleet, pool: Pool) -> Counter[str]:
    """Sum up what a pool's nodes have, and those that it may still launch."""
    supply: Counter[str] = Counter()
    for key in fleet.index.nodes_by_pool.keys(pool.name):
        node = fleet.nodes[key]
        if node.cordon is None and node.retire_reason is None and node.has_agent:
            supply.update(dict(_parts(node.shape)))
    for tier in pool.tiers:
        if tier.kind is not TierKind.ELASTIC or not tier.offers or not tier.has_agents:
            continue
        left = tier.node_count_max - fleet.index.nodes_by_tier.count(tier_key(pool.name, tier.name))
        most: dict[str, int] = {}
        for offer in tier.offers:
            for name, amount in _parts(offer.shape):
                most[name] = max(most.get(name, 0), amount)
        supply.update({name: amount * max(0, left) for name, amount in most.items()})
    return supply


def _parts(shape: Shape) -> Iterator[tuple[str, int]]:
    yield "capacity", shape.capacity or 0
    yield "cores_milli", shape.cores_milli or 0
    yield "memory_bytes", shape.memory_bytes or 0
    for each in shape.capabilities or ():
        yield each.name, each.count * WHOLE_MILLI
