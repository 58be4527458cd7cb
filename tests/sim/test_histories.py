"""Histories of the swarm and of scenario files, each run under two hash seeds."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from hostler.sim.crew import HASH_SEEDS, Crew
from hostler.sim.history import Outcome
from hostler.sim.probes import missing
from hostler.sim.report import Report
from hostler.sim.worker import Task, scenario_of

HERE = Path(__file__).parent
SCENARIOS = sorted(HERE.glob("scenarios/*.toml"))
SEEDS = [entry["seed"] for entry in tomllib.loads((HERE / "seeds.toml").read_text())["seed"]]

pytestmark = pytest.mark.slow


def run(tasks: list[Task]) -> Report:
    """Run histories as `make sim` does."""
    report = Report()
    for task in tasks:
        report.expect(task)

    def finished(hash_seed: int, outcome: Outcome) -> None:
        report.take(outcome)

    with Crew(jobs=len(HASH_SEEDS)) as crew:
        crew.run(tasks, finished)
    return report


def told(report: Report) -> str:
    return "\n".join(f"{each.violation}\n  {each.replay}" for each in report.failures)


def test_no_history_of_the_swarm_breaks_anything_under_either_hash_seed() -> None:
    tasks = [Task(seed) for seed in range(1_000, 1_006)]
    report = run(tasks)
    assert not report.failures, told(report)
    assert report.run_count == len(HASH_SEEDS) * len(tasks)


def test_no_bug_that_a_seed_has_shown_is_back() -> None:
    report = run([Task(seed) for seed in SEEDS])
    assert not report.failures, told(report)


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_a_scenario_ends_well_and_shows_what_it_is_about(path: Path) -> None:
    task = Task(1, str(path))
    report = run([task])
    assert not report.failures, told(report)
    assert not missing(report.probes, scenario_of(task).expect.probes)
