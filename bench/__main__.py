"""`python -m bench [NAME ...]`: measures, shows a table, and writes `bench/results.json`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from bench.registry import Benchmark, all_benchmarks
from bench.runner import Result, run, save

RESULTS = Path(__file__).parent / "results.json"


def main(arguments: Sequence[str]) -> int:
    """Run the benchmarks whose names contain one of the words given, or all of them."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="a part of a row's name")
    parser.add_argument("--runs", type=int, help="how often to run each; the row's own by default")
    parser.add_argument("--list", action="store_true", help="show the rows and measure nothing")
    parser.add_argument("--dry", action="store_true", help="do not write results.json")
    options = parser.parse_args(arguments)
    chosen = [
        row
        for row in all_benchmarks()
        if not options.names or any(name in row.name for name in options.names)
    ]
    if not chosen:
        print(f"no benchmark is called like {' or '.join(options.names)}", file=sys.stderr)
        return 2
    console = Console()
    if options.list:
        for row in chosen:
            console.print(f"{row.name}  {row.budget or ''} {row.unit}", highlight=False)
        return 0
    results = _measure(chosen, options.runs, console)
    if not options.dry:
        save(results, RESULTS)
    console.print(_table(results))
    return 0


def _measure(chosen: Sequence[Benchmark], runs: int | None, console: Console) -> list[Result]:
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    has_terminal = console.is_terminal
    results = []
    with Progress(*columns, console=console, transient=True, disable=not has_terminal) as progress:
        for row in chosen:
            count = runs or row.runs
            task = progress.add_task(row.name, total=count)
            result = run(row, count, partial(progress.advance, task))
            if not has_terminal:
                print(f"{row.name}: {result.value:,.4g} {row.unit}", flush=True)
            results.append(result)
    return results


def _table(results: Sequence[Result]) -> Table:
    table = Table("benchmark", "median", "least", "most", "unit", "budget", "n", box=None)
    for result in results:
        row = result.benchmark
        colour = "green" if result.is_within_budget else "red"
        table.add_row(
            row.name,
            f"[{colour if row.budget else 'default'}]{result.value:,.4g}",
            f"{min(result.values):,.4g}",
            f"{max(result.values):,.4g}",
            row.unit,
            f"{row.budget or ''}{'' if result.is_within_budget else '  missed'}",
            str(len(result.values)),
        )
    return table


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
