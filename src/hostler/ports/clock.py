"""The clock: what time it is, and waiting for it to pass.

The core never sees a clock; the engine reads it once a step and passes `now_ms` in.
"""

from __future__ import annotations

from typing import Protocol


class Clock(Protocol):
    """Wall time, real or virtual."""

    def now_ms(self) -> int:
        """Return milliseconds since 1970 UTC. It may jump, also backwards."""
        ...

    async def sleep(self, duration_ms: int) -> None:
        """Return after so long."""
        ...
