"""Reads a job's log across its rotations: the last part of what is kept, then on as it grows.

The files are opened together before the first byte is read, so that a rotation meanwhile loses
nothing. A follower that is so slow that files are rotated out before it gets to them goes on with
the oldest that is left.
"""

from __future__ import annotations

import asyncio
import itertools
import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Final

from hostler.agent.credit import CreditGate

FOLLOW_POLL_S: Final = 0.1
"""How late a follower may see a new line. Looking costs one `stat`."""


class LogFiles:
    """The open files of one log, oldest first."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files: list[int] = []
        self._last: int | None = None
        """Inode of the newest file that was opened."""

    def open_newer(self) -> bool:
        """Open what came after the newest file we have; say whether there was anything."""
        opened: dict[int, int] = {}
        missing_count = 0
        for index in itertools.count():
            name = "log" if index == 0 else f"log.{index}"
            try:
                file = os.open(self._folder / name, os.O_RDONLY | os.O_CLOEXEC)
            except FileNotFoundError:
                # In the middle of a rotation one name is missing.
                missing_count += 1
                if missing_count > 1:
                    break
                continue
            inode = os.fstat(file).st_ino
            # Rotated while we looked: the same file may be met twice, under two names.
            if inode == self._last or inode in opened:
                os.close(file)
                if inode == self._last:
                    break
                continue
            opened[inode] = file
        if not opened:
            return False
        self._last = next(iter(opened))
        self._files.extend(reversed(opened.values()))
        return True

    def skip_to_tail(self, tail_bytes: int) -> None:
        """Leave only the last so many bytes to be read."""
        surplus_bytes = sum(os.fstat(file).st_size for file in self._files) - tail_bytes
        for file in self._files:
            if surplus_bytes <= 0:
                return
            size_bytes = os.fstat(file).st_size
            os.lseek(file, min(size_bytes, surplus_bytes), os.SEEK_SET)
            surplus_bytes -= size_bytes

    def read(self, bytes_max: int) -> bytes:
        """Read on; empty when there is nothing more at present."""
        while self._files:
            data = os.read(self._files[0], bytes_max)
            if data or len(self._files) == 1:
                return data
            os.close(self._files.pop(0))
        return b""

    def close(self) -> None:
        """Close what is open."""
        while self._files:
            os.close(self._files.pop())


async def read_log(
    folder: Path,
    *,
    tail_bytes: int | None,
    is_followed: bool,
    has_ended: Callable[[], bool],
    gate: CreditGate,
) -> AsyncIterator[bytes]:
    """Give the log in pieces no larger than the gate has room for.

    A followed log ends when its job has ended and all of it was read; another one at its present
    end.
    """
    files = LogFiles(folder)
    try:
        files.open_newer()
        if tail_bytes is not None:
            files.skip_to_tail(tail_bytes)
        while True:
            reserved_bytes = await gate.reserve()
            # Asked before reading, or what comes between the two would be missed.
            is_over = not is_followed or has_ended()
            data = files.read(reserved_bytes)
            gate.credited(reserved_bytes - len(data))
            if data:
                yield data
            elif not is_followed or not files.open_newer():
                if is_over:
                    return
                await asyncio.sleep(FOLLOW_POLL_S)
    finally:
        files.close()
