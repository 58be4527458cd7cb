"""`python -m hostler.sim`: what it tells, and how it ends."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hostler.core import silence
from hostler.sim import swarm
from hostler.sim.cli import main
from hostler.sim.probes import REQUIRED, missing

SCENARIOS = Path(__file__).parent / "scenarios"


@pytest.mark.slow
def test_one_seed_is_run_here_and_told_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--seed", "1003", "--once", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["seed"] == 1003
    assert told["violation"] == ""
    assert told["event_count"] > 100


@pytest.mark.slow
def test_a_violation_is_told_and_ends_with_1(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(silence, "lost_after_ms", lambda settings, node: 3_500)
    scenario = str(SCENARIOS / "slow_disk_and_doubt.toml")
    codes = [main(["--seed", str(seed), "--once", "--scenario", scenario]) for seed in (1, 2)]
    assert 1 in codes
    assert "at one instant" in capsys.readouterr().out


@pytest.mark.slow
def test_a_failing_range_names_the_one_command_that_shows_it_again(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    scenario = tmp_path / "impossible.toml"
    text = (SCENARIOS / "leases_under_fire.toml").read_text(encoding="utf-8")
    scenario.write_text(text.replace("ticks_max = 200_000", "ticks_max = 500"), encoding="utf-8")
    code = main(["--seed", "1", "--scenario", str(scenario), "--json", "--logs", str(tmp_path)])
    assert code == 1
    (failure,) = json.loads(capsys.readouterr().out)["failures"]
    assert failure["replay"] == f"python -m hostler.sim --seed 1 --scenario {scenario}"
    assert "more happens than can" in failure["violation"]
    assert "more happens than can" in Path(failure["log_path"]).read_text(encoding="utf-8")


@pytest.mark.slow
def test_shrinking_leaves_what_the_failure_needs(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(silence, "lost_after_ms", lambda settings, node: 3_500)
    scenario = tmp_path / "short.toml"
    text = (SCENARIOS / "slow_disk_and_doubt.toml").read_text(encoding="utf-8")
    scenario.write_text(text.replace("= 900_000", "= 450_000"), encoding="utf-8")
    common = ["--seed", "3", "--scenario", str(scenario), "--logs", str(tmp_path)]
    assert main([*common, "--shrink"]) == 0
    smallest = tmp_path / "seed-3.scenario.json"
    kinds = {each["kind"] for each in json.loads(smallest.read_text(encoding="utf-8"))["fault"]}
    assert kinds <= {"partition"}
    assert main(["--seed", "3", "--once", "--scenario", str(smallest)]) == 1
    assert "at one instant" in capsys.readouterr().out


def test_a_bad_scenario_file_is_one_clean_message(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    scenario = tmp_path / "bad.toml"
    scenario.write_text('title = "x"\n[fleet]\npools = 3\n', encoding="utf-8")
    assert main(["--scenario", str(scenario)]) == 2
    assert "fleet.pools" in capsys.readouterr().err


def test_a_missing_scenario_file_is_one_clean_message(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--scenario", "/nowhere.toml"]) == 2
    assert "/nowhere.toml" in capsys.readouterr().err


def test_the_swarm_draws_the_same_scenario_from_the_same_seed() -> None:
    assert swarm.draw(7) == swarm.draw(7)
    assert swarm.draw(7) != swarm.draw(8)


def test_probes_that_were_not_hit_are_named() -> None:
    assert missing(dict.fromkeys(REQUIRED, 1)) == []
    assert missing({}, ("a.b",)) == ["a.b"]
