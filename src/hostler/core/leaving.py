"""Leaving: how one allocation goes from a node that is to be empty, if it can.

A replica of which two copies may run gets its second place first. Of which only one may run, is
stopped first, but not before there is room for it elsewhere, which is kept for it meanwhile; nor
while `core.disruption` objects. What finds no place stays, and says why.
"""

from __future__ import annotations

from typing import Final

import msgspec

from hostler.core import claims, growth, holds, migration
from hostler.core.disruption import hindrance
from hostler.core.events import EventKind
from hostler.core.limits import CLAIM_MARGIN_MS
from hostler.core.placement.demand import Demand, spec_of
from hostler.core.placement.feasible import refusal, standing_of
from hostler.core.placement.trace import summary
from hostler.core.placement.walk import Option, Verdict, decide
from hostler.core.txn import Txn
from hostler.core.victims import beside_claims, with_kept_room
from hostler.model import Allocation, Node, Pool, Replica
from hostler.model.allocation import AllocationPhase
from hostler.model.node import NodePhase
from hostler.model.pool import Offer, Tier
from hostler.model.reason import Reason
from hostler.model.replica import MigrationCause, ReplicaPhase

PATIENCE_MS: Final = 600_000
"""How long a second place is waited for where no deadline says otherwise."""


class Stuck(msgspec.Struct, frozen=True):
    """Why an allocation has not begun to end."""

    reason: Reason
    detail: str = ""
    until_at_ms: int | None = None
    """When to ask again at the latest, where no record's change would tell."""


def leave(
    txn: Txn, allocation: Allocation, *, within_ms: int, why: str, is_chosen: bool
) -> Stuck | None:
    """Have an allocation end once its replica has, or surely gets, another place.

    Args:
        txn: The step.
        allocation: Live, on a node that is to be empty.
        within_ms: How long a second copy may take to become ready.
        why: The reason that it is stopped for.
        is_chosen: It need not leave: budgets bind also what causes no gap.

    Returns:
        `None` when it ends; else what it waits for, which may be its second copy.
    """
    replica = txn.fleet.replicas.get(allocation.replica_id)
    if allocation.phase is AllocationPhase.STOPPING:
        return None
    if allocation.phase is AllocationPhase.RESERVED or replica is None:
        holds.request_stop(txn, allocation, why)
        return None
    if replica.place_id != allocation.allocation_id:
        migration.cancel(txn, replica, f"{allocation.node_id} is to be empty, too")
        return None
    if is_chosen and replica.migration is None:
        has_gap = not _may_overlap(txn, replica)
        hindered = _hindrance(txn, allocation, has_gap=has_gap)
        if hindered is not None:
            return hindered
    obstacle = migration.begin(txn, replica, MigrationCause.DRAIN, within_ms=within_ms)
    if obstacle is Reason.OVERLAP_FORBIDDEN:
        return _stop_first(txn, replica, allocation, why)
    if obstacle is not None:
        return Stuck(obstacle)
    return _under_way(txn, txn.fleet.replicas[replica.replica_id])


def call_off(txn: Txn, allocation: Allocation) -> None:
    """Let what has not begun to end stay after all."""
    replica = txn.fleet.replicas.get(allocation.replica_id)
    if replica is None or replica.place_id != allocation.allocation_id:
        return
    under_way = replica.migration
    if under_way is not None and under_way.cause is MigrationCause.DRAIN:
        replica = migration.cancel(txn, replica, "its node is to be empty no more")
    if replica.phase is ReplicaPhase.PLACED and allocation.phase is not AllocationPhase.STOPPING:
        claims.end(txn, replica, "it stays where it is")


def stay(txn: Txn, node: Node) -> None:
    """Let all that is on a node stay that has not begun to end: it is to be empty no more."""
    for key in txn.fleet.index.allocations_by_node.keys(node.node_id):
        call_off(txn, txn.fleet.allocations[key])
    for key in txn.fleet.index.leases_by_node.keys(node.node_id):
        txn.change(txn.fleet.leases[key], retiring_at_ms=None, retiring_at_ms_max=None)


def _hindrance(txn: Txn, allocation: Allocation, *, has_gap: bool) -> Stuck | None:
    found = hindrance(txn, allocation, MigrationCause.DRAIN, has_gap=has_gap)
    return None if found is None else Stuck(found.reason, found.detail, found.until_at_ms)


def _may_overlap(txn: Txn, replica: Replica) -> bool:
    """Say whether two copies of a replica may run at once."""
    spec = spec_of(txn.fleet, replica)
    return spec is not None and spec[1].can_overlap


def _under_way(txn: Txn, replica: Replica) -> Stuck:
    """Say how far the second copy is."""
    moving = replica.migration
    target = None if moving is None else txn.fleet.allocations.get(moving.target_id)
    if target is not None:
        where = f"{target.allocation_id} on {target.node_id} is {target.phase.value}"
        return Stuck(Reason.MIGRATING, where)
    if moving is None or moving.reason is None:
        return Stuck(Reason.MIGRATING, "a second place is looked for")
    return Stuck(moving.reason, moving.reason_detail)


# -- stopped first ---------------------------------------------------------------------------------


def _stop_first(txn: Txn, replica: Replica, allocation: Allocation, why: str) -> Stuck | None:
    spec = spec_of(txn.fleet, replica)
    if spec is None:
        holds.request_stop(txn, allocation, why)
        return None
    demand = beside_claims(txn, *spec, replica)
    if replica.claim is None:
        stuck = _find_room(txn, replica, allocation, demand)
        if stuck is not None:
            return stuck
        replica = txn.fleet.replicas[replica.replica_id]
    node = None if replica.claim is None else txn.fleet.nodes.get(replica.claim.node_id)
    if node is None:
        return Stuck(Reason.NO_CAPACITY)
    if node.phase is not NodePhase.READY or not node.is_inventory_reported:
        return Stuck(Reason.MACHINE_STARTING, f"{node.node_id} is launched for it")
    place = with_kept_room(txn, txn.fleet.index.places.of(txn.fleet, node.node_id), replica)
    refused = refusal(demand, place)
    if refused is not None:
        claims.end(txn, replica, f"it does not fit on {node.node_id}: {refused.value}")
        _try_later(txn, replica)
        return Stuck(refused, f"on {node.node_id}")
    hindered = _hindrance(txn, allocation, has_gap=True)
    if hindered is not None:
        return hindered
    holds.request_stop(txn, allocation, why)
    txn.emit(
        EventKind.REPLICA_STOPPED_FIRST,
        migration.about(replica, allocation),
        next_node=node.node_id,
        why="two copies of it must not run at once",
    )
    return None


def _find_room(txn: Txn, replica: Replica, allocation: Allocation, demand: Demand) -> Stuck | None:
    """Keep room elsewhere, on a node that is there or on a machine that is asked for."""
    if txn.now_ms < replica.migration_retry_at_ms and not _is_any_open(txn, demand):
        txn.wake(replica, replica.migration_retry_at_ms)
        known = txn.fleet.notes.get(allocation.allocation_id, {}).get("drain")
        if known is not None:
            return Stuck(known.reason, known.detail)
        return Stuck(Reason.NO_CAPACITY)

    def obstacle(pool: Pool, tier: Tier, offer: Offer) -> Reason | None:
        return growth.growth_obstacle(txn, pool, tier, offer)

    verdict = decide(demand, txn.fleet, obstacle)
    node = None if verdict.option is None else _node_of(txn, verdict.option)
    if node is None:
        _try_later(txn, replica)
        return _refused(verdict)
    is_there = node.phase is NodePhase.READY
    until_at_ms = txn.now_ms + allocation.launch.stop_grace_ms + CLAIM_MARGIN_MS
    if not is_there:
        until_at_ms += node.boot_ms
    claims.keep(txn, replica, demand.requirement, node, until_at_ms=until_at_ms)
    return None


def _is_any_open(txn: Txn, demand: Demand) -> bool:
    """Say whether a node that has just changed, and was not only looked at, would do."""
    place = txn.fleet.index.places.of
    return any(
        node.pool in demand.pools
        and txn.fleet.is_different(node)
        and not standing_of(node)
        and refusal(demand, place(txn.fleet, node.node_id)) is None
        for node in txn.changed(Node)
    )


def _node_of(txn: Txn, option: Option) -> Node | None:
    if option.place is not None:
        return option.place.node
    if option.offer is None:
        return None
    found = growth.request_node(txn, option.pool, option.tier, option.offer)
    return found if isinstance(found, Node) else None


def _try_later(txn: Txn, replica: Replica) -> None:
    """Have it looked at again in a while; a look in vain before then does not put that off."""
    replica = txn.fleet.replicas[replica.replica_id]
    if replica.migration_retry_at_ms <= txn.now_ms:
        at_ms = txn.now_ms + migration.RETRY_MS
        replica = txn.change(replica, migration_retry_at_ms=at_ms)
    txn.wake(replica, replica.migration_retry_at_ms)


def _refused(verdict: Verdict) -> Stuck:
    reason = verdict.reason or Reason.NO_CAPACITY
    return Stuck(reason, verdict.detail or summary(verdict.attempts))
