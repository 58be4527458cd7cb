"""The report of a range: what was run, how fast, what broke, and how to see it again."""

from __future__ import annotations

import time
from collections import Counter

import msgspec

from hostler import __version__
from hostler.core.version import CORE_VERSION
from hostler.sim.history import Outcome
from hostler.sim.worker import Task


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """One history that broke something."""

    seed: int
    title: str
    violation: str
    replay: str
    """The one command that runs it again."""
    log_path: str
    version: str
    core_version: int


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """A range in numbers."""

    seed_count: int
    run_count: int
    event_count: int
    step_count: int
    virtual_hours: int
    wall_s: float
    events_per_s: int
    """All workers together."""
    probes: dict[str, int]
    probes_missing: list[str]
    failures: list[Failure]
    digest_by_seed: dict[int, str]


class Report:
    """Gathers outcomes as they come; each history comes once for each hash seed."""

    def __init__(self) -> None:
        self._began_s = time.monotonic()
        self._first: dict[int, Outcome] = {}
        self._tasks: dict[int, Task] = {}
        self.failures: list[Failure] = []
        self._failed_seeds: dict[int, None] = {}
        self.run_count = 0
        self.event_count = 0
        self._step_count = 0
        self._virtual_ms = 0
        self.probes: Counter[str] = Counter()

    def expect(self, task: Task) -> None:
        """Note a task, so that its failure can name its file."""
        self._tasks[task.seed] = task

    def take(self, outcome: Outcome) -> Failure | None:
        """Take one outcome in; return the failure that it is, if it is the seed's first."""
        self.run_count += 1
        self.event_count += outcome.event_count
        self._step_count += outcome.step_count
        self._virtual_ms += outcome.elapsed_ms
        self.probes.update(outcome.probes)
        first = self._first.setdefault(outcome.seed, outcome)
        violation = outcome.violation
        if not violation and not first.violation and first.digest != outcome.digest:
            violation = "digest differs under another hash seed: something iterates over a set"
        if not violation or outcome.seed in self._failed_seeds:
            return None
        self._failed_seeds[outcome.seed] = None
        failure = self._failure(outcome, violation)
        self.failures.append(failure)
        return failure

    def _failure(self, outcome: Outcome, violation: str) -> Failure:
        task = self._tasks[outcome.seed]
        scenario = f" --scenario {task.scenario_path}" if task.scenario_path else ""
        return Failure(
            seed=outcome.seed,
            title=outcome.title,
            violation=violation,
            replay=f"python -m hostler.sim --seed {outcome.seed}{scenario}",
            log_path=task.log_path if outcome.violation else "",
            version=__version__,
            core_version=CORE_VERSION,
        )

    def summary(self, probes_missing: list[str]) -> Summary:
        """Return the range in numbers."""
        wall_s = max(time.monotonic() - self._began_s, 0.001)
        return Summary(
            seed_count=len(self._first),
            run_count=self.run_count,
            event_count=self.event_count,
            step_count=self._step_count,
            virtual_hours=self._virtual_ms // 3_600_000,
            wall_s=round(wall_s, 1),
            events_per_s=int(self.event_count / wall_s),
            probes=dict(sorted(self.probes.items())),
            probes_missing=probes_missing,
            failures=self.failures,
            digest_by_seed={seed: each.digest for seed, each in sorted(self._first.items())},
        )
