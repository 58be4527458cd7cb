"""What must hold of the books after every step; `invariants` runs it."""

from __future__ import annotations

from collections.abc import Iterator

from hostler.core.fleet import Fleet
from hostler.core.keys import tier_key
from hostler.core.spend_index import FLEET, machine_scopes
from hostler.core.uses import offer_key
from hostler.model import Lease, Meter, Node
from hostler.model.lease import LeasePhase
from hostler.model.node import NodePhase
from hostler.model.spend import SpendBy, Stretch

Broken = tuple[str, str]
"""An invariant's name, and what was found."""


def of_node(fleet: Fleet, node: Node) -> Iterator[Broken]:
    """A machine is metered once, from when it is known until it is confirmed gone."""
    is_over = node.phase is NodePhase.RETIRED
    if node.machine_id is not None and node.metered_from_ms is None:
        yield "INV-SPEND-2", "a machine is not in the books"
    if node.metered_from_ms is not None and is_over != (node.metered_until_ms is not None):
        yield "INV-SPEND-2", "a machine is metered exactly until it is confirmed gone"
    if is_over or node.metered_from_ms is None:
        return
    meter = fleet.meters.get(offer_key(node.pool, node.tier, node.offer))
    if meter is None or meter.micros_per_hour < node.price_microusd_per_hour:
        yield "INV-SPEND-1", "a machine that runs is on no meter"


def of_meter(fleet: Fleet, meter: Meter) -> Iterator[Broken]:
    """A meter is the sum of the machines on it; for tests, since it looks at each of them."""
    keys = fleet.index.nodes_by_tier.keys(tier_key(meter.pool, meter.tier))
    nodes = [fleet.nodes[key] for key in keys]
    running = [n for n in nodes if n.offer == meter.offer and n.metered_from_ms is not None]
    if meter.node_count != len(running):
        yield "INV-SPEND-1", "a meter does not count the machines that run"
    if meter.micros_per_hour != sum(node.price_microusd_per_hour for node in running):
        yield "INV-SPEND-1", "a meter's rate is not the sum of its machines' prices"


def of_totals(fleet: Fleet) -> Iterator[Broken]:
    """All that is known to have been used is in the books, and never less than nothing; for tests.

    Machines that are forgotten count in the books only, so what is left is a lower bound.
    """
    index = fleet.index.spend
    now_ms = fleet.now_ms
    ms_by_tier: dict[tuple[str, str], int] = {}
    for node in fleet.nodes.in_order():
        if node.metered_from_ms is not None:
            until_ms = now_ms if node.metered_until_ms is None else node.metered_until_ms
            place = node.pool, node.tier
            ms_by_tier[place] = ms_by_tier.get(place, 0) + until_ms - node.metered_from_ms
    for (pool, tier), ms in sorted(ms_by_tier.items()):
        scope = machine_scopes(pool, tier)[-1]
        booked = index.used(scope, SpendBy.OFFER, Stretch.TOTAL, 0).node_ms
        running = index.running.get(scope)
        if booked + (0 if running is None else running.node_ms(now_ms)) < ms:
            yield "INV-SPEND-4", f"machines of {pool}/{tier} ran for longer than the books say"
    for by in SpendBy:
        used = index.used(FLEET, by, Stretch.TOTAL, 0)
        if min(used.node_ms, used.held_ms, used.cost_units) < 0:
            yield "INV-SPEND-3", "the books are below nothing"


def of_lease(fleet: Fleet, lease: Lease) -> Iterator[Broken]:
    """What is kept for a held lease covers what it has cost so far."""
    if lease.phase is not LeasePhase.HELD or lease.meter is None:
        return
    if (lease.ends_at_ms or lease.expires_at_ms or 0) < fleet.now_ms:
        yield "INV-SPEND-5", "a lease runs for longer than money was kept for it"
