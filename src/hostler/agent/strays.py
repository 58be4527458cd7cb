"""Finds and kills processes by a mark in their environment, which no fork and no pid reuse loses.

Used by the agent for what a killed supervisor or a lease left behind. Run as a program
(`python -I -S -E strays.py MARK AUTHORITY_FILE`) it is the agent's warden: it kills what carries
the mark when its standard input is closed, which happens when the agent dies in whatever way, and
when the authority has run out, which an agent that hangs would not see. So no leased command acts
on when nobody could call it back. Standard library only.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from pathlib import Path

ROUNDS_MAX = 250
"""Of looking again, 20 ms apart. Longer than this only a process stuck in the kernel remains."""

ROUND_S = 0.02

LOOK_S = 1.0
"""Between two looks of the warden while there is no authority."""


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


def authority_left_s(file: Path) -> float:
    """Say how long work is still authorised; nought when it is not."""
    try:
        until_ms = int(file.read_text(encoding="ascii").split()[0])
    except (OSError, ValueError, IndexError):
        return 0.0
    return max(0.0, until_ms / 1_000 - time.clock_gettime(time.CLOCK_BOOTTIME))


def main(mark: str, authority: str) -> int:
    """Kill what must not go on, until the agent is dead and nothing is left."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    poll = select.poll()
    poll.register(0, select.POLLIN)
    # Nobody writes to our input: that it can be read means that it is closed.
    while not poll.poll(max(LOOK_S, authority_left_s(Path(authority))) * 1_000):
        if not authority_left_s(Path(authority)):
            kill_marked(mark)
    for _ in range(ROUNDS_MAX):
        if not kill_marked(mark):
            break
        time.sleep(ROUND_S)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2]))
