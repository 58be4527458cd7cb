"""Places: nodes as placing sees them, each looked at once and kept until it is written.

This follows every write like an index, backwards too, but computes little then: a write to a node,
or to an allocation on it, forgets what was known of that node, and whoever asks next has it
computed anew. So a decision pays for the nodes that changed since the last one. Free room is
carried along where that cannot go wrong, since a node may hold a hundred allocations.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from hostler.core.keys import tier_key
from hostler.core.placement.columns import Columns
from hostler.core.placement.feasible import Place, look_of, standing_of
from hostler.core.placement.mix import Mix, Profile
from hostler.core.placement.resilience import domains_of
from hostler.core.placement.room import Hold, Room, free_room, less, whole_room
from hostler.model import Allocation, Node, Pool, Replica
from hostler.model.node import NodePhase
from hostler.model.replica import Claim
from hostler.model.shape import Shape

if TYPE_CHECKING:
    from hostler.core.fleet import Fleet


UnitsOffered = tuple[dict[str, Profile], dict[str, int], Hashable]
"""By capability: the attributes of its units, where they are alike; thousandths of all units. And
the first once more, to be compared."""


class PlaceIndex:
    """What is known of nodes by now."""

    def __init__(self) -> None:
        self._places: dict[str, Place] = {}
        self._rooms: dict[str, Room] = {}
        self._offered: dict[str, UnitsOffered] = {}
        self._columns: dict[str, Columns] = {}
        self._held: dict[str, set[str]] = {}
        """Replicas for which room is held, by node."""
        self._claims: dict[str, int] = {}
        """How many replicas claim room on a node, where any does."""
        self.mix = Mix()

    def follow_node(self, key: str, old: Node | None, new: Node | None) -> None:
        """Forget a node that is written; tell the tiers that it leaves and enters."""
        self._places.pop(key, None)
        if old is None or new is None or not _is_same_shape(old.shape, new.shape):
            self._rooms.pop(key, None)
            self._offered.pop(key, None)
        left, entered = _tier_of(old), _tier_of(new)
        if left != entered and left in self._columns:
            self._columns[left].leave(key)
        if entered in self._columns and not self._columns[entered].touch(key):
            del self._columns[entered]

    def follow_pool(self, _key: str, old: Pool | None, new: Pool | None) -> None:
        """Forget everything when the labels of a tier change, which they seldom do."""
        if _labels_of(old) != _labels_of(new):
            self._places.clear()
            self._columns.clear()

    def follow_allocation(self, _key: str, old: Allocation | None, new: Allocation | None) -> None:
        """Forget the node of an allocation that is written, but for its room when that is clear."""
        self.mix.follow_allocation(_key, old, new)
        for allocation in (old, new):
            if allocation is not None:
                self._places.pop(allocation.node_id, None)
                if allocation.is_service:  # its node need not be written with it
                    for columns in self._columns.values():
                        columns.mark(allocation.node_id)
        was_live, is_live = old is not None and old.is_live, new is not None and new.is_live
        if old is not None and new is not None and was_live and is_live and _holds_same(old, new):
            return
        for allocation in (old, new):
            if allocation is not None and (was_live or is_live):
                room = self._rooms.pop(allocation.node_id, None)
                if (
                    room is not None
                    and old is None
                    and _is_clear(allocation)
                    and allocation.node_id not in self._claims
                ):
                    self._rooms[allocation.node_id] = less(room, hold_of(allocation))

    def follow_replica(self, key: str, old: Replica | None, new: Replica | None) -> None:
        """Forget the room of a node on which room begins or ends to be held for somebody."""
        left, entered = _claim_of(old), _claim_of(new)
        if left != entered:
            for claim, sign in ((left, -1), (entered, 1)):
                if claim is not None:
                    count = self._claims.pop(claim.node_id, 0) + sign
                    if count:
                        self._claims[claim.node_id] = count
                    self._forget_room(claim.node_id)
        moved_from = None if old is None else old.moving_to
        moved_to = None if new is None else new.moving_to
        if moved_from == moved_to:
            return
        if moved_from is not None:
            self._held[moved_from].discard(key)
            self._forget_room(moved_from)
        if moved_to is not None:
            self._held.setdefault(moved_to, set()).add(key)
            self._forget_room(moved_to)

    def _forget_room(self, node_id: str) -> None:
        self._rooms.pop(node_id, None)
        self._places.pop(node_id, None)
        for columns in self._columns.values():
            columns.mark(node_id)

    def in_tier(self, fleet: Fleet, pool: str, tier: str) -> Columns:
        """Return the nodes of a tier that are not retired, as columns that are up to date."""
        key = tier_key(pool, tier)
        columns = self._columns.get(key)
        if columns is None:
            columns = self._columns[key] = Columns(key, fleet.index.nodes_by_tier.keys(key))
        columns.refresh(lambda node_id: self.of(fleet, node_id))
        return columns

    def _held_on(self, fleet: Fleet, node_id: str) -> Iterator[Hold]:
        """Give the room that is held for those who are on their way."""
        for key in sorted(self._held.get(node_id, ())):
            replica = fleet.replicas[key]
            bundle = fleet.bundles.get(replica.bundle_id)
            job = None if bundle is None else bundle.job(replica.job)
            if job is not None:
                yield Hold(job.requirement)

    def of(self, fleet: Fleet, node_id: str) -> Place:
        """Return one node as placing sees it."""
        known = self._places.get(node_id)
        if known is not None:
            return known
        node = fleet.nodes[node_id]
        room = self._rooms.get(node_id)
        if room is None:
            room = self._rooms[node_id] = free_room(
                node.shape, [*holds_on(fleet, node), *self._held_on(fleet, node_id)]
            )
        offered = self._offered.get(node_id)
        if offered is None:
            offered = self._offered[node_id] = offer_of(node.shape)
        pool = fleet.pools.get(node.pool)
        tier = None if pool is None else pool.tier(node.tier)
        labels = None if tier is None else tier.labels
        place = self._places[node_id] = place_of(node, room, offered, labels)
        return place


def place_of(
    node: Node, room: Room, offered: UnitsOffered, tier_labels: Mapping[str, str] | None = None
) -> Place:
    """Return a node with this room free as placing sees it."""
    free: dict[str, int] = {}
    for each in room.units or ():
        free[each.name] = free.get(each.name, 0) + each.count * each.milli
    return Place(
        node=node,
        room=room,
        domains=domains_of(node, tier_labels),
        standing=standing_of(node),
        free_milli=free,
        device_milli=sum(free.values()),
        profiles=offered[0],
        whole_milli=offered[1],
        look=look_of(node, room, offered[2]),
    )


def offer_of(shape: Shape) -> UnitsOffered:
    """Return what a shape has of units."""
    seen: dict[str, set[Profile]] = {}
    milli: dict[str, int] = {}
    for unit in whole_room(shape).units or ():
        seen.setdefault(unit.name, set()).add(tuple(sorted(unit.attributes.items())))
        milli[unit.name] = milli.get(unit.name, 0) + unit.count * unit.milli
    profiles = {kind: next(iter(found)) for kind, found in seen.items() if len(found) == 1}
    return profiles, milli, tuple(sorted(profiles.items()))


def _labels_of(pool: Pool | None) -> dict[str, dict[str, str]]:
    tiers = () if pool is None else pool.tiers
    return {tier.name: tier.labels for tier in tiers if tier.labels}


def _claim_of(replica: Replica | None) -> Claim | None:
    return None if replica is None else replica.kept_room


def _is_same_shape(one: Shape, other: Shape) -> bool:
    return one is other or one == other


def _holds_same(old: Allocation, new: Allocation) -> bool:
    return (
        old.node_id == new.node_id
        and old.requirement is new.requirement
        and old.devices == new.devices
    )


def _is_clear(allocation: Allocation) -> bool:
    """Say whether it takes the same from a node in whatever order holds are taken away."""
    kinds = {request.name for request in allocation.requirement.capabilities}
    return kinds <= allocation.devices.keys()


def _tier_of(node: Node | None) -> str:
    if node is None or node.phase is NodePhase.RETIRED:
        return ""
    return tier_key(node.pool, node.tier)


def holds_on(fleet: Fleet, node: Node) -> Sequence[Hold]:
    """Return what the live allocations on a node take of it, and what claims keep of it."""
    claiming = fleet.index.replicas_claiming
    is_empty = not node.allocation_count and not fleet.index.allocations_of_services.count(
        node.node_id
    )
    if is_empty and not claiming.count(node.node_id):
        return ()
    holds = [hold_of(each) for each in live_on(fleet, node.node_id)]
    for key in claiming.keys(node.node_id):
        claim = fleet.replicas[key].claim
        if claim is not None:
            holds.append(Hold(claim.requirement, {}))
    return holds


def live_on(fleet: Fleet, node_id: str) -> list[Allocation]:
    """Return the live allocations on a node, by id."""
    return [fleet.allocations[key] for key in fleet.index.allocations_by_node.keys(node_id)]


def hold_of(allocation: Allocation) -> Hold:
    """Return what an allocation takes of its node."""
    return Hold(allocation.requirement, allocation.devices)
