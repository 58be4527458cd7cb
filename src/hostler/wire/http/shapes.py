"""What nodes have and what work needs, in numbers."""

from __future__ import annotations

import msgspec

from hostler.wire.work import AttributeValue


class CapabilityView(msgspec.Struct, frozen=True, kw_only=True):
    """Something countable, had or needed."""

    name: str
    count: int = 1
    attributes: dict[str, AttributeValue] = {}


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

    capacity: int = 0
    cores_milli: int = 0
    memory_bytes: int = 0
    capabilities: list[CapabilityView] = []
