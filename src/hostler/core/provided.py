"""What node services add to the shape of a machine, and take away again."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from hostler.model import Node
from hostler.model.shape import Capability, Shape


def ready_shape(node: Node) -> Shape:
    """Return what a node has now, without what services have yet to bring."""
    if not node.provided:
        return node.shape
    ready = {name for state in node.services.values() if state.is_ready for name in state.provides}
    return without_provided(node.shape, [name for name in node.provided if name not in ready])


def with_provided(shape: Shape, provided: Sequence[Capability]) -> tuple[Shape, tuple[str, ...]]:
    """Return a shape with what services add to it, and the names of what they added.

    What the machine has by itself is not added to.
    """
    own = shape.capabilities or ()
    names = {each.name for each in own}
    added = tuple(each for each in provided if each.name not in names)
    if not added:
        return shape, ()
    return replace(shape, capabilities=(*own, *added)), tuple(each.name for each in added)


def without_provided(shape: Shape, names: Sequence[str]) -> Shape:
    """Return a shape without what services have added."""
    if not names or shape.capabilities is None:
        return shape
    own = tuple(each for each in shape.capabilities if each.name not in names)
    return replace(shape, capabilities=own)
