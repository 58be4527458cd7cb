"""A real process on a real file is killed with -9; the next one ends the story all the same."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from hostler.engine.boundaries import Boundary

pytestmark = [pytest.mark.slow, pytest.mark.e2e]


def run(folder: Path, *doom: str) -> tuple[int, str]:
    folder.mkdir(exist_ok=True)
    done = subprocess.run(
        [sys.executable, "-m", "tests.engine.doomed_server", str(folder), *doom],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode in (0, -signal.SIGKILL), done.stderr
    return done.returncode, done.stdout


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> str:
    ended, told = run(tmp_path_factory.mktemp("undisturbed"))
    assert ended == 0
    return told


@pytest.mark.parametrize(
    ("boundary", "passage"),
    [
        (Boundary.BEFORE_COMMIT, 4),
        (Boundary.AFTER_COMMIT_BEFORE_KEEP, 3),
        (Boundary.AFTER_CALL_BEFORE_SETTLE, 3),
    ],
)
def test_a_killed_server_changes_nothing_in_the_end(
    tmp_path: Path, expected: str, boundary: Boundary, passage: int
) -> None:
    assert run(tmp_path, boundary.value, str(passage)) == (-signal.SIGKILL, "")
    assert run(tmp_path) == (0, expected)
