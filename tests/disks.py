"""Small disks of their own, for tests of what happens when one is full."""

import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def a_disk_of(size: str) -> Iterator[Path]:
    """Mount a disk of so many bytes (`64k`, `2m`); a mere folder where we may not mount one.

    It stands outside of pytest's temporary folders: what a killed run leaves mounted there keeps
    every later run from clearing them up.
    """
    with tempfile.TemporaryDirectory(prefix="hostler-test-disk-") as made:
        mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", made]
        is_mounted = os.geteuid() == 0 and subprocess.run(mount, check=False).returncode == 0
        try:
            yield Path(made)
        finally:
            if is_mounted:
                subprocess.run(["umount", "--lazy", made], check=True)
