"""Consolidation: whether a node is worth emptying so that its machine can go, and if not, why not.

What can be said without looking for other places: how much of the node is used and for how long it
has been so, what its machine costs, who is on it, and what its pool keeps anyway. The controller
`consolidating` asks it before it plans anything; people ask it what keeps a node.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from hostler.core.fleet import Fleet
from hostler.core.placement.feasible import standing_of
from hostler.core.sizing_targets import sizes_of
from hostler.core.uses import Use, use_key
from hostler.model import Allocation, Consolidation, Node, Pool
from hostler.model.allocation import AllocationPhase
from hostler.model.consolidation import ConsolidationPolicy
from hostler.model.node import Cordon, Health, NodePhase, Origin
from hostler.model.reason import Reason

_HOUR_MS: Final = 3_600_000

CORDON_REASON: Final = "consolidation"
"""By which the cordon of a node that is being emptied is known."""


class Obstacle(msgspec.Struct, frozen=True):
    """Why a node is not emptied."""

    reason: Reason
    detail: str = ""
    until_at_ms: int | None = None
    """When to ask again, where no change of a record would tell."""


def is_ours(cordon: Cordon | None) -> bool:
    """Say whether a cordon is there because the node is being emptied to save its machine."""
    return cordon is not None and cordon.is_passing and cordon.reason == CORDON_REASON


def is_candidate(node: Node) -> bool:
    """Say whether a node is of the kind that is emptied at all: launched, and used by jobs only."""
    return (
        node.origin is Origin.LAUNCHED
        and node.phase is NodePhase.READY
        and node.allocation_count > 0
        and node.lease_count == 0
    )


def obstacle(fleet: Fleet, policy: ConsolidationPolicy, node: Node, now_ms: int) -> Obstacle | None:
    """Return what speaks against emptying a node, wherever there is room; `None` if nothing does.

    Args:
        fleet: The fleet.
        policy: Of the node's pool.
        node: One that is a candidate.
        now_ms: The instant.
    """
    standing = standing_of(node)
    if standing:
        return Obstacle(standing[0])
    percent = used_percent(fleet, node)
    if percent > policy.used_percent_max:
        told = f"{percent} % of it is used; at most {policy.used_percent_max} % may be"
        return Obstacle(Reason.WELL_USED, told)
    return (
        _of_money(policy, node)
        or _of_floors(fleet, fleet.pools[node.pool])
        or _of_time(fleet, policy, node, now_ms)
        or _of_replicas(fleet, policy, node, now_ms)
        or _of_moves(fleet, policy, node, now_ms)
        or _of_last_look(fleet, node, now_ms)
    )


def used_percent(fleet: Fleet, node: Node) -> int:
    """Return how much is used of whatever the node has least left of."""
    place = fleet.index.places.of(fleet, node.node_id)
    shape, room = node.shape, place.room
    pairs = [
        (shape.capacity, room.capacity),
        (shape.cores_milli, room.cores_milli),
        (shape.memory_bytes, room.memory_bytes),
        *((whole, place.free_milli.get(name, 0)) for name, whole in place.whole_milli.items()),
    ]
    shares = (
        -(-100 * (whole - free) // whole) for whole, free in pairs if whole and free is not None
    )
    return max(shares, default=0)


def live_on(fleet: Fleet, node: Node) -> list[Allocation]:
    """Return what has to leave a node, most urgent first; services go with the machine."""
    keys = fleet.index.allocations_by_node.keys(node.node_id)
    found = [fleet.allocations[key] for key in keys]
    return sorted(
        (each for each in found if not each.is_service),
        key=lambda each: (each.band.rank, each.allocation_id),
    )


def gain_micros(policy: ConsolidationPolicy, node: Node) -> int:
    """Return what is saved in the time of payback, less the cost of moving what is there."""
    saved = node.price_microusd_per_hour * policy.payback_ms // _HOUR_MS
    return saved - policy.move_cost_micros * node.allocation_count


def moves_of(record: Consolidation, policy: ConsolidationPolicy, now_ms: int) -> tuple[int, ...]:
    """Return the moves of a pool that are within its window."""
    return tuple(at_ms for at_ms in record.moved_at_ms if at_ms > now_ms - policy.window_ms)


def _of_money(policy: ConsolidationPolicy, node: Node) -> Obstacle | None:
    gain = gain_micros(policy, node)
    if gain > 0:
        return None
    told = f"it costs {node.price_microusd_per_hour} millionths an hour, and"
    cost = policy.move_cost_micros * node.allocation_count
    return Obstacle(Reason.NO_NET_GAIN, f"{told} moving what is there {cost}")


def _of_floors(fleet: Fleet, pool: Pool) -> Obstacle | None:
    """Say whether the pool would keep the machine, or launch another, once it is empty."""
    counts, sizes = fleet.index.nodes_by_use, sizes_of(fleet, pool)
    incoming_count = counts.count(use_key(pool.name, Use.INCOMING))
    staying_count = fleet.index.nodes_staying.count(pool.name)
    if staying_count - 1 - incoming_count < sizes.node_count_min:
        return Obstacle(Reason.WARM_FLOOR, f"the pool keeps {sizes.node_count_min} nodes")
    if counts.count(use_key(pool.name, Use.WARM)) + 1 <= sizes.warm_count:
        return Obstacle(Reason.WARM_FLOOR, f"the pool lacks some of {sizes.warm_count} idle nodes")
    spare_count = counts.count(use_key(pool.name, Use.SPARE))
    if spare_count + counts.count(use_key(pool.name, Use.INCOMING_SPARE)) < pool.spare_count:
        return Obstacle(Reason.SPARE_TARGET, f"the pool lacks some of {pool.spare_count} spares")
    return None


def _of_time(fleet: Fleet, policy: ConsolidationPolicy, node: Node, now_ms: int) -> Obstacle | None:
    since_at_ms = [max(node.phase_since_at_ms, node.health_since_at_ms)]
    for each in live_on(fleet, node):
        if each.phase is not AllocationPhase.READY:
            return Obstacle(Reason.NOT_SETTLED, f"{each.allocation_id} is {each.phase.value}")
        since_at_ms.append(each.phase_since_at_ms)
    until_at_ms = max(since_at_ms) + policy.settle_ms
    if node.health is Health.LIVE and until_at_ms <= now_ms:
        return None
    return Obstacle(Reason.NOT_SETTLED, "not all is there for long enough", until_at_ms)


def _of_replicas(
    fleet: Fleet, policy: ConsolidationPolicy, node: Node, now_ms: int
) -> Obstacle | None:
    found = (_of_replica(fleet, policy, each, now_ms) for each in live_on(fleet, node))
    return next((each for each in found if each is not None), None)


def _of_replica(
    fleet: Fleet, policy: ConsolidationPolicy, place: Allocation, now_ms: int
) -> Obstacle | None:
    """Say why one of those who are there cannot be moved now, whatever room there is."""
    replica, bundle = fleet.replicas.get(place.replica_id), fleet.bundles.get(place.bundle_id)
    job = None if bundle is None else bundle.job(place.job)
    if replica is None or bundle is None or job is None:
        return Obstacle(Reason.NOT_SETTLED, f"{place.replica_id} is being deleted")
    told = replica.replica_id
    if replica.migration is not None or replica.place_id != place.allocation_id:
        return Obstacle(Reason.MIGRATING, told)
    if not job.can_overlap:
        return Obstacle(Reason.OVERLAP_FORBIDDEN, told)
    if bundle.is_colocated and len(bundle.jobs) > 1:
        return Obstacle(Reason.COLOCATION, told)
    if replica.generation != bundle.generation:
        return Obstacle(Reason.NOT_SETTLED, f"{told} is not up to date with its bundle")
    moved_at_ms = replica.consolidated_at_ms
    if moved_at_ms is not None and now_ms < moved_at_ms + policy.spacing_ms:
        return Obstacle(Reason.MOVED_LATELY, told, moved_at_ms + policy.spacing_ms)
    if now_ms < replica.migration_retry_at_ms:
        return Obstacle(Reason.BACKING_OFF, told, replica.migration_retry_at_ms)
    return None


def _of_moves(
    fleet: Fleet, policy: ConsolidationPolicy, node: Node, now_ms: int
) -> Obstacle | None:
    record = fleet.consolidations.get(node.pool)
    moves = () if record is None else moves_of(record, policy, now_ms)
    room = policy.move_count_max - len(moves)
    if node.allocation_count <= room:
        return None
    told = f"{len(moves)} of {policy.move_count_max} moves are made, and it takes"
    over_count = min(node.allocation_count - room, len(moves))
    until_at_ms = moves[over_count - 1] + policy.window_ms if over_count else None
    return Obstacle(Reason.MOVES_SPENT, f"{told} {node.allocation_count}", until_at_ms)


def _of_last_look(fleet: Fleet, node: Node, now_ms: int) -> Obstacle | None:
    record = fleet.consolidations.get(node.pool)
    for each in () if record is None else record.left_alone:
        if each.node_id == node.node_id and now_ms < each.until_at_ms:
            return Obstacle(each.reason, each.detail, each.until_at_ms)
    return None


def words(fleet: Fleet, node: Node, now_ms: int) -> Iterator[tuple[Obstacle, int]]:
    """Tell people why a node of a pool that consolidates stays or goes, and since when."""
    pool = fleet.pools.get(node.pool)
    if pool is None or pool.consolidation is None or not is_candidate(node):
        return
    record = fleet.consolidations.get(pool.name)
    if record is not None and record.node_id == node.node_id:
        yield Obstacle(Reason.CONSOLIDATING), record.begun_at_ms
        return
    found = obstacle(fleet, pool.consolidation, node, now_ms)
    if found is not None:
        yield found, node.phase_since_at_ms
