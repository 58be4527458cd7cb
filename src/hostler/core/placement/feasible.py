"""Feasible: whether a node may take a replica, and if not, why not.

Filters stand in the order of their reasons. A decision records the first one that refuses; whoever
asks about one named node is told all of them. A filter says only which reason holds; words with
figures are made for the few nodes that are shown.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from functools import partial
from itertools import islice
from typing import Final

import msgspec

from hostler.core.placement.demand import Demand, SpareAccess
from hostler.core.placement.mix import Profile
from hostler.core.placement.resilience import Domains, broken_node_rules, broken_rules
from hostler.core.placement.room import Room, Units, shortage, shortages
from hostler.model import Node
from hostler.model.node import Health, NodePhase, Origin
from hostler.model.pool import Reliability
from hostler.model.reason import Reason
from hostler.model.shape import WHOLE_MILLI, Requirement


class Place(msgspec.Struct, frozen=True, gc=False):
    """A node as placing sees it, computed once and kept until something on it changes."""

    node: Node
    room: Room
    domains: Domains
    standing: tuple[Reason, ...]
    """Why it takes no new work from anybody; empty when it does."""
    free_milli: dict[str, int] = {}
    """Thousandths of units that are free, by capability."""
    device_milli: int = 0
    """All of them."""
    profiles: dict[str, Profile] = {}
    """Attributes of the units of each capability whose units are alike."""
    whole_milli: dict[str, int] = {}
    """Thousandths of units that there are, free or not, by capability."""
    look: Hashable = None
    """All that a demand without rules sees of it: places that look alike are alike to it. `None`
    where that has not been worked out."""


FILTERS: Final = (
    Reason.NODE_NOT_RUNNING,
    Reason.UNREACHABLE,
    Reason.CORDONED,
    Reason.DRAINING,
    Reason.QUARANTINED,
    Reason.ON_PROBATION,
    Reason.NO_AGENT,
    Reason.EXCLUDED_RECENT_FAILURE,
    Reason.NOT_REPORTED,
    Reason.CAPACITY,
    Reason.CORES,
    Reason.MEMORY,
    Reason.CAPABILITY_MISSING,
    Reason.CAPABILITY_COUNT,
    Reason.CAPABILITY_ATTRIBUTE,
    Reason.SPREAD_NODE,
    Reason.SPREAD_ZONE,
    Reason.SPREAD_TIER,
    Reason.SPREAD_PROVIDER,
    Reason.SPREAD_LABEL,
    Reason.FAILURE_DOMAIN,
    Reason.AFFINITY,
    Reason.ANTI_AFFINITY,
    Reason.COLOCATION,
    Reason.NODE_LABELS,
    Reason.NODE_EXCLUDED,
    Reason.RELIABILITY,
    Reason.SPARE_RESERVED,
    Reason.LEASED,
    Reason.OFFER_NOT_ALLOWED,
)
"""Every reason that a filter gives, in the order in which they are tried."""

STANDINGS: Final = FILTERS[:7]
"""Reasons that hold for everybody alike, because the node takes nothing new."""

PARTICULAR: Final = frozenset(
    {
        Reason.EXCLUDED_RECENT_FAILURE,
        Reason.SPREAD_NODE,
        Reason.SPREAD_ZONE,
        Reason.SPREAD_TIER,
        Reason.SPREAD_PROVIDER,
        Reason.SPREAD_LABEL,
        Reason.FAILURE_DOMAIN,
        Reason.AFFINITY,
        Reason.ANTI_AFFINITY,
        Reason.COLOCATION,
    }
)
"""Reasons that hold for one replica and need not for another with the same requirement."""


def look_of(node: Node, room: Room, profiles: Hashable) -> Hashable:
    """Return what `refusal` and the score read of a node without standing reasons, but for rules.

    Args:
        node: The node.
        room: What is free of it.
        profiles: Attributes of its units, where those of a kind are alike.
    """
    return (
        room.capacity,
        room.cores_milli,
        room.memory_bytes,
        None if room.units is None else tuple([_unit_look(each) for each in room.units]),
        room.names,
        profiles,
        _is_running(node) and not node.is_inventory_reported,
        node.reliability is Reliability.INTERRUPTIBLE,
        node.is_spare,
        node.spare_band,
        node.lease_count > 0,
        is_planned(node),
    )


def _unit_look(units: Units) -> Hashable:
    return (units.name, units.milli, units.count, *units.attributes.items())


def standing_of(node: Node) -> tuple[Reason, ...]:
    """Return why a node takes no new work, whatever it is. Computed once for each node."""
    reasons: list[Reason] = []
    if node.phase is not NodePhase.DRAINING and not (is_planned(node) or _is_running(node)):
        reasons.append(Reason.NODE_NOT_RUNNING)
    if node.health is not Health.LIVE:
        reasons.append(Reason.UNREACHABLE)
    if node.cordon is not None:
        reasons.append(Reason.CORDONED)
    if node.phase is NodePhase.DRAINING or node.drain is not None or node.retire_reason is not None:
        reasons.append(Reason.DRAINING)
    quarantine = node.quarantine
    if quarantine is not None and not quarantine.is_over:
        if not quarantine.is_on_probation:
            reasons.append(Reason.QUARANTINED)
        elif quarantine.trial_id is not None:
            reasons.append(Reason.ON_PROBATION)
    if not node.has_agent:
        reasons.append(Reason.NO_AGENT)
    return tuple(reasons)


def is_planned(node: Node) -> bool:
    """Say whether the node's machine is on its way, so that its offer can be counted on."""
    return (
        node.phase in (NodePhase.REQUESTED, NodePhase.STARTING)
        and node.origin is Origin.LAUNCHED
        and node.launch_failure is None
    )


def _is_running(node: Node) -> bool:
    return node.phase is NodePhase.READY


def refusals(demand: Demand, place: Place) -> Iterator[Reason]:
    """Give every reason why a node of the right pool may not take a replica, in their order."""
    yield from place.standing
    node_id = place.node.node_id
    if node_id in demand.avoided or node_id in demand.rejected:
        yield Reason.EXCLUDED_RECENT_FAILURE
    if _is_running(place.node) and not place.node.is_inventory_reported:
        yield Reason.NOT_REPORTED
    else:
        first = shortage(demand.requirement, place.room)
        if first is not None:
            yield first  # most who ask want to know no more
            yield from islice(shortages(demand.requirement, place.room), 1, None)
    by_node: tuple[Reason, ...] = ()
    if demand.rules or demand.node_rules:
        by_place = broken_rules(demand.rules, place.domains, is_required=True)
        by_node = broken_node_rules(demand.node_rules, place.domains, is_required=True)
        broken = sorted({*by_place, *by_node}, key=FILTERS.index)
        yield from (reason for reason in broken if reason is not Reason.OFFER_NOT_ALLOWED)
    if demand.is_reliable_required and place.node.reliability is Reliability.INTERRUPTIBLE:
        yield Reason.RELIABILITY
    if place.node.is_spare and not _is_spare_open(demand, place.node):
        yield Reason.SPARE_RESERVED
    if place.node.lease_count > 0:
        yield Reason.LEASED
    if Reason.OFFER_NOT_ALLOWED in by_node:
        yield Reason.OFFER_NOT_ALLOWED


def refusal(demand: Demand, place: Place) -> Reason | None:
    """Return the first reason why a node of the right pool may not take a replica, or `None`."""
    return place.standing[0] if place.standing else next(refusals(demand, place), None)


def _is_spare_open(demand: Demand, node: Node) -> bool:
    return demand.spares is not SpareAccess.NEVER and node.spare_band in (None, demand.band)


def detail_of(reason: Reason, demand: Demand, place: Place) -> str:
    """Return the figures behind a refusal, in words; empty where the reason says it all."""
    node, need, room = place.node, demand.requirement, place.room
    figures = partial(_figures, need, room)
    match reason:
        case _ if reason in STANDINGS:
            return _standing_detail(reason, node)
        case Reason.EXCLUDED_RECENT_FAILURE:
            is_rejected = node.node_id in demand.rejected
            return "its agent refused the replica" if is_rejected else "the replica failed here"
        case Reason.CAPACITY | Reason.CORES | Reason.MEMORY:
            return figures(reason)
        case Reason.CAPABILITY_MISSING | Reason.CAPABILITY_COUNT | Reason.CAPABILITY_ATTRIBUTE:
            return _capability_figures(need, room)
        case Reason.SPARE_RESERVED:
            return f"kept for {node.spare_band or 'gold and silver'} recoveries"
        case Reason.LEASED:
            return f"{node.lease_count} of {node.slot_count} slots are leased"
        case _:
            return ""


def _standing_detail(reason: Reason, node: Node) -> str:
    match reason:
        case Reason.NODE_NOT_RUNNING:
            return f"the node is {node.phase.value}"
        case Reason.UNREACHABLE:
            return f"the node is {node.health.value}"
        case Reason.CORDONED:
            return "" if node.cordon is None else node.cordon.reason
        case Reason.QUARANTINED:
            return "" if node.quarantine is None else f"for {node.quarantine.cause.value}"
        case Reason.ON_PROBATION:
            return "" if node.quarantine is None else f"{node.quarantine.trial_id} is on trial"
        case Reason.DRAINING:
            return "" if node.retire_reason is None else f"it retires: {node.retire_reason.value}"
        case _:
            return ""


def _figures(need: Requirement, room: Room, reason: Reason) -> str:
    match reason:
        case Reason.CAPACITY:
            return f"needs {need.capacity}, {room.capacity} free"
        case Reason.CORES:
            return f"needs {need.cores_milli} milli-cores, {room.cores_milli} free"
        case _:
            return f"needs {need.memory_bytes} bytes, {room.memory_bytes} free"


def _capability_figures(need: Requirement, room: Room) -> str:
    told = []
    for request in need.capabilities:
        free = [each for each in room.units or () if each.name == request.name]
        asked = [f"{name}={value}" for name, value in sorted(request.attributes.items())]
        wanted = " ".join([*asked, *map(str, request.matches)])
        if request.milli < WHOLE_MILLI:
            best = max((each.milli for each in free), default=0)
            need_text, free_text = f"{request.milli}/1000 of a", f"at most {best}/1000 of one free"
        else:
            total = sum(each.count for each in free if each.milli == WHOLE_MILLI)
            need_text, free_text = str(request.count), f"{total} free"
        told.append(f"needs {need_text} {request.name} {wanted}".rstrip() + f", {free_text}")
    return "; ".join(told)
