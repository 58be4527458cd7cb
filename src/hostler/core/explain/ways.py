"""Ways: the smallest changes after which a node would do for a replica.

Nothing here knows what a reason is about. Single changes that make sense for this node and this
replica are proposed, each is tried on the fleet, and whatever makes a reason go away without
bringing another is a remedy for it; so a new check is covered by the proposals that there are.
Combinations are tried before they are told.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations, islice, product
from typing import Final

import msgspec

from hostler.core.explain.alterations import Alteration
from hostler.core.explain.amounts import amount_text
from hostler.core.explain.answer import Change, Way
from hostler.core.explain.strictness import required_rules
from hostler.core.explain.supposing import demand_in, supposing
from hostler.core.fleet import Fleet
from hostler.core.placement.demand import Demand
from hostler.core.placement.feasible import Place, refusals
from hostler.core.placement.places import hold_of, live_on
from hostler.core.placement.room import free_room, shortages, whole_room
from hostler.core.txn import Txn
from hostler.model import Allocation, Node, Replica
from hostler.model.allocation import AllocationPhase
from hostler.model.node import Health
from hostler.model.reason import Reason
from hostler.model.shape import WHOLE_MILLI, Requirement

WAYS_MAX: Final = 4
"""Ways that are told: more are no help to choose."""
_REMEDIES_MAX: Final = 3
"""Remedies of one reason that are combined with those of others."""
_COMBINED_MAX: Final = 64
"""Combinations that are tried; five reasons with a few remedies each stay below it."""
_FREED_TRIED_MAX: Final = 64
"""Allocations of one node that are tried one by one."""
_COMPANY_MAX: Final = 16
"""Allocations of the same bundle that are tried one by one."""
_PAIRED_MAX: Final = 12
"""Allocations that are tried two by two."""


def refusals_in(txn: Txn, replica_id: str, node_id: str) -> list[Reason]:
    """Return every reason why a replica may not have a node, where some facts may be supposed."""
    demand, node = demand_in(txn, replica_id), txn.fleet.nodes.get(node_id)
    if demand is None or node is None:
        return []
    found = list(_wrong_home(txn.fleet, demand, node))
    found += refusals(demand, txn.fleet.index.places.of(txn.fleet, node_id))
    return found


def _wrong_home(fleet: Fleet, demand: Demand, node: Node) -> Iterator[Reason]:
    if node.pool not in demand.pools:
        yield Reason.WRONG_POOL
        return
    pool = fleet.pools.get(node.pool)
    if pool is None or pool.tier(node.tier) is None:
        yield Reason.WRONG_TIER
    if pool is not None and not pool.is_enabled:
        yield Reason.POOL_DISABLED


def ways_of(
    fleet: Fleet,
    replica: Replica,
    node_id: str,
    given: Sequence[Alteration] = (),
    *,
    now_ms: int,
) -> tuple[Way, ...]:
    """Return the smallest changes after which a node would do, fewest first.

    None when nothing stands in the way, and none when something does that no single change mends.
    """
    search = _Search(fleet, replica, node_id, tuple(given), now_ms)
    with supposing(fleet, replica, given, now_ms=now_ms) as txn:
        reasons = refusals_in(txn, replica.replica_id, node_id)
        proposed = list(_proposals(txn, replica, fleet.nodes[node_id])) if reasons else []
    remedies = search.remedies(reasons, proposed)
    if not reasons or not all(remedies):
        return ()
    found: dict[frozenset[str], Way] = {}
    for choice in islice(product(*remedies), _COMBINED_MAX):
        changes = {str(each.alteration): each for way in choice for each in way.changes}
        if frozenset(changes) not in found and not search.left(tuple(changes.values())):
            found[frozenset(changes)] = Way(changes=tuple(changes.values()))
    smallest = [way for names, way in found.items() if not any(other < names for other in found)]
    return tuple(sorted(smallest, key=lambda way: len(way.changes))[:WAYS_MAX])


class _Search(msgspec.Struct, frozen=True):
    fleet: Fleet
    replica: Replica
    node_id: str
    given: tuple[Alteration, ...]
    now_ms: int

    def left(self, changes: Sequence[Change]) -> list[Reason]:
        """Return what would still stand in the way."""
        alterations = (*self.given, *(each.alteration for each in changes))
        with supposing(self.fleet, self.replica, alterations, now_ms=self.now_ms) as txn:
            return refusals_in(txn, self.replica.replica_id, self.node_id)

    def remedies(self, reasons: Sequence[Reason], proposed: Sequence[Way]) -> list[list[Way]]:
        """Return, for each reason, what makes it go away and brings no other."""
        found: dict[Reason, list[Way]] = {reason: [] for reason in reasons}
        for way in _distinct(proposed):
            left = self.left(way.changes)
            if not set(left) <= set(reasons):
                continue
            for reason in reasons:
                if reason not in left and len(found[reason]) < _REMEDIES_MAX:
                    found[reason].append(way)
        return list(found.values())


def _distinct(ways: Iterable[Way]) -> Iterable[Way]:
    """Leave out what has been proposed before, whatever the words."""
    found: dict[tuple[str, ...], Way] = {}
    for way in ways:
        found.setdefault(tuple(str(each.alteration) for each in way.changes), way)
    return found.values()


# -- what is proposed ----------------------------------------------------------------------------


def _way(name: str, value: object, text: str, until_at_ms: int | None = None) -> Way:
    alteration = Alteration(name, str(value))
    return Way(changes=(Change(alteration=alteration, text=text, until_at_ms=until_at_ms),))


def _proposals(txn: Txn, replica: Replica, node: Node) -> Iterator[Way]:
    demand = demand_in(txn, replica.replica_id)
    if demand is None:
        return
    place = txn.fleet.index.places.of(txn.fleet, node.node_id)
    yield from _about_node(node)
    yield from _about_bundle(txn, replica, node, demand)
    yield from _about_room(txn, node, demand, place)


def _about_node(node: Node) -> Iterator[Way]:
    name = node.node_id
    if node.cordon is not None or node.drain is not None:
        yield _way("uncordon", name, f"uncordon {name}")
    if node.health is not Health.LIVE:
        yield _way("heard", name, f"have the agent of {name} heard again")
    if node.is_spare:
        yield _way("ordinary", name, f"keep {name} as a spare no longer")
    if node.lease_count:
        leases = "its lease ends" if node.lease_count == 1 else f"its {node.lease_count} leases end"
        yield _way("unleased", name, f"wait until {leases}")


def _about_bundle(txn: Txn, replica: Replica, node: Node, demand: Demand) -> Iterator[Way]:
    avoided = [each.until_at_ms for each in replica.avoided if each.node_id == node.node_id]
    if avoided:
        text = f"wait until {replica.replica_id} avoids {node.node_id} no longer"
        yield _way("exclusions", "none", text, max(avoided) + 1)
    if node.pool not in demand.pools and node.pool in txn.fleet.pools:
        yield _way("pool", node.pool, f"name {node.pool} as a fallback pool of the bundle")
    bundle = txn.fleet.bundles.get(replica.bundle_id)
    for name in () if bundle is None else required_rules(bundle, replica.job):
        yield _way("prefer", name, f"make the bundle's rule about {name} preferred")
    if demand.is_reliable_required:
        yield _way("primary", "interruptible", "allow the bundle an interruptible primary")
    for allocation in _company(txn.fleet, replica):
        text = f"move {allocation.replica_id} from {allocation.node_id}"
        yield _way("without", allocation.allocation_id, text)


def _company(fleet: Fleet, replica: Replica) -> Iterator[Allocation]:
    """Give the bundle's allocations, which may be too near."""
    for key in fleet.index.allocations_by_bundle.keys(replica.bundle_id)[:_COMPANY_MAX]:
        allocation = fleet.allocations[key]
        if allocation.replica_id != replica.replica_id:
            yield allocation


def _about_room(txn: Txn, node: Node, demand: Demand, place: Place) -> Iterator[Way]:
    need = demand.requirement
    live = live_on(txn.fleet, node.node_id)
    if next(shortages(need, place.room), None) is None:
        # They take no room that it needs, but may be who it has to be apart from.
        for each in sorted(live, key=_by_worth)[:_PAIRED_MAX]:
            yield Way(changes=(_moved(each),))
        return
    for gone in _freeing(node, live, need):
        yield Way(changes=tuple(_moved(each) for each in gone))
    lower = tuple(_lowered(need, place))
    if lower:
        yield Way(changes=lower)
    for request in need.capabilities:
        yield _way(
            "add",
            f"{node.node_id}/{request.name}:{request.count}",
            f"give {node.node_id} {request.count} {request.name} as required",
        )


def _moved(allocation: Allocation) -> Change:
    told = f"stop or move {allocation.replica_id} ({allocation.band})"
    if allocation.phase is AllocationPhase.STOPPING:
        told = f"wait until {allocation.replica_id} has stopped there"
    return Change(alteration=Alteration("without", allocation.allocation_id), text=told)


def _freeing(
    node: Node, live: Sequence[Allocation], need: Requirement
) -> Iterator[tuple[Allocation, ...]]:
    """Give the smallest sets of allocations without which there is room; least urgent first."""
    if next(shortages(need, whole_room(node.shape)), None) is not None:
        return
    ordered = sorted(live, key=_by_worth)

    def is_enough(gone: Sequence[Allocation]) -> bool:
        rest = [hold_of(each) for each in live if each not in gone]
        return next(shortages(need, free_room(node.shape, rest)), None) is None

    for count, most in ((1, _FREED_TRIED_MAX), (2, _PAIRED_MAX)):
        tried = combinations(ordered[:most], count)
        found = list(islice((gone for gone in tried if is_enough(gone)), _REMEDIES_MAX))
        if found:
            yield from found
            return
    gone = list(ordered)
    for each in reversed(ordered):
        rest = [other for other in gone if other is not each]
        if is_enough(rest):
            gone = rest
    yield tuple(gone)


def _by_worth(allocation: Allocation) -> tuple[bool, int, int, int, int, str]:
    """Order: what is going anyway, then the least urgent band, then who takes least."""
    need = allocation.requirement
    return (
        allocation.phase is not AllocationPhase.STOPPING,
        -allocation.band.rank,
        need.capacity,
        need.cores_milli,
        need.memory_bytes,
        allocation.allocation_id,
    )


def _lowered(need: Requirement, place: Place) -> Iterator[Change]:
    """Give what of a requirement would have to be less; nothing of it can be lowered to nothing."""
    room = place.room
    for name, asked, free in (
        ("capacity", need.capacity, room.capacity),
        ("cores_milli", need.cores_milli, room.cores_milli),
        ("memory_bytes", need.memory_bytes, room.memory_bytes),
    ):
        if free is not None and 0 < free < asked:
            text = (
                f"lower what it needs from {amount_text(name, asked)} to {amount_text(name, free)}"
            )
            yield Change(alteration=Alteration(name, str(free)), text=text)
    for request in need.capabilities:
        free = sum(
            each.count
            for each in room.units or ()
            if each.name == request.name
            and each.milli >= request.milli
            and request.accepts(each.attributes)
        )
        if request.milli == WHOLE_MILLI and 0 < free < request.count:
            text = f"lower what it needs from {request.count} to {free} {request.name}"
            yield Change(alteration=Alteration("count", f"{request.name}:{free}"), text=text)
