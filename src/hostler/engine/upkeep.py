"""Upkeep: what is done now and then, whoever asks or does not."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from hostler.base.errors import Failed
from hostler.core.inputs import AnyInput, FullScan
from hostler.engine import limits
from hostler.engine.boundaries import Boundary, BoundaryHook
from hostler.model import Settings
from hostler.model.settings import Retention
from hostler.ports.store import Keep, Store

_log = structlog.get_logger(__name__)


async def prune_now_and_then(
    store: Store, read_settings: Callable[[], Awaitable[Settings | None]], boundary: BoundaryHook
) -> None:
    """Cut events and journal back to what the settings keep."""
    while True:
        await asyncio.sleep(limits.PRUNE_EVERY_MS / 1_000)
        settings = await read_settings()
        if settings is None:
            continue
        boundary(Boundary.BEFORE_PRUNE)
        try:
            await store.prune(keep_of(settings.retention))
        except Failed as failure:
            _log.warning("prune_failed", error=str(failure))


def keep_of(retention: Retention) -> Keep:
    """Return how much history the settings keep."""
    return Keep(
        events=retention.event_count_max,
        journal=retention.journal_count_max,
        life=retention.life_count_max,
        lives=retention.lives_count_max,
    )


async def scan_now_and_then(observe: Callable[[AnyInput], Awaitable[None]]) -> None:
    """Let every controller look at everything. The loop says so when one has found something."""
    while True:
        await asyncio.sleep(limits.FULL_SCAN_EVERY_MS / 1_000)
        await observe(FullScan())
