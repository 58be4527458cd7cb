"""The world: one queue, one virtual time, named random streams, and a log with a digest.

Nothing happens but through the queue, in the order of its instants and, at one instant, in the
order in which things were put there. So the same seed gives the same history.
"""

from __future__ import annotations

import hashlib
import heapq
from collections import Counter, deque
from collections.abc import Callable
from typing import Any, Final

from hostler.base.errors import HostlerError
from hostler.base.rng import Stream

WORLD_BEGINS_AT_MS: Final = 1_750_000_000_000
"""The instant at which every history begins; any would do."""

LOG_LINES_KEPT: Final = 50_000
"""Lines kept for the file that a failing history leaves; the digest covers all of them."""


class Violation(HostlerError):
    """Something happened that must never happen: the history is a bug's story."""


class World:
    """Virtual time and everything that is still to happen.

    Attributes:
        seed: Decides every draw.
        now_ms: The true time. Clocks of machines and of the server differ from it.
        event_count: How many things have happened.
        rests_until_ms: People want nothing before this instant.
        is_calm: The faults are over: parts of the world behave from here on.
        probes: How often each rare branch was taken.
    """

    def __init__(self, seed: int, *, tell: Callable[[str], None] | None = None) -> None:
        self.seed = seed
        self.now_ms = WORLD_BEGINS_AT_MS
        self.event_count = 0
        self.rests_until_ms = 0
        self.is_calm = False
        self.probes: Counter[str] = Counter()
        self.lines: deque[str] = deque(maxlen=LOG_LINES_KEPT)
        self._tell = tell
        self._queue: list[tuple[int, int, Callable[..., None], tuple[Any, ...]]] = []
        self._order = 0
        self._digest = hashlib.blake2b(digest_size=16)

    @property
    def elapsed_ms(self) -> int:
        """Virtual time since the beginning."""
        return self.now_ms - WORLD_BEGINS_AT_MS

    def stream(self, *names: str) -> Stream:
        """Return the random stream of one part of the world."""
        return Stream(self.seed, *names)

    def after(self, delay_ms: int, call: Callable[..., None], *args: Any) -> None:
        """Have something happen in a while; what is no longer wanted by then does nothing."""
        self._order += 1
        heapq.heappush(self._queue, (self.now_ms + max(delay_ms, 0), self._order, call, args))

    def run(self, until_ms: int, *, event_count_max: int) -> None:
        """Let everything happen up to an instant, inclusive.

        Raises:
            Violation: More happened than a history of this length can hold: somebody spins.
        """
        queue = self._queue
        while queue and queue[0][0] <= until_ms:
            at_ms, _, call, args = heapq.heappop(queue)
            self.now_ms = at_ms
            self.event_count += 1
            if self.event_count > event_count_max:
                raise Violation(
                    "too_many_events", "more happens than can in this time", count=event_count_max
                )
            call(*args)
        self.now_ms = max(self.now_ms, until_ms)

    def log(self, text: str) -> None:
        """Write a line into the history: what is in it decides the digest."""
        line = f"{self.now_ms - WORLD_BEGINS_AT_MS:>9} {text}"
        self._digest.update(line.encode())
        self.lines.append(line)
        if self._tell is not None:
            self._tell(line)

    def probe(self, name: str) -> None:
        """Count that a rare branch was taken."""
        self.probes[name] += 1

    def digest(self) -> str:
        """Return the digest of the history so far."""
        return self._digest.copy().hexdigest()
