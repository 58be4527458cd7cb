"""Pauses of whole providers: one that says "too often", or is not reached, launches nothing.

A pause is a `Cooldown` like that of an offer, under the provider's own key; what is launched at
other providers goes on. Stopping, checking and listing go on too: they end what costs money.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from hostler.base.rng import Stream
from hostler.core import limits
from hostler.core.fleet import Fleet
from hostler.core.txn import Txn
from hostler.model import Cooldown, Node

PAUSING_CODES: Final = frozenset({"throttled", "unreachable", "credentials_rejected"})
"""These say something about the provider and not about the machine that was asked for."""


def pause_key(provider: str) -> str:
    """Return the key of a provider's cooldown; a pool's name has no colon."""
    return f"provider:{provider}"


def paused_until_ms(fleet: Fleet, provider: str) -> int | None:
    """Return until when nothing is launched at a provider; `None` when something may be."""
    pause = fleet.cooldowns.get(pause_key(provider))
    return None if pause is None or pause.is_over else pause.until_at_ms


def pause(txn: Txn, provider: str, code: str, message: str, retry_after_ms: int | None) -> None:
    """Launch nothing at a provider for a while, for longer each time in a row.

    Never for less than it asked for. A little is added, by the provider's name and the count, so
    that several providers, or several fleets, do not come back in the same instant.
    """
    key = pause_key(provider)
    before = txn.fleet.cooldowns.get(key)
    if before is not None and not before.is_over and before.until_at_ms > txn.now_ms:
        return  # what was on its way when the pause began says nothing new
    failure_count = 1 if before is None else before.failure_count + 1
    doubled = limits.PROVIDER_PAUSE_MS_MIN << min(failure_count - 1, 16)
    pause_ms = max(min(doubled, limits.COOLDOWN_MS_MAX), retry_after_ms or 0)
    settings = txn.fleet.settings
    fleet_id = "" if settings is None else settings.fleet_id
    extra_ms = Stream(0, "pause", fleet_id, provider, str(failure_count)).below(pause_ms // 5 + 1)
    txn.put(
        Cooldown(
            cooldown_id=key,
            failure_count=failure_count,
            failed_at_ms=txn.now_ms,
            until_at_ms=txn.now_ms + pause_ms + extra_ms,
            code=code,
            message=message[:500],
        )
    )


def pools_of(fleet: Fleet, provider: str) -> list[str]:
    """Return the pools that launch at a provider."""
    return [
        pool.name
        for pool in fleet.pools.in_order()
        if any(tier.provider == provider for tier in pool.tiers)
    ]


def pools_let_in(fleet: Fleet, nodes: Iterable[Node], now_ms: int) -> list[str]:
    """Return the other pools that may launch now because these nodes have just moved on.

    Only pools that share a provider with a bound on launches in flight wait for each other.
    """
    limited = () if fleet.settings is None else fleet.settings.providers
    if not limited:
        return []
    bounded = {each.provider for each in limited if each.launch_count_max is not None}
    moved = {
        node.provider
        for node in nodes
        if node.provider in bounded and node.phase_since_at_ms == now_ms
    }
    return [name for provider in sorted(moved) for name in pools_of(fleet, provider)]


def pools_of_cooldown(fleet: Fleet, key: str) -> list[str]:
    """Return the pools that a cooldown of an offer, a tier or a provider is about."""
    about = key.partition("/")[0]
    kind, _, provider = about.partition(":")
    return pools_of(fleet, provider) if kind == "provider" and provider else [about]
