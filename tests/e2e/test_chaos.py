"""Kill -9 of anything at any moment: nothing is doubled, nothing leaks, what is desired is so."""

from __future__ import annotations

import gc

import pytest

from tests.e2e.chaos import run

pytestmark = [pytest.mark.slow, pytest.mark.e2e]

KILL_COUNT = 20
PAUSE_S_MAX = 0.8


# A request that is given up while it connects to a killed server leaves its socket behind.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("seed", [1, 2])
async def test_kills_at_any_moment_double_nothing_and_leak_nothing(seed: int) -> None:
    await run(seed, KILL_COUNT, PAUSE_S_MAX)
    gc.collect()
