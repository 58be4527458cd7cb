"""The simulator: how much of a made-up world passes by in a second, with every checker on."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Final

from bench.registry import at_least, benchmark
from hostler.sim.history import History
from hostler.sim.swarm import draw

SEEDS: Final = range(2_000, 2_006)
"""Drawn as `make sim` draws them; none is chosen."""


@benchmark("simulator_event_rate", unit="1/s", budget=at_least(20_000), runs=3)
def event_rate(_: Path) -> float:
    """Events of six histories with every checker but the replay, in one process's own time."""
    began_s = time.process_time()
    event_count = 0
    for seed in SEEDS:
        outcome = History(draw(seed), seed).run(is_replayed=False)
        if outcome.violation:
            raise RuntimeError(f"seed {seed}: {outcome.violation}")
        event_count += outcome.event_count
    return event_count / (time.process_time() - began_s)
