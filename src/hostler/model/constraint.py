"""Constraints: where a job's replicas may be, beside what they need of a node.

A rule is about a *domain*: the node itself, its zone, its tier, its provider, or the value of a
label that an operator gave it. A required rule refuses a place; a preferred one lets it be used
when nothing better is there, and the allocation then says by what it is degraded.
"""

from __future__ import annotations

from enum import StrEnum

from hostler.model.record import Value
from hostler.model.shape import AttributeMatch


class SpreadOver(StrEnum):
    """The kinds of domains."""

    NODE = "node"
    ZONE = "zone"
    TIER = "tier"
    PROVIDER = "provider"
    LABEL = "label"
    """Nodes with the same value of one label."""


def domain_name(over: SpreadOver, label: str) -> str:
    """Return the name under which a place is asked for its domain, such as `label:rack`."""
    return f"label:{label}" if over is SpreadOver.LABEL else over.value


class SpreadRule(Value, frozen=True, kw_only=True):
    """Replicas of one job do not share a domain, or are evenly spread over the domains."""

    over: SpreadOver
    label: str = ""
    """Which, when it is over a label."""
    is_required: bool = False
    """Required refuses; preferred places all the same and records the allocation as degraded."""
    skew_max: int | None = None
    """How many more may be in one domain than in the emptiest; `None`: none share a domain."""

    @property
    def domain(self) -> str:
        """The name of its kind of domain."""
        return domain_name(self.over, self.label)


class Peers(Value, frozen=True, kw_only=True):
    """Replicas by what they are part of. All that is given must hold; nobody is their own peer."""

    bundle_id: str = ""
    """Empty: any that has the labels, or one's own where no labels are given."""
    job: str = ""
    """Empty: all."""
    replica_index: int | None = None
    """`None`: all."""
    labels: dict[str, str] = {}
    """Labels of their bundle or job."""


class Affinity(Value, frozen=True, kw_only=True):
    """A wish to be in the same domain as others, or in another one."""

    over: SpreadOver = SpreadOver.NODE
    label: str = ""
    """Which, when it is over a label."""
    is_apart: bool = False
    """True: not in a domain of any of them; false: in a domain of one of them."""
    is_required: bool = False
    peers: Peers

    @property
    def domain(self) -> str:
        """The name of its kind of domain."""
        return domain_name(self.over, self.label)


class NodeRule(Value, frozen=True, kw_only=True):
    """A wish about the node itself."""

    match: AttributeMatch
    """Held against a fact of the node: `node`, `zone`, `tier` (as `pool/tier`), `provider`, `offer`
    or `label:NAME`."""
    is_apart: bool = False
    """True: the fact must not be so."""
    is_required: bool = True
