"""Room: what of a node's shape is free, and whether a requirement fits into it.

A capability is a set of units that are alike, or named devices of which each is a unit of its own.
Where a node names devices of a kind, they are what counts for that kind, and work is given
particular ones. A unit may be taken in part, in thousandths, until nothing of it is left. `None`
for a quantity means *not reported*: it fits nothing that asks for some.

There are many of these for as long as their nodes live, and none can be part of a cycle, so the
garbage collector is not told of them (`gc=False`), as it is not of records.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice

import msgspec

from hostler.model.reason import Reason
from hostler.model.shape import WHOLE_MILLI, CapabilityRequest, Requirement, Shape


class Units(msgspec.Struct, frozen=True, gc=False):
    """Units of one capability that are alike."""

    name: str
    attributes: Mapping[str, str]
    count: int
    device_id: str | None = None
    """The one device that this is, where devices are named."""
    milli: int = WHOLE_MILLI
    """What is free of each, in thousandths."""


class Room(msgspec.Struct, frozen=True, gc=False):
    """What is free."""

    capacity: int | None
    cores_milli: int | None
    memory_bytes: int | None
    units: tuple[Units, ...] | None
    """Only those that are free; `None` when capabilities are not reported."""
    names: tuple[str, ...] = ()
    """Every capability that the node has, free or not."""


class Hold(msgspec.Struct, frozen=True, gc=False):
    """What one allocation takes of a node."""

    requirement: Requirement
    devices: Mapping[str, Sequence[str]] = {}


def whole_room(shape: Shape) -> Room:
    """Return the room of an empty node or of an offer."""
    names = {} if shape.capabilities is None else dict.fromkeys(c.name for c in shape.capabilities)
    return Room(
        capacity=shape.capacity,
        cores_milli=shape.cores_milli,
        memory_bytes=shape.memory_bytes,
        units=_units_of(shape),
        names=tuple(names),
    )


def free_room(shape: Shape, holds: Iterable[Hold]) -> Room:
    """Return what is left of a shape; less than nothing where the shape has shrunk since."""
    room = whole_room(shape)
    for hold in holds:
        room = less(room, hold)
    return room


def less(room: Room, hold: Hold) -> Room:
    """Return what is left of a room when one more allocation is there."""
    required = hold.requirement
    units = room.units
    if units and required.capabilities:
        units = without(units, hold)
    return Room(
        capacity=None if room.capacity is None else room.capacity - required.capacity,
        cores_milli=None if room.cores_milli is None else room.cores_milli - required.cores_milli,
        memory_bytes=(
            None if room.memory_bytes is None else room.memory_bytes - required.memory_bytes
        ),
        units=units,
        names=room.names,
    )


def shortage(requirement: Requirement, room: Room) -> Reason | None:
    """Return the first reason why a requirement does not fit, or `None` when it does."""
    requests = requirement.capabilities
    if (
        (requests and room.units is None)
        or not _has(room.capacity, requirement.capacity)
        or not _has(room.cores_milli, requirement.cores_milli)
        or not _has(room.memory_bytes, requirement.memory_bytes)
    ):
        return next(shortages(requirement, room), None)
    return next(_capability_shortages(requests, room), None) if requests else None


def _has(free: int | None, asked: int) -> bool:
    return asked <= 0 or (free is not None and asked <= free)


def shortages(requirement: Requirement, room: Room) -> Iterator[Reason]:
    """Give every reason why a requirement does not fit, in the order of their rank."""
    if _is_unreported(requirement, room):
        yield Reason.NOT_REPORTED
    if room.capacity is not None and requirement.capacity > max(room.capacity, 0):
        yield Reason.CAPACITY
    if room.cores_milli is not None and requirement.cores_milli > max(room.cores_milli, 0):
        yield Reason.CORES
    if room.memory_bytes is not None and requirement.memory_bytes > max(room.memory_bytes, 0):
        yield Reason.MEMORY
    if requirement.capabilities and room.units is not None:
        yield from _capability_shortages(requirement.capabilities, room)


def pick_devices(requirement: Requirement, room: Room) -> dict[str, tuple[str, ...]]:
    """Return the named devices to give, by kind. Expects that it fits.

    The lowest that serve; a share comes from the one that has least left.
    """
    picked: dict[str, tuple[str, ...]] = {}
    units = room.units or ()
    for request in _most_particular_first(requirement.capabilities):
        taken, units = _take(units, request)
        ids = tuple(each.device_id for each in taken if each.device_id is not None)
        if ids:
            picked[request.name] = picked.get(request.name, ()) + ids
    return picked


def _is_unreported(requirement: Requirement, room: Room) -> bool:
    return (
        (room.capacity is None and requirement.capacity > 0)
        or (room.cores_milli is None and requirement.cores_milli > 0)
        or (room.memory_bytes is None and requirement.memory_bytes > 0)
        or (room.units is None and bool(requirement.capabilities))
    )


def _units_of(shape: Shape) -> tuple[Units, ...] | None:
    if shape.capabilities is None:
        return None
    named: dict[str, list[Units]] = {}
    for device in sorted(shape.devices, key=lambda d: (len(d.device_id), d.device_id)):
        kind = named.setdefault(device.kind, [])
        shared = next((c.attributes for c in shape.capabilities if c.name == device.kind), {})
        kind.append(Units(device.kind, {**shared, **device.attributes}, 1, device.device_id))
    unnamed = (
        Units(each.name, each.attributes, each.count)
        for each in shape.capabilities
        if each.name not in named
    )
    return (*unnamed, *chain.from_iterable(named.values()))


def without(units: tuple[Units, ...], hold: Hold) -> tuple[Units, ...]:
    """Take away what an allocation holds: the devices it was given, else any that serve."""
    given = _given_milli(hold)
    left = units
    if given:
        left = tuple(
            each if taken is None else msgspec.structs.replace(each, milli=each.milli - taken)
            for each in units
            if (taken := given.get((each.name, each.device_id))) is None or taken < each.milli
        )
    for request in _most_particular_first(hold.requirement.capabilities):
        if request.name not in hold.devices:
            _, left = _take(left, request)
    return left


def _given_milli(hold: Hold) -> dict[tuple[str, str | None], int]:
    """Return how much an allocation has of each device, read as `pick_devices` wrote it."""
    if not hold.devices:
        return {}
    ids = {kind: iter(devices) for kind, devices in hold.devices.items()}
    given: dict[tuple[str, str | None], int] = {}
    for request in _most_particular_first(hold.requirement.capabilities):
        for device_id in islice(ids.get(request.name, iter(())), request.count):
            key = (request.name, device_id)
            given[key] = given.get(key, 0) + request.milli
    return given


def _take(
    units: tuple[Units, ...], request: CapabilityRequest
) -> tuple[list[Units], tuple[Units, ...]]:
    """Take the units that serve a request and have least left; return them and what is left."""
    wanted = request.count
    fitting = [n for n, each in enumerate(units) if _serves(each, request)]
    if request.milli < WHOLE_MILLI:
        fitting.sort(key=lambda n: units[n].milli)
    used: dict[int, int] = {}
    for number in fitting:
        if wanted > 0:
            used[number] = min(wanted, units[number].count)
            wanted -= used[number]
    taken = [msgspec.structs.replace(units[n], count=count) for n, count in sorted(used.items())]
    left: list[Units] = []
    for number, each in enumerate(units):
        count = used.get(number, 0)
        if count and each.milli > request.milli:
            milli = each.milli - request.milli
            left.append(msgspec.structs.replace(each, count=count, milli=milli))
        if each.count > count:
            left.append(msgspec.structs.replace(each, count=each.count - count))
    return taken, tuple(left)


def _serves(units: Units, request: CapabilityRequest) -> bool:
    return (
        units.name == request.name
        and units.milli >= request.milli
        and request.accepts(units.attributes)
    )


def _most_particular_first(requests: Sequence[CapabilityRequest]) -> Sequence[CapabilityRequest]:
    """Order requests so that one that any unit serves does not take what only one other serves."""
    if len(requests) < 2:
        return requests
    return sorted(requests, key=lambda r: -len(r.attributes) - len(r.matches))


def _count(units: Iterable[Units]) -> int:
    return sum([each.count for each in units])


def _capability_shortages(requests: Sequence[CapabilityRequest], room: Room) -> Iterator[Reason]:
    if any(request.name not in room.names for request in requests):
        yield Reason.CAPABILITY_MISSING
    units = room.units or ()
    is_count_short = is_attribute_short = False
    for request in _most_particular_first(requests):
        if request.name not in room.names:
            continue
        free = [each for each in units if each.name == request.name and each.milli >= request.milli]
        if _count(free) < request.count:
            is_count_short = True
        elif _count(each for each in free if request.accepts(each.attributes)) < request.count:
            is_attribute_short = True
        if len(requests) > 1:
            _, units = _take(units, request)  # no two requests share a unit
    if is_count_short:
        yield Reason.CAPABILITY_COUNT
    if is_attribute_short:
        yield Reason.CAPABILITY_ATTRIBUTE
