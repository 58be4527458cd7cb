"""Promoting: a copy that is ready takes the role of the primary over when that is gone.

Reads:    replicas, allocations, nodes, bundles.
Writes:   replicas, allocations (their roles).
Sends:    AssignRole `"{allocation_id}/role/{term}"`.
Keeps:    INV-ROLE-1, INV-ROLE-2.
Waits on: nothing; who is the primary is in every view of a replica.

Only in bundles that ask for it. The two exchange their roles: the heir goes on as it is and is
told, and what is placed anew is the backup. Nobody gives a role back by itself, so a copy that
comes and goes does not make the roles do so. A silent primary is no lost one, and who is silent is
no heir. Jobs that are together on one node have one role together.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from hostler.base.ids import PRIMARY, rank_of, replica_id, role_of
from hostler.core import holds, outbox
from hostler.core.events import EventKind
from hostler.core.placement.demand import demand_digest, is_reliable_required
from hostler.core.placement.resilience import INTERRUPTIBLE_PRIMARY
from hostler.core.txn import Txn
from hostler.model import Allocation, Bundle, Node, Replica
from hostler.model.allocation import AllocationPhase
from hostler.model.bundle import BundlePhase, Job
from hostler.model.command import AssignRole
from hostler.model.node import Health
from hostler.model.pool import Reliability
from hostler.model.replica import ReplicaPhase

READS: Final = (Replica, Allocation, Node, Bundle)

_RUNS: Final = (AllocationPhase.RUNNING, AllocationPhase.READY)
_OFF: Final = (ReplicaPhase.DORMANT, ReplicaPhase.STOPPING, ReplicaPhase.ENDED)
"""Phases of a copy that is not to run: there is no role to take over."""


def reconcile(txn: Txn) -> None:
    """Look at each job of which something changed, then tell whoever has not heard its role."""
    for changed in txn.changed(Bundle):
        if changed.phase is BundlePhase.ACTIVE and changed.service is None:
            for each in changed.jobs:
                _close_ranks(txn, changed, each)
    for bundle_id, name in _jobs_to_look_at(txn):
        bundle = txn.fleet.bundles.get(bundle_id)
        job = None if bundle is None else bundle.job(name)
        if bundle is not None and job is not None and _is_asked_for(bundle):
            _promote(txn, bundle, _jobs_together(bundle, job))
    for allocation in txn.changed(Allocation):
        _tell(txn, allocation)


def _jobs_to_look_at(txn: Txn) -> Iterable[tuple[str, str]]:
    """Give each job once, by its bundle and its name."""
    found: dict[tuple[str, str], None] = {}
    for replica in txn.changed(Replica):
        found[replica.bundle_id, replica.job] = None
    for allocation in (*txn.changed(Allocation), *_on_changed_nodes(txn)):
        found[allocation.bundle_id, allocation.job] = None
    for bundle in txn.changed(Bundle):
        if _is_asked_for(bundle):
            found.update(dict.fromkeys((bundle.bundle_id, job.name) for job in bundle.jobs))
    return found


def _on_changed_nodes(txn: Txn) -> Iterator[Allocation]:
    for node in txn.changed(Node):
        if node.allocation_count and node.health is Health.LIVE:
            for key in txn.fleet.index.allocations_by_node.keys(node.node_id):
                yield txn.fleet.allocations[key]


def _is_asked_for(bundle: Bundle) -> bool:
    return (
        bundle.is_backup_promoted
        and bundle.replica_count > 1
        and bundle.phase is BundlePhase.ACTIVE
    )


def _jobs_together(bundle: Bundle, job: Job) -> Sequence[Job]:
    return [each for each in bundle.jobs if bundle.is_colocated or each is job]


def _close_ranks(txn: Txn, bundle: Bundle, job: Job) -> None:
    """Give the copies that stay the roles of so many, when some with a higher one are to go."""
    ids = (replica_id(bundle.bundle_id, job.name, n) for n in range(bundle.replica_count))
    known = (txn.fleet.replicas.get(key) for key in ids)
    staying = [each for each in known if each and each.phase is not ReplicaPhase.STOPPING]
    for index, replica in enumerate(sorted(staying, key=lambda each: rank_of(each.role))):
        if replica.role != role_of(index):
            _take(txn, bundle, replica, role_of(index))


def _promote(txn: Txn, bundle: Bundle, jobs: Sequence[Job]) -> None:
    copies = [_copy(txn, bundle, jobs, index) for index in range(bundle.replica_count)]
    primary = next((each for each in copies if each and each[0].role == PRIMARY), None)
    if primary is None or not any(_is_down(txn, replica) for replica in primary):
        return
    ready = [each for each in copies if each and all(_may_be_heir(txn, bundle, r) for r in each)]
    if not ready:
        return
    heirs = min(ready, key=lambda copy: rank_of(copy[0].role))
    for heir in heirs:
        gone = _primary_of(txn, bundle, heir.job)
        if gone is None or gone.replica_id == heir.replica_id:
            continue  # jobs that were apart until lately may have had heirs of their own
        place = txn.fleet.allocations[heir.place_id or ""]
        txn.emit(
            EventKind.REPLICA_PROMOTED,
            {
                "replica": heir.replica_id,
                "bundle": heir.bundle_id,
                "allocation": place.allocation_id,
                "node": place.node_id,
            },
            former_role=heir.role,
            instead_of=gone.replica_id,
        )
        _take(txn, bundle, gone, heir.role)
        _take(txn, bundle, heir, PRIMARY)


def _primary_of(txn: Txn, bundle: Bundle, job: str) -> Replica | None:
    ids = (replica_id(bundle.bundle_id, job, index) for index in range(bundle.replica_count))
    known = (txn.fleet.replicas.get(key) for key in ids)
    return next((each for each in known if each and each.role == PRIMARY), None)


def _copy(txn: Txn, bundle: Bundle, jobs: Sequence[Job], index: int) -> list[Replica]:
    """Return the replicas of jobs that hold together; none while one of them is not to run."""
    found = []
    for job in jobs:
        replica = txn.fleet.replicas.get(replica_id(bundle.bundle_id, job.name, index))
        if replica is None or replica.phase in _OFF:
            return []
        found.append(replica)
    return found


def _is_down(txn: Txn, replica: Replica) -> bool:
    """Say whether a copy has run and does not, nor is told to go on doing so."""
    place = txn.fleet.allocations.get(replica.place_id)
    if replica.phase is not ReplicaPhase.PLACED or place is None:
        return replica.epoch > 0
    if place.phase in _RUNS:
        return False
    return place.epoch > 1 or place.phase is AllocationPhase.STOPPING


def _may_be_heir(txn: Txn, bundle: Bundle, replica: Replica) -> bool:
    place = txn.fleet.allocations.get(replica.place_id)
    if replica.phase is not ReplicaPhase.PLACED or place is None:
        return False
    node = txn.fleet.nodes.get(place.node_id)
    return (
        place.phase is AllocationPhase.READY
        and node is not None
        and node.health is Health.LIVE
        and (node.reliability is Reliability.RELIABLE or not is_reliable_required(bundle, PRIMARY))
    )


def _take(txn: Txn, bundle: Bundle, replica: Replica, role: str) -> None:
    """Give a replica and its copies a role, with the rules that go with it."""
    job = bundle.job(replica.job)
    demand = replica.demand if job is None else demand_digest(bundle, job, role)
    txn.change(replica, role=role, demand=demand)
    for key in txn.fleet.index.allocations_by_replica.keys(replica.replica_id):
        allocation = txn.fleet.allocations[key]
        if allocation.role_term > allocation.role_known:
            outbox.withdraw(txn, holds.role_command_id(allocation))
        changed = txn.change(
            allocation,
            role=role,
            role_term=allocation.role_term + 1,
            degraded_by=_degraded(txn, allocation, role),
        )
        _tell(txn, changed)


def _degraded(txn: Txn, allocation: Allocation, role: str) -> tuple[str, ...]:
    """Return the rules that a place breaks, in a role."""
    kept = tuple(rule for rule in allocation.degraded_by if rule != INTERRUPTIBLE_PRIMARY)
    node = txn.fleet.nodes.get(allocation.node_id)
    if role == PRIMARY and node is not None and node.reliability is Reliability.INTERRUPTIBLE:
        return (*kept, INTERRUPTIBLE_PRIMARY)
    return kept


def _tell(txn: Txn, allocation: Allocation) -> None:
    if allocation.role_term <= allocation.role_known or allocation.phase not in _RUNS:
        return
    txn.send(
        holds.role_command_id(allocation),
        AssignRole(
            node_id=allocation.node_id,
            node_epoch=txn.fleet.nodes[allocation.node_id].epoch,
            allocation_id=allocation.allocation_id,
            epoch=allocation.epoch,
            role=allocation.role,
            term=allocation.role_term,
        ),
    )
