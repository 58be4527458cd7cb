"""What must hold of node services after every step."""

from __future__ import annotations

from collections.abc import Iterator

from hostler.core.pool_invariants import Broken
from hostler.model import Allocation, Node
from hostler.model.node import NodePhase

_THERE = (NodePhase.READY, NodePhase.DRAINING)


def of_node(node: Node) -> Iterator[Broken]:
    """What services add to a node is in its shape, and some service offers it."""
    if not node.provided:
        return
    own = {each.name for each in node.shape.capabilities or ()}
    if not own.issuperset(node.provided):
        yield "INV-SERVICE-1", "a service adds what is not in the node's shape"
    offered = {name for each in node.services.values() if each.is_offered for name in each.provides}
    if node.phase in _THERE and not offered.issuperset(node.provided):
        yield "INV-SERVICE-2", "a node has by a service what none offers there"


def of_allocation(allocation: Allocation, pinned_to: str | None) -> Iterator[Broken]:
    """A copy of a service is on its own node, and nothing else is pinned to one."""
    if allocation.is_service != (pinned_to is not None):
        yield "INV-SERVICE-3", "a copy of a service is not marked as one, or something else is"
    elif allocation.is_service and allocation.node_id != pinned_to:
        yield "INV-SERVICE-4", "a copy of a service is on another node than its own"
