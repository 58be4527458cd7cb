"""What must hold of nodes that are emptied and of who is moved for it; `invariants` runs it."""

from __future__ import annotations

from collections.abc import Iterator

from hostler.core.fleet import Fleet
from hostler.core.pool_invariants import Broken
from hostler.model import Consolidation, Replica


def of_record(fleet: Fleet, record: Consolidation) -> Iterator[Broken]:
    """What is being emptied takes nothing new, and a record is of a pool that consolidates."""
    pool = fleet.pools.get(record.pool)
    if pool is None or pool.consolidation is None:
        yield "INV-CONSOLIDATION-3", "a pool consolidates that is not to"
    node = fleet.nodes.get(record.node_id)
    if record.node_id is not None and (node is None or node.takes_work):
        yield "INV-CONSOLIDATION-1", "a node is being emptied that is gone, or takes new work"


def of_change(fleet: Fleet, before: Replica | None, replica: Replica) -> Iterator[Broken]:
    """Who was moved so that a machine could go is not moved for another one soon after."""
    last_at_ms = None if before is None else before.consolidated_at_ms
    at_ms = replica.consolidated_at_ms
    place = fleet.allocations.get(replica.place_id)
    node = None if place is None else fleet.nodes.get(place.node_id)
    pool = None if node is None else fleet.pools.get(node.pool)
    policy = None if pool is None else pool.consolidation
    if last_at_ms is None or at_ms is None or policy is None:
        return
    if 0 < at_ms - last_at_ms < policy.spacing_ms:
        yield "INV-CONSOLIDATION-2", "a replica is moved again before its time"
