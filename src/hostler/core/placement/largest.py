"""Largest: how much of each thing is free at most on one node of a tier.

It tells whoever waits how far the nearest node is; nothing is decided by it.
"""

from __future__ import annotations

import numpy as np

from hostler.core.placement.columns import FITS, Columns
from hostler.model.shape import WHOLE_MILLI, Requirement


def shortfalls(requirement: Requirement, columns: Columns) -> dict[str, tuple[int, int]] | None:
    """Return what no node of a tier that takes work has free: as needed, and as there is at most.

    By `capacity`, `cores_milli`, `memory_bytes` or the name of a capability whose whole units are
    asked for. Empty: each is free somewhere, but not all on one node. `None`: no node takes work.
    """
    size = len(columns.ids)
    takes_work = columns.standing[:size] == FITS
    if not takes_work.any():
        return None
    asked = {
        "capacity": (requirement.capacity, columns.capacity),
        "cores_milli": (requirement.cores_milli, columns.cores),
        "memory_bytes": (requirement.memory_bytes, columns.memory),
    }
    found = {
        name: (need, max(int(column[:size][takes_work].max()), 0))
        for name, (need, column) in asked.items()
    }
    for request in requirement.capabilities:
        if request.milli == WHOLE_MILLI:
            devices = columns.devices.get(request.name)
            free = 0
            if devices is not None:
                whole = (devices.milli[:size] == WHOLE_MILLI).sum(axis=1)
                free = int(np.max(whole[takes_work], initial=0))
            found[request.name] = (request.count, free)
    return {name: each for name, each in found.items() if each[0] > each[1]}
