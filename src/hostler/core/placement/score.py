"""Score: which of the nodes that may take a replica is best. Compared part by part, lower first.

The parts, in their order (spec/placement.md C-052, C-053, C-076): fewer preferred rules broken; a
spare first for who prefers spares and last for everybody else; a node that is ready before one that
is still booting; then best fit, so that large gaps stay for large jobs: least capacity, cores,
memory and capabilities left; fewer of the same bundle; at last the lower node id.
"""

from __future__ import annotations

from typing import Final

import msgspec

from hostler.core.placement.demand import Demand, SpareAccess
from hostler.core.placement.feasible import Place, is_planned
from hostler.core.placement.resilience import broken_rules
from hostler.model.reason import Reason

PARTS: Final = (
    "preferred_rules_broken",
    "spare_class",
    "is_booting",
    "capacity_left",
    "cores_milli_left",
    "memory_bytes_left",
    "capability_units_left",
    "bundle_count",
)
"""Names of the parts, as a trace's reader is shown them."""


class Scored(msgspec.Struct, frozen=True):
    """A node that may take the replica, with what it costs to choose it."""

    place: Place
    broken: tuple[Reason, ...]
    """Preferred rules that it breaks."""
    parts: tuple[int, ...]

    @property
    def order(self) -> tuple[tuple[int, ...], str]:
        """What nodes are compared by."""
        return self.parts, self.place.node.node_id


def scored(demand: Demand, place: Place) -> Scored:
    """Return a node with its score."""
    node, need, room = place.node, demand.requirement, place.room
    broken = broken_rules(demand.spread, place.domains, demand.siblings, is_required=False)
    is_preferred = node.is_spare is (demand.spares is SpareAccess.FIRST)
    asked_count = sum(request.count for request in need.capabilities)
    parts = (
        len(broken),
        0 if is_preferred else 1,
        int(is_planned(node)),
        (room.capacity or 0) - need.capacity,
        (room.cores_milli or 0) - need.cores_milli,
        (room.memory_bytes or 0) - need.memory_bytes,
        sum(units.count for units in room.units or ()) - asked_count,
        demand.bundle_count_by_node.get(node.node_id, 0),
    )
    return Scored(place, broken, parts)
