"""An event loop on virtual time: when nobody has anything to do, the next instant is now.

For everything that waits by `asyncio` and asks a `Clock` for the time. Hours pass in moments, and
the same program takes the same course each time. Threads and sockets have a time of their own; use
neither.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

from hostler.base.errors import Defect

T = TypeVar("T")

BEGIN_MS = 1_800_000_000_000
"""Where virtual clocks begin: a round number far from nought, as wall clocks are."""


class _Selector(selectors.DefaultSelector):
    """Does not wait; remembers for how long it should have."""

    def __init__(self) -> None:
        super().__init__()
        self.waited_s = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        found = super().select(0)
        if found:
            return found
        if timeout is None:
            raise Defect("nothing_will_happen", "everybody waits and nobody has a timer")
        self.waited_s += timeout
        return found


class VirtualClock:
    """The clock of the loop that it is read in."""

    def now_ms(self) -> int:
        """Return milliseconds since 1970 UTC, virtually."""
        return BEGIN_MS + round(asyncio.get_running_loop().time() * 1_000)


async def pass_ms(duration_ms: int) -> None:
    """Let time pass: virtually at once, on a real loop really."""
    await asyncio.sleep(duration_ms / 1_000)


def run_virtually(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end on virtual time.

    Raises:
        Defect: It waits for something that will never happen.
    """
    selector = _Selector()
    loop = asyncio.SelectorEventLoop(selector)
    loop.time = lambda: selector.waited_s  # type: ignore[method-assign]  # this is what it is for
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        return runner.run(main)
