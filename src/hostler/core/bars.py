"""Bars: which fairness keys a budget holds back, and where."""

from __future__ import annotations

from collections.abc import Iterator

from hostler.model import Budget


class Bars:
    """Fairness keys that stand aside until something is given back to their budget."""

    def __init__(self) -> None:
        self._pools: dict[str, dict[str, None]] = {}
        """By key; empty text for all pools."""

    def __bool__(self) -> bool:
        return bool(self._pools)

    def update(self, old: Budget | None, new: Budget | None) -> Iterator[tuple[str, str]]:
        """Follow one write of a budget; yield key and pool of each bar that was set or lifted."""
        was, now = _bar(old), _bar(new)
        if was == now:
            return
        if was is not None:
            key, pool = was
            del self._pools[key][pool]
            if not self._pools[key]:
                del self._pools[key]
            yield was
        if now is not None:
            self._pools.setdefault(now[0], {})[now[1]] = None
            yield now

    def holds(self, pool: str, key: str) -> bool:
        """Say whether a key is held back in a pool."""
        pools = self._pools.get(key)
        return pools is not None and ("" in pools or pool in pools)


def _bar(budget: Budget | None) -> tuple[str, str] | None:
    if budget is None or budget.held_back_at_ms is None or not budget.fairness_key:
        return None
    return budget.fairness_key, budget.pool
