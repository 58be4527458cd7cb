"""The real clock."""

from __future__ import annotations

import time


class SystemClock:
    """Wall time of this host."""

    def now_ms(self) -> int:
        """Return milliseconds since 1970 UTC."""
        return time.time_ns() // 1_000_000
