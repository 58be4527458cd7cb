"""Moving a replica that has a place: a second place first, and only then the end of the first one.

One mechanism for everybody who wants a replica elsewhere while it runs: whoever asks calls `begin`
and looks at the records for what came of it; the controller `migrating` does the rest. A job whose
copies must not overlap is never moved so: `begin` says that, and who asked stops it first.
"""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from hostler.core import holds
from hostler.core.events import EventKind
from hostler.core.txn import Txn
from hostler.model import Allocation, Replica
from hostler.model.allocation import AllocationPhase
from hostler.model.reason import Reason
from hostler.model.replica import Migration, MigrationCause, ReplicaPhase

RETRY_MS: Final = 30_000
"""Pause of a replica after a migration that failed: as long as a node that failed is avoided."""


def begin(
    txn: Txn,
    replica: Replica,
    cause: MigrationCause,
    *,
    within_ms: int,
    may_stay: bool = False,
    broken_count_max: int | None = None,
) -> Reason | None:
    """Want a second place for a replica that runs, to take over from the first.

    Args:
        txn: The step.
        replica: Has a place.
        cause: Who wants it.
        within_ms: No ready target after this long: it stays where it is.
        may_stay: The new place may be on the same node.
        broken_count_max: Rules that the new place may break at most.

    Returns:
        `None` when it is under way (or was already), or why it cannot be now.
    """
    if replica.migration is not None:
        return Reason.MIGRATING if replica.migration.is_cancelled else None
    bundle = txn.fleet.bundles.get(replica.bundle_id)
    job = None if bundle is None else bundle.job(replica.job)
    if job is None or not job.can_overlap:
        return Reason.OVERLAP_FORBIDDEN
    if txn.now_ms < replica.migration_retry_at_ms:
        txn.wake(replica, replica.migration_retry_at_ms)
        return Reason.BACKING_OFF
    source = txn.fleet.allocations.get(replica.place_id)
    if (
        replica.phase is not ReplicaPhase.PLACED
        or source is None
        or source.phase in (AllocationPhase.STOPPING, AllocationPhase.ENDED)
    ):
        return Reason.IN_USE
    wanted = Migration(
        cause=cause,
        source_id=source.allocation_id,
        requested_at_ms=txn.now_ms,
        deadline_at_ms=txn.now_ms + within_ms,
        may_stay=may_stay,
        broken_count_max=broken_count_max,
    )
    txn.change(replica, migration=wanted)
    txn.emit(EventKind.REPLICA_MIGRATING, about(replica, source), cause=cause.value)
    return None


def cancel(txn: Txn, replica: Replica, why: str) -> Replica:
    """Give a migration up: its target ends, and the replica stays where it is."""
    migration = replica.migration
    if migration is None or migration.is_cancelled:
        return replica
    target = txn.fleet.allocations.get(migration.target_id)
    source = txn.fleet.allocations[migration.source_id]
    txn.emit(
        EventKind.REPLICA_MIGRATION_FAILED,
        about(replica, source),
        cause=migration.cause.value,
        detail=why,
    )
    retry_at_ms = txn.now_ms + RETRY_MS
    if target is not None:
        target = holds.request_stop(txn, target, why)
    if target is None or not target.is_live:
        return txn.change(replica, migration=None, migration_retry_at_ms=retry_at_ms)
    return txn.change(
        replica,
        migration=replace(migration, is_cancelled=True),
        migration_retry_at_ms=retry_at_ms,
    )


def about(replica: Replica, source: Allocation) -> dict[str, str]:
    """Return what an event about a migration is about."""
    return {
        "replica": replica.replica_id,
        "bundle": replica.bundle_id,
        "allocation": source.allocation_id,
        "node": source.node_id,
    }
