"""How old a node may become, and when somebody must look at its age."""

from __future__ import annotations

from typing import Final

from hostler.model import Node, Pool

SPREAD_DIVISOR: Final = 10
"""Up to a tenth of its time is taken off, so that a fleet which came together goes one by one."""

_WHOLE: Final = 2**64
_GOLDEN: Final = 0x9E3779B97F4A7C15
"""Of the whole. Multiples of the golden ratio lie evenly between 0 and 1 from the first on, which
draws do not: numbers in a row are what came together."""


def ages_out_at_ms(pool: Pool, node_id: str, created_at_ms: int) -> int | None:
    """Return when a node has been there for long enough; the same whenever it is asked."""
    if pool.age_ms_max is None:
        return None
    number = int("".join(filter(str.isdigit, node_id)) or 0)
    share = number * _GOLDEN % _WHOLE
    return created_at_ms + pool.age_ms_max - share * (pool.age_ms_max // SPREAD_DIVISOR) // _WHOLE


def replace_at_ms(node: Node) -> int | None:
    """Return when another should be asked for, so that it is there when this one must go."""
    return None if node.ages_out_at_ms is None else node.ages_out_at_ms - node.boot_ms


def look_at_ms(node: Node) -> int | None:
    """Return when the age of a node matters next."""
    return node.ages_out_at_ms if node.replace_reason is not None else replace_at_ms(node)
