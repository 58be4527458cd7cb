"""What a place has and what a piece of work needs, in the words that documents use."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from hostler.wire.documents.text import Cores, Count, CountFromOne, Size


class Document(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of everything that people write."""


class CapabilityDocument(Document, frozen=True, kw_only=True):
    """Something countable, such as GPUs or capture inputs."""

    count: CountFromOne = 1
    attributes: dict[str, str] = {}
    """Facts that hold for each (`model: a10`)."""


Capabilities = dict[str, CountFromOne | CapabilityDocument]
"""By name; a bare number is a count without attributes."""


class ShapeDocument(Document, frozen=True, kw_only=True):
    """What a machine has. What is left out is not promised and counts as none until reported."""

    capacity: Count | None = None
    """Abstract units of work, as the fleet's operator defines them."""
    cores: Cores | None = None
    memory: Size | None = None
    capabilities: Capabilities = {}


class AttributeDocument(Document, frozen=True, kw_only=True, rename={"is_in": "in"}):
    """What is asked of an attribute, where one value is not what is meant; all of it must hold."""

    is_in: tuple[str, ...] = ()
    """It is one of these."""
    at_least: int | None = None
    """It is a whole number, and not below this."""
    exists: Literal[True] | None = None
    """It is there, whatever it is."""


class WishDocument(Document, frozen=True, kw_only=True):
    """Something countable that work needs: whole units, or a share of one."""

    count: CountFromOne = 1
    milli: Annotated[int, Meta(ge=1, le=999)] | None = None
    """A share of one unit in thousandths, beside which `count` stays 1."""
    attributes: dict[str, str | AttributeDocument] = {}
    """What each unit must be: an attribute's value, or a rule for it."""


class RequiresDocument(Document, frozen=True, kw_only=True):
    """What one replica needs of a node. What is left out is not asked for."""

    capacity: Count = 0
    cores: Cores = "0"
    memory: Size = "0"
    capabilities: dict[str, CountFromOne | WishDocument] = {}
    """By name; a bare number is a count of whole units, whatever they are."""


def capability_of(value: int | CapabilityDocument) -> CapabilityDocument:
    """Return the long form of a capability."""
    return CapabilityDocument(count=value) if isinstance(value, int) else value


def wish_of(value: int | WishDocument) -> WishDocument:
    """Return the long form of a capability that is needed."""
    return WishDocument(count=value) if isinstance(value, int) else value
