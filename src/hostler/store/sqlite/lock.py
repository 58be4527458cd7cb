"""One server at a time: a lock beside the database file.

SQLite's own locks let a second process write between our transactions; this one is held for as long
as the store is open. The kernel lets go of it when the holder dies, however it dies.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from pathlib import Path

from hostler.ports.store import StoreBusy


class FileLock:
    """Holds `PATH.lock`, with our pid in it for whoever comes second."""

    def __init__(self, path: Path) -> None:
        """Take the lock.

        Raises:
            StoreBusy: Another process holds it.
            OSError: The lock file cannot be made.
        """
        # The file stays when the lock goes: removing it would let two servers lock two files.
        self._fd = os.open(path.with_name(path.name + ".lock"), os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            holder = os.pread(self._fd, 32, 0).decode("ascii", "replace").strip()
            os.close(self._fd)
            raise StoreBusy(
                "store_busy",
                "another server holds the store: stop it first, or give this one its own file",
                path=str(path),
                pid=holder or "unknown",
            ) from error
        # The pid is only for people; a full disk must not keep the lock from being taken.
        with suppress(OSError):
            os.ftruncate(self._fd, 0)
            os.pwrite(self._fd, f"{os.getpid()}\n".encode(), 0)

    def release(self) -> None:
        """Let the next one in. May be called once."""
        with suppress(OSError):
            os.ftruncate(self._fd, 0)
        os.close(self._fd)
