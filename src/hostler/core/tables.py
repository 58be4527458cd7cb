"""Tables of records, and the indexes and timers that follow them.

An index is a function of single records: given the old and the new value it knows which bucket to
leave and which to enter. That is why undoing a write is the same write backwards, and why a fleet
that is loaded from a store is the same fleet.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Generic, TypeVar

from hostler.model.record import Record

R = TypeVar("R", bound=Record)

_EMPTY: Mapping[str, None] = {}


class Table(Generic[R]):
    """All records of one kind by key."""

    def __init__(self, kind: type[R]) -> None:
        self.kind = kind
        self.rows: dict[str, R] = {}

    def get(self, key: str | None) -> R | None:
        """Return the record, or `None`."""
        return None if key is None else self.rows.get(key)

    def __getitem__(self, key: str) -> R:
        return self.rows[key]

    def __contains__(self, key: object) -> bool:
        return key in self.rows

    def __len__(self) -> int:
        return len(self.rows)

    def in_order(self) -> Iterator[R]:
        """Iterate by key; costs a sort, so not for what runs in every step on a large table."""
        return (self.rows[key] for key in sorted(self.rows))


class Buckets:
    """Keys by bucket."""

    def __init__(self) -> None:
        self._buckets: dict[str, dict[str, None]] = {}

    def move(self, key: str, left: str | None, entered: str | None) -> None:
        """Take a key from one bucket to another; `None` is outside."""
        if left == entered:
            return
        buckets = self._buckets
        if left is not None:
            bucket = buckets[left]
            del bucket[key]
            if not bucket:
                del buckets[left]
        if entered is not None:
            found = buckets.get(entered)
            if found is None:
                buckets[entered] = {key: None}
            else:
                found[key] = None

    def count(self, bucket: str) -> int:
        """Return how many keys are in the bucket, at no cost."""
        return len(self._buckets.get(bucket, _EMPTY))

    def keys(self, bucket: str) -> list[str]:
        """Return the keys in the bucket, sorted."""
        return sorted(self._buckets.get(bucket, _EMPTY))

    def buckets(self) -> list[str]:
        """Return the buckets that are not empty, sorted."""
        return sorted(self._buckets)


class SetIndex(Buckets, Generic[R]):
    """Keys of records by bucket, each in the one that follows from the record alone."""

    def __init__(self, bucket_of: Callable[[R], str | None]) -> None:
        super().__init__()
        self._bucket_of = bucket_of

    def update(self, key: str, old: R | None, new: R | None) -> None:
        """Follow one write."""
        self.move(
            key,
            None if old is None else self._bucket_of(old),
            None if new is None else self._bucket_of(new),
        )


Order = tuple[int | str, ...]


class Line:
    """Keys by bucket, in an order: a line whose head costs no search.

    Each bucket is a heap with lazy deletion: an entry counts only while the key's present place is
    the one it was pushed with. Orders end in the key, so that there are no ties.
    """

    def __init__(self) -> None:
        self._places: dict[str, tuple[str, Order]] = {}
        self._heaps: dict[str, list[tuple[Order, str]]] = {}
        self._counts: dict[str, int] = {}

    def set(self, key: str, place: tuple[str, Order] | None) -> None:
        """Make this the key's bucket and order, in place of any other; `None` for none."""
        before = self._places.get(key)
        if before == place:
            return
        if before is not None:
            del self._places[key]
            self._leave(before[0])
        if place is not None:
            self._places[key] = place
            bucket, order = place
            heap = self._heaps.get(bucket)
            if heap is None:
                heap = self._heaps[bucket] = []
            heapq.heappush(heap, (order, key))
            self._counts[bucket] = self._counts.get(bucket, 0) + 1

    def _leave(self, bucket: str) -> None:
        left = self._counts[bucket] - 1
        heap = self._heaps[bucket]
        if left == 0:
            del self._counts[bucket], self._heaps[bucket]
            return
        self._counts[bucket] = left
        if len(heap) > 2 * left + 64:
            # More stale entries than live ones: rebuild, so that a heap stays in proportion.
            heap[:] = [e for e in dict.fromkeys(heap) if self._counts_now(bucket, e)]
            heapq.heapify(heap)

    def _counts_now(self, bucket: str, entry: tuple[Order, str]) -> bool:
        return self._places.get(entry[1]) == (bucket, entry[0])

    def head(self, bucket: str) -> tuple[Order, str] | None:
        """Return order and key of who stands first, or `None`."""
        heap = self._heaps.get(bucket)
        while heap:
            if self._counts_now(bucket, heap[0]):
                return heap[0]
            heapq.heappop(heap)
        return None

    def head_without(self, bucket: str, left_out: Sequence[str]) -> tuple[Order, str] | None:
        """Return order and key of the first who is none of these few; costs as many looks."""
        head = self.head(bucket)
        if head is None or head[1] not in left_out:
            return head
        passed = []
        while head is not None and head[1] in left_out:
            passed.append(heapq.heappop(self._heaps[bucket]))
            head = self.head(bucket)
        for each in passed:
            heapq.heappush(self._heaps[bucket], each)
        return head

    def first(self, bucket: str) -> str | None:
        """Return the key at the head, or `None`."""
        head = self.head(bucket)
        return None if head is None else head[1]

    def front(self, bucket: str, count: int) -> list[tuple[Order, str]]:
        """Return order and key of the first so many, in order, without sorting the others."""
        heap = self._heaps.get(bucket, [])
        found: list[tuple[Order, str]] = []
        next_up = [(heap[0], 0)] if heap else []
        while next_up and len(found) < count:
            entry, at = heapq.heappop(next_up)
            if self._counts_now(bucket, entry) and (not found or found[-1] != entry):
                found.append(entry)
            for child in (2 * at + 1, 2 * at + 2):
                if child < len(heap):
                    heapq.heappush(next_up, (heap[child], child))
        return found

    def order_of(self, key: str) -> Order:
        """Return the order of somebody in line."""
        return self._places[key][1]

    def has(self, key: str) -> bool:
        """Say whether a key stands in some line."""
        return key in self._places

    def place(self, key: str) -> tuple[str, Order] | None:
        """Return a key's bucket and order, or `None`."""
        return self._places.get(key)

    def count(self, bucket: str) -> int:
        """Return how many stand in line, at no cost."""
        return self._counts.get(bucket, 0)

    def places(self, bucket: str) -> list[tuple[Order, str]]:
        """Return order and key of everyone in line, in order; costs a sort."""
        heap = self._heaps.get(bucket, [])
        return sorted(dict.fromkeys(e for e in heap if self._counts_now(bucket, e)))

    def keys(self, bucket: str) -> list[str]:
        """Return everyone in line, in order; costs a sort."""
        return [key for _, key in self.places(bucket)]

    def buckets(self) -> list[str]:
        """Return the buckets that are not empty, sorted."""
        return sorted(self._counts)


class Timers:
    """The next instant at which each record wants to be looked at, derived from the record."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, str, str]] = []
        self._at: dict[tuple[str, str], int] = {}

    def set(self, kind: str, key: str, at_ms: int | None) -> int | None:
        """Make this the record's timer, `None` for none; return the one that it replaces."""
        name = (kind, key)
        before = self._at.get(name)
        if before == at_ms:
            return before
        if at_ms is None:
            del self._at[name]
            return before
        self._at[name] = at_ms
        heapq.heappush(self._heap, (at_ms, kind, key))
        if len(self._heap) > 2 * len(self._at) + 1_024:
            self._heap = [(at, kind, key) for (kind, key), at in self._at.items()]
            heapq.heapify(self._heap)
        return before

    def get(self, kind: str, key: str) -> int | None:
        """Return the record's timer."""
        return self._at.get((kind, key))

    def next_at_ms(self) -> int | None:
        """Return the earliest instant, or `None`."""
        while self._heap:
            at_ms, kind, key = self._heap[0]
            if self._at.get((kind, key)) == at_ms:
                return at_ms
            heapq.heappop(self._heap)
        return None

    def pop_due(self, now_ms: int) -> list[tuple[str, str, int]]:
        """Remove and return (kind, key, instant) of all that are due, earliest first."""
        due: list[tuple[str, str, int]] = []
        while (at_ms := self.next_at_ms()) is not None and at_ms <= now_ms:
            _, kind, key = heapq.heappop(self._heap)
            del self._at[(kind, key)]
            due.append((kind, key, at_ms))
        return due
