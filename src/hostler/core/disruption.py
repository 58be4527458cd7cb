"""Disruption: whether work that runs well may be stopped now for the sake of something better.

The one place that answers this for everybody who moves what need not move; budgets belong here.
"""

from __future__ import annotations

from hostler.core.txn import Txn
from hostler.model import Allocation
from hostler.model.allocation import AllocationPhase
from hostler.model.reason import Reason


def hindrance(txn: Txn, allocation: Allocation) -> Reason | None:
    """Return why an allocation may not be stopped before it is replaced, or `None` if it may.

    Of each job one copy that is ready must be left.
    """
    for key in txn.fleet.index.allocations_by_bundle.keys(allocation.bundle_id):
        other = txn.fleet.allocations[key]
        is_copy = other.job == allocation.job and other.replica_id != allocation.replica_id
        if is_copy and other.phase is AllocationPhase.READY and not other.stop_reason:
            return None
    return Reason.LAST_READY_COPY
