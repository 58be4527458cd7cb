"""What can be wrong with how a pool consolidates."""

from __future__ import annotations

from collections.abc import Iterator

from hostler.core.replies import Problem
from hostler.model import Pool

MOVE_COUNT_MAX = 1_000
"""Moves that one pool remembers: more within a window would be no bound."""


def problems_of_consolidation(at: str, pool: Pool) -> Iterator[Problem]:
    """Yield every problem of one pool."""
    policy = pool.consolidation
    if policy is None:
        return
    at = f"{at}.consolidation"
    for name, least, most in (
        ("used_percent_max", 0, 100),
        ("settle_ms", 1_000, None),
        ("payback_ms", 0, None),
        ("move_cost_micros", 0, None),
        ("move_count_max", 1, MOVE_COUNT_MAX),
        ("window_ms", 1_000, None),
        ("spacing_ms", policy.settle_ms, None),
    ):
        value = getattr(policy, name)
        if value < least:
            message = f"is {value}, must be at least {least}"
            yield Problem(path=f"{at}.{name}", code="too_small", message=message)
        elif most is not None and value > most:
            message = f"is {value}, must be at most {most}"
            yield Problem(path=f"{at}.{name}", code="too_large", message=message)
