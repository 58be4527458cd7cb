"""The main job, end to end, as a newcomer runs it."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import msgspec
import pytest

from hostler.cli.demo.measures import MEASURED_IN, Measures
from hostler.cli.demo.story import CHAPTERS

pytestmark = [pytest.mark.slow, pytest.mark.e2e]

DEMO_S_MAX = 240
"""A hung demo ends here; how fast it is belongs in its own summary."""

ZERO = {
    "partition": ("copies_changed_by_short_cut", "copies_at_once_ms"),
    "rejection": ("restarts_for_refusals",),
    "server-kill": (
        "encoder_restarts_on_server_kill",
        "leases_lost_on_server_kill",
        "nodes_changed_on_server_kill",
    ),
    "clock-jump": ("nodes_doubted_on_clock_jump", "holds_changed_on_clock_jump"),
    "restart-all": ("copies_changed_by_restart_of_all", "books_changed_by_restart_of_all"),
    "spot-notice": ("encoders_on_machine_taken",),
    "rollout": ("primary_restarts_on_broken_version",),
    "": ("segments_lost_backup", "leaked_machines", "leaked_processes"),
}
REACHED = {
    "lease": ("lease_acquire_ms",),
    "partition": ("cut_off_recovered_ms",),
    "node-loss": ("recovered_ms", "spare_refilled_ms"),
    "rejection": ("left_alone_ms",),
    "server-kill": ("server_restart_gap_ms",),
    "restart-all": ("restarted_all_ms",),
    "spot-notice": ("spot_left_ms",),
    "drain": ("drained_ms", "backup_moved_ms"),
    "rollout": ("rolled_back_ms",),
    "": ("placed_ms", "segments_made"),
}


@pytest.fixture(scope="module")
def summary() -> Any:
    """Give what one whole demo says."""
    return told()


def told(*options: str) -> Any:
    ended = subprocess.run(
        [sys.executable, "-m", "hostler", "demo", "--json", *options],
        capture_output=True,
        text=True,
        timeout=DEMO_S_MAX,
        check=False,
    )
    summary = json.loads(ended.stdout or "{}")
    assert summary.get("did_not_hold") == [], (summary, ended.stderr)
    assert ended.returncode == 0
    return summary


@pytest.mark.parametrize("chapter", [*CHAPTERS, ""])
def test_every_chapter_of_the_demo_holds_and_says_so(summary: Any, chapter: str) -> None:
    names = ZERO.get(chapter, ())
    assert {name: summary[name] for name in names} == dict.fromkeys(names, 0)
    assert all(summary[name] > 0 for name in REACHED.get(chapter, ()))


def test_a_chapter_can_be_told_alone() -> None:
    summary = told("--only", "clock-jump")
    others = [
        name for chapter, names in MEASURED_IN.items() if chapter != "clock-jump" for name in names
    ]
    assert {summary[name] for name in others} == {None}
    assert summary["holds_changed_on_clock_jump"] == 0
    assert summary["leaked_processes"] == 0


def test_a_chapter_that_does_not_exist_is_answered_with_those_that_do() -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "hostler", "demo", "--only", "earthquake"],
        capture_output=True,
        text=True,
        timeout=DEMO_S_MAX,
        check=False,
    )
    assert ended.returncode == 2
    assert "earthquake" in ended.stderr
    assert "restart-all" in ended.stderr


def test_every_number_that_a_chapter_measures_is_one_of_the_summary() -> None:
    known = {each.name for each in msgspec.structs.fields(Measures)}
    assert set(MEASURED_IN) == set(CHAPTERS)
    assert {name for names in MEASURED_IN.values() for name in names} <= known


def test_what_must_be_zero_is_said_when_it_is_not() -> None:
    measures = Measures(copies_at_once_ms=40)
    measures.judge(["partition"], is_kept=True)
    assert "copies_at_once_ms is 40 and must be 0" in measures.did_not_hold
    assert "cut_off_recovered_ms was not reached" in measures.did_not_hold
    assert "recovered_ms was not reached" not in measures.did_not_hold
