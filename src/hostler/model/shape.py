"""Shapes: what a place offers and what a piece of work requires, in the same words."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final, assert_never

from hostler.model.record import Value
from hostler.model.selector import LabelRule

WHOLE_MILLI: Final = 1_000
"""Thousandths that make a whole unit of a capability."""


class Capability(Value, frozen=True, kw_only=True):
    """Something countable that a node has, such as GPUs or capture inputs."""

    name: str
    count: int
    attributes: dict[str, str] = {}
    """Facts that hold for each of them, such as `model: a10`."""


class MatchRule(StrEnum):
    """How an attribute is held against what is asked."""

    IN = "in"
    """It is one of several values."""
    AT_LEAST = "at_least"
    """It is a whole number, and not below the one that is asked."""
    EXISTS = "exists"
    """It is there, whatever it is."""


class AttributeMatch(Value, frozen=True, kw_only=True):
    """What is asked of one attribute, where being equal is not what is meant."""

    attribute: str
    rule: MatchRule
    values: tuple[str, ...] = ()
    """The allowed values, sorted; the one least number; or nothing."""

    def holds(self, value: str | None) -> bool:
        """Say whether an attribute is as asked; `None` is one that is not there."""
        if value is None:
            return False
        match self.rule:
            case MatchRule.IN:
                return value in self.values
            case MatchRule.AT_LEAST:
                return _is_number(value) and int(value) >= int(self.values[0])
            case MatchRule.EXISTS:
                return True
            case _:
                assert_never(self.rule)

    def __str__(self) -> str:
        """Give what is asked as a person would write it."""
        match self.rule:
            case MatchRule.IN:
                return f"{self.attribute} in {'|'.join(self.values)}"
            case MatchRule.AT_LEAST:
                return f"{self.attribute}>={self.values[0]}"
            case MatchRule.EXISTS:
                return f"{self.attribute} exists"
            case _:
                assert_never(self.rule)


def _is_number(text: str) -> bool:
    return text.isascii() and text.removeprefix("-").isdigit()


class CapabilityRequest(Value, frozen=True, kw_only=True):
    """Something countable that work needs."""

    name: str
    count: int = 1
    milli: int = WHOLE_MILLI
    """Thousandths of each unit, from 1 to 1,000. Less than a whole only of one unit."""
    attributes: dict[str, str] = {}
    """Attributes that must be equal."""
    matches: tuple[AttributeMatch, ...] = ()
    """What else is asked of attributes."""

    @property
    def total_milli(self) -> int:
        """What it takes in all, in thousandths of a unit."""
        return self.count * self.milli

    def accepts(self, attributes: Mapping[str, str]) -> bool:
        """Say whether a unit with these attributes serves."""
        for name, value in self.attributes.items():
            if attributes.get(name) != value:
                return False
        return not self.matches or all(m.holds(attributes.get(m.attribute)) for m in self.matches)


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
    node_labels: tuple[LabelRule, ...] = ()
    """Of leases; a job's rules about labels are its node rules."""


NOTHING_REQUIRED = Requirement()
