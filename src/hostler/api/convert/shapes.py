"""Shapes and requirements."""

from __future__ import annotations

from hostler.model.shape import (
    AttributeMatch,
    Capability,
    CapabilityRequest,
    MatchRule,
    Requirement,
    Shape,
)
from hostler.wire.http import (
    CapabilityView,
    DeviceView,
    MatchView,
    RequirementView,
    ShapeView,
    WishView,
)


def shape(record: Shape) -> ShapeView:
    """Show what a place has."""
    return ShapeView(
        capacity=record.capacity,
        cores_milli=record.cores_milli,
        memory_bytes=record.memory_bytes,
        capabilities=None
        if record.capabilities is None
        else [_capability(one) for one in record.capabilities],
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
        capabilities=[_wish(one) for one in record.capabilities],
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
                milli=one.milli,
                attributes={
                    name: str(value).lower() if isinstance(value, bool) else str(value)
                    for name, value in one.attributes.items()
                },
                matches=tuple(
                    AttributeMatch(
                        attribute=each.attribute,
                        rule=MatchRule(each.rule),
                        values=tuple(sorted(each.values)),
                    )
                    for each in one.matches
                ),
            )
            for one in view.capabilities
        ),
    )


def match(record: AttributeMatch) -> MatchView:
    """Show what is asked of an attribute."""
    return MatchView(attribute=record.attribute, rule=record.rule.value, values=list(record.values))


def _capability(one: Capability) -> CapabilityView:
    return CapabilityView(name=one.name, count=one.count, attributes=dict(one.attributes))


def _wish(one: CapabilityRequest) -> WishView:
    return WishView(
        name=one.name,
        count=one.count,
        milli=one.milli,
        attributes=dict(one.attributes),
        matches=[match(each) for each in one.matches],
    )
