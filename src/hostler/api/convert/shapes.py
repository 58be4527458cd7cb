"""Shapes and requirements."""

from __future__ import annotations

from hostler.model.shape import Capability, CapabilityRequest, Requirement, Shape
from hostler.wire.http import CapabilityView, DeviceView, RequirementView, ShapeView


def shape(record: Shape) -> ShapeView:
    """Show what a place has."""
    return ShapeView(
        capacity=record.capacity,
        cores_milli=record.cores_milli,
        memory_bytes=record.memory_bytes,
        capabilities=None
        if record.capabilities is None
        else [capability(one) for one in record.capabilities],
        devices=[
            DeviceView(kind=one.kind, device_id=one.device_id, attributes=dict(one.attributes))
            for one in record.devices
        ],
    )


def requirement(record: Requirement) -> RequirementView:
    """Show what work needs."""
    return RequirementView(
        capacity=record.capacity,
        cores_milli=record.cores_milli,
        memory_bytes=record.memory_bytes,
        capabilities=[capability(one) for one in record.capabilities],
    )


def required(view: RequirementView) -> Requirement:
    """Read what a request says that work needs."""
    return Requirement(
        capacity=view.capacity,
        cores_milli=view.cores_milli,
        memory_bytes=view.memory_bytes,
        capabilities=tuple(
            CapabilityRequest(
                name=one.name,
                count=one.count,
                attributes={
                    name: str(value).lower() if isinstance(value, bool) else str(value)
                    for name, value in one.attributes.items()
                },
            )
            for one in view.capabilities
        ),
    )


def capability(one: Capability | CapabilityRequest) -> CapabilityView:
    """Show a capability that is there, or is asked for."""
    return CapabilityView(name=one.name, count=one.count, attributes=dict(one.attributes))
