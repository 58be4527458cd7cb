"""What sizing aims at: the floors and ceilings of a pool, as its windows have them at present."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from hostler.core import calendar
from hostler.core.fleet import Fleet
from hostler.core.keys import tier_key
from hostler.core.uses import Use, use_key
from hostler.model import Pool, Sizes
from hostler.model.pool import SizeWindow, TierKind


def sizes_of(fleet: Fleet, pool: Pool) -> Pool | Sizes:
    """Return whichever has the pool's sizes at present: its record of sizes, or itself."""
    return fleet.sizes.get(pool.name) or pool if pool.windows else pool


def elastic_count(fleet: Fleet, pool: Pool) -> int:
    """Return how many machines the elastic tiers of a pool have, until each is confirmed gone."""
    return sum(
        fleet.index.nodes_by_tier.count(tier_key(pool.name, tier.name))
        for tier in pool.tiers
        if tier.kind is TierKind.ELASTIC
    )


def idle_floor(fleet: Fleet, pool: Pool) -> int:
    """Return how many idle nodes the pool is to have that are nobody's spare.

    As many as are to be warm, or as many as all that is held and spare leaves of the minimum.
    """
    sizes = sizes_of(fleet, pool)
    if not sizes.node_count_min:
        return sizes.warm_count
    index = fleet.index
    idle_count = sum(
        index.nodes_by_use.count(use_key(pool.name, use)) for use in (Use.WARM, Use.INCOMING)
    )
    other_count = index.nodes_staying.count(pool.name) - idle_count
    return max(sizes.warm_count, sizes.node_count_min - other_count)


# -- what the calendar says ------------------------------------------------------------------


def sizes_at(fleet: Fleet, pool: Pool, now_ms: int) -> Sizes:
    """Work out what a pool with windows is to have, and until when that holds.

    A machine takes time to come, so what a window asks for counts as soon as a machine that is
    asked for then would be there when the window begins (trial Z06). Sizes that fall do so when
    their time has come and no earlier.
    """
    lead_ms = lead_of(pool)
    now, soon = _at(fleet, pool, now_ms), _at(fleet, pool, now_ms + lead_ms)
    ceilings = (now.node_count_max, soon.node_count_max)
    edges = sorted(
        edge - shift_ms
        for each in pool.windows
        for shift_ms in {0, lead_ms}
        if (edge := _next_edge(fleet, each, now_ms + shift_ms)) is not None
    )
    return msgspec.structs.replace(
        now,
        warm_count=max(now.warm_count, soon.warm_count),
        node_count_min=max(now.node_count_min, soon.node_count_min),
        node_count_max=None if None in ceilings else max(each or 0 for each in ceilings),
        windows=tuple(
            each.name for each in pool.windows if each.name in {*now.windows, *soon.windows}
        ),
        until_at_ms=edges[0] if edges else None,
    )


def lead_of(pool: Pool) -> int:
    """Return how long before a window begins its machines are asked for."""
    return max((tier.boot_ms for tier in pool.tiers if tier.offers), default=0)


def _at(fleet: Fleet, pool: Pool, at_ms: int) -> Sizes:
    held = list(holding(fleet, pool, at_ms))
    return Sizes(
        pool=pool.name,
        warm_count=_first(pool.warm_count, [each.warm_count for each in held]),
        node_count_min=_first(pool.node_count_min, [each.node_count_min for each in held]),
        node_count_max=next(
            (each.node_count_max for each in held if each.node_count_max is not None),
            pool.node_count_max,
        ),
        windows=tuple(each.name for each in held),
    )


def _first(otherwise: int, given: list[int | None]) -> int:
    return next((each for each in given if each is not None), otherwise)


def holding(fleet: Fleet, pool: Pool, at_ms: int) -> Iterator[SizeWindow]:
    """Yield the windows of a pool that hold at an instant, in the pool's order."""
    for each in pool.windows:
        zone = fleet.time_zones.get(each.window.time_zone)
        if zone is not None and calendar.span_at(each.window, zone, at_ms) is not None:
            yield each


def _next_edge(fleet: Fleet, each: SizeWindow, after_at_ms: int) -> int | None:
    zone = fleet.time_zones.get(each.window.time_zone)
    return None if zone is None else calendar.next_edge_at_ms(each.window, zone, after_at_ms)
