"""The clock: what time it is.

The core never sees a clock; the engine reads it once a step and passes `now_ms` in. Waiting is the
event loop's business: whoever wants virtual time gives both.
"""

from __future__ import annotations

from typing import Protocol


class Clock(Protocol):
    """Wall time, real or virtual."""

    def now_ms(self) -> int:
        """Return milliseconds since 1970 UTC. It may jump, also backwards."""
        ...
