"""The one place in the tests that waits for real time: until something becomes true, or too late.

Tests of real processes cannot be handed a clock. They say what they expect and how long a very busy
machine may take to get there; on a quiet one nothing is wasted.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

POLL_S = 0.02
WITHIN_S = 30.0


def eventually(probe: Callable[[], T], *, within_s: float = WITHIN_S, what: str = "") -> T:
    """Call `probe` until it returns something true, and return that."""
    late_at_s = time.monotonic() + within_s
    while True:
        found = probe()
        if found:
            return found
        if time.monotonic() > late_at_s:
            raise AssertionError(_late(what, within_s, found))
        time.sleep(POLL_S)


async def eventually_async(
    probe: Callable[[], Awaitable[T]], *, within_s: float = WITHIN_S, what: str = ""
) -> T:
    """Await `probe` until it returns something true, and return that."""
    late_at_s = time.monotonic() + within_s
    while True:
        found = await probe()
        if found:
            return found
        if time.monotonic() > late_at_s:
            raise AssertionError(_late(what, within_s, found))
        await asyncio.sleep(POLL_S)


async def pause(seconds: float) -> None:
    """Let real time pass: for schedules of faults, which wait for nothing."""
    await asyncio.sleep(seconds)


def holds(file: Path, text: bytes) -> bool:
    """Whether `file` is there and has `text` in it, in one look: a rotation may rename it."""
    try:
        return text in file.read_bytes()
    except FileNotFoundError:
        return False


def _late(what: str, within_s: float, found: object) -> str:
    return f"not within {within_s:g} s: {what or 'the condition'} (last seen: {found!r})"
