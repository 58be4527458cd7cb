"""Timekeeping: keeps the sizes of pools with windows as the calendar has them.

Reads:    pools, time zones, sizes (when to look again).
Writes:   sizes.
Sends:    nothing.
Keeps:    INV-SIZES-1 (what is written down is what the calendar says).
Waits on: nothing that people ask about.
"""

from __future__ import annotations

from typing import Final

from hostler.core.events import EventKind
from hostler.core.sizing_targets import sizes_at
from hostler.core.txn import Txn
from hostler.model import Pool, Sizes, TimeZone

READS: Final = (Pool, TimeZone, Sizes)


def reconcile(txn: Txn) -> None:
    """Look at the calendar of every pool whose windows, zones or hour have changed."""
    names = dict.fromkeys(txn.changed_keys(Pool))
    names.update(dict.fromkeys(txn.changed_keys(Sizes)))
    if txn.changed_keys(TimeZone):
        names.update(dict.fromkeys(pool.name for pool in txn.fleet.pools.in_order()))
    for name in names:
        _keep(txn, name)


def _keep(txn: Txn, name: str) -> None:
    pool, before = txn.fleet.pools.get(name), txn.fleet.sizes.get(name)
    if pool is None or not pool.windows:
        if before is not None:
            txn.remove(before)
        return
    sizes = sizes_at(txn.fleet, pool, txn.now_ms)
    if sizes == before:
        return
    txn.put(sizes)
    if before is not None and before.windows != sizes.windows:
        txn.emit(EventKind.POOL_SIZES_CHANGED, {"pool": name}, windows=", ".join(sizes.windows))
