"""What a benchmark is, and the list of them all.

    @benchmark("core_lease_rate", unit="1/s", budget=at_least(10_000))
    def lease_rate(scratch: Path) -> float:
        fleet = a_warm_fleet(1_000)          # set-up is not measured: return what you measured
        with stopwatch() as watch:
            ...
        return 5_000 / watch.seconds

A benchmark is called several times, each time with an empty folder, and may be a coroutine. Its
result is the median of what it returned.
"""

from __future__ import annotations

import importlib
import pkgutil
import statistics
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import bench

RUNS_DEFAULT: Final = 5
"""Odd, so that the median is something that was measured."""

Measure = Callable[[Path], float | Awaitable[float]]


@dataclass(frozen=True)
class Budget:
    """What a row must reach."""

    limit: float
    is_ceiling: bool

    def is_met(self, value: float) -> bool:
        """Say whether `value` keeps to the budget."""
        return value <= self.limit if self.is_ceiling else value >= self.limit

    def __str__(self) -> str:
        """Give the budget as it stands in a table."""
        return f"{'<=' if self.is_ceiling else '>='} {self.limit:,g}"


def at_most(limit: float) -> Budget:
    """Return a budget that a value must not exceed."""
    return Budget(limit, is_ceiling=True)


def at_least(limit: float) -> Budget:
    """Return a budget that a value must reach."""
    return Budget(limit, is_ceiling=False)


@dataclass(frozen=True)
class Benchmark:
    """One row."""

    name: str
    """Subject first, quantity last; never changes, so that rows can be compared over time."""
    unit: str
    budget: Budget | None
    """`None` for numbers that are worth knowing and promised to nobody."""
    runs: int
    measure: Measure


@dataclass
class Stopwatch:
    """How long a block took."""

    seconds: float = field(default=0.0)


_BENCHMARKS: dict[str, Benchmark] = {}


def benchmark(
    name: str, *, unit: str, budget: Budget | None = None, runs: int = RUNS_DEFAULT
) -> Callable[[Measure], Measure]:
    """Put the decorated function on the list."""

    def register(measure: Measure) -> Measure:
        if name in _BENCHMARKS:
            raise ValueError(f"two benchmarks are called {name}")
        _BENCHMARKS[name] = Benchmark(name, unit, budget, runs, measure)
        return measure

    return register


def all_benchmarks() -> list[Benchmark]:
    """Import every `bench_*.py` and return what they have put on the list, by name."""
    for module in pkgutil.iter_modules(bench.__path__):
        if module.name.startswith("bench_"):
            importlib.import_module(f"bench.{module.name}")
    return sorted(_BENCHMARKS.values(), key=lambda row: row.name)


@contextmanager
def stopwatch() -> Iterator[Stopwatch]:
    """Measure a block; afterwards the yielded object knows its `seconds`."""
    watch = Stopwatch()
    began_s = time.perf_counter()
    try:
        yield watch
    finally:
        watch.seconds = time.perf_counter() - began_s


def percentile(values: Sequence[float], percent: int) -> float:
    """Return the value that `percent` of the values do not exceed."""
    if percent == 50:
        return statistics.median(values)
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, len(ordered) * percent // 100)]
