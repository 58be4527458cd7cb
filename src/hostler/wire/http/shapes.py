"""What nodes have and what work needs, in numbers."""

from __future__ import annotations

from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from hostler.wire.work import AttributeValue

AMOUNT_MAX: Final = 2**53 - 1
"""What every JSON reader can hold (RFC 8259, section 6)."""

Amount = Annotated[int, Meta(ge=0, le=AMOUNT_MAX)]


class CapabilityView(msgspec.Struct, frozen=True, kw_only=True):
    """Something countable that is there."""

    name: str
    count: Amount = 1
    attributes: dict[str, AttributeValue] = {}


class MatchView(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is asked of an attribute, where being equal is not what is meant."""

    attribute: str
    rule: Literal["in", "at_least", "exists"]
    values: list[str] = []
    """The allowed values; the one least number; or nothing."""


class WishView(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Something countable that is needed."""

    name: str
    count: Amount = 1
    milli: Annotated[int, Meta(ge=1, le=1_000)] = 1_000
    """Thousandths of each unit; less than all of it only of one unit."""
    attributes: dict[str, AttributeValue] = {}
    """Those that must be equal."""
    matches: list[MatchView] = []
    """What else is asked of attributes."""


class DeviceView(msgspec.Struct, frozen=True, kw_only=True):
    """One named thing behind a capability."""

    kind: str
    device_id: str
    attributes: dict[str, AttributeValue] = {}


class ShapeView(msgspec.Struct, frozen=True, kw_only=True):
    """What a node or an offer has in total; `null` is not reported yet."""

    capacity: int | None = None
    cores_milli: int | None = None
    memory_bytes: int | None = None
    capabilities: list[CapabilityView] | None = None
    devices: list[DeviceView] = []


class RequirementView(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a replica or a lease needs; nought asks for nothing."""

    capacity: Amount = 0
    cores_milli: Amount = 0
    memory_bytes: Amount = 0
    capabilities: list[WishView] = []
