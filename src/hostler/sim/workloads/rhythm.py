"""Rhythm: doing something at random instants of a given rate, while the faults are on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from hostler.base.rng import Stream
from hostler.sim.world import World

_HOUR_MS: Final = 3_600_000


def keep_wanting(world: World, rng: Stream, per_hour: int, act: Callable[[], None]) -> None:
    """Act as `keep_doing` does, but not while people rest."""

    def unless_resting() -> None:
        if world.now_ms >= world.rests_until_ms:
            act()

    keep_doing(world, rng, per_hour, unless_resting)


def keep_doing(world: World, rng: Stream, per_hour: int, act: Callable[[], None]) -> None:
    """Act again and again, at the given rate in the mean, until the world is calm."""
    if per_hour <= 0:
        return
    mean_ms = max(_HOUR_MS // per_hour, 1)

    def once() -> None:
        if not world.is_calm:
            act()
            world.after(rng.between(1, 2 * mean_ms), once)

    world.after(rng.between(1, 2 * mean_ms), once)
