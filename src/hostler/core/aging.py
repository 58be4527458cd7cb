"""How old a node may become, and when somebody must look at its age."""

from __future__ import annotations

from typing import Final

from hostler.base.rng import Stream
from hostler.model import Node, Pool

SPREAD_DIVISOR: Final = 10
"""Up to a tenth of its time is taken off, so that a fleet which came together goes one by one."""


def ages_out_at_ms(pool: Pool, node_id: str, created_at_ms: int) -> int | None:
    """Return when a node has been there for long enough; the same whenever it is asked."""
    if pool.age_ms_max is None:
        return None
    less_ms = Stream(0, "age", node_id).below(pool.age_ms_max // SPREAD_DIVISOR + 1)
    return created_at_ms + pool.age_ms_max - less_ms


def replace_at_ms(node: Node) -> int | None:
    """Return when another should be asked for, so that it is there when this one must go."""
    return None if node.ages_out_at_ms is None else node.ages_out_at_ms - node.boot_ms


def look_at_ms(node: Node) -> int | None:
    """Return when the age of a node matters next."""
    return node.ages_out_at_ms if node.replace_reason is not None else replace_at_ms(node)
