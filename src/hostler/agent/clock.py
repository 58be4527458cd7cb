"""The agent's clock: milliseconds since 1970 that never jump, and go on while the machine sleeps.

Authority must not be stretched by a clock that is set back, nor by a machine that was suspended, so
the time since boot counts. What 1970 means is taken from the wall clock once, at the start.
"""

from __future__ import annotations

import time


def boot_ms() -> int:
    """Milliseconds since boot; the same in every process of the machine."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000


class Clock:
    """Time since 1970 for one life of the agent."""

    def __init__(self) -> None:
        self._boot_at_ms = time.time_ns() // 1_000_000 - boot_ms()

    def now_ms(self) -> int:
        """Give the present instant."""
        return self._boot_at_ms + boot_ms()

    def to_boot_ms(self, at_ms: int) -> int:
        """Say when an instant is on the clock that other processes share."""
        return at_ms - self._boot_at_ms

    def from_boot_ms(self, at_boot_ms: int) -> int:
        """Turn an instant of the shared clock into ours."""
        return at_boot_ms + self._boot_at_ms
