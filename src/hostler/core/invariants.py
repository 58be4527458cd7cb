"""What must hold after every step. Each has a name, and other code cites it.

`check_all` looks at everything and is for tests and the simulator; `check_changed` looks at what a
step has written and is cheap enough to stay on in production.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from hostler.base.errors import Defect
from hostler.core import (
    audit,
    config_invariants,
    consolidation_invariants,
    lease_invariants,
    node_invariants,
    pool_invariants,
    role_invariants,
    service_invariants,
    spend_invariants,
)
from hostler.core.budgets import lease_refusal
from hostler.core.delta import Delta
from hostler.core.fleet import Fleet
from hostler.core.placement.resilience import INTERRUPTIBLE_PRIMARY
from hostler.core.pool_invariants import Broken
from hostler.core.slot_choice import slot_for
from hostler.model import (
    Allocation,
    AuditEntry,
    Breaker,
    Consolidation,
    Lease,
    Meter,
    Node,
    OutboxEntry,
    Pool,
    Replica,
    Rollout,
    Shift,
    Sizes,
)
from hostler.model.allocation import AllocationPhase
from hostler.model.lease import LeasePhase
from hostler.model.node import NodePhase
from hostler.model.record import Record
from hostler.model.replica import Claim, Migration, ReplicaPhase


def _node(fleet: Fleet, node: Node) -> Iterator[Broken]:
    index = fleet.index
    if node.lease_count != index.leases_by_node.count(node.node_id):
        yield "INV-NODE-1", "the node's lease count is not the number of held leases on it"
    held_count = index.allocations_by_node.count(node.node_id)
    held_count -= index.allocations_of_services.count(node.node_id)
    if node.allocation_count != held_count:
        yield "INV-NODE-2", "the node's allocation count is not the number of live ones on it"
    if node.phase is NodePhase.RETIRED and node.is_held:
        yield "INV-NODE-3", "a retired node is held"
    if node.lease_count > node.slot_count:
        yield "INV-LEASE-1", "more leases than slots"
    if (node.idle_since_at_ms is not None) != (node.phase is NodePhase.READY and not node.is_held):
        yield "INV-NODE-4", "a node is idle exactly while it is ready and holds nothing"
    if node.is_spare and node.is_held:
        yield "INV-SPARE-1", "a spare is held"


def _lease(fleet: Fleet, lease: Lease) -> Iterator[Broken]:
    if lease.phase is LeasePhase.WAITING:
        yield from _waiting(fleet, lease)
    if lease.phase is not LeasePhase.HELD:
        return
    yield from spend_invariants.of_lease(fleet, lease)
    node = fleet.nodes.get(lease.node_id)
    if node is None or node.phase is NodePhase.RETIRED:
        yield "INV-LEASE-2", "a lease is held on a node that is gone"
    else:
        if lease.epoch > node.lease_epoch:
            yield "INV-LEASE-3", "a lease's epoch was not given by its node"
        yield from lease_invariants.of_held(node)
    if lease.expires_at_ms is None:
        yield "INV-LEASE-4", "a held lease never expires"


def _waiting(fleet: Fleet, lease: Lease) -> Iterator[Broken]:
    yield from lease_invariants.of_waiting(fleet, lease)
    if lease.reason is None:
        yield "INV-LEASE-5", "a waiting lease does not say why it waits"
    pool = fleet.pools.get(lease.pool)
    if pool is None or not pool.is_enabled:
        yield "INV-LEASE-6", "a lease waits in a pool that takes no work"
        return
    free = slot_for(fleet, lease)
    if free is not None and lease_refusal(fleet, pool, lease, free) is None:
        yield "INV-LEASE-7", "a lease waits although a slot that it could use is free"


def _allocation(fleet: Fleet, allocation: Allocation) -> Iterator[Broken]:
    if not allocation.is_live:
        if allocation.ended is None:
            yield "INV-ALLOC-1", "an ended allocation does not say how"
        return
    node = fleet.nodes.get(allocation.node_id)
    if node is None or node.phase is NodePhase.RETIRED:
        yield "INV-ALLOC-2", "a live allocation is on a node that is gone"
    replica = fleet.replicas.get(allocation.replica_id)
    if replica is not None:
        yield from service_invariants.of_allocation(allocation, replica.node_id)
    yield from config_invariants.of_allocation(fleet, allocation)
    yield from role_invariants.of_allocation(fleet, allocation)
    live = fleet.index.allocations_by_replica.keys(allocation.replica_id)
    if len(live) > 1 and not _is_migration(replica, live):
        yield "INV-ALLOC-3", "a replica has two live allocations"


def _is_migration(replica: Replica | None, live: list[str]) -> bool:
    """Say whether two allocations are the two ends of one migration, or end together."""
    if replica is None or len(live) > 2:
        return False
    migration = replica.migration
    if migration is None:
        return replica.phase is ReplicaPhase.STOPPING  # both are told to end
    return set(live) == {migration.source_id, migration.target_id}


def _replica(fleet: Fleet, replica: Replica) -> Iterator[Broken]:
    yield from _replica_phase(fleet, replica)
    if replica.phase is ReplicaPhase.PENDING and replica.reason is None:
        yield "INV-REPLICA-4", "a pending replica does not say why it waits"
    if replica.claim is not None:
        yield from _claim(fleet, replica, replica.claim)
    if replica.bundle_id not in fleet.bundles:
        yield "INV-BUNDLE-1", "a replica's bundle does not exist"


def _replica_phase(fleet: Fleet, replica: Replica) -> Iterator[Broken]:
    count = fleet.index.allocations_by_replica.count(replica.replica_id)
    match replica.phase:
        case ReplicaPhase.PLACED:
            if replica.migration is None and count != 1:
                yield "INV-REPLICA-1", "a placed replica has not exactly one live allocation"
        case ReplicaPhase.STOPPING:
            pass  # it may or may not have one left to end
        case ReplicaPhase.BACKING_OFF:
            if replica.retry_at_ms is None:
                yield "INV-REPLICA-2", "a replica backs off without a timer"
            if count:
                yield "INV-REPLICA-3", "a replica that waits for a place has one"
        case _:
            if count:
                yield "INV-REPLICA-3", "a replica that waits for a place has one"


def _claim(fleet: Fleet, replica: Replica, claim: Claim) -> Iterator[Broken]:
    if replica.kept_room is None:
        yield "INV-CLAIM-1", "room is kept for a replica that is not to have another place"
    node = fleet.nodes.get(claim.node_id)
    if node is None or node.phase is NodePhase.RETIRED:
        yield "INV-CLAIM-2", "room is kept on a node that is gone"


def _migration(fleet: Fleet, replica: Replica, migration: Migration) -> Iterator[Broken]:
    source = fleet.allocations.get(migration.source_id)
    if replica.phase is not ReplicaPhase.PLACED or source is None or not source.is_live:
        yield "INV-MIGRATION-1", "a replica is moved from a place that it has not"
    elif replica.place_id != migration.source_id:
        yield "INV-MIGRATION-1", "a replica is moved from a place that is not its own"
    if migration.target_id is None and migration.reason is None:
        yield "INV-MIGRATION-2", "a migration without a target does not say why it waits"


def _debt(fleet: Fleet, replica: Replica) -> Iterator[Broken]:
    place = fleet.allocations.get(replica.place_id)
    is_placed = replica.phase is ReplicaPhase.PLACED and place is not None and place.is_live
    broken = () if place is None or not is_placed else place.degraded_by
    owed = tuple(rule for rule in broken if rule != INTERRUPTIBLE_PRIMARY)
    if owed != (() if replica.debt is None else replica.debt.rules):
        yield "INV-DEBT-1", "what a replica owes is not what its place breaks"


def _replica_and_migration(fleet: Fleet, replica: Replica) -> Iterator[Broken]:
    yield from _replica(fleet, replica)
    yield from _debt(fleet, replica)
    yield from role_invariants.of_replica(fleet, replica)
    if replica.migration is not None:
        yield from _migration(fleet, replica, replica.migration)


def _rollout(fleet: Fleet, rollout: Rollout) -> Iterator[Broken]:
    if rollout.bundle_id not in fleet.bundles:
        yield "INV-ROLLOUT-1", "a rollout is of a bundle that does not exist"
    elif rollout.is_under_way and (
        rollout.generation != fleet.bundles[rollout.bundle_id].generation
    ):
        yield "INV-ROLLOUT-1", "a rollout leads to what is not desired"


def _shift(fleet: Fleet, shift: Shift) -> Iterator[Broken]:
    bundle = fleet.bundles.get(shift.bundle_id)
    if bundle is None or bundle.timetable != shift.timetable:
        yield "INV-SHIFT-1", "a shift is not by the timetable of its bundle"
    if shift.is_on and shift.from_at_ms is None:
        yield "INV-SHIFT-1", "a shift is on that has no beginning"


def _command(fleet: Fleet, entry: OutboxEntry) -> Iterator[Broken]:
    yield from lease_invariants.of_machine_command(fleet, entry.command)
    if entry.attempt_count < 0 or entry.next_at_ms < entry.created_at_ms:
        yield "INV-OUTBOX-2", "a command's next attempt is before its beginning"


def _room(fleet: Fleet, node: Node) -> Iterator[Broken]:
    """The sum of what is held never exceeds what the node has, unless it has shrunk since."""
    keys = fleet.index.allocations_by_node.keys(node.node_id)
    is_planned = node.phase in (NodePhase.REQUESTED, NodePhase.STARTING)
    is_promise_kept = not is_planned or not node.is_inventory_reported
    if not keys or not is_promise_kept or not (is_planned or node.phase is NodePhase.READY):
        return  # an agent may bring less than its offer promised: placing sees to it when ready
    held = [fleet.allocations[key] for key in keys]
    waiting = [a for a in held if a.phase is AllocationPhase.RESERVED]
    if not waiting:
        return  # an agent may report less than it once had; what runs, runs
    total = node.shape
    for name, have, used in (
        ("capacity", total.capacity, sum(a.requirement.capacity for a in held)),
        ("cores", total.cores_milli, sum(a.requirement.cores_milli for a in held)),
        ("memory", total.memory_bytes, sum(a.requirement.memory_bytes for a in held)),
    ):
        if have is not None and used > have and all(a.phase is waiting[0].phase for a in held):
            yield "INV-ROOM-1", f"more {name} is reserved than the node has"


def _spread(fleet: Fleet, node: Node) -> Iterator[Broken]:
    """Whoever puts an allocation on a node writes the node, so each new neighbour is seen here."""
    keys = fleet.index.allocations_by_node.keys(node.node_id)
    if len(keys) > 1:
        held = [fleet.allocations[key] for key in keys]
        replicas = {each.replica_id for each in held}  # a migration may stay where it is
        if len({(each.bundle_id, each.job) for each in held}) < len(replicas):
            yield "INV-SPREAD-1", "two replicas of one job are on one node"


def _node_and_room(fleet: Fleet, node: Node) -> Iterator[Broken]:
    yield from _node(fleet, node)
    yield from _room(fleet, node)
    yield from _spread(fleet, node)
    yield from service_invariants.of_node(node)
    yield from node_invariants.of_machine(fleet, node)
    yield from node_invariants.of_sharing(fleet, node)
    yield from node_invariants.of_lost(fleet, node)
    yield from spend_invariants.of_node(fleet, node)


_CHECKS: dict[str, Callable[[Fleet, Any], Iterator[Broken]]] = {
    Node.KIND: _node_and_room,
    Lease.KIND: _lease,
    Allocation.KIND: _allocation,
    Replica.KIND: _replica_and_migration,
    Rollout.KIND: _rollout,
    Shift.KIND: _shift,
    OutboxEntry.KIND: _command,
    AuditEntry.KIND: audit.broken,
    Pool.KIND: pool_invariants.of_pool,
    Sizes.KIND: pool_invariants.of_sizes,
    Breaker.KIND: pool_invariants.of_breaker,
    Consolidation.KIND: consolidation_invariants.of_record,
}


def _raise_if_broken(fleet: Fleet, records: Iterable[Record]) -> None:
    for record in records:
        find = _CHECKS.get(record.KIND)
        for name, message in find(fleet, record) if find is not None else ():
            raise Defect(name, message, kind=record.KIND, key=record.key)


_IS_HISTORY: dict[str, Callable[[Any], bool]] = {
    Node.KIND: lambda node: node.phase is NodePhase.RETIRED,
    Allocation.KIND: lambda allocation: not allocation.is_live,
    Lease.KIND: lambda lease: lease.phase in (LeasePhase.SETTLED, LeasePhase.REFUSED),
}
"""By kind, whether a record is over, so that nothing but its own change could break it."""


def check_all(fleet: Fleet, *, is_history_left: bool = False) -> None:
    """Check every record.

    Args:
        fleet: The fleet.
        is_history_left: Leave out what is over, which `check_changed` has seen when it ended.

    Raises:
        Defect: The first invariant found broken, with the record.
    """
    for kind in _CHECKS:
        records: Iterable[Record] = fleet.tables[kind].rows.values()
        is_history = _IS_HISTORY.get(kind)
        if is_history_left and is_history is not None:
            records = [each for each in records if not is_history(each)]
        _raise_if_broken(fleet, records)
    for meter in fleet.meters.in_order():
        for name, message in spend_invariants.of_meter(fleet, meter):
            raise Defect(name, message, kind=Meter.KIND, key=meter.key)
    for name, message in spend_invariants.of_totals(fleet):
        raise Defect(name, message)


def check_changed(fleet: Fleet, delta: Delta) -> None:
    """Check the records that a step has written, also against what they were.

    Raises:
        Defect: The first invariant found broken, with the record.
    """
    _raise_if_broken(fleet, [record for record in delta.changes.values() if record is not None])
    for (kind, key), record in delta.changes.items():
        before: Any = delta.before[(kind, key)]
        found: Iterator[Broken] = iter(())
        if isinstance(record, Node):
            found = node_invariants.of_change(fleet, before, record)
        elif isinstance(record, Replica):
            found = consolidation_invariants.of_change(fleet, before, record)
        elif isinstance(record, Lease):
            found = lease_invariants.of_change(
                fleet, before, record, _before(fleet, delta, str(record.node_id))
            )
        for name, message in found:
            raise Defect(name, message, kind=kind, key=key)


def _before(fleet: Fleet, delta: Delta, node_id: str) -> Node | None:
    """Return a node as it was before a step."""
    name = (Node.KIND, node_id)
    found = delta.before[name] if name in delta.before else fleet.nodes.get(node_id)
    return found if isinstance(found, Node) else None
