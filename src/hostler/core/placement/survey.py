"""Survey: nodes as placing sees them, each looked at once and kept until it is written.

It belongs to one run of the placing controller (or to one question); free room is computed when a
node is first needed and again only for a node that was given something.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from hostler.base.ids import NodeId
from hostler.core.indexes import tier_key
from hostler.core.placement.feasible import Place, standing_of
from hostler.core.placement.resilience import domains_of
from hostler.core.placement.room import Hold, free_room
from hostler.model import Allocation, Node, Pool
from hostler.model.pool import Tier

if TYPE_CHECKING:
    from hostler.core.fleet import Fleet


class Survey:
    """What placing has looked at so far."""

    def __init__(self, fleet: Fleet) -> None:
        self.fleet = fleet
        self._places: dict[NodeId, Place] = {}
        self._by_tier: dict[str, dict[NodeId, Place]] = {}

    def pool(self, name: str) -> Pool | None:
        """Return a pool's record."""
        return self.fleet.pools.get(name)

    def places(self, pool: Pool, tier: Tier) -> Iterable[Place]:
        """Return the nodes of a tier that are not retired."""
        key = tier_key(pool.name, tier.name)
        known = self._by_tier.get(key)
        if known is None:
            ids = [NodeId(node_id) for node_id in self.fleet.index.nodes_by_tier.keys(key)]
            known = self._by_tier[key] = {node_id: self.place(node_id) for node_id in ids}
        return known.values()

    def place(self, node_id: NodeId) -> Place:
        """Return one node as placing sees it."""
        return self._places.get(node_id) or self._place(node_id)

    def look_again(self, node_id: NodeId) -> None:
        """Compute a node anew, because something on it was written or it is new."""
        place = self._place(node_id)
        tier = self._by_tier.get(tier_key(place.node.pool, place.node.tier))
        if tier is not None:
            tier[node_id] = place

    def _place(self, node_id: NodeId) -> Place:
        node = self.fleet.nodes[node_id]
        place = Place(
            node=node,
            room=free_room(node.shape, holds_on(self.fleet, node)),
            domains=domains_of(node),
            standing=standing_of(node),
        )
        self._places[node_id] = place
        return place


def holds_on(fleet: Fleet, node: Node) -> Sequence[Hold]:
    """Return what the live allocations on a node take of it."""
    if not node.allocation_count:
        return ()
    return [hold_of(each) for each in live_on(fleet, node.node_id)]


def live_on(fleet: Fleet, node_id: NodeId) -> list[Allocation]:
    """Return the live allocations on a node, by id."""
    return [fleet.allocations[key] for key in fleet.index.allocations_by_node.keys(node_id)]


def hold_of(allocation: Allocation) -> Hold:
    """Return what an allocation takes of its node."""
    return Hold(allocation.requirement, allocation.devices)
