"""Finds and kills processes by a mark in their environment, which no fork and no pid reuse loses.

Used by the agent for what a killed supervisor or a lease left behind. Run as a program
(`python -I -S -E strays.py MARK AUTHORITY_FILE ALLOCATIONS`) it is the agent's warden. It kills
what carries the mark of a lease when its standard input is closed, which happens when the agent
dies in whatever way, and when the authority has run out, which an agent that hangs would not see.
So no leased command acts on when nobody could call it back.

Allocations have supervisors that keep to the authority. But whatever froze the agent may have
frozen them too, while the job itself goes on; and its next copy may start elsewhere once the grace
is over. So the warden looks after them as well: what must not run without authority, and is still
there when its grace has passed, is killed. Standard library only.
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

LOOK_S = 0.25
"""Between two looks of the warden while there is no authority."""

LATE_MS = 250
"""How long after its grace a job is the warden's to kill: its own supervisor has had its turn, and
with one look and the kill itself it is over within the second that the server allows for it."""

ALLOCATION_MARK = "HOSTLER_ALLOCATION_FOLDER"
"""As `hostler.agent.runtime.environment` has it, which this program does not load."""


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


def authority_until_ms(file: Path) -> int:
    """Say until when work is authorised, in milliseconds since boot; nought when it never was."""
    try:
        return int(file.read_text(encoding="ascii").split()[0])
    except (OSError, ValueError, IndexError):
        return 0


def boot_ms() -> int:
    """Milliseconds since boot, time asleep included."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000


def bound_grace_ms(folder: Path) -> int | None:
    """Give the grace of an allocation that must not run without authority; `None` for any other.

    What has ended, or is only being prepared, is none of them.
    """
    try:
        entries = (folder / "launch").read_bytes().split(b"\0")
        state = (folder / "state").read_bytes()
    except OSError:
        return None
    said = dict(entry.partition(b"=")[::2] for entry in entries)
    if b"authority" not in said or b"ended_at_ms=" in state:
        return None
    return int(said.get(b"stop_grace_ms", b"0"))


def kill_overdue(allocations: Path, until_ms: int) -> None:
    """Kill each job that should have been stopped by its supervisor by now."""
    for folder in allocations.iterdir():
        grace_ms = bound_grace_ms(folder)
        if grace_ms is not None and boot_ms() >= until_ms + grace_ms + LATE_MS:
            kill_marked(f"{ALLOCATION_MARK}={folder / 'work'}\0")


def main(mark: str, authority: str, allocations: str) -> int:
    """Kill what must not go on, until the agent is dead and nothing is left of its leases."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    poll = select.poll()
    poll.register(0, select.POLLIN)
    # Nobody writes to our input: that it can be read means that it is closed.
    until_ms = authority_until_ms(Path(authority))
    while not poll.poll(max(LOOK_S * 1_000, until_ms - boot_ms())):
        until_ms = authority_until_ms(Path(authority))
        if until_ms <= boot_ms():
            kill_marked(mark)
            kill_overdue(Path(allocations), until_ms)
    for _ in range(ROUNDS_MAX):
        if not kill_marked(mark):
            break
        time.sleep(ROUND_S)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3]))
