"""Finds and kills processes by a mark in their environment, which no fork and no pid reuse loses.

Used by the agent for what a killed supervisor or a lease left behind. Run as a program
(`python -I -S -E strays.py MARK`) it is the agent's warden: it waits until its standard input is
closed, which happens when the agent dies in whatever way, and then kills what carries the mark, so
that no leased command acts on without an agent that could fence it. Standard library only.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

ROUNDS_MAX = 250
"""Of looking again, 20 ms apart. Longer than this only a process stuck in the kernel remains."""

ROUND_S = 0.02


def marked(mark: str) -> list[int]:
    """Give the processes with an environment entry that begins so, ourselves not counted.

    A mark that ends with a NUL must match an entry to its end.
    """
    needle = b"\0" + os.fsencode(mark)
    found = []
    for process in Path("/proc").iterdir():
        if not process.name.isdigit() or int(process.name) == os.getpid():
            continue
        try:
            environ = (process / "environ").read_bytes()
        except OSError:
            # It has ended, or is not ours to look at and so not ours to kill.
            continue
        if needle in b"\0" + environ:
            found.append(int(process.name))
    return found


def kill_marked(mark: str) -> bool:
    """Kill each process with the mark once; say whether there was any."""
    found = marked(mark)
    for pid in found:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue
    return bool(found)


def main(mark: str) -> int:
    """Wait for the agent to die, then leave nothing behind."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    while os.read(0, 512):
        pass
    for _ in range(ROUNDS_MAX):
        if not kill_marked(mark):
            break
        time.sleep(ROUND_S)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
