"""The main job, end to end, as a newcomer runs it."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

pytestmark = [pytest.mark.slow, pytest.mark.e2e]

DEMO_S_MAX = 170
"""A hung demo ends here; how fast it is belongs in its own summary."""

ZERO = (
    "segments_lost_backup",
    "primary_restarts_on_broken_version",
    "encoder_restarts_on_server_kill",
    "leases_lost_on_server_kill",
    "nodes_changed_on_server_kill",
    "leaked_machines",
    "leaked_processes",
)
REACHED = (
    "placed_ms",
    "lease_acquire_ms",
    "recovered_ms",
    "spare_refilled_ms",
    "server_restart_gap_ms",
    "drained_ms",
    "segments_made",
    "backup_moved_ms",
    "rolled_back_ms",
)


def test_the_demo_holds_and_says_so() -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "hostler", "demo", "--json"],
        capture_output=True,
        text=True,
        timeout=DEMO_S_MAX,
        check=False,
    )
    summary = json.loads(ended.stdout or "{}")
    assert summary.get("did_not_hold") == [], (summary, ended.stderr)
    assert ended.returncode == 0
    assert {name: summary[name] for name in ZERO} == dict.fromkeys(ZERO, 0)
    assert all(summary[name] > 0 for name in REACHED)
