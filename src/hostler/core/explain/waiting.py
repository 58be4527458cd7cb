"""Waiting: what a replica without a place waits for, told from the present state.

The record keeps the reason as of when the replica was last looked at, and it is looked at only when
something has opened; what else has changed since is not in it. So it is decided anew, and undone.
"""

from __future__ import annotations

from typing import Final

import msgspec

from hostler.core.explain.supposing import decided, demand_in, supposing
from hostler.core.fleet import Fleet
from hostler.core.placement.demand import Demand
from hostler.core.placement.trace import summary
from hostler.core.placement.walk import WAITS
from hostler.model import Replica
from hostler.model.reason import Reason
from hostler.model.replica import ReplicaPhase
from hostler.model.trace import Attempt

FITS_NOW: Final = "There is a place for it now; the next step takes it."


class Waiting(msgspec.Struct, frozen=True, kw_only=True):
    """What a pending replica waits for."""

    reason: Reason | None
    """`None`: there is a place for it now."""
    detail: str
    demand: Demand | None = None
    """What it asks, where it is its turn at all."""
    attempts: tuple[Attempt, ...] = ()
    """Where it was looked for."""


def why_pending(fleet: Fleet, replica: Replica, *, now_ms: int) -> Waiting | None:
    """Say what a pending replica waits for now; `None` for one that does not wait for a place."""
    if replica.phase is not ReplicaPhase.PENDING:
        return None
    if replica.reason is not None and replica.reason not in WAITS:
        # Whoever holds it back does so before any place is looked for.
        return Waiting(reason=replica.reason, detail=replica.reason_detail)
    with supposing(fleet, replica, now_ms=now_ms) as txn:
        demand = demand_in(txn, replica.replica_id)
        if demand is None:
            return Waiting(reason=replica.reason, detail=replica.reason_detail)
        verdict = decided(txn, demand)
    detail = summary(verdict.attempts)
    return Waiting(reason=verdict.reason, detail=detail, demand=demand, attempts=verdict.attempts)
