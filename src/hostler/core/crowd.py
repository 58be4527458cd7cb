"""Crowd: who else would be served by a machine that is about to be bought for one replica.

Those who ask alike wait for the same; of others only the few most urgent are looked at, and only
those whom no node that exists would take, since they are served without a purchase.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence

from hostler.core.keys import pending_line
from hostler.core.limits import CROWD_LINES_MAX, CROWD_MAX
from hostler.core.placement.buy import Wanted
from hostler.core.placement.demand import Demand, demand_of
from hostler.core.placement.survey import survey_of
from hostler.core.tables import Order
from hostler.core.txn import Txn
from hostler.model import Pool, Replica


def crowd_of(
    txn: Txn, demand: Demand, pool: Pool, heads: Sequence[tuple[Order, str, str]]
) -> list[Wanted]:
    """Return who waits for a machine of a pool: the demand first, then the most urgent.

    Args:
        txn: The step.
        demand: Whom the machine is bought for.
        pool: Where.
        heads: Order, key and line of those who are tried next, one of each line.
    """
    replica = txn.fleet.replicas[demand.replica_id]
    own_line = pending_line(replica)
    own = Wanted(demand.requirement, (replica.bundle_id, replica.job), demand.is_reliable_required)
    found = [
        (order, Wanted(own.requirement, job, own.is_reliable_required))
        for order, job in _line(txn, own_line, demand.replica_id)
    ]
    for _, key, line in heapq.nsmallest(CROWD_LINES_MAX, heads):
        other = _demand(txn, txn.fleet.replicas[key])
        if line == own_line or other is None or not _needs_machine(txn, other, pool):
            continue
        found += [
            (order, Wanted(other.requirement, job, other.is_reliable_required))
            for order, job in _line(txn, line, "")
        ]
    found.sort(key=lambda each: each[0])
    return [own, *(wanted for _, wanted in found[: CROWD_MAX - 1])]


def _line(txn: Txn, line: str, but: str) -> Iterator[tuple[Order, tuple[str, str]]]:
    for order, key in txn.fleet.index.replicas_pending.front(line, CROWD_MAX):
        replica = txn.fleet.replicas[key]
        if key != but and replica.claim is None:
            yield order, (replica.bundle_id, replica.job)


def _demand(txn: Txn, replica: Replica) -> Demand | None:
    bundle = txn.fleet.bundles.get(replica.bundle_id)
    job = None if bundle is None else bundle.job(replica.job)
    if bundle is None or job is None or bundle.is_gang:
        return None
    return demand_of(txn.fleet, bundle, job, replica, txn.now_ms)


def _needs_machine(txn: Txn, demand: Demand, pool: Pool) -> bool:
    """Say whether no node of the pool would take it as it is now."""
    return pool.name in demand.pools and not any(
        survey_of(demand, txn.fleet, pool.name, tier.name).fitting_count for tier in pool.tiers
    )
