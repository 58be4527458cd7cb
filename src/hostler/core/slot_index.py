"""Which nodes have a free slot, found without a search.

Nodes of one pool that offer the same are one class, so that a requirement is compared with each
class and not with each node. Idle nodes come before partly filled ones, and older before newer
(spec/leasing.md L-031): under little load the newest stand idle, and those are the ones that go.
"""

from __future__ import annotations

import msgspec

from hostler.base.encoding import encode
from hostler.core.slots import can_share, misfit
from hostler.core.tables import Line, Order
from hostler.model import Lease, Node
from hostler.model.lease import Share
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
        node.lease_count + node.cleaning_count < node.slot_count
        and node.allocation_count == 0
        and node.phase is NodePhase.READY
        and node.health is Health.LIVE
        and node.retire_reason is None
        and not node.is_spare
        and node.cordon is None
        and node.drain is None
        and node.share is not Share.NONE  # but of a node that is idle
    )


class SlotIndex:
    """Free slots by pool and by class of node."""

    def __init__(self) -> None:
        self._class_by_node: dict[str, NodeClass] = {}
        self._class_by_bucket: dict[str, NodeClass] = {}
        self._counts: dict[str, dict[str, int]] = {}
        """Nodes that are not retired, by pool and class."""
        self._line = Line()
        """By pool: nodes that are idle, or whose tenants share with anybody."""
        self._line_by_class = Line()
        self._keyed = Line()
        """By pool and fairness key: partly filled nodes that all belong to one key."""
        self._keyed_by_class = Line()
        self._keyed_counts: dict[str, int] = {}
        self._free_by_node: dict[str, int] = {}
        self._free_counts: dict[str, int] = {}
        self._known_shapes: dict[int, tuple[Shape, str]] = {}
        """Text of a shape by its identity; the shape is kept, so that no other gets its number."""

    def update(self, key: str, old: Node | None, new: Node | None) -> None:
        """Follow one write."""
        if old is None or new is None or not _is_alike(old, new):
            self._classify(key, new)
        free = 0
        if new is not None and is_free_for_lease(new):
            free = new.slot_count - new.lease_count - new.cleaning_count
        before = self._free_by_node.get(key, 0)
        if free == before and not (free and _is_shared_anew(old, new)):
            return
        pool = (new or old).pool  # type: ignore[union-attr]  # a write has one side at least
        self._free_counts[pool] = self._free_counts.get(pool, 0) + free - before
        if new is None or not free:
            del self._free_by_node[key]
            self._line.set(key, None)
            self._line_by_class.set(key, None)
            if (old or new).slot_count > 1:  # type: ignore[union-attr]  # a write has one side at least
                self._set_keyed(key, pool, None)
            return
        self._free_by_node[key] = free
        order: Order = (int(new.lease_count > 0), len(key), key)
        if new.slot_count > 1:
            self._set_keyed(key, pool, new.tenant_key if new.lease_count else None)
            if new.lease_count and new.share is not Share.ANY:
                self._line.set(key, None)
                self._line_by_class.set(key, None)
                return
        self._line.set(key, (pool, order))
        self._line_by_class.set(key, (self._class_by_node[key].bucket, order))

    def _set_keyed(self, key: str, pool: str, tenant_key: str | None) -> None:
        """Let a node be found by the one key of its tenants, or by none."""
        was = self._keyed.has(key)
        if tenant_key is None:
            self._keyed.set(key, None)
            self._keyed_by_class.set(key, None)
        else:
            order: Order = (1, len(key), key)
            bucket = self._class_by_node[key].bucket
            self._keyed.set(key, (_keyed_bucket(pool, tenant_key), order))
            self._keyed_by_class.set(key, (_keyed_bucket(bucket, tenant_key), order))
        by = int(tenant_key is not None) - int(was)
        if by:
            self._keyed_counts[pool] = self._keyed_counts.get(pool, 0) + by

    def _classify(self, key: str, node: Node | None) -> None:
        """Move a node between classes; it is out of every line until its new place is known."""
        before = self._class_by_node.pop(key, None)
        if before is not None:
            free = self._free_by_node.pop(key, 0)
            self._free_counts[before.pool] = self._free_counts.get(before.pool, 0) - free
            self._line.set(key, None)
            self._line_by_class.set(key, None)
            self._set_keyed(key, before.pool, None)
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

    def first(self, lease: Lease) -> str | None:
        """Return the node whose slot goes next to such a lease, or `None`.

        Idle nodes come first, so one that shares with nobody needs to see the first only.
        """
        pool, left_out = lease.pool, lease.excluded_node_ids
        is_open = lease.share is Share.ANY and not left_out and not self._keyed_counts.get(pool)
        if is_open and lease.requirement == NOTHING_REQUIRED:
            return self._line.first(pool)  # nearly everybody, nearly always
        has_keyed = self._keyed_counts.get(pool, 0) > 0 and lease.share is not Share.NONE
        if lease.requirement == NOTHING_REQUIRED:
            head = self._line.head_without(pool, left_out) if left_out else self._line.head(pool)
            heads = [] if head is None else [head]
            if has_keyed:
                bucket = _keyed_bucket(pool, lease.fairness_key)
                heads += _one(self._keyed.head_without(bucket, left_out))
        else:
            heads = []
            for bucket in self._counts.get(pool, ()):
                if not self._fits(bucket, lease.requirement):
                    continue
                heads += _one(self._line_by_class.head_without(bucket, left_out))
                if has_keyed:
                    keyed = _keyed_bucket(bucket, lease.fairness_key)
                    heads += _one(self._keyed_by_class.head_without(keyed, left_out))
        if lease.share is not Share.ANY:
            heads = [head for head in heads if not head[0][0] or self._is_of(head[1], lease)]
        if len(heads) > 1:
            return min(heads)[1]
        return heads[0][1] if heads else None

    def _is_of(self, node_id: str, lease: Lease) -> bool:
        """Say whether a partly filled node belongs to the lease's key alone, and it may share."""
        if lease.share is Share.NONE:
            return False
        place = self._keyed.place(node_id)
        return place is not None and place[0] == _keyed_bucket(lease.pool, lease.fairness_key)

    def has_keyed(self, pool: str, fairness_key: str) -> bool:
        """Say whether a node with free slots belongs to this key alone."""
        return (
            self._keyed_counts.get(pool, 0) > 0
            and self._keyed.count(_keyed_bucket(pool, fairness_key)) > 0
        )

    def is_free(self, node_id: str) -> bool:
        """Say whether a node has a free slot for somebody."""
        return node_id in self._free_by_node

    def _fits(self, bucket: str, requirement: Requirement) -> bool:
        of = self._class_by_bucket[bucket]
        return misfit(of.shape, of.slot_count, requirement) is None

    def suits(self, node: Node, lease: Lease) -> bool:
        """Say whether this node has a free slot for such a lease."""
        key = node.node_id
        if key not in self._free_by_node or key in lease.excluded_node_ids:
            return False
        of = self._class_by_node[key]
        return (
            of.pool == lease.pool
            and can_share(node, lease)
            and misfit(of.shape, of.slot_count, lease.requirement) is None
        )

    def count(self, pool: str) -> int:
        """Return at least how many nodes have a free slot, at no cost; 0 only if none has."""
        return self._line.count(pool) + self._keyed_counts.get(pool, 0)

    def free_count(self, pool: str) -> int:
        """Return how many slots are free, at no cost."""
        return self._free_counts.get(pool, 0)

    def keys(self, pool: str) -> list[str]:
        """Return the nodes with a free slot for whoever comes, in the order in which they go."""
        return self._line.keys(pool)

    def classes(self, pool: str) -> list[tuple[Shape, int]]:
        """Return shape and slot count of each class that has a node which is not retired."""
        found = [self._class_by_bucket[bucket] for bucket in self._counts.get(pool, ())]
        return [(each.shape, each.slot_count) for each in found]


def _keyed_bucket(bucket: str, fairness_key: str) -> str:
    return f"{bucket}\x00{fairness_key}"


def _one(head: tuple[Order, str] | None) -> list[tuple[Order, str]]:
    return [] if head is None else [head]


def _is_shared_anew(old: Node | None, new: Node | None) -> bool:
    """Say whether others may share a node than before, though as many of its slots are free.

    A slot that is being cleaned up is as little free as a held one, but it has no tenant.
    """
    return (
        old is not None
        and new is not None
        and new.slot_count > 1
        and (old.lease_count, old.share, old.tenant_key)
        != (new.lease_count, new.share, new.tenant_key)
    )


def _is_alike(old: Node, new: Node) -> bool:
    """Say whether a node stays in its class."""
    return (
        old.shape is new.shape
        and old.phase is new.phase
        and old.slot_count == new.slot_count
        and old.pool == new.pool
    )
