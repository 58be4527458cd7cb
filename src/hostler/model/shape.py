"""Shapes: what a place offers and what a piece of work requires, in the same words."""

from __future__ import annotations

from hostler.model.record import Value


class Capability(Value, frozen=True, kw_only=True):
    """Something countable that a node has, such as GPUs or capture inputs."""

    name: str
    count: int
    attributes: dict[str, str] = {}
    """Facts that hold for each of them, such as `model: a10`."""


class CapabilityRequest(Value, frozen=True, kw_only=True):
    """Something countable that work needs."""

    name: str
    count: int = 1
    attributes: dict[str, str] = {}
    """Attributes that must be equal."""


class Device(Value, frozen=True, kw_only=True):
    """One named thing behind a capability: GPU 0, capture input `sdi-2`."""

    kind: str
    """The capability that it counts for."""
    device_id: str
    attributes: dict[str, str] = {}


class Shape(Value, frozen=True, kw_only=True):
    """What a node or an offer has in total. `None` is *not reported yet*: neither zero nor free."""

    capacity: int | None = None
    """Abstract units of work, as the fleet's operator defines them."""
    cores_milli: int | None = None
    """Thousandths of a CPU core."""
    memory_bytes: int | None = None
    capabilities: tuple[Capability, ...] | None = ()
    devices: tuple[Device, ...] = ()


class Requirement(Value, frozen=True, kw_only=True):
    """What one replica or lease needs of a node. Zero asks for nothing."""

    capacity: int = 0
    cores_milli: int = 0
    memory_bytes: int = 0
    capabilities: tuple[CapabilityRequest, ...] = ()


NOTHING_REQUIRED = Requirement()
