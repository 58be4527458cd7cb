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
from hostler.model.shape import WHOLE_MILLI, Requirement

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


class Scored(msgspec.Struct, frozen=True):
    """A node that may take the replica, with what it costs to choose it."""

    place: Place
    broken: tuple[Reason, ...]
    """Preferred rules that it breaks."""
    parts: tuple[int, ...]

    @property
    def order(self) -> tuple[int, int, str]:
        """What nodes are compared by."""
        return (*packed(self.parts), self.place.node.node_id)


def scored(demand: Demand, place: Place, market: Market) -> Scored:
    """Return a node with its score."""
    node, need, room = place.node, demand.requirement, place.room
    broken = (
        *broken_rules(demand.rules, place.domains, is_required=False),
        *broken_node_rules(demand.node_rules, place.domains, is_required=False),
    )
    is_preferred = node.is_spare is (demand.spares is SpareAccess.FIRST)
    parts = (
        len(broken),
        0 if is_preferred else 1,
        int(is_planned(node)),
        _device_cost_milli(need, place, market),
        place.device_milli - sum(request.total_milli for request in need.capabilities),
        max(room.capacity or 0, 0) - need.capacity,
        max(room.cores_milli or 0, 0) - need.cores_milli,
        max(room.memory_bytes or 0, 0) - need.memory_bytes,
        demand.bundle_count_by_node.get(node.node_id, 0),
    )
    return Scored(place, broken, parts)


def packed(parts: tuple[int, ...]) -> tuple[int, int]:
    """Return the parts as two integers that compare as the parts do, within their bits."""
    broken, spare, booting, cost, devices, capacity, cores, memory, bundle = parts
    device_max, amount_max = (1 << DEVICE_BITS) - 1, (1 << AMOUNT_BITS) - 1
    high = (((broken << 1 | spare) << 1 | booting) << DEVICE_BITS) | min(cost, device_max)
    low = min(capacity, amount_max)
    low = low << AMOUNT_BITS | min(cores // CORES_GRAIN_MILLI, amount_max)
    low = low << AMOUNT_BITS | min(memory // MEMORY_GRAIN_BYTES, amount_max)
    return (
        high << DEVICE_BITS | min(devices, device_max),
        low << COUNT_BITS | min(bundle, (1 << COUNT_BITS) - 1),
    )


def _device_cost_milli(need: Requirement, place: Place, market: Market) -> int:
    if not place.free_milli:
        return 0
    cost = 0
    taken: dict[str, int] = {}
    for request in need.capabilities:
        taken[request.name] = taken.get(request.name, 0) + request.total_milli
    for kind, used in taken.items():
        profile = place.profiles.get(kind)
        prices = market.price_milli.get(kind, {})
        price = 0 if profile is None else prices.get(profile, 0)
        cost += used + used * price // WHOLE_MILLI
    for kind, free in place.free_milli.items():
        company = market.company.get(kind)
        if company is not None:
            used = taken.get(kind, 0)
            cost += _stranded_milli(free - used, place.room, need, company)
            cost -= _stranded_milli(free, place.room, _NOTHING, company)
    return cost


_NOTHING: Final = Requirement()


def _stranded_milli(free: int, room: Room, need: Requirement, company: Company) -> int:
    usable = free
    for has, takes, each, grain in (
        (room.capacity, need.capacity, company.capacity_milli, WHOLE_MILLI * WHOLE_MILLI),
        (room.cores_milli, need.cores_milli, company.cores_milli, WHOLE_MILLI),
        (room.memory_bytes, need.memory_bytes, company.memory_bytes, WHOLE_MILLI),
    ):
        if each and has is not None:
            usable = min(usable, (max(has, 0) - takes) * grain // each)
    return free - usable
