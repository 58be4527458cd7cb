"""Which nodes have a free slot, found without a search.

Nodes of one pool that offer the same are one class, so that a requirement is compared with each
class and not with each node. Idle nodes come before partly filled ones, and older before newer
(spec/leasing.md L-031): under little load the newest stand idle, and those are the ones that go.
"""

from __future__ import annotations

import msgspec

from hostler.base.encoding import encode
from hostler.core.slots import misfit
from hostler.core.tables import Line, Order
from hostler.model import Node
from hostler.model.node import Health, NodePhase
from hostler.model.shape import NOTHING_REQUIRED, Requirement, Shape

_SHAPES_REMEMBERED_MAX = 200_000
"""Two for each node of the largest fleet that we measure; beyond that they are forgotten and
looked at again when needed."""


class NodeClass(msgspec.Struct, frozen=True):
    """Nodes of one pool with equal shapes and slot counts."""

    pool: str
    shape: Shape
    slot_count: int
    bucket: str
    """Its name in the line of free nodes."""


def is_free_for_lease(node: Node) -> bool:
    """Say whether the node may be given one more lease."""
    return (
        node.lease_count < node.slot_count
        and node.allocation_count == 0
        and node.phase is NodePhase.READY
        and node.health is Health.LIVE
        and node.retire_reason is None
        and not node.is_spare
        and node.cordon is None
        and node.drain is None
    )


class SlotIndex:
    """Free slots by pool and by class of node."""

    def __init__(self) -> None:
        self._class_by_node: dict[str, NodeClass] = {}
        self._class_by_bucket: dict[str, NodeClass] = {}
        self._counts: dict[str, dict[str, int]] = {}
        """Nodes that are not retired, by pool and class."""
        self._line = Line()
        self._line_by_class = Line()
        self._free_by_node: dict[str, int] = {}
        self._free_counts: dict[str, int] = {}
        self._known_shapes: dict[int, tuple[Shape, str]] = {}
        """Text of a shape by its identity; the shape is kept, so that no other gets its number."""

    def update(self, key: str, old: Node | None, new: Node | None) -> None:
        """Follow one write."""
        if old is None or new is None or not _is_alike(old, new):
            self._classify(key, new)
        free = new.slot_count - new.lease_count if new is not None and is_free_for_lease(new) else 0
        before = self._free_by_node.get(key, 0)
        if free == before:
            return
        pool = (new or old).pool  # type: ignore[union-attr]  # a write has one side at least
        self._free_counts[pool] = self._free_counts.get(pool, 0) + free - before
        if new is None or not free:
            del self._free_by_node[key]
            self._line.set(key, None)
            self._line_by_class.set(key, None)
            return
        self._free_by_node[key] = free
        order: Order = (int(new.lease_count > 0), len(key), key)
        self._line.set(key, (pool, order))
        self._line_by_class.set(key, (self._class_by_node[key].bucket, order))

    def _classify(self, key: str, node: Node | None) -> None:
        """Move a node between classes; it is out of every line until its new place is known."""
        before = self._class_by_node.pop(key, None)
        if before is not None:
            free = self._free_by_node.pop(key, 0)
            self._free_counts[before.pool] = self._free_counts.get(before.pool, 0) - free
            self._line.set(key, None)
            self._line_by_class.set(key, None)
            self._count(before, -1)
        if node is None or node.phase is NodePhase.RETIRED:
            return
        bucket = f"{node.pool}\x00{node.slot_count}\x00{self._text_of(node.shape)}"
        found = self._class_by_bucket.get(bucket)
        if found is None:
            found = NodeClass(node.pool, node.shape, node.slot_count, bucket)
            self._class_by_bucket[bucket] = found
        self._class_by_node[key] = found
        self._count(found, 1)

    def _count(self, of: NodeClass, by: int) -> None:
        counts = self._counts.setdefault(of.pool, {})
        left = counts.get(of.bucket, 0) + by
        if left:
            counts[of.bucket] = left
            return
        del counts[of.bucket], self._class_by_bucket[of.bucket]
        if not counts:
            del self._counts[of.pool]

    def _text_of(self, shape: Shape) -> str:
        known = self._known_shapes.get(id(shape))
        if known is None:
            if len(self._known_shapes) >= _SHAPES_REMEMBERED_MAX:
                self._known_shapes.clear()
            known = self._known_shapes[id(shape)] = (shape, encode(shape).decode())
        return known[1]

    def first(self, pool: str, requirement: Requirement = NOTHING_REQUIRED) -> str | None:
        """Return the node whose slot goes next to such a requirement, or `None`."""
        if requirement == NOTHING_REQUIRED:
            return self._line.first(pool)
        heads = [
            head
            for bucket in self._counts.get(pool, ())
            if (head := self._line_by_class.head(bucket)) is not None
            and self._fits(bucket, requirement)
        ]
        return min(heads)[1] if heads else None

    def _fits(self, bucket: str, requirement: Requirement) -> bool:
        of = self._class_by_bucket[bucket]
        return misfit(of.shape, of.slot_count, requirement) is None

    def has(self, node_id: str, pool: str, requirement: Requirement) -> bool:
        """Say whether this node of the pool has a free slot for such a requirement."""
        if node_id not in self._free_by_node:
            return False
        of = self._class_by_node[node_id]
        return of.pool == pool and misfit(of.shape, of.slot_count, requirement) is None

    def count(self, pool: str) -> int:
        """Return how many nodes have a free slot, at no cost."""
        return self._line.count(pool)

    def free_count(self, pool: str) -> int:
        """Return how many slots are free, at no cost."""
        return self._free_counts.get(pool, 0)

    def keys(self, pool: str) -> list[str]:
        """Return the nodes with a free slot, in the order in which they would be given."""
        return self._line.keys(pool)

    def classes(self, pool: str) -> list[tuple[Shape, int]]:
        """Return shape and slot count of each class that has a node which is not retired."""
        found = [self._class_by_bucket[bucket] for bucket in self._counts.get(pool, ())]
        return [(each.shape, each.slot_count) for each in found]


def _is_alike(old: Node, new: Node) -> bool:
    """Say whether a node stays in its class."""
    return (
        old.shape is new.shape
        and old.phase is new.phase
        and old.slot_count == new.slot_count
        and old.pool == new.pool
    )
