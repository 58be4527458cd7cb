"""Ceilings: how much there may be at once, counted in records and in machines that exist."""

from __future__ import annotations

from collections.abc import Iterable

from hostler.core.fleet import Fleet
from hostler.model.node import NodePhase, Origin
from hostler.model.pool import TierKind
from hostler.sim.cloud import CloudMachine
from hostler.sim.world import Violation


def check_ceilings(fleet: Fleet) -> None:
    """Check that no pool asks for more than it may.

    Raises:
        Violation: A tier counts more nodes than its ceiling, or a pool more launches in flight.
    """
    for pool in fleet.pools.rows.values():
        for tier in pool.tiers:
            if tier.kind is not TierKind.ELASTIC:
                continue
            nodes = [
                fleet.nodes[key]
                for key in fleet.index.nodes_by_tier.keys(f"{pool.name}/{tier.name}")
            ]
            count = sum(1 for node in nodes if node.origin is not Origin.ORPHAN)
            if count > tier.node_count_max and any(
                node.phase is NodePhase.REQUESTED
                and node.created_at_ms == fleet.now_ms
                and node.origin is Origin.LAUNCHED
                for node in nodes
            ):
                raise Violation(
                    "ceiling_broken",
                    "a node was asked for above its tier's ceiling",
                    tier=f"{pool.name}/{tier.name}",
                    count=count,
                    ceiling=tier.node_count_max,
                )


def check_bill(fleet: Fleet, machines: Iterable[CloudMachine], ceiling_max: dict[str, int]) -> None:
    """Check existing machines against the highest ceiling that their tier ever had.

    Machines that no record covers any more are the leak checker's business: they are on their way
    out, and the ceiling is about what is wanted.

    Raises:
        Violation: More machines exist than the tier may have.
    """
    counts: dict[str, int] = {}
    for machine in machines:
        node = fleet.nodes.get(machine.node_id)
        if node is None or node.phase is NodePhase.RETIRED or node.origin is Origin.ORPHAN:
            continue
        name = f"{machine.pool}/{machine.tier}"
        counts[name] = counts.get(name, 0) + 1
    for name, count in counts.items():
        if count > ceiling_max.get(name, 0):
            raise Violation(
                "bill_over_ceiling",
                "more machines exist than their tier may have",
                tier=name,
                count=count,
                ceiling=ceiling_max.get(name, 0),
            )
