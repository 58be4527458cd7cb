"""Protection: which single loss would leave replicas of a bundle without a place.

Each node, zone, provider and interruptible tier that a bundle is on is taken away in thought, with
all that is on it, and whoever is displaced is placed anew, the most urgent first, by the same
decisions as ever: on what is left, or on machines that may be launched within the limits. Nothing
of it stays.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import msgspec
from msgspec.structs import replace

from hostler.core import assigning, growth, holds
from hostler.core.fleet import Fleet
from hostler.core.keys import tier_key
from hostler.core.limits import DISPLACED_COUNT_MAX
from hostler.core.placement.demand import demand_of
from hostler.core.placement.resilience import OWN_HARDWARE
from hostler.core.placement.walk import decide
from hostler.core.txn import Txn
from hostler.model import Allocation, Node, Pool, Replica
from hostler.model.allocation import EndCause, Ended
from hostler.model.node import Health
from hostler.model.pool import Band, Offer, Reliability, Tier
from hostler.model.reason import Reason
from hostler.model.replica import ReplicaPhase

NODE: Final = "node"
ZONE: Final = "zone"
PROVIDER: Final = "provider"
INTERRUPTIBLE_TIER: Final = "interruptible_tier"

_PLACED_NOT: Final = (ReplicaPhase.DORMANT, ReplicaPhase.STOPPING, ReplicaPhase.ENDED)


class Hurt(msgspec.Struct, frozen=True, kw_only=True):
    """A loss that replicas of a bundle would not survive, and why each would not."""

    kind: str
    """`node`, `zone`, `provider` or `interruptible_tier`."""
    name: str
    replicas: tuple[tuple[str, Reason], ...]


class Protection(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a bundle survives the loss of any one domain."""

    is_protected: bool
    hurts: tuple[Hurt, ...] = ()
    unplaced: tuple[str, ...] = ()
    """Replicas that have no place now, so that no loss need come."""


@contextmanager
def aside(fleet: Fleet) -> Iterator[None]:
    """Let a step be made and dropped beside one that may be open; the fleet is then as before."""
    outer, fleet.open_delta = fleet.open_delta, None
    try:
        yield
    finally:
        fleet.open_delta = outer


def protection_of(fleet: Fleet, bundle_id: str, now_ms: int) -> Protection:
    """Say which single losses would hurt a bundle as things are."""
    keys = fleet.index.replicas_by_bundle.keys(bundle_id)
    placed = [key for key in keys if fleet.index.allocations_by_replica.count(key)]
    unplaced = tuple(
        key for key in keys if key not in placed and fleet.replicas[key].phase not in _PLACED_NOT
    )
    hurts = []
    for kind, name in _losses(fleet, bundle_id):
        found = _hurt_by(fleet, bundle_id, kind, name, now_ms)
        if found:
            hurts.append(Hurt(kind=kind, name=name, replicas=found))
    return Protection(
        is_protected=not hurts and not unplaced, hurts=tuple(hurts), unplaced=unplaced
    )


def _losses(fleet: Fleet, bundle_id: str) -> list[tuple[str, str]]:
    found: dict[tuple[str, str], None] = {}
    for key in fleet.index.allocations_by_bundle.keys(bundle_id):
        node = fleet.nodes.get(fleet.allocations[key].node_id)
        for loss in () if node is None else _domains(node):
            found[loss] = None
    order = (NODE, ZONE, PROVIDER, INTERRUPTIBLE_TIER)
    return sorted(found, key=lambda loss: (order.index(loss[0]), loss[1]))


def _domains(node: Node) -> Iterator[tuple[str, str]]:
    yield NODE, node.node_id
    if node.zone:
        yield ZONE, node.zone
    if node.provider:
        yield PROVIDER, node.provider
    if node.reliability is Reliability.INTERRUPTIBLE:
        yield INTERRUPTIBLE_TIER, tier_key(node.pool, node.tier)


def _is_in(kind: str, name: str, pool: str, tier: Tier) -> bool:
    """Say whether what a tier would launch is lost, too."""
    match kind:
        case "zone":
            return tier.zone == name
        case "provider":
            return (tier.provider or OWN_HARDWARE) == name
        case "interruptible_tier":
            return tier_key(pool, tier.name) == name
        case _:
            return False


def _hurt_by(
    fleet: Fleet, bundle_id: str, kind: str, name: str, now_ms: int
) -> tuple[tuple[str, Reason], ...]:
    with aside(fleet):
        txn = Txn(fleet, now_ms)
        try:
            return tuple(_left_without(txn, bundle_id, kind, name))
        finally:
            txn.abandon()


def _left_without(txn: Txn, bundle_id: str, kind: str, name: str) -> Iterator[tuple[str, Reason]]:
    displaced = _lose(txn, kind, name)
    displaced.sort(key=lambda r: (r.band.rank, r.bundle_id, r.job, r.index))
    for number, replica in enumerate(displaced):
        is_ours = replica.bundle_id == bundle_id
        if replica.band is Band.BRONZE:
            reason: Reason | None = Reason.BAND_DROPPED
        elif number >= DISPLACED_COUNT_MAX:
            reason = Reason.NO_CAPACITY
        else:
            reason = _place_again(txn, replica, kind, name)
        if is_ours and reason is not None:
            yield replica.replica_id, reason


def _lose(txn: Txn, kind: str, name: str) -> list[Replica]:
    """Take away all nodes of a domain; return whom that displaces."""
    fleet = txn.fleet
    lost = [fleet.nodes[name]] if kind == NODE else _nodes_in(fleet, kind, name)
    displaced: list[Replica] = []
    for node in lost:
        txn.change(node, health=Health.LOST)
        for key in fleet.index.allocations_by_node.keys(node.node_id):
            allocation = fleet.allocations[key]
            ended = holds.end_allocation(txn, allocation, Ended(cause=EndCause.NODE_LOST))
            replica = fleet.replicas.get(allocation.replica_id)
            if replica is not None and _was_its_place(replica, ended):
                displaced.append(
                    txn.put(
                        replace(
                            replica,
                            phase=ReplicaPhase.PENDING,
                            is_recovery=True,
                            migration=None,
                            moving_to=None,
                            debt=None,
                        )
                    )
                )
    return displaced


def _was_its_place(replica: Replica, ended: Allocation) -> bool:
    return replica.phase is ReplicaPhase.PLACED and replica.place_id == ended.allocation_id


def _nodes_in(fleet: Fleet, kind: str, name: str) -> list[Node]:
    return [
        node
        for pool in sorted(fleet.pools.rows)
        for key in fleet.index.nodes_by_pool.keys(pool)
        if (kind, name) in _domains(node := fleet.nodes[key])
    ]


def _place_again(txn: Txn, replica: Replica, kind: str, name: str) -> Reason | None:
    bundle = txn.fleet.bundles.get(replica.bundle_id)
    job = None if bundle is None else bundle.job(replica.job)
    if bundle is None or job is None:
        return None

    def obstacle(pool: Pool, tier: Tier, offer: Offer) -> Reason | None:
        if _is_in(kind, name, pool.name, tier):
            return Reason.NO_CAPACITY
        return growth.growth_obstacle(txn, pool, tier, offer)

    demand = demand_of(txn.fleet, bundle, job, replica, txn.now_ms)
    verdict = decide(demand, txn.fleet, obstacle)
    if verdict.option is None:
        return verdict.reason
    assigning.assign(txn, replica, bundle, job, verdict, verdict.option)
    return None


def hurt_texts(protection: Protection) -> list[str]:
    """Say each loss that would hurt, and whom; at last who has no place to begin with."""
    texts = []
    for hurt in protection.hurts:
        shown = [f"{key} ({reason.value})" for key, reason in hurt.replicas[:_SHOWN_MAX]]
        more = len(hurt.replicas) - len(shown)
        told = ", ".join(shown) + (f" and {more} more" if more else "")
        kind = hurt.kind.replace("_", " ")
        texts.append(f"without {kind} {hurt.name} there is no place for {told}")
    if protection.unplaced:
        texts.append(f"without a place already: {', '.join(protection.unplaced[:_SHOWN_MAX])}")
    return texts


_SHOWN_MAX: Final = 5
