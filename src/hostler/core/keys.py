"""Keys: how the buckets of indexes are called, and in what order those who wait stand."""

from __future__ import annotations

from hostler.model import Replica
from hostler.model.replica import ReplicaPhase


def tier_key(pool: str, tier: str) -> str:
    """Return the bucket of a tier."""
    return f"{pool}/{tier}"


def bundle_phase_key(bundle_id: str, phase: ReplicaPhase) -> str:
    """Return the bucket of a bundle's replicas in one phase."""
    return f"{bundle_id}/{phase.value}"


def pending_line(replica: Replica) -> str:
    """Return the bucket of replicas that ask alike and to which the same nodes are open."""
    is_recovery = replica.is_recovery and replica.migration is None
    return f"{replica.demand}{'/recovery' if is_recovery else ''}"
