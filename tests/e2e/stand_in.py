"""A cheap stand-in for work that must not run twice, which keeps records of its own.

Run as `python -I -S -E stand_in.py FOLDER KEY [SECONDS]`. It holds a lock named after KEY for as
long as it lives, which the kernel takes away in the instant of its death, and appends lines of
`what boot_ms` to a file of its own: `start`, `beat`, `stop`, and `doubled` if another process held
the lock, which is the proof that two copies of one thing were alive at once. Standard library only.
"""

from __future__ import annotations

import fcntl
import os
import select
import signal
import sys
import time

BEAT_S = 0.05


def boot_ms() -> int:
    """Milliseconds since boot, the same clock for every process."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000


def main(folder: str, key: str, seconds: float) -> int:
    """Be alive, on record, until told to stop or until the time is over."""
    wakeup, wakeup_end = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(wakeup_end)
    signal.signal(signal.SIGTERM, lambda _number, _frame: None)
    name = key.replace("/", "~")
    holder = os.environ.get("HOSTLER_ALLOCATION_ID") or os.environ.get("HOSTLER_LEASE_ID", "nobody")
    epoch = os.environ.get("HOSTLER_EPOCH", "0")
    record = os.open(
        f"{folder}/{name}={holder}={epoch}={os.getpid()}",
        os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC,
        0o644,
    )
    lock = os.open(f"{folder}/{name}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    os.write(record, f"start {boot_ms()}\n".encode())
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.write(record, f"doubled {boot_ms()}\n".encode())
    os.close(os.open("ready", os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o644))
    ends_at_s = time.monotonic() + seconds
    while time.monotonic() < ends_at_s and not select.select([wakeup], [], [], BEAT_S)[0]:
        os.write(record, f"beat {boot_ms()}\n".encode())
    os.write(record, f"stop {boot_ms()}\n".encode())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], float(sys.argv[3]) if len(sys.argv) > 3 else 1e9))
