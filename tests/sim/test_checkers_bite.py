"""A checker that catches nothing is worth nothing: plant a bug, and see it caught."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from hostler.agent.core import authority, leases
from hostler.agent.core.effects import StartExec
from hostler.core import openings, silence
from hostler.core.absorb import machines
from hostler.sim.cloud import CloudPlan
from hostler.sim.history import History, Outcome
from hostler.sim.life import ServerProcess
from hostler.sim.scenario import Phases, Scenario, read_scenario
from hostler.sim.supervisor import Supervisor

pytestmark = pytest.mark.slow

SCENARIOS = Path(__file__).parent / "scenarios"


def scenario(name: str, **changes: Any) -> Scenario:
    return msgspec.structs.replace(read_scenario(SCENARIOS / f"{name}.toml"), **changes)


def first_violation(of: Scenario, *, seed_count: int = 4) -> Outcome:
    """Run seeds until one breaks."""
    for seed in range(1, seed_count + 1):
        outcome = History(of, seed).run()
        if outcome.violation:
            return outcome
    raise AssertionError("nobody noticed")


def nothing(*args: Any, **kwargs: Any) -> None:
    """Do not do it."""


def test_agents_that_do_not_fence_run_two_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(authority, "_fence", nothing)
    monkeypatch.setattr(Supervisor, "fence", nothing)
    assert "at one instant" in first_violation(scenario("slow_disk_and_doubt")).violation


def test_a_server_that_is_impatient_runs_two_copies(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(silence, "lost_after_ms", lambda settings, node: 3_500)
    assert "at one instant" in first_violation(scenario("slow_disk_and_doubt")).violation


def test_machines_that_nobody_looks_for_are_leaked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machines, "adopt_orphan", nothing)
    cloud = CloudPlan(list_lag_ms=(60_000, 90_000), is_failing_ppm=400_000, is_unknown_ppm=500_000)
    unkind = scenario("reclaim_during_partition", cloud=cloud, phases=Phases(liveness_ms=600_000))
    assert "billed" in first_violation(unkind).violation


def test_a_command_that_leaves_before_its_commit_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    step_of = ServerProcess._committed

    def hasty(self: ServerProcess, result: Any, delta: Any, batch: Any) -> None:
        step_of(self, result, delta, batch)
        rows = self.server.disk.rows
        for dispatch in delta.dispatches:
            rows._records.get("command", {}).pop(dispatch.command_id, None)
            self._dispatch(dispatch)

    monkeypatch.setattr(ServerProcess, "_committed", hasty)
    assert "not durable" in first_violation(scenario("crash_at_every_boundary")).violation


def test_a_lessee_beside_the_last_one_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leases, "_launch_waiting", _launch_all)
    assert "slots" in first_violation(scenario("leases_under_fire")).violation


def _launch_all(turn: Any) -> None:
    for work in turn.state.leases.values():
        for each in work.exec_by_request_id.values():
            if not each.is_launched:
                each.is_launched = True
                turn.do(StartExec(start=each.start))


def test_work_that_a_step_leaves_undone_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openings, "_has_opening", lambda *args: False)
    outcome = first_violation(scenario("crash_at_every_boundary"))
    assert "full scan" in outcome.violation or "pending" in outcome.violation
