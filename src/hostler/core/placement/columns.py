"""Columns: the nodes of one tier as arrays, so that a filter costs a few instructions a node.

A row is a node; rows stand in the order of ids, so the lowest row wins a tie. A written node's row
is marked and filled again when somebody asks. Who keeps something computed from the columns reads
in the log which rows have changed since.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hostler.core.limits import RANKINGS_MAX
from hostler.core.placement.feasible import FILTERS, Place, is_planned
from hostler.core.placement.mix import Mix, Profile, prices_milli
from hostler.core.placement.score import Market
from hostler.model.node import NodePhase
from hostler.model.pool import Reliability
from hostler.model.reason import Reason

Ints = NDArray[np.int64]
Codes = NDArray[np.int8]
Flags = NDArray[np.bool_]

FITS: Final = 0
"""Code of a node that no filter refuses."""
GONE: Final = 127
"""Code of a row whose node has left the tier; it is no candidate."""
CODES: Final[Mapping[Reason, int]] = {reason: n for n, reason in enumerate(FILTERS, start=1)}
"""Code of the first reason that refuses a node: lower codes are tried first."""

UNKNOWN: Final = -1
"""A quantity that is not reported."""

_ROWS_MIN: Final = 64


class Devices:
    """The units of one capability, node by node."""

    def __init__(self, row_count: int) -> None:
        self.has = np.zeros(row_count, np.bool_)
        self.milli = np.zeros((row_count, 1), np.int32)
        """What is free of each unit."""
        self.profile = np.full(row_count, UNKNOWN, np.int32)
        """Which attributes the node's units have; unknown when they differ."""
        self.profiles: list[Profile] = []
        self._codes: dict[Profile, int] = {}

    def fill(self, row: int, free: list[int], profile: Profile | None) -> None:
        """Write one node."""
        width = self.milli.shape[1]
        if len(free) > width:
            wider = np.zeros((len(self.milli), max(len(free), 2 * width)), np.int32)
            wider[:, :width] = self.milli
            self.milli = wider
        self.milli[row, : len(free)] = free
        self.milli[row, len(free) :] = 0
        self.has[row] = True
        code = UNKNOWN
        if profile is not None:
            known = self._codes.get(profile)
            code = self._codes[profile] = len(self.profiles) if known is None else known
            if known is None:
                self.profiles.append(profile)
        self.profile[row] = code

    def clear(self, row: int) -> None:
        """Write that a node has none."""
        self.has[row] = False
        self.milli[row] = 0
        self.profile[row] = UNKNOWN

    def grow(self, row_count: int) -> None:
        """Make room for more rows."""
        self.has, self.profile = _longer(self.has, row_count), _longer(self.profile, row_count)
        self.milli = _longer(self.milli, row_count)


class Columns:
    """The nodes of one tier."""

    def __init__(self, tier: str, node_ids: list[str]) -> None:
        self.tier = tier
        """Pool and tier, as a domain."""
        self.ids = node_ids
        self.places: list[Place | None] = [None] * len(node_ids)
        """By row; `None` for one that has left."""
        self.log: list[int] = []
        """Rows that were filled again, in order; cut off from time to time."""
        self.generation = 0
        """Raised when the log has been cut off."""
        self.count = 0
        """Nodes that are candidates."""
        self.rankings: dict[Any, Any] = {}
        """What is kept about these nodes for demands, by `ranking`."""
        self.devices: dict[str, Devices] = {}
        self._rows = {node_id: row for row, node_id in enumerate(node_ids)}
        self._marked: dict[int, None] = dict.fromkeys(range(len(node_ids)))
        self._left: set[int] = set()
        self._milli_by_profile: dict[str, dict[Profile, int]] = {}
        self._market: tuple[int, int, Market] | None = None
        self._offered = 0
        size = max(len(node_ids), _ROWS_MIN)
        self.standing: Codes = np.zeros(size, np.int8)
        self.capacity, self.cores, self.memory = (np.zeros(size, np.int64) for _ in range(3))
        self.device_milli: Ints = np.zeros(size, np.int64)
        self.is_unreported: Flags = np.zeros(size, np.bool_)
        self.is_unit_unreported: Flags = np.zeros(size, np.bool_)
        self.is_interruptible: Flags = np.zeros(size, np.bool_)
        self.is_spare: Flags = np.zeros(size, np.bool_)
        self.is_leased: Flags = np.zeros(size, np.bool_)
        self.is_booting: Flags = np.zeros(size, np.bool_)
        self.spare_band: NDArray[np.int32] = np.zeros(size, np.int32)
        """Code of the band that a spare is for; 0 for any."""
        self.codes: dict[str, int] = {"": 0}
        """Of domains and bands."""
        self.open_domains: dict[Any, Any] = {}
        """What is kept about where work could be spread to, by `open_domains`."""
        self._domains: dict[str, NDArray[np.int32]] = {}

    # -- following -------------------------------------------------------------------------------

    def touch(self, node_id: str) -> bool:
        """Mark a node as written or new; false when it would have to stand between others."""
        row = self._rows.get(node_id)
        if row is None:
            if self.ids and node_id < self.ids[-1]:
                return False
            row = self._rows[node_id] = len(self.ids)
            self.ids.append(node_id)
            self.places.append(None)
            if row >= len(self.standing):
                self._grow(2 * row)
        self._left.discard(row)
        self._marked[row] = None
        return True

    def mark(self, node_id: str) -> None:
        """Mark a node as seen differently, if it is one of these and has not left."""
        row = self._rows.get(node_id)
        if row is not None and row not in self._left:
            self._marked[row] = None

    def leave(self, node_id: str) -> None:
        """Mark a node as gone from the tier."""
        row = self._rows[node_id]
        self._left.add(row)
        self._marked[row] = None

    def refresh(self, place_of: Callable[[str], Place]) -> None:
        """Fill the rows that are marked."""
        if not self._marked:
            return
        for row in self._marked:
            if row in self._left:
                self._clear(row)
            else:
                self._fill(row, place_of(self.ids[row]))
        self.log += self._marked
        self._marked.clear()
        if len(self.log) > 2 * len(self.ids) + 1_024:
            self.log.clear()
            self.generation += 1

    def row_of(self, node_id: str | None) -> int | None:
        """Return the row of a node that is a candidate."""
        row = None if node_id is None else self._rows.get(node_id)
        return None if row is None or self.places[row] is None else row

    def code_of(self, name: str) -> int:
        """Return the code of a domain or a band."""
        return self.codes.setdefault(name, len(self.codes))

    def domains(self, kind: str) -> NDArray[np.int32]:
        """Return the code of each row's domain of a kind, such as `zone`; kept once asked for."""
        column = self._domains.get(kind)
        if column is None:
            if len(self._domains) >= RANKINGS_MAX:
                del self._domains[next(iter(self._domains))]
            column = self._domains[kind] = np.zeros(len(self.standing), np.int32)
            for row, place in enumerate(self.places):
                if place is not None:
                    column[row] = self.code_of(place.domains.value(kind) or "")
        return column

    def _fill(self, row: int, place: Place) -> None:
        before = self.places[row]
        if before is place:
            return
        node, room = place.node, place.room
        self.places[row] = place
        self.count += before is None
        self.standing[row] = CODES[place.standing[0]] if place.standing else FITS
        self.capacity[row] = UNKNOWN if room.capacity is None else max(room.capacity, 0)
        self.cores[row] = UNKNOWN if room.cores_milli is None else max(room.cores_milli, 0)
        self.memory[row] = UNKNOWN if room.memory_bytes is None else max(room.memory_bytes, 0)
        self.device_milli[row] = place.device_milli
        if before is None or before.node is not node:
            self._fill_node(row, place)
        if before is None or before.profiles is not place.profiles:
            self._offer(before, place)
        if before is None or before.room.units is not room.units:
            self._fill_units(row, place)

    def _fill_node(self, row: int, place: Place) -> None:
        node = place.node
        self.is_unreported[row] = node.phase is NodePhase.READY and not node.is_inventory_reported
        self.is_interruptible[row] = node.reliability is Reliability.INTERRUPTIBLE
        self.is_spare[row] = node.is_spare
        self.spare_band[row] = self.code_of(node.spare_band or "")
        self.is_leased[row] = node.lease_count > 0
        self.is_booting[row] = is_planned(node)
        for kind, column in self._domains.items():
            column[row] = self.code_of(place.domains.value(kind) or "")

    def _fill_units(self, row: int, place: Place) -> None:
        room = place.room
        self.is_unit_unreported[row] = room.units is None
        free: dict[str, list[int]] = {name: [] for name in room.names}
        for unit in room.units or ():
            free[unit.name] += [unit.milli] * unit.count
        for kind, milli in free.items():
            devices = self.devices.get(kind)
            if devices is None:
                devices = self.devices[kind] = Devices(len(self.standing))
            devices.fill(row, milli, place.profiles.get(kind))
        for kind, devices in self.devices.items():
            if kind not in free:
                devices.clear(row)

    def _clear(self, row: int) -> None:
        before = self.places[row]
        if before is not None:
            self._offer(before, None)
            self.places[row] = None
            self.count -= 1
        self.standing[row] = GONE

    def _grow(self, size: int) -> None:
        for name, column in vars(self).items():
            if isinstance(column, np.ndarray):
                setattr(self, name, _longer(column, size))
        for kind, column in self._domains.items():
            self._domains[kind] = _longer(column, size)
        for devices in self.devices.values():
            devices.grow(size)

    # -- what the score knows --------------------------------------------------------------------

    def market(self, mix: Mix) -> Market:
        """Return what the mix of work says about the units of this tier."""
        known = self._market
        if known is not None and known[:2] == (mix.version, self._offered):
            return known[2]
        kinds = [kind for kind in mix.kinds() if kind in self.devices]
        company = {kind: found for kind in kinds if (found := mix.company(kind)) is not None}
        prices = {
            kind: prices_milli(mix.wishes(kind), self._milli_by_profile.get(kind, {}))
            for kind in kinds
        }
        market = Market(company, prices)
        if known is not None and known[2] == market:
            market = known[2]
        self._market = (mix.version, self._offered, market)
        return market

    def _offer(self, before: Place | None, after: Place | None) -> None:
        """Keep the sum of whole units of each profile."""
        for place, sign in ((before, -1), (after, 1)):
            if place is None:
                continue
            for kind, profile in place.profiles.items():
                sums = self._milli_by_profile.setdefault(kind, {})
                sums[profile] = sums.get(profile, 0) + sign * place.whole_milli[kind]
                if not sums[profile]:
                    del sums[profile]
                self._offered += 1


def _longer(column: NDArray[Any], row_count: int) -> NDArray[Any]:
    longer = np.zeros((row_count, *column.shape[1:]), column.dtype)
    longer[: len(column)] = column
    return longer
