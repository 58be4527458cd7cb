"""What each node that holds nothing is there for, so that sizing can count instead of search."""

from __future__ import annotations

from enum import StrEnum

from hostler.core.tables import Order
from hostler.model import Node
from hostler.model.node import Health, NodePhase, Origin


class Use(StrEnum):
    """What an idle node, or one on its way, is kept for."""

    WARM = "warm"
    """Ready for whoever comes next."""
    SPARE = "spare"
    """Ready for recovery."""
    INCOMING = "incoming"
    """Asked for or booting, for whoever comes next."""
    INCOMING_SPARE = "incoming_spare"
    """Asked for or booting, for recovery."""


def use_of(node: Node) -> Use | None:
    """Return what the node is kept for; `None` when it is held, leaving, or takes no work."""
    if node.lease_count or node.allocation_count or node.retire_reason is not None:
        return None
    match node.phase:
        case NodePhase.READY:
            if node.health is not Health.LIVE or node.cordon is not None or node.drain is not None:
                return None
            return Use.SPARE if node.is_spare else Use.WARM
        case NodePhase.REQUESTED | NodePhase.STARTING:
            if node.launch_failure is not None or node.cordon is not None or node.drain is not None:
                return None
            return Use.INCOMING_SPARE if node.is_spare else Use.INCOMING
        case _:
            return None


def use_key(pool: str, use: Use) -> str:
    """Return the bucket of one pool's nodes of one use."""
    return f"{pool}/{use.value}"


def use_bucket(node: Node) -> str | None:
    """Return the bucket that a node is in."""
    use = use_of(node)
    return None if use is None else use_key(node.pool, use)


def offer_key(pool: str, tier: str, offer: str) -> str:
    """Return the key of one offer, in buckets and of its cooldown."""
    return f"{pool}/{tier}/{offer}"


def incoming_bucket(node: Node) -> str | None:
    """Return the offer of a node that is on its way to whoever comes next."""
    if node.phase is not NodePhase.REQUESTED and node.phase is not NodePhase.STARTING:
        return None
    return offer_key(node.pool, node.tier, node.offer) if use_of(node) is Use.INCOMING else None


def warm_offer_bucket(node: Node) -> str | None:
    """Return the offer of a warm node that we launched."""
    if not node.offer or use_of(node) is not Use.WARM:
        return None
    return offer_key(node.pool, node.tier, node.offer)


def spare_time_place(node: Node) -> tuple[str, Order] | None:
    """Return the place of a warm node that may be let go: the longest idle stands first."""
    if node.origin is not Origin.LAUNCHED or use_of(node) is not Use.WARM:
        return None
    return node.pool, (node.idle_since_at_ms or 0, len(node.node_id), node.node_id)
