"""The processes of a machine, found by the mark in their environment.

The mark survives forks, new sessions and the death of parents, and unlike a pid it is never used
again for something else.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from hostler.providers.local.tags import MACHINE_MARK

LOOK_AGAIN_MS: Final = 5
"""Longer than the kernel needs between a program's old environment and its new one."""

MARK_MS_MAX: Final = 1_000
"""A busy host may stop a process just between the two."""

_NEEDLE = b"\0" + MACHINE_MARK.encode() + b"="


def pids_by_machine(expected: Collection[str] = ()) -> dict[str, list[int]]:
    """Return the processes of every local machine, those of other servers too.

    Args:
        expected: Machines whose absence matters. For a moment while a process executes another
            program the kernel shows no environment; so whoever is missing is looked for again.
    """
    found = _look()
    if all(machine_id in found for machine_id in expected):
        return found
    time.sleep(LOOK_AGAIN_MS / 1_000)
    again = _look()
    return {**found, **again}


def _look() -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            machine_id = _machine_of(int(process.name))
            if machine_id is not None:
                found.setdefault(machine_id, []).append(int(process.name))
    return found


def pids_of(machine_id: str) -> list[int]:
    """Return the processes of one machine; none means that there surely are none."""
    return pids_by_machine([machine_id]).get(machine_id, [])


def _machine_of(pid: int) -> str | None:
    """Return whose a process is. One that has ended, or that we may not look at, is nobody's."""
    try:
        environ = b"\0" + Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return None
    _, is_marked, rest = environ.partition(_NEEDLE)
    return os.fsdecode(rest.partition(b"\0")[0]) if is_marked else None


def send_signal(machine_id: str, pids: Sequence[int], number: signal.Signals) -> None:
    """Send a signal to processes of a machine, and to nobody who has got their pid since."""
    for pid in pids:
        with suppress(ProcessLookupError, PermissionError), _handle(pid) as handle:
            if _machine_of(pid) == machine_id:
                signal.pidfd_send_signal(handle, number)


@contextmanager
def _handle(pid: int) -> Iterator[int]:
    handle = os.pidfd_open(pid)
    try:
        yield handle
    finally:
        os.close(handle)


def spawn(argv: list[str], environment: Mapping[str, str], log: Path) -> int:
    """Start a process that has nothing to do with us: own session, no terminal; return its pid."""
    return os.posix_spawnp(
        argv[0],
        argv,
        environment,
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ],
        setsid=True,
        setsigmask=(),
        setsigdef=(signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE),
    )


def await_mark(pid: int, machine_id: str) -> None:
    """Return once a child that was just started can be found by its mark, or has ended."""
    for _ in range(MARK_MS_MAX // LOOK_AGAIN_MS):
        if _machine_of(pid) == machine_id or _has_ended(pid):
            return
        time.sleep(LOOK_AGAIN_MS / 1_000)


def _has_ended(pid: int) -> bool:
    """Say whether a child has ended, without taking note of it."""
    try:
        ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return True
    return ended is not None


def reap(pid: int) -> bool:
    """Take note of the end of a child; say whether it has ended (or never was ours)."""
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    except ChildProcessError:
        return True
