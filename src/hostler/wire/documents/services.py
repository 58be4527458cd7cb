"""Node services, as `hostler.yaml` says them."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from hostler.wire.documents.bundle import JobConfigDocument, RunDocument
from hostler.wire.documents.text import Duration, Name
from hostler.wire.documents.work import Capabilities, Document, RequiresDocument

TierName = Annotated[str, Meta(pattern="^[^/]+/[^/]+$", description="As `POOL/TIER`.")]


class ServiceDocument(Document, frozen=True, kw_only=True):
    """A job that runs once on each node of some pools, and adds to what these have."""

    life: Literal["eager", "lazy"] = "eager"
    """`eager`: as long as the node is there. `lazy`: while something there needs it."""
    pools: Annotated[list[Name], Meta(min_length=1)]
    tiers: list[TierName] = []
    """Left out: all tiers of its pools."""
    consumes: RequiresDocument = RequiresDocument()
    """What each copy takes of its node; also what other services provide."""
    provides: Capabilities = {}
    """What its node has by it, once it is ready."""
    run: RunDocument
    config: JobConfigDocument | None = None
    """What each copy works by. When only that changes, they get it in place."""
    patience: Duration = "30s"
    """How long a copy may be away before what needs it moves on, and how long a node may not be
    meant any more before its copy ends."""
    linger: Duration = "5m"
    """How long a lazy one stays when the last that needs it has gone."""
