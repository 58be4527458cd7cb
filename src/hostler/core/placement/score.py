"""Score: which of the nodes that may take a replica is best. Compared part by part, lower first.

The parts, in their order (spec/placement.md C-052, C-053, C-076): fewer preferred rules broken; a
spare first for who prefers spares and last for everybody else; a node that is ready before one that
is still booting; then what the choice costs in devices (below); then best fit, so that large gaps
stay for large jobs: least of devices, capacity, cores and memory left; fewer of the same bundle; at
last the lower node id.

What a choice costs in devices is the thousandths that it takes, those that it strands (free devices
beyond what the cores, memory and capacity left can serve, were they used as the mix of work uses
them), and the taken ones once more by how contested they are. So work without devices goes where
devices are gone already, work that needs many cores goes where there are many to a device, and
work that any device serves leaves those that few can replace.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from hostler.core.placement.demand import Demand, SpareAccess
from hostler.core.placement.feasible import Place, is_planned
from hostler.core.placement.mix import Company, Profile
from hostler.core.placement.resilience import broken_node_rules, broken_rules
from hostler.core.placement.room import Room
from hostler.model.reason import Reason
from hostler.model.shape import NOTHING_REQUIRED, WHOLE_MILLI, Requirement

PARTS: Final = (
    "preferred_rules_broken",
    "spare_class",
    "is_booting",
    "device_cost_milli",
    "device_left_milli",
    "capacity_left",
    "cores_milli_left",
    "memory_bytes_left",
    "bundle_count",
)
"""Names of the parts, as a trace's reader is shown them."""

DEVICE_BITS: Final = 27
"""Parts are packed into two integers to be compared quickly: 134,000 devices on one node."""
AMOUNT_BITS: Final = 19
"""Bits of a quantity that is left; more of it counts as that much."""
COUNT_BITS: Final = 5
CORES_GRAIN_MILLI: Final = 10
MEMORY_GRAIN_BYTES: Final = 16 * 2**20
"""Cores and memory are compared in such steps: up to 5,242 cores and 8 TiB on one node."""


class Market(msgspec.Struct, frozen=True):
    """What the score of a tier's nodes knows of work to come."""

    company: Mapping[str, Company] = {}
    """By capability: what usually goes with one unit."""
    price_milli: Mapping[str, Mapping[Profile, int]] = {}
    """By capability and attributes of a unit: how contested it is."""


class Scored(msgspec.Struct, frozen=True, gc=False):
    """A node that may take the replica, with what it costs to choose it."""

    place: Place
    broken: tuple[Reason, ...]
    """Preferred rules that it breaks."""
    parts: tuple[int, ...]

    @property
    def order(self) -> tuple[int, int, str]:
        """What nodes are compared by."""
        return (*packed(self.parts), self.place.node.node_id)


class Scale:
    """What one demand holds every node against, worked out once."""

    def __init__(self, demand: Demand, market: Market) -> None:
        self._demand = demand
        self._company = market.company
        taken: dict[str, int] = {}
        for request in demand.requirement.capabilities:
            taken[request.name] = taken.get(request.name, 0) + request.total_milli
        self._taken = taken
        self._taken_milli = sum(taken.values())
        self._prices = [
            (kind, used, market.price_milli.get(kind, {})) for kind, used in taken.items()
        ]
        self._is_spare_wanted = demand.spares is SpareAccess.FIRST

    def scored(self, place: Place) -> Scored:
        """Return a node with its score."""
        demand, node, room = self._demand, place.node, place.room
        need = demand.requirement
        broken: tuple[Reason, ...] = ()
        if demand.rules or demand.node_rules:
            broken = (
                *broken_rules(demand.rules, place.domains, is_required=False),
                *broken_node_rules(demand.node_rules, place.domains, is_required=False),
            )
        parts = (
            len(broken),
            0 if node.is_spare is self._is_spare_wanted else 1,
            int(is_planned(node)),
            self._device_cost_milli(place) if place.free_milli else 0,
            place.device_milli - self._taken_milli,
            max(room.capacity or 0, 0) - need.capacity,
            max(room.cores_milli or 0, 0) - need.cores_milli,
            max(room.memory_bytes or 0, 0) - need.memory_bytes,
            demand.bundle_count_by_node.get(node.node_id, 0),
        )
        return Scored(place, broken, parts)

    def _device_cost_milli(self, place: Place) -> int:
        cost, need, room = 0, self._demand.requirement, place.room
        for kind, used, prices in self._prices:
            profile = place.profiles.get(kind)
            price = 0 if profile is None else prices.get(profile, 0)
            cost += used + used * price // WHOLE_MILLI
        for kind, free in place.free_milli.items():
            company = self._company.get(kind)
            if company is not None:
                left = free - self._taken.get(kind, 0)
                cost += left - _usable_milli(left, room, need, company)
                cost -= free - _usable_milli(free, room, NOTHING_REQUIRED, company)
        return cost


def _usable_milli(free: int, room: Room, need: Requirement, company: Company) -> int:
    """Return how much of the free devices what is left of the rest would serve."""
    if company.capacity_milli and room.capacity is not None:
        left = (max(room.capacity, 0) - need.capacity) * _CAPACITY_GRAIN
        free = min(free, left // company.capacity_milli)
    if company.cores_milli and room.cores_milli is not None:
        left = (max(room.cores_milli, 0) - need.cores_milli) * WHOLE_MILLI
        free = min(free, left // company.cores_milli)
    if company.memory_bytes and room.memory_bytes is not None:
        left = (max(room.memory_bytes, 0) - need.memory_bytes) * WHOLE_MILLI
        free = min(free, left // company.memory_bytes)
    return free


_CAPACITY_GRAIN: Final = WHOLE_MILLI * WHOLE_MILLI


def scored(demand: Demand, place: Place, market: Market) -> Scored:
    """Return a node with its score."""
    return Scale(demand, market).scored(place)


def particular(demand: Demand, found: Scored) -> Scored:
    """Return a score that was found without a look at other replicas with what they come to."""
    place = found.place
    broken = broken_rules(demand.rules, place.domains, is_required=False)
    count = demand.bundle_count_by_node.get(place.node.node_id, 0)
    if not broken and not count:
        return found
    broken_count, *parts, _ = found.parts
    return Scored(place, (*broken, *found.broken), (broken_count + len(broken), *parts, count))


def packed(parts: tuple[int, ...]) -> tuple[int, int]:
    """Return the parts as two integers that compare as the parts do, within their bits."""
    broken, spare, booting, cost, devices, capacity, cores, memory, bundle = parts
    cores, memory = cores // CORES_GRAIN_MILLI, memory // MEMORY_GRAIN_BYTES
    high = ((broken << 1 | spare) << 1 | booting) << DEVICE_BITS
    high |= min(_DEVICE_MAX, cost)
    low = (min(_AMOUNT_MAX, capacity)) << AMOUNT_BITS
    low = (low | (min(_AMOUNT_MAX, cores))) << AMOUNT_BITS
    low |= min(_AMOUNT_MAX, memory)
    return (
        high << DEVICE_BITS | (min(_DEVICE_MAX, devices)),
        low << COUNT_BITS | (min(_COUNT_MAX, bundle)),
    )


_DEVICE_MAX: Final = (1 << DEVICE_BITS) - 1
_AMOUNT_MAX: Final = (1 << AMOUNT_BITS) - 1
_COUNT_MAX: Final = (1 << COUNT_BITS) - 1
