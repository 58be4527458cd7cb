"""What the numbers were measured on, without saying whose machine it is."""

from __future__ import annotations

import os
import platform
from pathlib import Path


def describe() -> dict[str, str | int]:
    """Return processor, cores, memory, system and Python of this machine."""
    return {
        "processor": _processor(),
        "core_count": len(os.sched_getaffinity(0)),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "system": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    for line in lines:
        name, _, value = line.partition(":")
        if name.strip() == "model name":
            return value.strip()
    return platform.processor() or platform.machine()
