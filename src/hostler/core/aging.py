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


def leases_until_at_ms(pool: Pool, ages_out_at_ms: int | None, created_at_ms: int) -> int | None:
    """Return until when leases are granted on a node that ages out, where that is earlier.

    What is held when a node ages out may stay for the pool's notice, and is revoked then. So no
    lease is granted that may last for longer than that, but a node serves for half of its age.
    """
    longest_ms = pool.lease_ms if pool.lease_ms_max is None else pool.lease_ms_max
    lacking_ms = longest_ms - pool.retire_notice_ms
    if ages_out_at_ms is None or pool.age_ms_max is None or lacking_ms <= 0:
        return None
    return max(ages_out_at_ms - lacking_ms, created_at_ms + pool.age_ms_max // 2)


def times_of(pool: Pool, node_id: str, created_at_ms: int) -> dict[str, int | None]:
    """Return what a node's record says of its age."""
    at_ms = ages_out_at_ms(pool, node_id, created_at_ms)
    return {
        "ages_out_at_ms": at_ms,
        "leases_until_at_ms": leases_until_at_ms(pool, at_ms, created_at_ms),
    }


def _useful_until_at_ms(node: Node) -> int | None:
    return node.ages_out_at_ms if node.leases_until_at_ms is None else node.leases_until_at_ms


def replace_at_ms(node: Node) -> int | None:
    """Return when another should be asked for, so that it is there when this one is too old."""
    at_ms = _useful_until_at_ms(node)
    return None if at_ms is None else at_ms - node.boot_ms


def look_at_ms(node: Node) -> int | None:
    """Return when the age of a node matters next."""
    if node.replace_reason is None:
        return replace_at_ms(node)
    return node.ages_out_at_ms if node.is_aging else _useful_until_at_ms(node)
