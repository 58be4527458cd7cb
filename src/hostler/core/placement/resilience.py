"""Resilience: which rules about where it is a place would break.

A rule about other replicas is worked out for one replica at a time into the domains that it may
not be in, or may only be in (`rules` does that); here it is held against places. Replicas of one
job are never on one node; that is a rule like the others and cannot be switched off.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

import msgspec

from hostler.base.ids import NodeId
from hostler.core.keys import tier_key
from hostler.model import Node, Pool
from hostler.model.constraint import NodeRule, SpreadOver, SpreadRule
from hostler.model.pool import Offer, Tier
from hostler.model.reason import Reason

INTERRUPTIBLE_PRIMARY = "interruptible_primary"
"""Said of a primary on capacity that its provider may take back, where the bundle allows that."""

OWN_HARDWARE = "own hardware"
"""The provider domain of all machines that no provider stands behind."""

NODE: Final = SpreadOver.NODE.value
"""The domain that is the node itself."""

SPREAD_REASONS: Final = {
    SpreadOver.NODE: Reason.SPREAD_NODE,
    SpreadOver.ZONE: Reason.SPREAD_ZONE,
    SpreadOver.TIER: Reason.SPREAD_TIER,
    SpreadOver.PROVIDER: Reason.SPREAD_PROVIDER,
    SpreadOver.LABEL: Reason.SPREAD_LABEL,
}


class Domains(msgspec.Struct, frozen=True, gc=False):
    """The failure domains that a place is in, and what else rules ask about it."""

    node_id: NodeId | None
    """`None`: a machine that does not exist yet, so on no node that is taken."""
    zone: str
    """Empty when unknown; two that are unknown may be the same."""
    tier: str
    provider: str
    offer: str = ""
    labels: Mapping[str, str] = {}
    """Of the node and its tier."""

    def value(self, domain: str) -> str | None:
        """Return which domain of a kind this is; empty when unknown, `None` when still to come."""
        if domain.startswith("label:"):
            return self.labels.get(domain.removeprefix("label:"), "")
        if domain == NODE:
            return self.node_id
        value: str = getattr(self, domain)
        return value


class DomainRule(msgspec.Struct, frozen=True, gc=False):
    """What one rule comes to for one replica as things are."""

    domain: str
    """The kind of domain, such as `zone` or `label:rack`."""
    reason: Reason
    is_required: bool
    refused: frozenset[str] = frozenset()
    allowed: frozenset[str] | None = None
    """`None`: all that are not refused."""
    is_hopeless: bool = False
    """True: every domain breaks it, since somebody is where nobody knows."""

    def is_broken_by(self, place: Domains) -> bool:
        """Say whether a place breaks it."""
        return self.is_broken_in(place.value(self.domain))

    def is_broken_in(self, value: str | None) -> bool:
        """Say whether a domain breaks it. Apart must be known, not hoped: an unknown may be any."""
        return (
            self.is_hopeless
            or value == ""
            or value in self.refused
            or (self.allowed is not None and value not in self.allowed)
        )


def domains_of(node: Node, tier_labels: Mapping[str, str] | None = None) -> Domains:
    """Return the domains of a node; its own labels win over those of its tier."""
    return Domains(
        node_id=node.node_id,
        zone=node.zone,
        tier=tier_key(node.pool, node.tier),
        provider=node.provider or OWN_HARDWARE,
        offer=node.offer,
        labels={**tier_labels, **node.labels} if tier_labels else node.labels,
    )


def domains_of_new(pool: Pool, tier: Tier, offer: Offer | None = None) -> Domains:
    """Return the domains of a machine that the tier would launch."""
    return Domains(
        node_id=None,
        zone=tier.zone,
        tier=tier_key(pool.name, tier.name),
        provider=tier.provider or OWN_HARDWARE,
        offer="" if offer is None else offer.name,
        labels=tier.labels,
    )


def spread_rules(
    rules: Iterable[SpreadRule],
    siblings: Sequence[Domains],
    open_domains: Mapping[str, Collection[str]] | None = None,
) -> list[DomainRule]:
    """Work out what spreading comes to beside these siblings.

    Args:
        rules: Of the bundle.
        siblings: Where the other live replicas of the job are.
        open_domains: For each kind with a greatest skew: the domains that could take one.
    """
    if not siblings:
        return []
    nodes = frozenset(each.node_id for each in siblings if each.node_id is not None)
    found = [DomainRule(NODE, Reason.SPREAD_NODE, is_required=True, refused=nodes)]
    for rule in rules:
        if rule.over is SpreadOver.NODE:
            continue
        values = [each.value(rule.domain) or "" for each in siblings]
        reason = SPREAD_REASONS[rule.over]
        if rule.skew_max is None:
            refused, is_hopeless = frozenset(values), "" in values
        else:
            refused = _crowded(values, (open_domains or {}).get(rule.domain, ()), rule.skew_max)
            is_hopeless = False
        found.append(
            DomainRule(
                rule.domain, reason, rule.is_required, refused=refused, is_hopeless=is_hopeless
            )
        )
    return found


def _crowded(values: Sequence[str], open_domains: Collection[str], skew_max: int) -> frozenset[str]:
    """Return the domains with too many already. Who is nobody knows where counts in each."""
    unknown_count = values.count("")
    counts = dict.fromkeys(open_domains, 0)
    for value in values:
        if value:
            counts[value] = counts.get(value, 0) + 1
    least = min((counts[each] for each in open_domains), default=0)
    return frozenset(
        each for each, count in counts.items() if count + unknown_count + 1 - least > skew_max
    )


def broken_rules(
    rules: Sequence[DomainRule], place: Domains, *, is_required: bool
) -> tuple[Reason, ...]:
    """Return the rules, required or preferred ones, that a place breaks."""
    if not rules:
        return ()
    return tuple(
        rule.reason
        for rule in rules
        if rule.is_required is is_required and rule.is_broken_by(place)
    )


def broken_node_rules(
    rules: Sequence[NodeRule], place: Domains, *, is_required: bool
) -> tuple[Reason, ...]:
    """Return the rules about the node itself, required or preferred ones, that a place breaks."""
    if not rules:
        return ()
    return tuple(
        node_rule_reason(rule)
        for rule in rules
        if rule.is_required is is_required
        and rule.match.holds(place.value(rule.match.attribute) or None) is rule.is_apart
    )


def node_rule_reason(rule: NodeRule) -> Reason:
    """Return why a rule about the node itself refuses."""
    if rule.match.attribute == "offer":
        return Reason.OFFER_NOT_ALLOWED
    is_label = rule.match.attribute.startswith("label:")
    return Reason.NODE_LABELS if is_label else Reason.NODE_EXCLUDED
