"""Migrating: lets a second place take over from the first once it is ready, then ends the first.

Reads:    replicas, allocations.
Writes:   replicas (which allocation is their place; migrations that are over), allocations (asked
          to stop).
Sends:    StopAllocation, through `holds`.
Keeps:    INV-ALLOC-3, INV-MIGRATION-1, INV-REPLICA-1.
Waits on: nothing (placing finds the target and says why there is none).

Whoever wants a replica moved writes that into it (`core.migration`); where it goes is placing's.
The first place is not touched before the second one is ready. If the second one ends before that,
or is not there in time, the replica stays where it is. If the first one ends too early, the second
one is its place already, ready or not.
"""

from __future__ import annotations

from typing import Final

from hostler.core import holds, migration
from hostler.core.events import EventKind
from hostler.core.txn import Txn
from hostler.model import Allocation, Replica
from hostler.model.allocation import AllocationPhase
from hostler.model.replica import Migration

READS: Final = (Replica, Allocation)


def reconcile(txn: Txn) -> None:
    """Go on with every migration for which something has changed."""
    keys = dict.fromkeys(r.replica_id for r in txn.changed(Replica) if r.migration is not None)
    keys.update(dict.fromkeys(a.replica_id for a in txn.changed(Allocation)))
    for key in keys:
        replica = txn.fleet.replicas.get(key)
        if replica is not None and replica.migration is not None:
            _go_on(txn, replica, replica.migration)


def _go_on(txn: Txn, replica: Replica, under_way: Migration) -> None:
    source = txn.fleet.allocations.get(under_way.source_id)
    target = txn.fleet.allocations.get(under_way.target_id)
    is_target_live = target is not None and target.is_live
    if source is None or not source.is_live:
        if target is not None and target.is_live:
            _hand_over(txn, replica, under_way, target)
        else:
            txn.change(replica, migration=None)
    elif under_way.target_id is not None and not is_target_live:
        _fall_back(txn, replica, under_way, source, target)
    elif under_way.is_cancelled:
        return
    elif target is not None and target.phase is AllocationPhase.READY:
        holds.request_stop(txn, source, f"{target.allocation_id} on {target.node_id} takes over")
    elif source.phase is AllocationPhase.STOPPING:
        return  # the takeover has begun, or something else ends it
    elif under_way.deadline_at_ms <= txn.now_ms:
        migration.cancel(txn, replica, "no second copy was ready in time")
    else:
        txn.wake(replica, under_way.deadline_at_ms)


def _hand_over(txn: Txn, replica: Replica, under_way: Migration, target: Allocation) -> None:
    """Make the target the replica's place, since the first one is gone."""
    bundle = txn.fleet.bundles.get(replica.bundle_id)
    txn.emit(
        EventKind.REPLICA_MIGRATED,
        migration.about(replica, target),
        cause=under_way.cause.value,
        source=under_way.source_id,
        is_ready=target.phase is AllocationPhase.READY,
    )
    txn.change(
        replica,
        migration=None,
        place_id=target.allocation_id,
        generation=replica.generation if bundle is None else bundle.generation,
    )


def _fall_back(
    txn: Txn,
    replica: Replica,
    under_way: Migration,
    source: Allocation,
    target: Allocation | None,
) -> None:
    """Leave the replica where it is, since the target has ended."""
    ended = None if target is None else target.ended
    if not under_way.is_cancelled:
        txn.emit(
            EventKind.REPLICA_MIGRATION_FAILED,
            migration.about(replica, source),
            cause=under_way.cause.value,
            detail="the second copy is gone" if ended is None else f"it ended: {ended.cause.value}",
        )
    txn.change(replica, migration=None, migration_retry_at_ms=txn.now_ms + migration.RETRY_MS)
