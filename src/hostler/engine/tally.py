"""The tally: what is counted and timed of committed steps, for metrics.

It looks at what a step changed and told, after the step is durable, and decides nothing. Counts
begin with the process; what was under way then is taken over, so that sums come out even.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final

from hostler.core.delta import Delta
from hostler.core.events import Event, EventKind
from hostler.core.fleet import Fleet
from hostler.model import Allocation, Lease, Node, OutboxEntry
from hostler.model.allocation import AllocationPhase, EndCause
from hostler.model.node import NodePhase
from hostler.model.record import Record

SHORT_MS: Final = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 30_000, 60_000)
"""Bounds for what takes milliseconds when all is well."""

LONG_MS: Final = (
    *(100, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 30_000, 60_000, 120_000, 300_000, 600_000),
    *(1_800_000, 3_600_000, 14_400_000),
)
"""Bounds for what waits for machines and workloads."""

RECOVERING_MAX: Final = 100_000
"""Recoveries that are timed at once; one more is counted and not timed."""

_WAITS_FOR_START: Final = (AllocationPhase.RESERVED, AllocationPhase.STARTING)
_HAS_CAPACITY: Final = (NodePhase.READY, NodePhase.DRAINING)


class Histogram:
    """How often something took how long, in the unit of its bounds."""

    def __init__(self, bounds: Sequence[int]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0

    def add(self, took: int) -> None:
        """Count one."""
        self.counts[bisect_left(self.bounds, took)] += 1
        self.total += took


class Histograms:
    """Histograms of one kind, by labels."""

    def __init__(self, bounds_ms: Sequence[int]) -> None:
        self._bounds_ms = bounds_ms
        self.by_labels: dict[tuple[str, ...], Histogram] = {}

    def add(self, took_ms: int, *labels: str) -> None:
        """Count one."""
        found = self.by_labels.get(labels)
        if found is None:
            found = self.by_labels[labels] = Histogram(self._bounds_ms)
        found.add(max(0, took_ms))


class Tally:
    """Counts and times of one process.

    Attributes:
        events: Events told, by kind.
        placements: Places given or refused, by pool, band and outcome; the pool is empty where
            there was none.
        ended: Allocations that ended, by cause and band.
        recoveries: Recoveries begun, by cause.
        moves: Moves to a second place, by cause and outcome.
        settled: Leases settled, by pool and outcome.
        refused: Leases refused, by pool and reason.
        capacity: Capacity of nodes in use and what of it is taken, by pool.
    """

    def __init__(self) -> None:
        self.events: Counter[str] = Counter()
        self.placements: Counter[tuple[str, str, str]] = Counter()
        self.ended: Counter[tuple[str, str]] = Counter()
        self.recoveries: Counter[str] = Counter()
        self.moves: Counter[tuple[str, str]] = Counter()
        self.settled: Counter[tuple[str, str]] = Counter()
        self.refused: Counter[tuple[str, str]] = Counter()
        self.capacity: dict[str, list[int]] = {}
        self.ready = Histograms(LONG_MS)
        self.recovered = Histograms(LONG_MS)
        self.lease_waits = Histograms(SHORT_MS)
        self.lease_holds = Histograms(LONG_MS)
        self.boots = Histograms(LONG_MS)
        self.commands = Histograms(LONG_MS)
        self._recovering: dict[str, int] = {}
        self._was_ready: set[str] = set()
        """Live allocations that were ready once: only the first time is timed."""
        self._on_event: dict[EventKind, Callable[[Fleet, Delta, Event], None]] = {
            EventKind.REPLICA_PLACEMENT_FAILED: self._not_placed,
            EventKind.REPLICA_RECOVERING: self._recovery_begun,
            EventKind.REPLICA_BROKEN: self._recovery_given_up,
            EventKind.REPLICA_DROPPED: self._recovery_given_up,
            EventKind.REPLICA_MIGRATING: self._move_begun,
            EventKind.REPLICA_MIGRATED: self._move_done,
            EventKind.REPLICA_MIGRATION_FAILED: self._move_failed,
            EventKind.BUNDLE_DELETED: self._bundle_gone,
            EventKind.LEASE_GRANTED: self._lease_granted,
            EventKind.LEASE_SETTLED: self._lease_settled,
            EventKind.LEASE_REFUSED: self._lease_refused,
            EventKind.NODE_READY: self._node_ready,
        }

    def begin(self, fleet: Fleet) -> None:
        """Take over what is under way when the process starts: its outcome will be counted."""
        for node in fleet.nodes.rows.values():
            self._capacity_of(node, 1)
        for allocation in fleet.allocations.rows.values():
            if allocation.is_live:
                self._use(fleet, allocation, 1)
                if allocation.started_at_ms is not None:
                    self._was_ready.add(allocation.allocation_id)  # when it was ready is past
                if _is_placement(allocation) and allocation.phase in _WAITS_FOR_START:
                    self.placements[(*_place(fleet, allocation), "attempted")] += 1

    def count(self, fleet: Fleet, delta: Delta) -> None:
        """Count a step that is durable; the fleet is as it left it."""
        for event in delta.events:
            self.events[event.kind] += 1
            found = self._on_event.get(event.kind)
            if found is not None:
                found(fleet, delta, event)
        for (kind, key), new in delta.changes.items():
            if kind in _LOOKED_AT:
                self._changed(fleet, delta, delta.before[(kind, key)], new)

    def _changed(self, fleet: Fleet, delta: Delta, old: Record | None, new: Record | None) -> None:
        match old, new:
            case ((Node() | None), (Node() | None)):
                is_same = old and new and old.phase is new.phase and old.shape is new.shape
                if not is_same:
                    self._capacity_of(old, -1)
                    self._capacity_of(new, 1)
            case ((Allocation() | None), (Allocation() | None)):
                self._allocation(fleet, delta, old, new)
            case OutboxEntry(), None:
                name = str(type(old.command).__struct_config__.tag)
                self.commands.add(delta.now_ms - old.created_at_ms, name)
            case _:
                pass

    # -- places ------------------------------------------------------------------------------

    def _capacity_of(self, node: Node | None, sign: int) -> None:
        if node is not None and node.phase in _HAS_CAPACITY and node.shape.capacity is not None:
            self.capacity.setdefault(node.pool, [0, 0])[0] += sign * node.shape.capacity

    def _use(self, fleet: Fleet, allocation: Allocation, sign: int) -> None:
        node = fleet.nodes.get(allocation.node_id)
        if node is not None:
            taken = sign * (allocation.requirement.capacity or 0)
            self.capacity.setdefault(node.pool, [0, 0])[1] += taken

    def _allocation(
        self, fleet: Fleet, delta: Delta, old: Allocation | None, new: Allocation | None
    ) -> None:
        was_live, is_live = old is not None and old.is_live, new is not None and new.is_live
        one = new or old
        if one is None:
            return
        if was_live != is_live:
            self._use(fleet, one, 1 if is_live else -1)
        place = _place(fleet, one)
        if _is_placement(one):
            if old is None:
                self.placements[(*place, "attempted")] += 1
            was_waiting = old is None or old.phase in _WAITS_FOR_START
            if new is not None and was_waiting and new.phase not in _WAITS_FOR_START:
                self.placements[(*place, _outcome(new))] += 1
        if new is None:
            return
        key = new.allocation_id
        if was_live and new.ended is not None:
            self._was_ready.discard(key)
            self.ended[(new.ended.cause.value, new.band.value)] += 1
        if new.phase is AllocationPhase.READY and key not in self._was_ready:
            self._was_ready.add(key)
            self.ready.add(delta.now_ms - new.created_at_ms, new.band.value)
            since_at_ms = self._recovering.pop(new.replica_id, None)
            if since_at_ms is not None:
                self.recovered.add(delta.now_ms - since_at_ms, new.band.value)

    def _not_placed(self, fleet: Fleet, _delta: Delta, event: Event) -> None:
        replica = fleet.replicas.get(event.about.get("replica"))
        band = "" if replica is None else replica.band.value
        for outcome in ("attempted", "no_place"):
            self.placements[("", band, outcome)] += 1

    def _recovery_begun(self, _fleet: Fleet, delta: Delta, event: Event) -> None:
        self.recoveries[str(event.data.get("cause"))] += 1
        if len(self._recovering) < RECOVERING_MAX:
            self._recovering.setdefault(event.about["replica"], delta.now_ms)

    def _recovery_given_up(self, _fleet: Fleet, _delta: Delta, event: Event) -> None:
        self._recovering.pop(event.about["replica"], None)

    def _bundle_gone(self, _fleet: Fleet, _delta: Delta, event: Event) -> None:
        prefix = f"{event.about['bundle']}/"
        for key in [key for key in self._recovering if key.startswith(prefix)]:
            del self._recovering[key]

    def _move_begun(self, _fleet: Fleet, _delta: Delta, event: Event) -> None:
        self.moves[(str(event.data.get("cause")), "begun")] += 1

    def _move_done(self, _fleet: Fleet, _delta: Delta, event: Event) -> None:
        self.moves[(str(event.data.get("cause")), "done")] += 1

    def _move_failed(self, _fleet: Fleet, _delta: Delta, event: Event) -> None:
        self.moves[(str(event.data.get("cause")), "failed")] += 1

    # -- leases and nodes --------------------------------------------------------------------

    def _lease_granted(self, _fleet: Fleet, _delta: Delta, event: Event) -> None:
        waited_ms = event.data.get("waited_ms")
        self.lease_waits.add(waited_ms if isinstance(waited_ms, int) else 0, event.about["pool"])

    def _lease_settled(self, _fleet: Fleet, delta: Delta, event: Event) -> None:
        pool = event.about["pool"]
        self.settled[(pool, str(event.data.get("outcome")))] += 1
        lease = delta.changes.get((Lease.KIND, event.about["lease"]))
        if isinstance(lease, Lease) and lease.granted_at_ms is not None:
            self.lease_holds.add(delta.now_ms - lease.granted_at_ms, pool)

    def _lease_refused(self, _fleet: Fleet, _delta: Delta, event: Event) -> None:
        self.refused[(event.about["pool"], str(event.data.get("reason")))] += 1

    def _node_ready(self, fleet: Fleet, _delta: Delta, event: Event) -> None:
        boot_ms, node = event.data.get("boot_ms"), fleet.nodes.get(event.about["node"])
        if isinstance(boot_ms, int) and node is not None:
            self.boots.add(boot_ms, node.pool, node.tier)


_LOOKED_AT: Final = frozenset((Node.KIND, Allocation.KIND, OutboxEntry.KIND))


def _is_placement(allocation: Allocation) -> bool:
    """Say whether an allocation came of a decision; a copy of a node service has no choice."""
    return not allocation.is_service


def _place(fleet: Fleet, allocation: Allocation) -> tuple[str, str]:
    node = fleet.nodes.get(allocation.node_id)
    return "" if node is None else node.pool, allocation.band.value


def _outcome(allocation: Allocation) -> str:
    """Say what became of a placement whose start is decided."""
    if allocation.phase in (AllocationPhase.RUNNING, AllocationPhase.READY):
        return "started"
    ended = allocation.ended
    if ended is None or ended.cause in (EndCause.STOPPED, EndCause.CANCELLED):
        return "withdrawn"
    if ended.cause is EndCause.EXITED:
        return "started"
    return "start_failed"
