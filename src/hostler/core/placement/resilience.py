"""Resilience: which rules about keeping replicas apart a place would break.

Replicas of one job are never on one node; that is a filter and cannot be switched off. Wider
domains are as the bundle says: a required rule refuses the place, a preferred one lets it be used
when nothing better is there, and the allocation then says by what it is degraded.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import assert_never

import msgspec

from hostler.base.ids import NodeId
from hostler.core.keys import tier_key
from hostler.model import Node, Pool
from hostler.model.bundle import SpreadOver, SpreadRule
from hostler.model.pool import Tier
from hostler.model.reason import Reason

INTERRUPTIBLE_PRIMARY = "interruptible_primary"
"""Said of a primary on capacity that its provider may take back, where the bundle allows that."""

OWN_HARDWARE = "own hardware"
"""The provider domain of all machines that no provider stands behind."""

_REASONS = {
    SpreadOver.NODE: Reason.SPREAD_NODE,
    SpreadOver.ZONE: Reason.SPREAD_ZONE,
    SpreadOver.TIER: Reason.SPREAD_TIER,
    SpreadOver.PROVIDER: Reason.SPREAD_PROVIDER,
}


class Domains(msgspec.Struct, frozen=True):
    """The failure domains that a place is in."""

    node_id: NodeId | None
    """`None`: a machine that does not exist yet, so on no node that is taken."""
    zone: str
    """Empty when unknown; two that are unknown may be the same."""
    tier: str
    provider: str


def domains_of(node: Node) -> Domains:
    """Return the domains of a node."""
    return Domains(
        node_id=node.node_id,
        zone=node.zone,
        tier=tier_key(node.pool, node.tier),
        provider=node.provider or OWN_HARDWARE,
    )


def domains_of_new(pool: Pool, tier: Tier) -> Domains:
    """Return the domains of a machine that the tier would launch."""
    return Domains(
        node_id=None,
        zone=tier.zone,
        tier=tier_key(pool.name, tier.name),
        provider=tier.provider or OWN_HARDWARE,
    )


def broken_rules(
    rules: Iterable[SpreadRule], place: Domains, siblings: Sequence[Domains], *, is_required: bool
) -> tuple[Reason, ...]:
    """Return the rules, required or preferred ones, that a place beside these siblings breaks."""
    if not siblings:
        return ()
    asked = [rule.over for rule in rules if rule.is_required is is_required]
    return tuple(
        reason
        for over, reason in _REASONS.items()
        if over in asked and _is_shared(over, place, siblings)
    )


def _is_shared(over: SpreadOver, place: Domains, siblings: Sequence[Domains]) -> bool:
    match over:
        case SpreadOver.NODE:
            return any(each.node_id == place.node_id for each in siblings)
        case SpreadOver.ZONE:
            # Apart must be known, not hoped: an unknown zone may be any.
            return not place.zone or any(each.zone in ("", place.zone) for each in siblings)
        case SpreadOver.TIER:
            return any(each.tier == place.tier for each in siblings)
        case SpreadOver.PROVIDER:
            return any(each.provider == place.provider for each in siblings)
        case _:
            assert_never(over)
