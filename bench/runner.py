"""Runs benchmarks and keeps their results."""

from __future__ import annotations

import asyncio
import gc
import json
import statistics
import tempfile
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from bench.machine import describe
from bench.registry import Benchmark


@dataclass(frozen=True)
class Result:
    """What came out of one row."""

    benchmark: Benchmark
    values: tuple[float, ...]
    """One per run, in order."""

    @property
    def value(self) -> float:
        """The median of all runs."""
        return statistics.median(self.values)

    @property
    def is_within_budget(self) -> bool:
        """Whether the row keeps its promise; one without a promise does."""
        return self.benchmark.budget is None or self.benchmark.budget.is_met(self.value)


def run(benchmark: Benchmark, runs: int, advance: Callable[[], None]) -> Result:
    """Run one row `runs` times; calls `advance` after each."""
    values = []
    for _ in range(runs):
        # On the disk of the checkout, because a temporary folder may be memory, where a commit
        # costs nothing.
        with tempfile.TemporaryDirectory(prefix=".scratch-", dir=Path(__file__).parent) as folder:
            # One run's garbage must not be collected on another's time.
            gc.collect()
            measured = benchmark.measure(Path(folder))
            values.append(
                measured if isinstance(measured, int | float) else asyncio.run(_awaited(measured))
            )
        advance()
    return Result(benchmark, tuple(values))


def save(results: Iterable[Result], path: Path) -> None:
    """Write results to `path`, in place of the rows of the same name that are there."""
    machine = describe()
    kept = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
    by_name = {row["name"]: row for row in kept}
    for result in results:
        budget = result.benchmark.budget
        by_name[result.benchmark.name] = {
            "name": result.benchmark.name,
            "value": _rounded(result.value),
            "unit": result.benchmark.unit,
            "n": len(result.values),
            "least": _rounded(min(result.values)),
            "most": _rounded(max(result.values)),
            "budget": None if budget is None else str(budget),
            "is_within_budget": result.is_within_budget,
            "machine": machine,
        }
    rows = [by_name[name] for name in sorted(by_name)]
    path.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")


async def _awaited(measured: Awaitable[float]) -> float:
    return await measured


def _rounded(value: float) -> float:
    """Keep four significant digits: the rest is noise that would fill every diff."""
    return float(f"{value:.4g}")
