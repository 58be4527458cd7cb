"""Tells a job by signal that its configuration has changed.

The signal goes to the main process once that has a handler for it: without one it would be killed.
Until then `reload` in the allocation's folder says what is still to be told, also to our next life.
"""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from typing import Final

from hostler.agent.folder import write_whole
from hostler.agent.runtime import supervised

PAUSE_S_MIN: Final = 0.1
PAUSE_S_MAX: Final = 2.0
"""Between two looks at a process that has no handler yet. A look takes some 50 us."""


def note(folder: Path, name: str) -> None:
    """Write down that the job is to be told, and how.

    Raises:
        OSError: It could not be written.
    """
    write_whole(folder / "reload", name.encode())


async def tell(folder: Path) -> None:
    """Tell the job what is noted, as soon as it listens; ends with the job at the latest."""
    pause_s = PAUSE_S_MIN
    while (name := _noted(folder)) is not None:
        state = supervised.read_state(folder)
        if state is not None and state.end is not None:
            return
        if _is_sent(folder, signal.Signals[name]):
            (folder / "reload").unlink(missing_ok=True)
            return
        await asyncio.sleep(pause_s)
        pause_s = min(2 * pause_s, PAUSE_S_MAX)


def _noted(folder: Path) -> str | None:
    try:
        return (folder / "reload").read_text(encoding="ascii")
    except FileNotFoundError:
        return None


def _is_sent(folder: Path, number: signal.Signals) -> bool:
    """Send the signal if the main process is there and has a handler for it."""
    process = supervised.main_process(folder)
    if process is None:
        return False
    pid, start_ticks = process
    try:
        held = os.pidfd_open(pid)
    except ProcessLookupError:
        return False
    try:
        # Held first and compared then, so that it cannot be somebody else who has the number now.
        if _start_ticks(pid) != start_ticks or not _is_caught(pid, number):
            return False
        signal.pidfd_send_signal(held, number)
    except (FileNotFoundError, ProcessLookupError):
        return False
    finally:
        os.close(held)
    return True


def _start_ticks(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[19])


def _is_caught(pid: int, number: signal.Signals) -> bool:
    """Say whether a process has a handler of its own for a signal."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace")
    caught = int(status.partition("\nSigCgt:")[2].split(None, 1)[0], 16)
    return bool(caught >> (number - 1) & 1)
