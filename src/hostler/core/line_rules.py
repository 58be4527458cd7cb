"""What a pool says about its waiting line."""

from __future__ import annotations

from hostler.model import Pool


class LineRules:
    """What a pool says about its line."""

    __slots__ = ("cap", "slot_count", "step_ms")

    def __init__(self, pool: Pool) -> None:
        self.cap = pool.lease_per_key_max
        self.slot_count = pool.slot_count
        self.step_ms = pool.line_step_ms

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LineRules) and (self.cap, self.slot_count, self.step_ms) == (
            other.cap,
            other.slot_count,
            other.step_ms,
        )

    __hash__ = None  # type: ignore[assignment]  # compared, never a key
