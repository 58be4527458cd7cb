"""Supposing: a fleet in which some facts are different, for as long as somebody looks.

A transaction that is always abandoned: the fleet is afterwards exactly as it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from hostler.core import growth
from hostler.core.crowd import crowd_of
from hostler.core.explain.alterations import Alteration, apply, own_place
from hostler.core.fleet import Fleet
from hostler.core.placement.demand import Demand, demand_of
from hostler.core.placement.walk import Verdict, decide
from hostler.core.txn import Txn
from hostler.model import Replica


@contextmanager
def supposing(
    fleet: Fleet, replica: Replica, alterations: Iterable[Alteration] = (), *, now_ms: int
) -> Iterator[Txn]:
    """Look at a fleet in which a replica has no place yet, and some facts are different.

    Raises:
        Rejected: An alteration does not go with what there is.
    """
    txn = Txn(fleet, now_ms)
    try:
        own_place(txn, replica)
        apply(txn, replica.replica_id, alterations)
        yield txn
    finally:
        txn.abandon()


def demand_in(txn: Txn, replica_id: str) -> Demand | None:
    """Return what a replica asks of a place; `None` when its bundle has no such job any more."""
    replica = txn.fleet.replicas.get(replica_id)
    bundle = None if replica is None else txn.fleet.bundles.get(replica.bundle_id)
    job = None if replica is None or bundle is None else bundle.job(replica.job)
    if replica is None or bundle is None or job is None:
        return None
    return demand_of(txn.fleet, bundle, job, replica, txn.now_ms)


def decided(txn: Txn, demand: Demand) -> Verdict:
    """Return what placing would decide."""
    return decide(
        demand,
        txn.fleet,
        lambda pool, tier, offer: growth.growth_obstacle(txn, pool, tier, offer),
        lambda asked, pool: crowd_of(txn, asked, pool, ()),
    )
