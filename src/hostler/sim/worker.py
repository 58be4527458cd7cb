"""A worker: runs histories that it is told of on standard input, one JSON line each.

It is a process of its own so that it can have a hash seed of its own: every history is run by two
workers with different ones, and their digests must agree.
"""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec

from hostler.sim.history import History, Outcome
from hostler.sim.scenario import Scenario, read_scenario
from hostler.sim.swarm import draw


class Task(msgspec.Struct, frozen=True):
    """One history to run."""

    seed: int
    scenario_path: str = ""
    """Empty: the swarm draws the scenario from the seed."""
    log_path: str = ""
    """Where a violation's log goes; empty: nowhere."""
    is_replayed: bool = True
    """Run the journal again at the end; once for each history is enough."""


def scenario_of(task: Task) -> Scenario:
    """Return the scenario that a task is about."""
    return read_scenario(Path(task.scenario_path)) if task.scenario_path else draw(task.seed)


def run(task: Task) -> Outcome:
    """Run one history; leave its log behind if something was wrong."""
    scenario = scenario_of(task)
    history = History(scenario, task.seed)
    outcome = history.run(is_replayed=task.is_replayed)
    if outcome.violation and task.log_path:
        _leave_log(Path(task.log_path), scenario, outcome, history)
    return outcome


def _leave_log(path: Path, scenario: Scenario, outcome: Outcome, history: History) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    head = msgspec.json.format(msgspec.json.encode(scenario)).decode()
    lines = (head, *history.world.lines, outcome.violation, outcome.story)
    path.write_text("\n".join(lines), encoding="utf-8")
    rows = [row for life in history.disk.lives for row in life.rows]
    path.with_suffix(".journal").write_bytes(b"\n".join(msgspec.json.encode(row) for row in rows))


def main() -> None:
    """Serve until standard input ends."""
    for line in sys.stdin:
        outcome = run(msgspec.json.decode(line, type=Task))
        sys.stdout.write(msgspec.json.encode(outcome).decode() + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
