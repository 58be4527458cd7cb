"""What each node that holds nothing is there for, so that sizing can count instead of search."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Final

from hostler.core.tables import Buckets, Line, Order
from hostler.model import Node
from hostler.model.node import Health, NodePhase, Origin, RetireReason
from hostler.model.pool import Band


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
            if node.is_closing:
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
    return f"{pool}/" + use  # to format a member of an enumeration takes twice as long


def offer_key(pool: str, tier: str, offer: str) -> str:
    """Return the key of one offer, in buckets and of its cooldown."""
    return f"{pool}/{tier}/{offer}"


def spare_key(pool: str, band: Band | None) -> str:
    """Return the bucket of one pool's spares for one band, or for gold and silver."""
    return f"{pool}/{band}"


_INCOMING: Final = (Use.INCOMING,)
_SPARES: Final = (Use.SPARE, Use.INCOMING_SPARE)
_IDLE: Final = (Use.WARM, Use.SPARE)


class UseIndex:
    """Nodes by what they are kept for."""

    def __init__(self) -> None:
        self.by_use = Buckets()
        """By pool and use."""
        self.spares_by_band = Buckets()
        """By pool and band: those that are there or on their way."""
        self.incoming = Buckets()
        """On their way to whoever comes next, by offer."""
        self.idle_by_offer = Buckets()
        """Warm or spare, and launched by us, by offer."""
        self.warm_launched = Line()
        """By pool: warm nodes that may be let go, the longest idle first."""

    def update(self, key: str, old: Node | None, new: Node | None) -> None:
        """Follow one write."""
        # What is held, as half of all that is written of nodes, is kept for nothing.
        was = None if old is None or old.lease_count else use_of(old)
        now = None if new is None or new.lease_count else use_of(new)
        if was is now and (now is None or _is_alike(old, new)):
            return
        self.by_use.move(
            key,
            None if old is None or was is None else use_key(old.pool, was),
            None if new is None or now is None else use_key(new.pool, now),
        )
        if was in _SPARES or now in _SPARES:
            self.spares_by_band.move(key, _spare(old, was), _spare(new, now))
        if not (new or old).offer:  # type: ignore[union-attr]  # a write has one side at least
            return  # it joined: nobody launches the like of it, and nobody lets it go
        if was is Use.INCOMING or now is Use.INCOMING:
            self.incoming.move(key, _offer(old, was, _INCOMING), _offer(new, now, _INCOMING))
        if was in _IDLE or now in _IDLE:
            self.idle_by_offer.move(key, _offer(old, was, _IDLE), _offer(new, now, _IDLE))
            self.warm_launched.set(key, _spare_time_place(new, now))


def _is_alike(old: Node | None, new: Node | None) -> bool:
    return (
        old is not None
        and new is not None
        and old.pool == new.pool
        and old.tier == new.tier
        and old.offer == new.offer
        and old.idle_since_at_ms == new.idle_since_at_ms
        and old.spare_band is new.spare_band
    )


def _spare(node: Node | None, use: Use | None) -> str | None:
    is_spare = node is not None and use in _SPARES
    return spare_key(node.pool, node.spare_band) if node is not None and is_spare else None


def _offer(node: Node | None, use: Use | None, wanted: Sequence[Use]) -> str | None:
    if node is None or use not in wanted:
        return None
    return offer_key(node.pool, node.tier, node.offer)


def _spare_time_place(node: Node | None, use: Use | None) -> tuple[str, Order] | None:
    if node is None or use is not Use.WARM or node.origin is not Origin.LAUNCHED:
        return None
    return node.pool, (node.idle_since_at_ms or 0, len(node.node_id), node.node_id)


class Replaceable(StrEnum):
    """How a node stands in whose place another is to come."""

    IDLE = "idle"
    LEASED = "leased"
    """Held by leases, and by no allocation."""
    INCOMING = "incoming"
    """Not there yet, and nobody counts on it."""
    CLOSING = "closing"
    """Takes nothing more and goes when its leases have ended."""


def replaceable_of(node: Node) -> Replaceable | None:
    """Return how the node stands; `None` if it need not be replaced, or cannot be at present."""
    if node.replace_reason is None or node.phase not in _MAY_BE_REPLACED:
        return None
    if node.retire_reason is not None:
        return Replaceable.CLOSING if node.is_held else None
    match use_of(node):
        case Use.WARM | Use.SPARE:
            return Replaceable.IDLE
        case Use.INCOMING | Use.INCOMING_SPARE:
            return Replaceable.INCOMING
        case None:
            if node.replace_reason is RetireReason.AGED and node.leases_until_at_ms is not None:
                return None  # it has let no lease begin that it cannot serve to the end
            is_leased = node.phase is NodePhase.READY and node.lease_count > 0
            return Replaceable.LEASED if is_leased and not node.allocation_count else None


_MAY_BE_REPLACED: Final = (
    NodePhase.REQUESTED,
    NodePhase.STARTING,
    NodePhase.READY,
    NodePhase.DRAINING,
)


def replaceable_key(pool: str, how: Replaceable) -> str:
    """Return the bucket of one pool's nodes that are to be replaced and stand like this."""
    return f"{pool}/{how}"


class ReplaceIndex(Line):
    """Nodes that are to be replaced, by pool and how they stand: the longest idle first."""

    def update(self, key: str, old: Node | None, new: Node | None) -> None:
        """Follow one write."""
        was = old is not None and old.replace_reason is not None
        if not was and (new is None or new.replace_reason is None):
            return  # nearly every node, nearly always
        how = None if new is None else replaceable_of(new)
        if new is None or how is None:
            self.set(key, None)
            return
        self.set(key, (replaceable_key(new.pool, how), (new.idle_since_at_ms or 0, len(key), key)))
