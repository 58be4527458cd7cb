"""What a place has and what a piece of work needs, in the words that documents use."""

from __future__ import annotations

import msgspec

from hostler.wire.documents.text import Cores, Count, CountFromOne, Size


class Document(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of everything that people write."""


class CapabilityDocument(Document, frozen=True, kw_only=True):
    """Something countable, such as GPUs or capture inputs."""

    count: CountFromOne = 1
    attributes: dict[str, str] = {}
    """Facts that hold for each (`model: a10`); when required, they must be equal."""


Capabilities = dict[str, CountFromOne | CapabilityDocument]
"""By name; a bare number is a count without attributes."""


class ShapeDocument(Document, frozen=True, kw_only=True):
    """What a machine has. What is left out is not promised and counts as none until reported."""

    capacity: Count | None = None
    """Abstract units of work, as the fleet's operator defines them."""
    cores: Cores | None = None
    memory: Size | None = None
    capabilities: Capabilities = {}


class RequiresDocument(Document, frozen=True, kw_only=True):
    """What one replica needs of a node. What is left out is not asked for."""

    capacity: Count = 0
    cores: Cores = "0"
    memory: Size = "0"
    capabilities: Capabilities = {}


def capability_of(value: int | CapabilityDocument) -> CapabilityDocument:
    """Return the long form of a capability."""
    return CapabilityDocument(count=value) if isinstance(value, int) else value
