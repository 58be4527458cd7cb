"""The command `python -m hostler.sim`: run a range of histories, or one of them again."""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from hostler.sim.crew import HASH_SEEDS, Crew
from hostler.sim.history import History, Outcome
from hostler.sim.probes import RANGE_COUNT_MIN, missing
from hostler.sim.report import Failure, Report, Summary
from hostler.sim.scenario import read_scenario
from hostler.sim.shrink import shrink
from hostler.sim.trials.play import play_all
from hostler.sim.worker import Task, scenario_of

TOLD_EVERY: Final = 50
"""Runs between two lines of progress where there is no terminal to draw a bar on."""

FAILURES_MAX: Final = 5
"""Failing seeds after which a range ends: the first ones are enough to work on."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run what the arguments say; return 0 if nothing was violated."""
    args = _arguments(argv)
    if args.trials is not None:
        return play_all(args.trials, is_told=args.verbose)
    if args.scenario:
        try:
            read_scenario(Path(args.scenario))
        except (OSError, msgspec.MsgspecError, ValueError) as error:
            Console(stderr=True).print(f"{args.scenario}: {error}", markup=False)
            return 2
    if args.seed is not None and args.shrink:
        return _shrink_one(_task(args, args.seed))
    if args.seed is not None and (args.verbose or args.once):
        return _tell_one(_task(args, args.seed), is_told=args.verbose, is_json=args.json)
    seeds = [args.seed] if args.seed is not None else range(args.start, args.start + args.seeds)
    tasks = [_task(args, seed) for seed in seeds]
    summary = _run(tasks, jobs=args.jobs, is_quiet=args.json)
    if args.json:
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(summary)).decode() + "\n")
    else:
        _print(summary)
    return 1 if summary.failures or summary.probes_missing else 0


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m hostler.sim",
        description="Run Hostler in a made-up world with faults. One seed decides everything;"
        " every history is run under two hash seeds, and both must end alike.",
    )
    parser.add_argument("--seeds", type=int, default=200, help="how many histories (200)")
    parser.add_argument("--start", type=int, default=1, help="the first seed (1)")
    parser.add_argument("--seed", type=int, help="run this one history again")
    parser.add_argument("--scenario", help="a scenario file; without, the seed draws one")
    parser.add_argument("--jobs", type=int, default=2, help="workers at once (2)")
    parser.add_argument(
        "-v",
        "--verbose",
        action="store_true",
        help="with --seed or --trials: tell all that happens",
    )
    parser.add_argument(
        "--trials", nargs="*", metavar="NAME", help="play trials by name instead, or all of them"
    )
    parser.add_argument("--once", action="store_true", help="with --seed: run it once, here")
    parser.add_argument(
        "--shrink", action="store_true", help="with --seed: leave away what the failure needs not"
    )
    parser.add_argument("--json", action="store_true", help="a summary for programs")
    parser.add_argument(
        "--logs",
        default=str(Path(tempfile.gettempdir()) / "hostler-sim"),
        help="folder for the logs of failing histories",
    )
    return parser.parse_args(argv)


def _task(args: argparse.Namespace, seed: int) -> Task:
    log_path = Path(args.logs) / f"seed-{seed}.log"
    return Task(seed, args.scenario or "", str(log_path))


def _tell_one(task: Task, *, is_told: bool, is_json: bool) -> int:
    """Run one history in this process."""
    console = Console(stderr=is_json, highlight=False)

    def tell(line: str) -> None:
        console.print(line, markup=False, soft_wrap=True)

    outcome = History(scenario_of(task), task.seed, tell=tell if is_told else None).run()
    if is_json:
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(outcome)).decode() + "\n")
    else:
        _print_one(console, outcome)
    return 1 if outcome.violation else 0


def _shrink_one(task: Task) -> int:
    """Find a smaller scenario in which the seed breaks the same thing, and leave it in a file."""
    console = Console(highlight=False)

    def tell(line: str) -> None:
        console.print(line, markup=False, soft_wrap=True)

    smallest = shrink(scenario_of(task), task.seed, tell)
    path = Path(task.log_path).with_suffix(".scenario.json")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(msgspec.json.format(msgspec.json.encode(smallest)))
    tell(f"python -m hostler.sim --seed {task.seed} --scenario {path}")
    return 0


def _print_one(console: Console, outcome: Outcome) -> None:
    console.print(
        f"seed {outcome.seed}: {outcome.event_count} events, {outcome.step_count} steps,"
        f" digest {outcome.digest}"
    )
    if outcome.violation:
        console.print(outcome.story, markup=False)
        console.print(outcome.violation, markup=False, style="red")


def _run(tasks: list[Task], *, jobs: int, is_quiet: bool) -> Summary:
    report = Report()
    for task in tasks:
        report.expect(task)
    console = Console(stderr=True)
    columns = (TextColumn("simulating"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with (
        Progress(
            *columns, console=console, disable=is_quiet or not console.is_terminal, transient=True
        ) as progress,
        Crew(jobs) as crew,
    ):
        bar = progress.add_task("", total=len(tasks) * len(HASH_SEEDS))

        def finished(_: int, outcome: Outcome) -> None:
            progress.advance(bar)
            failure = report.take(outcome)
            if failure is not None and not is_quiet:
                _print_failure(progress.console, failure)
            if not is_quiet and not console.is_terminal and report.run_count % TOLD_EVERY == 0:
                console.print(f"{report.run_count} of {len(tasks) * len(HASH_SEEDS)} runs")
            if len(report.failures) >= FAILURES_MAX:
                crew.stop()

        crew.run(tasks, finished)
    return report.summary(_probes_missing(tasks, report))


def _probes_missing(tasks: list[Task], report: Report) -> list[str]:
    """Return what should have happened and did not; small ranges need not show everything."""
    if tasks and tasks[0].scenario_path:
        return missing(report.probes, scenario_of(tasks[0]).expect.probes)
    is_large = len(tasks) >= RANGE_COUNT_MIN and not report.failures
    return missing(report.probes) if is_large else []


def _print_failure(console: Console, failure: Failure) -> None:
    console.print(
        f"seed {failure.seed} ({failure.title}; hostler {failure.version},"
        f" core {failure.core_version}): {failure.violation}",
        style="red",
        markup=False,
        soft_wrap=True,
    )
    console.print(f"  again: {failure.replay}", markup=False, soft_wrap=True)
    if failure.log_path:
        console.print(f"  log:   {failure.log_path}", markup=False, soft_wrap=True)


def _print(summary: Summary) -> None:
    console = Console(highlight=False)
    noun = "history" if summary.seed_count == 1 else "histories"
    console.print(
        f"{summary.seed_count} {noun} under {len(HASH_SEEDS)} hash seeds,"
        f" {summary.virtual_hours} virtual hours in {summary.wall_s} s:"
        f" {summary.event_count:,} events ({summary.events_per_s:,}/s),"
        f" {summary.step_count:,} steps, {len(summary.probes)} probes hit"
    )
    for name in summary.probes_missing:
        console.print(f"never seen: {name}", style="red")
    if summary.failures:
        console.print(f"{len(summary.failures)} broken", style="red")
    elif not summary.probes_missing:
        console.print("nothing doubled, nothing leaked, everything desired is so", style="green")
