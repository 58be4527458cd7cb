"""Mix: what the work that holds devices usually asks beside them, and of which devices.

A score wants to know two things about work that is still to come: how much of everything else goes
with one device, since a device without cores beside it is stranded; and which devices few others
can replace. The best guess is what runs now. It is a function of the live allocations alone, so a
restart, a replay and an undone step all see the same; and it is coarse, so that scores that are
kept seldom have to be computed anew.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from hostler.model import Allocation
from hostler.model.shape import WHOLE_MILLI, CapabilityRequest, Requirement

CLASSES_MAX: Final = 32
"""Kinds of wishes about one capability that are told apart; the heaviest count."""

_SUM_BITS: Final = 10
"""A sum is known to one part in five hundred at worst: so finely that an answer, which is a ratio
of two sums and rounded far more coarsely, does not jump to and fro while both of them grow. With
each jump all nodes are ranked anew."""

_ANSWER_BITS: Final = 3
"""An answer is rounded to one part in eight at worst. On the openb trace anything from 10 to 13
cores beside a GPU packs alike, so a finer answer would only mean to rank nodes anew more often."""


class Company(msgspec.Struct, frozen=True):
    """What usually goes with one whole unit of a capability; 0 where nothing does."""

    capacity_milli: int
    cores_milli: int
    memory_bytes: int


class Wish(msgspec.Struct, frozen=True):
    """How much is held under equal wishes about the attributes of one capability."""

    request: CapabilityRequest
    milli: int


class _Kind:
    """The sums of one capability."""

    def __init__(self) -> None:
        self.milli = 0
        self.capacity = 0
        self.cores_milli = 0
        self.memory_bytes = 0
        self.milli_by_wish: dict[str, int] = {}
        self.request_by_wish: dict[str, CapabilityRequest] = {}

    def coarse(self, wish: str) -> tuple[int, ...]:
        """Return all of what others see that a hold with this wish may change."""
        held = self.milli_by_wish.get(wish, 0)
        sums = (self.milli, self.capacity, self.cores_milli, self.memory_bytes, held)
        return tuple(map(_coarse, sums))


class Mix:
    """Sums over the live allocations, followed write by write, backwards too."""

    def __init__(self) -> None:
        self.version = 0
        """Raised whenever an answer changes."""
        self._kinds: dict[str, _Kind] = {}

    def follow_allocation(self, _key: str, old: Allocation | None, new: Allocation | None) -> None:
        """Follow one write."""
        left = None if old is None or not old.is_live else old.requirement
        entered = None if new is None or not new.is_live else new.requirement
        if left is entered:
            return
        if left is not None and left.capabilities:
            self._add(left, -1)
        if entered is not None and entered.capabilities:
            self._add(entered, 1)

    def kinds(self) -> list[str]:
        """Return the capabilities that are held, sorted."""
        return sorted(self._kinds)

    def company(self, kind: str) -> Company | None:
        """Return what usually goes with one unit; `None` when nobody holds any."""
        found = self._kinds.get(kind)
        if found is None:
            return None
        milli = _coarse(found.milli)
        return Company(
            capacity_milli=_rounded(_coarse(found.capacity) * WHOLE_MILLI * WHOLE_MILLI // milli),
            cores_milli=_rounded(_coarse(found.cores_milli) * WHOLE_MILLI // milli),
            memory_bytes=_rounded(_coarse(found.memory_bytes) * WHOLE_MILLI // milli),
        )

    def wishes(self, kind: str) -> list[Wish]:
        """Return who asks for what, the heaviest first, up to a bound."""
        found = self._kinds.get(kind)
        if found is None:
            return []
        weights = [(-_coarse(milli), wish) for wish, milli in found.milli_by_wish.items()]
        heaviest = sorted(weights)[:CLASSES_MAX]
        return [Wish(found.request_by_wish[wish], -weight) for weight, wish in heaviest]

    def _add(self, requirement: Requirement, sign: int) -> None:
        for request in requirement.capabilities:
            kind = self._kinds.get(request.name) or _Kind()
            wish = _wish_of(request)
            before = kind.coarse(wish)
            kind.milli += sign * request.total_milli
            kind.capacity += sign * requirement.capacity
            kind.cores_milli += sign * requirement.cores_milli
            kind.memory_bytes += sign * requirement.memory_bytes
            held = kind.milli_by_wish.get(wish, 0) + sign * request.total_milli
            kind.milli_by_wish[wish] = held
            kind.request_by_wish.setdefault(wish, request)
            if not held:
                del kind.milli_by_wish[wish], kind.request_by_wish[wish]
            self._kinds[request.name] = kind
            if not kind.milli:
                del self._kinds[request.name]
            if kind.coarse(wish) != before:
                self.version += 1


def _coarse(value: int) -> int:
    shift = max(0, value.bit_length() - _SUM_BITS)
    return value >> shift << shift


def _rounded(value: int) -> int:
    shift = max(0, value.bit_length() - _ANSWER_BITS)
    return (value + (1 << shift >> 1)) >> shift << shift


def _wish_of(request: CapabilityRequest) -> str:
    if not request.attributes and not request.matches:
        return ""
    return f"{sorted(request.attributes.items())} {sorted(map(str, request.matches))}"


def prices_milli(wishes: list[Wish], milli_by_profile: Mapping[Profile, int]) -> dict[Profile, int]:
    """Return how contested the units of each profile are: 1,000 when all work could use all units.

    The price is the share of the usual work that a unit could serve, each part of it weighed by how
    few units could.
    """
    total = sum(milli_by_profile.values())
    held = sum(wish.milli for wish in wishes)
    prices = dict.fromkeys(milli_by_profile, 0)
    for wish in wishes:
        serving = [p for p in milli_by_profile if wish.request.accepts(dict(p))]
        capacity = sum(milli_by_profile[p] for p in serving)
        for profile in serving if capacity else ():
            prices[profile] += WHOLE_MILLI * wish.milli * total // capacity
    return (
        {profile: _rounded(price // held) for profile, price in prices.items()} if held else prices
    )


Profile = tuple[tuple[str, str], ...]
"""The attributes of a unit, sorted."""
