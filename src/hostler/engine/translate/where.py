"""What documents say about places as the rules of a job."""

from __future__ import annotations

from collections.abc import Iterator

from hostler.base.ids import BundleId
from hostler.model.constraint import Affinity, NodeRule, Peers, SpreadOver, SpreadRule
from hostler.model.shape import AttributeMatch, MatchRule
from hostler.wire.documents import (
    DomainDocument,
    NodeLabelDocument,
    PeersDocument,
    SpreadDocument,
    WhereDocument,
)


def spread_rule(document: DomainDocument) -> SpreadRule:
    """Read what replicas do not share."""
    return SpreadRule(
        over=SpreadOver(document.over),
        label=document.label or "",
        is_required=document.required,
        skew_max=document.skew if isinstance(document, SpreadDocument) else None,
    )


def node_rules(*documents: WhereDocument) -> tuple[NodeRule, ...]:
    """Read what is asked of the node itself."""
    found: list[NodeRule] = []
    for document in documents:
        for each in document.nodes:
            found += _label_rules(each)
        if document.offers:
            found.append(NodeRule(match=_one_of("offer", document.offers)))
        for fact, names in (
            ("node", document.exclude.nodes),
            ("zone", document.exclude.zones),
            ("tier", document.exclude.tiers),
            ("provider", document.exclude.providers),
            ("offer", document.exclude.offers),
        ):
            if names:
                found.append(NodeRule(match=_one_of(fact, names), is_apart=True))
    return tuple(found)


def affinities(*documents: WhereDocument) -> tuple[Affinity, ...]:
    """Read near to whom and apart from whom a job is to be."""
    return tuple(
        _affinity(each, is_apart=is_apart)
        for document in documents
        for is_apart, group in ((False, document.near), (True, document.apart))
        for each in group
    )


def _label_rules(document: NodeLabelDocument) -> Iterator[NodeRule]:
    fact = f"label:{document.label}"
    is_required = document.required
    if document.is_in:
        yield NodeRule(match=_one_of(fact, document.is_in), is_required=is_required)
    if document.not_in:
        match = _one_of(fact, document.not_in)
        yield NodeRule(match=match, is_apart=True, is_required=is_required)
    if document.at_least is not None:
        values = (str(document.at_least),)
        match = AttributeMatch(attribute=fact, rule=MatchRule.AT_LEAST, values=values)
        yield NodeRule(match=match, is_required=is_required)
    if document.exists is not None:
        match = AttributeMatch(attribute=fact, rule=MatchRule.EXISTS)
        yield NodeRule(match=match, is_apart=not document.exists, is_required=is_required)


def _one_of(fact: str, names: tuple[str, ...] | list[str]) -> AttributeMatch:
    return AttributeMatch(attribute=fact, rule=MatchRule.IN, values=tuple(sorted(set(names))))


def _affinity(document: PeersDocument, *, is_apart: bool) -> Affinity:
    return Affinity(
        over=SpreadOver(document.over),
        label=document.label or "",
        is_apart=is_apart,
        is_required=document.required,
        peers=Peers(
            bundle_id=BundleId(document.bundle or ""),
            job=document.job or "",
            replica_index=document.replica,
            labels=dict(document.labels),
        ),
    )
