"""Explain: why one thing is as it is, what it waits for, and what a person can do about it.

Pure reading of the fleet between steps. Reasons come from records, from the notes that controllers
left, and for what follows from another record (a machine that boots) from that record.
"""

from __future__ import annotations

from hostler.base.ids import AllocationId, BundleId, LeaseId, NodeId, ReplicaId
from hostler.core.explain.answer import Check, Explanation, Fit, Why
from hostler.core.explain.capacity import explain_lease, explain_node, explain_pool
from hostler.core.explain.pending import Pending, PendingGroup, pending
from hostler.core.explain.work import explain_allocation, explain_bundle, explain_replica
from hostler.core.fleet import Fleet

__all__ = [
    "Check",
    "Explanation",
    "Fit",
    "Pending",
    "PendingGroup",
    "Why",
    "explain",
    "explain_allocation",
    "explain_bundle",
    "explain_lease",
    "explain_node",
    "explain_pool",
    "explain_replica",
    "pending",
]


def explain(fleet: Fleet, about: str) -> Explanation | None:
    """Explain whatever has this id; `None` when nothing has."""
    if about in fleet.nodes:
        return explain_node(fleet, NodeId(about))
    if about in fleet.leases:
        return explain_lease(fleet, LeaseId(about))
    if about in fleet.replicas:
        return explain_replica(fleet, ReplicaId(about))
    if about in fleet.allocations:
        return explain_allocation(fleet, AllocationId(about))
    if about in fleet.bundles:
        return explain_bundle(fleet, BundleId(about))
    return explain_pool(fleet, about)
