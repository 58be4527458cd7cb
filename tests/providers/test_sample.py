"""A provider of somebody else: its package is installed, found, and passes the suites."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

SAMPLE = Path(__file__).parents[2] / "examples/provider-sample"


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An environment in which the package is installed, in a folder that is thrown away."""
    folder = tmp_path_factory.mktemp("sample")
    argv = ["install", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    done = subprocess.run(
        [sys.executable, "-m", "pip", *argv, f"--target={folder}", str(SAMPLE)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return {**os.environ, "PYTHONPATH": str(folder), "NO_COLOR": "1"}


def test_it_is_found_by_its_entry_point(installed: dict[str, str]) -> None:
    told = subprocess.run(
        [sys.executable, "-P", "-m", "hostler", "providers", "list", "-o", "json"],
        env=installed,
        capture_output=True,
        text=True,
        check=True,
    )
    (found,) = [one for one in json.loads(told.stdout) if one["name"] == "sample"]
    assert found == {
        "name": "sample",
        "package": "hostler-sample 1.0.0",
        "api_version": 1,
        "has_agents": False,
        "problem": "",
    }


def test_it_passes_the_suites(installed: dict[str, str], tmp_path: Path) -> None:
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-q", "--rootdir", str(SAMPLE)),
            *("-c", os.devnull, "-p", "no:cacheprovider", "-p", "no:schemathesis"),
            *("--import-mode=importlib", f"--basetemp={tmp_path / 'sample'}"),
            str(SAMPLE / "tests/test_conformance.py"),
        ],
        env=installed,
        capture_output=True,
        text=True,
        check=False,
        timeout=150,
    )
    assert done.returncode == 0, done.stdout
    assert " passed" in done.stdout
