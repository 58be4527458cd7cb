"""What operators want of growth: to try again what lately failed."""

from __future__ import annotations

from hostler.core.events import EventKind
from hostler.core.inputs import RetryGrowth
from hostler.core.provider_pauses import pause_key
from hostler.core.txn import Txn
from hostler.model import Breaker, Cooldown


def retry(txn: Txn, one: RetryGrowth) -> None:
    """Forget what failed in a pool: whoever asks has looked at it."""
    pool = txn.fleet.pools.get(one.pool)
    if pool is None:
        txn.refuse(
            one.request_id, "pool_not_found", f"there is no pool {one.pool!r}", is_missing=True
        )
        return
    pauses = {pause_key(tier.provider) for tier in pool.tiers}
    found = [
        each
        for kind in (Breaker, Cooldown)
        for each in list(txn.fleet.tables[kind.KIND].in_order())
        if each.key.startswith(f"{pool.name}/") or each.key in pauses
    ]
    for each in found:
        txn.remove(each)
    txn.accept(one.request_id, pool.name, is_repeat=not found)
    if found:
        txn.emit(
            EventKind.GROWTH_RETRIED,
            {"pool": pool.name, "principal": one.principal},
            forgotten_count=len(found),
        )
