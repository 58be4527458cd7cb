"""Seeded random streams that need no global state.

A stream is named: `Stream(seed, "network", "n-000001")`. Drawing from one never disturbs another,
so adding a draw in one part of a simulation leaves the other parts as they were. Numbers are
blake2b over the stream's key and a counter; that is slower than a Mersenne twister and the same
on every platform and version of Python.
"""

from __future__ import annotations

import hashlib
from collections.abc import MutableSequence, Sequence
from typing import TypeVar

E = TypeVar("E")

_U64 = 1 << 64


class Stream:
    """One named source of random numbers."""

    def __init__(self, seed: int, *names: str) -> None:
        self._key = hashlib.blake2b(
            "\x00".join((str(seed), *names)).encode(), digest_size=32
        ).digest()
        self._count = 0

    def u64(self) -> int:
        """Return the next number in [0, 2**64)."""
        self._count += 1
        block = hashlib.blake2b(
            self._count.to_bytes(8, "big"), key=self._key, digest_size=8
        ).digest()
        return int.from_bytes(block, "big")

    def below(self, bound: int) -> int:
        """Return a number in [0, bound); the bias is below bound / 2**64."""
        return self.u64() * bound // _U64

    def between(self, low: int, high: int) -> int:
        """Return a number in [low, high], both ends included."""
        return low + self.below(high - low + 1)

    def chance(self, millionths: int) -> bool:
        """Return true with a probability of `millionths` in a million."""
        return self.below(1_000_000) < millionths

    def choice(self, options: Sequence[E]) -> E:
        """Return one of the options, which must not be empty."""
        return options[self.below(len(options))]

    def shuffle(self, items: MutableSequence[E]) -> None:
        """Put the items into a random order, in place."""
        for last in range(len(items) - 1, 0, -1):
            other = self.below(last + 1)
            items[last], items[other] = items[other], items[last]
