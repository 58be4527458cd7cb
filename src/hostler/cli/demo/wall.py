"""Runs `hostler` with a wall clock that can be set from outside.

No process may set the clock of a machine that it does not own, and Linux has no namespace for the
wall clock (only for the clocks that count from boot). So a process of the demo reads the time as
any other does, and adds what a file says: the server and the agents are the real ones, and to them
the clock has jumped.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any, Final

VARIABLE: Final = "HOSTLER_DEMO_WALL"
"""Names the file: so many milliseconds ahead, or behind when it is negative."""


def main() -> None:
    """Replace what gives the wall clock, then go on as the command line."""
    path = Path(os.environ[VARIABLE])
    real_ns = time.time_ns

    def time_ns() -> int:
        return real_ns() + offset_ms(path) * 1_000_000

    clock: Any = time
    clock.time_ns = time_ns
    clock.time = lambda: time_ns() / 1_000_000_000
    from hostler.cli.app import main as hostler

    hostler()


def offset_ms(path: Path) -> int:
    """Return how far ahead the clock is; a file that is not there means that it is right."""
    try:
        return int(path.read_text())
    except (FileNotFoundError, ValueError):
        return 0


if __name__ == "__main__":
    main()
