"""Runs every check that is not a test, two at a time, and says in one line each how it went.

    python tools/check.py [--fast]

`--fast` leaves out what imports the whole product (the generated files).
"""

import argparse
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PYTHON_PATHS = ("src", "tests", "tools", "bench", "examples")


@dataclass(frozen=True)
class Check:
    """One command whose exit status is its verdict."""

    name: str
    argv: tuple[str, ...]
    mend: str
    """What to do when it fails."""


@dataclass(frozen=True)
class Outcome:
    """How a check went, with all it printed."""

    check: Check
    is_ok: bool
    took_ms: int
    output: str


def checks(*, is_fast: bool) -> list[Check]:
    """List the checks, longest first so that two lanes end at about the same time."""
    python = sys.executable
    scripts = Path(python).parent
    paths = [path for path in PYTHON_PATHS if (ROOT / path).exists()]
    generated = Check("generated", (python, "tools/gen.py", "--check"), "make gen")
    return [
        Check("types", (python, "-m", "mypy", "--no-error-summary"), "see the lines above"),
        *([] if is_fast else [generated]),
        Check(
            "tidy",
            (python, "-m", "pytest", "-q", "-p", "no:randomly", "tests/tidy"),
            "each message says why the rule is there",
        ),
        Check(
            "imports",
            (str(scripts / "lint-imports"), "--no-logo"),
            "docs/architecture.md says who may know whom",
        ),
        Check("lint", (python, "-m", "ruff", "check", "--quiet", *paths), "ruff check --fix"),
        Check(
            "format", (python, "-m", "ruff", "format", "--quiet", "--check", *paths), "ruff format"
        ),
    ]


def run(check: Check) -> Outcome:
    """Run one check to its end."""
    began_s = time.monotonic()
    ended = subprocess.run(
        check.argv,
        cwd=ROOT,
        env={**os.environ, "NO_COLOR": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    took_ms = int((time.monotonic() - began_s) * 1000)
    return Outcome(check, ended.returncode == 0, took_ms, ended.stdout.strip())


def main() -> int:
    """Run them all; the exit status is 0 when every one held."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fast", action="store_true", help="leave out the generated files")
    arguments = parser.parse_args()

    failed: list[Outcome] = []
    with ThreadPoolExecutor(max_workers=2) as lanes:
        running = [lanes.submit(run, check) for check in checks(is_fast=arguments.fast)]
        for future in as_completed(running):
            outcome = future.result()
            verdict = "ok" if outcome.is_ok else "FAILED"
            print(
                f"{outcome.check.name:<10} {verdict:<6} {outcome.took_ms / 1000:5.1f} s", flush=True
            )
            if not outcome.is_ok:
                failed.append(outcome)
    for outcome in failed:
        print(f"\n---- {outcome.check.name}\n{outcome.output}\n---- mend: {outcome.check.mend}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
