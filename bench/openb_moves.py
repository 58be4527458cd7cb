"""Moves that make room: what a bounded number of migrations gains in the protocol of `openb`.

When a task finds no place, one that runs is looked for whose move would make room: without it the
task fits on its node, and the core has another place for it. The move is a real one, make before
break: the core chooses the second place, its agent reports it ready, and only then the first one
ends. Who is moved is chosen here, the least that helps; where to is the core's own policy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

import msgspec

from hostler.core import migration
from hostler.core.allocation_fact import AllocationFact
from hostler.core.fleet import Fleet
from hostler.core.inputs import AllocationReported, AnyInput
from hostler.core.placement.demand import demand_of
from hostler.core.placement.feasible import Place
from hostler.core.placement.places import hold_of, live_on
from hostler.core.placement.room import free_room, shortage
from hostler.core.placement.walk import decide
from hostler.core.step import step
from hostler.core.txn import Txn
from hostler.model import Allocation, Replica
from hostler.model.allocation import AllocationPhase, EndCause, Ended
from hostler.model.replica import MigrationCause
from hostler.model.shape import Requirement

_TRIES_MAX: Final = 20
"""Running tasks for which another place is looked for at most before a task is given up."""


def make_room(fleet: Fleet, needed: Requirement, now_ms: int) -> bool:
    """Move one running task so that another one fits where it was; say whether that was done."""
    for number, allocation in enumerate(_in_the_way(fleet, needed)):
        if number >= _TRIES_MAX:
            return False
        replica = fleet.replicas[allocation.replica_id]
        if _has_other_place(fleet, replica, allocation, now_ms):
            return _move(fleet, replica, now_ms)
    return False


def _in_the_way(fleet: Fleet, needed: Requirement) -> Iterator[Allocation]:
    """Give the tasks without which the needed room would be there, the least first."""
    live = [each for each in fleet.allocations.rows.values() if each.is_live]
    places = {node_id: fleet.index.places.of(fleet, node_id) for node_id in fleet.nodes.rows}
    for each in sorted(live, key=_size):
        place = places[each.node_id]
        if _may_be_enough(place, each, needed):
            holds = [hold_of(other) for other in live_on(fleet, each.node_id) if other is not each]
            if shortage(needed, free_room(place.node.shape, holds)) is None:
                yield each


def _may_be_enough(place: Place, leaving: Allocation, needed: Requirement) -> bool:
    """Say whether the sums would be enough, which is quickly found out."""
    room, less = place.room, leaving.requirement
    return (
        (room.cores_milli or 0) + less.cores_milli >= needed.cores_milli
        and (room.memory_bytes or 0) + less.memory_bytes >= needed.memory_bytes
        and place.device_milli + _milli(less) >= _milli(needed)
    )


def _size(allocation: Allocation) -> tuple[int, int, str]:
    need = allocation.requirement
    return _milli(need), need.cores_milli, allocation.allocation_id


def _milli(requirement: Requirement) -> int:
    return sum(request.total_milli for request in requirement.capabilities)


def _has_other_place(fleet: Fleet, replica: Replica, allocation: Allocation, now_ms: int) -> bool:
    bundle = fleet.bundles[replica.bundle_id]
    demand = demand_of(fleet, bundle, bundle.jobs[0], replica, now_ms)
    elsewhere = msgspec.structs.replace(demand, rejected=frozenset({allocation.node_id}))
    return decide(elsewhere, fleet, lambda *_: None).option is not None


def _move(fleet: Fleet, replica: Replica, now_ms: int) -> bool:
    """Let the core move a replica, and say for the agents how it goes."""

    def ask(txn: Txn) -> None:
        """Want it elsewhere, as a rollout or a debt does."""
        migration.begin(txn, replica, MigrationCause.DEBT, within_ms=60_000)

    _run(fleet, [], now_ms, ask)
    asked = fleet.replicas[replica.replica_id].migration
    target = None if asked is None else fleet.allocations.get(asked.target_id)
    if asked is None or target is None:
        return False
    _run(fleet, [_told(target, AllocationPhase.READY)], now_ms)
    source = fleet.allocations[asked.source_id]
    _run(fleet, [_told(source, AllocationPhase.ENDED)], now_ms)
    return fleet.replicas[replica.replica_id].place_id == target.allocation_id


def _run(
    fleet: Fleet, inputs: list[AnyInput], now_ms: int, amend: Callable[[Txn], None] | None = None
) -> None:
    fleet.keep(step(fleet, inputs, now_ms, amend))


def _told(allocation: Allocation, phase: AllocationPhase) -> AllocationReported:
    ended = Ended(cause=EndCause.STOPPED) if phase is AllocationPhase.ENDED else None
    fact = AllocationFact(
        allocation_id=allocation.allocation_id,
        epoch=allocation.epoch,
        phase=phase.value,
        started_at_ms=1,
        ended=ended,
    )
    return AllocationReported(node_id=allocation.node_id, fact=fact)
