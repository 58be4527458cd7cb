"""What a fleet remembers beside its records, in a form that can be compared."""

from typing import Any

from msgspec import Struct

from hostler.base.encoding import decode, encode
from hostler.core.fleet import Fleet
from hostler.core.placement.feasible import Place
from hostler.core.placement.places import PlaceIndex
from hostler.model import KINDS

_SCRATCH = {"__orig_class__", "_bucket_of", "_heaps", "_known_shapes", "_place_of", "days"}
"""Parts of indexes that are ways to an answer and no answers: search orders, caches, functions."""


def contents(part: Any) -> Any:
    """Return what an index holds: places, counts and members; nothing where there is nothing."""
    if isinstance(part, dict):
        held = {str(key): contents(value) for key, value in part.items()}
        return {key: value for key, value in held.items() if value not in ({}, (), "0")}
    if isinstance(part, list | tuple):
        return tuple(contents(each) for each in part if not callable(each))
    if part is None or isinstance(part, int | str | bool | Struct):
        return repr(part)
    if isinstance(part, PlaceIndex):
        return {}  # remembers what was asked, and is checked by `places_are_true`
    if not type(part).__module__.startswith("hostler.core"):
        return repr(part)
    names = getattr(type(part), "__slots__", None) or vars(part)
    return contents({name: getattr(part, name) for name in names if name not in _SCRATCH})


def indexed(fleet: Fleet) -> Any:
    """Return what all indexes hold.

    A plain lease that comes to an empty line is noted and gets its place when somebody asks for it;
    so the line is asked, because both mean the same.
    """
    for pool in sorted({lease.pool for lease in fleet.leases.rows.values()}):
        fleet.index.leases_waiting.demand(pool)
    return contents(fleet.index)


def places_are_true(fleet: Fleet) -> bool:
    """Say whether every node looks to placing as it would if nothing were remembered."""
    fresh, kept = PlaceIndex(), fleet.index.places
    for key, allocation in fleet.allocations.rows.items():
        fresh.mix.follow_allocation(key, None, allocation)
    kinds = fresh.mix.kinds()
    is_mix_true = kept.mix.kinds() == kinds and all(
        kept.mix.company(kind) == fresh.mix.company(kind)
        and kept.mix.wishes(kind) == fresh.mix.wishes(kind)
        for kind in kinds
    )
    return is_mix_true and all(
        _in_tier(kept, fleet, pool, tier.name) == _in_tier(fresh, fleet, pool, tier.name)
        for pool in sorted(fleet.pools.rows)
        for tier in fleet.pools[pool].tiers
    )


def _in_tier(index: PlaceIndex, fleet: Fleet, pool: str, tier: str) -> list[Place]:
    columns = index.in_tier(fleet, pool, tier)
    return [place for place in columns.places if place is not None]


def timers(fleet: Fleet, *, after_ms: int = -1) -> dict[tuple[str, str], int]:
    """Return every timer that is later than an instant."""
    found = {}
    for kind, table in fleet.tables.items():
        for key in table.rows:
            at_ms = fleet.timers.get(kind, key)
            if at_ms is not None and at_ms > after_ms:
                found[(kind, key)] = at_ms
    return found


def snapshot(fleet: Fleet) -> tuple[Any, ...]:
    """Return everything that a dropped step must give back."""
    return (
        fleet.digest(),
        indexed(fleet),
        timers(fleet),
        fleet.revision,
        fleet.event_seq,
        fleet.now_ms,
    )


def reloaded(fleet: Fleet) -> Fleet:
    """Return the fleet that a restart would find, from the bytes that a store would keep."""
    records = [
        decode(encode(record), KINDS[kind])
        for kind, table in fleet.tables.items()
        for record in table.rows.values()
    ]
    again = Fleet()
    again.load(records, revision=fleet.revision, event_seq=fleet.event_seq, now_ms=fleet.now_ms)
    return again
