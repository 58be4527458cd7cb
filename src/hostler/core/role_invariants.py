"""What must hold of the roles of copies after every step."""

from __future__ import annotations

from collections.abc import Iterator

from hostler.base.ids import PRIMARY, replica_id
from hostler.core.fleet import Fleet
from hostler.core.holds import role_command_id
from hostler.core.pool_invariants import Broken
from hostler.model import Allocation, Bundle, Replica
from hostler.model.allocation import AllocationPhase
from hostler.model.replica import ReplicaPhase

_RUNS = (AllocationPhase.RUNNING, AllocationPhase.READY)


def of_replica(fleet: Fleet, replica: Replica) -> Iterator[Broken]:
    """No two copies of one job are its primary; who is on the way out is nothing any more."""
    bundle = fleet.bundles.get(replica.bundle_id)
    if replica.role != PRIMARY or bundle is None or _is_leaving(replica, bundle):
        return
    for index in range(bundle.replica_count):
        other = fleet.replicas.get(replica_id(replica.bundle_id, replica.job, index))
        if other is None or other is replica or _is_leaving(other, bundle):
            continue
        if other.role == PRIMARY:
            yield "INV-ROLE-1", "two copies of one job are its primary"


def _is_leaving(replica: Replica, bundle: Bundle) -> bool:
    return replica.phase is ReplicaPhase.STOPPING or replica.index >= bundle.replica_count


def of_allocation(fleet: Fleet, allocation: Allocation) -> Iterator[Broken]:
    """A copy has the role of its replica, and knows it or is being told."""
    replica = fleet.replicas.get(allocation.replica_id)
    if replica is not None and allocation.is_live and allocation.role != replica.role:
        yield "INV-ROLE-2", "a copy has another role than its replica"
    is_behind = allocation.phase in _RUNS and allocation.role_known < allocation.role_term
    if is_behind and role_command_id(allocation) not in fleet.commands:
        yield "INV-ROLE-2", "a running copy does not know its role, and nobody tells it"
