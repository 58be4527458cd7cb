"""Where a job's replicas may be: which nodes, near to whom, apart from whom."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from msgspec import Meta

from hostler.wire.documents.text import Count, CountFromOne, Name
from hostler.wire.documents.work import Document

Over = Literal["node", "zone", "tier", "provider", "label"]

LABEL_PATTERN: Final = r"^[A-Za-z0-9]([A-Za-z0-9._/-]{0,61}[A-Za-z0-9])?$"

LabelName = Annotated[
    str,
    Meta(
        description="Letters, digits, dots, slashes, hyphens and underscores, 63 at most.",
        pattern=LABEL_PATTERN,
    ),
]
LabelValue = Annotated[str, Meta(description="Anything but nothing.", min_length=1, max_length=63)]
Labels = dict[LabelName, LabelValue]


class DomainDocument(Document, frozen=True, kw_only=True):
    """A kind of domain that primary and backup do not share."""

    over: Over
    label: LabelName | None = None
    """Which, when it is over a label."""
    required: bool = False
    """True refuses to place; false places all the same and says that it is degraded."""


class SpreadDocument(DomainDocument, frozen=True, kw_only=True):
    """Replicas of one job do not share a domain, or are spread evenly over the domains."""

    skew: CountFromOne | None = None
    """How many more may be in one domain than in the emptiest; left out: none share a domain."""


class NodeLabelDocument(Document, frozen=True, kw_only=True, rename={"is_in": "in"}):
    """What is asked of a label of the node; all of it must hold."""

    label: LabelName
    is_in: tuple[str, ...] = ()
    """It has one of these values."""
    not_in: tuple[str, ...] = ()
    """It has none of these values, or is not there."""
    at_least: int | None = None
    """It is a whole number, and not below this."""
    exists: bool | None = None
    """It is there, whatever it is; false: it is not there."""
    required: bool = True
    """False: another node is used when none of these has room, and that is said."""


class ExcludeDocument(Document, frozen=True, kw_only=True):
    """Where the job is never put."""

    nodes: list[str] = []
    zones: list[str] = []
    tiers: list[Annotated[str, Meta(pattern="^[^/]+/[^/]+$", description="As `POOL/TIER`.")]] = []
    providers: list[str] = []
    offers: list[str] = []


class PeersDocument(Document, frozen=True, kw_only=True):
    """Other replicas, by all that is given; somewhere in the fleet, or in this bundle."""

    over: Over = "node"
    """In the same such domain, or in another one."""
    label: LabelName | None = None
    """Which, when it is over a label."""
    required: bool = False
    """True refuses to place; false places all the same and says that it is degraded."""
    bundle: Name | None = None
    """Left out: any bundle with the labels, or this one where no labels are given."""
    job: Name | None = None
    replica: Count | None = None
    """The number of the copy; 0 is the primary."""
    labels: Labels = {}
    """Of their bundle or job."""


class WhereDocument(Document, frozen=True, kw_only=True):
    """Rules about the place, beside what is needed of it."""

    nodes: list[NodeLabelDocument] = []
    """Labels that nodes must have, or had better have."""
    offers: list[str] = []
    """The only offers on whose machines it may be; left out: all."""
    exclude: ExcludeDocument = ExcludeDocument()
    near: list[PeersDocument] = []
    """In the domain of one of them. Required: it waits until one of them has a place."""
    apart: list[PeersDocument] = []
    """In no domain of any of them. Required: they keep away from it, too."""
