"""Recovering: from what the store holds to a fleet that may be stepped.

The leadership comes first, so that nobody writes behind our back while we read.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from hostler.core import invariants
from hostler.core.fleet import Fleet
from hostler.engine import limits
from hostler.engine.boundaries import Boundary, BoundaryHook, pass_by
from hostler.ports.store import Loaded, Store
from hostler.store.codec import decode_records


@dataclass(frozen=True)
class Recovered:
    """What an engine starts from."""

    fleet: Fleet
    leader_epoch: int


async def recover(store: Store, boundary: BoundaryHook = pass_by) -> Recovered:
    """Claim a store and build the fleet that it holds.

    Raises:
        StoreRefused: The store cannot be used as it stands; tell the operator.
        Defect: What it holds breaks an invariant.
    """
    leader_epoch = await store.claim()
    boundary(Boundary.AFTER_CLAIM_BEFORE_LOAD)
    loaded = await store.load()
    boundary(Boundary.DURING_LOAD)
    return Recovered(fleet=fleet_of(loaded), leader_epoch=leader_epoch)


def fleet_of(loaded: Loaded, *, is_to_stay: bool = True) -> Fleet:
    """Build the fleet of a loaded store, and check it.

    Args:
        loaded: What the store holds.
        is_to_stay: It lives as long as the process, so the garbage collector need not look at it.
    """
    count = sum(len(bodies) for bodies in loaded.records.values())
    is_worth_it = is_to_stay and count >= limits.RECORD_COUNT_LARGE
    with _collector_out_of_the_way(is_worth_it=is_worth_it):
        fleet = Fleet()
        fleet.load(
            decode_records(loaded.records),
            revision=loaded.revision,
            event_seq=loaded.event_seq,
            now_ms=loaded.now_ms,
        )
        invariants.check_all(fleet)
    return fleet


@contextmanager
def _collector_out_of_the_way(*, is_worth_it: bool) -> Iterator[None]:
    """Load without garbage collections, and have later ones pass over what was loaded.

    Records stay for long and have no cycles; looking at all of them again and again would stop the
    server for parts of a second each time.
    """
    was_enabled = gc.isenabled()
    if not is_worth_it or not was_enabled:
        yield
        return
    gc.disable()
    try:
        yield
        gc.freeze()
    finally:
        gc.enable()
