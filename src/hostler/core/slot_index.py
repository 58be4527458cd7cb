"""Which nodes have a free slot, found without a search.

Nodes of one pool that offer the same are one class, so that a requirement is compared with each
class and not with each node. Idle nodes come before partly filled ones (spec/leasing.md L-031), or
after them in a pool that packs (G-88); and older before newer: under little load the newest stand
idle, and those are the ones that go. What is soon to be replaced, as it is old or out of date, is
given only when nothing else is free: a lease should not outlive its machine.
"""

from __future__ import annotations

import msgspec

from hostler.base.encoding import encode
from hostler.core.provided import ready_shape
from hostler.core.slots import can_share, misfit
from hostler.core.tables import Line, Order
from hostler.model import Lease, Node, Pool
from hostler.model.lease import Share
from hostler.model.node import Health, NodePhase
from hostler.model.pool import Packing
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
        and not node.is_closing
        and node.share is not Share.NONE  # but of a node that is idle
    )


class SlotIndex:
    """Free slots by pool and by class of node."""

    def __init__(self) -> None:
        self._class_by_node: dict[str, NodeClass] = {}
        self._class_by_bucket: dict[str, NodeClass] = {}
        self._counts: dict[str, dict[str, int]] = {}
        """Nodes that are not retired, by pool and class."""
        self._packed: set[str] = set()
        """Pools that fill their nodes up."""
        self._idle = Line()
        """By pool: nodes that hold nothing."""
        self._idle_by_class = Line()
        self._shared = Line()
        """By pool: partly filled nodes whose tenants share with anybody."""
        self._shared_by_class = Line()
        self._keyed = Line()
        """By pool and fairness key: partly filled nodes that all belong to one key."""
        self._keyed_by_class = Line()
        self._keyed_counts: dict[str, int] = {}
        self._free_by_node: dict[str, int] = {}
        self._order_by_node: dict[str, Order] = {}
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
        if not free and not before:
            return
        order = _order(new) if new is not None and free else None
        is_moved = _is_shared_anew(old, new) or self._order_by_node.get(key) != order
        if free == before and not (free and is_moved):
            return
        pool = (new or old).pool  # type: ignore[union-attr]  # a write has one side at least
        self._free_counts[pool] = self._free_counts.get(pool, 0) + free - before
        if new is None or order is None or not free:
            del self._free_by_node[key], self._order_by_node[key]
            self._idle.set(key, None)
            self._idle_by_class.set(key, None)
            if (old or new).slot_count > 1:  # type: ignore[union-attr]  # a write has one side at least
                self._set_shared(key, pool, None)
            return
        self._free_by_node[key] = free
        self._order_by_node[key] = order
        is_idle = not new.lease_count
        self._idle.set(key, (pool, order) if is_idle else None)
        self._idle_by_class.set(key, (self._class_by_node[key].bucket, order) if is_idle else None)
        if new.slot_count > 1:
            self._set_shared(key, pool, None if is_idle else new)

    def update_pool(self, key: str, _old: Pool | None, new: Pool | None) -> None:
        """Follow one write of a pool: it says which of several nodes go first."""
        if new is not None and new.packing is Packing.PACK:
            self._packed.add(key)
        else:
            self._packed.discard(key)

    def _set_shared(self, key: str, pool: str, node: Node | None) -> None:
        """Let a partly filled node be found by those who may share it, or by nobody."""
        place: Order | None = None
        if node is not None and node.share is Share.ANY:
            place = _order(node)
        bucket = self._class_by_node[key].bucket if place is not None else ""
        self._shared.set(key, None if place is None else (pool, place))
        self._shared_by_class.set(key, None if place is None else (bucket, place))
        self._set_keyed(key, pool, node)

    def _set_keyed(self, key: str, pool: str, node: Node | None) -> None:
        """Let a node be found by the one key of its tenants, or by none."""
        was = self._keyed.has(key)
        tenant_key = None if node is None else node.tenant_key
        if node is None or tenant_key is None:
            self._keyed.set(key, None)
            self._keyed_by_class.set(key, None)
        else:
            order = _order(node)
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
            self._order_by_node.pop(key, None)
            self._free_counts[before.pool] = self._free_counts.get(before.pool, 0) - free
            self._idle.set(key, None)
            self._idle_by_class.set(key, None)
            self._set_shared(key, before.pool, None)
            self._count(before, -1)
        if node is None or node.phase is NodePhase.RETIRED:
            return
        shape = ready_shape(node)  # a lease begins at once, so what is to come does not help it
        bucket = f"{node.pool}\x00{node.slot_count}\x00{self._text_of(shape)}"
        found = self._class_by_bucket.get(bucket)
        if found is None:
            found = NodeClass(node.pool, shape, node.slot_count, bucket)
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
        """Return the node whose slot goes next to such a lease, or `None`."""
        pool = lease.pool
        if pool in self._packed and lease.share is not Share.NONE:
            return self._first_filled(lease) or self._first_idle(lease)
        return self._first_idle(lease) or self._first_filled(lease)

    def _first_idle(self, lease: Lease) -> str | None:
        pool, left_out = lease.pool, lease.excluded_node_ids
        if lease.requirement == NOTHING_REQUIRED and not left_out:
            return self._idle.first(pool)  # nearly everybody, nearly always
        return self._first(lease, [(self._idle, self._idle_by_class, "")])

    def _first_filled(self, lease: Lease) -> str | None:
        pool = lease.pool
        if lease.share is Share.NONE:
            return None
        lines = []
        if lease.share is Share.ANY and self._shared.count(pool):
            lines.append((self._shared, self._shared_by_class, ""))
        if self._keyed_counts.get(pool, 0):
            lines.append((self._keyed, self._keyed_by_class, lease.fairness_key))
        return self._first(lease, lines) if lines else None

    def _first(self, lease: Lease, lines: list[tuple[Line, Line, str]]) -> str | None:
        """Return the oldest node in some lines, each by pool, by class and of one key or nobody."""
        pool, left_out = lease.pool, lease.excluded_node_ids
        heads: list[tuple[Order, str]] = []
        for line, line_by_class, key in lines:
            if lease.requirement == NOTHING_REQUIRED:
                bucket = _keyed_bucket(pool, key) if key else pool
                heads += _one(line.head_without(bucket, left_out))
                continue
            for of in self._counts.get(pool, ()):
                if self._fits(of, lease.requirement):
                    bucket = _keyed_bucket(of, key) if key else of
                    heads += _one(line_by_class.head_without(bucket, left_out))
        return min(heads)[1] if heads else None

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
        return self._idle.count(pool) + self._shared.count(pool) + self._keyed_counts.get(pool, 0)

    def free_count(self, pool: str) -> int:
        """Return how many slots are free, at no cost."""
        return self._free_counts.get(pool, 0)

    def keys(self, pool: str) -> list[str]:
        """Return the nodes with a free slot for whoever comes, in the order in which they go."""
        lines = [self._idle.keys(pool), self._shared.keys(pool)]
        return [key for line in (lines[::-1] if pool in self._packed else lines) for key in line]

    def classes(self, pool: str) -> list[tuple[Shape, int]]:
        """Return shape and slot count of each class that has a node which is not retired."""
        found = [self._class_by_bucket[bucket] for bucket in self._counts.get(pool, ())]
        return [(each.shape, each.slot_count) for each in found]


def _order(node: Node) -> Order:
    """Return where a node stands: those that are soon to be replaced come last."""
    return int(node.replace_reason is not None), len(node.node_id), node.node_id


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
        and old.services is new.services
        and old.phase is new.phase
        and old.slot_count == new.slot_count
        and old.pool == new.pool
    )
