"""Places: nodes as placing sees them, each looked at once and kept until it is written.

This follows every write like an index, backwards too, but computes nothing then: a write to a
node, or to an allocation on it, forgets what was known of that node, and whoever asks next has it
computed anew. So a decision pays for the nodes that changed since the last one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from hostler.core.keys import tier_key
from hostler.core.placement.feasible import Place, standing_of
from hostler.core.placement.resilience import domains_of
from hostler.core.placement.room import Hold, free_room
from hostler.model import Allocation, Node
from hostler.model.node import NodePhase

if TYPE_CHECKING:
    from hostler.core.fleet import Fleet


class PlaceIndex:
    """What is known of nodes by now."""

    def __init__(self) -> None:
        self._places: dict[str, Place] = {}
        self._ids_by_tier: dict[str, list[str]] = {}

    def follow_node(self, key: str, old: Node | None, new: Node | None) -> None:
        """Forget a node that is written, and the list of a tier that it enters or leaves."""
        self._places.pop(key, None)
        left, entered = _tier_of(old), _tier_of(new)
        if left != entered:
            self._ids_by_tier.pop(left, None)
            self._ids_by_tier.pop(entered, None)

    def follow_allocation(self, _key: str, old: Allocation | None, new: Allocation | None) -> None:
        """Forget the node of an allocation that is written."""
        for allocation in (old, new):
            if allocation is not None:
                self._places.pop(allocation.node_id, None)

    def in_tier(self, fleet: Fleet, pool: str, tier: str) -> Iterator[Place]:
        """Give the nodes of a tier that are not retired, by id."""
        key = tier_key(pool, tier)
        ids = self._ids_by_tier.get(key)
        if ids is None:
            ids = self._ids_by_tier[key] = fleet.index.nodes_by_tier.keys(key)
        known = self._places
        for node_id in ids:
            yield known.get(node_id) or self.of(fleet, node_id)

    def of(self, fleet: Fleet, node_id: str) -> Place:
        """Return one node as placing sees it."""
        known = self._places.get(node_id)
        if known is not None:
            return known
        node = fleet.nodes[node_id]
        place = self._places[node_id] = Place(
            node=node,
            room=free_room(node.shape, holds_on(fleet, node)),
            domains=domains_of(node),
            standing=standing_of(node),
        )
        return place


def _tier_of(node: Node | None) -> str:
    if node is None or node.phase is NodePhase.RETIRED:
        return ""
    return tier_key(node.pool, node.tier)


def holds_on(fleet: Fleet, node: Node) -> Sequence[Hold]:
    """Return what the live allocations on a node take of it."""
    if not node.allocation_count:
        return ()
    return [hold_of(each) for each in live_on(fleet, node.node_id)]


def live_on(fleet: Fleet, node_id: str) -> list[Allocation]:
    """Return the live allocations on a node, by id."""
    return [fleet.allocations[key] for key in fleet.index.allocations_by_node.keys(node_id)]


def hold_of(allocation: Allocation) -> Hold:
    """Return what an allocation takes of its node."""
    return Hold(allocation.requirement, allocation.devices)
