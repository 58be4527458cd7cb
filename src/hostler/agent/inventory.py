"""Reads what the node has, and lets what the operator declared come first."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from hostler.wire.work import Capability, Device, Inventory


class DeclaredShape(msgspec.Struct, frozen=True, kw_only=True):
    """What the operator says the node has; `None` is measured or left unreported."""

    capacity: int | None = None
    """How many holds at once; measured, it is the number of cores."""
    cores_milli: int | None = None
    memory_bytes: int | None = None
    capabilities: list[Capability] = []
    devices: list[Device] = []


def read_inventory(declared: DeclaredShape) -> Inventory:
    """Put together what is declared and what is there."""
    cores_milli = declared.cores_milli
    if cores_milli is None:
        cores_milli = len(os.sched_getaffinity(0)) * 1_000
    memory_bytes = declared.memory_bytes
    if memory_bytes is None:
        memory_bytes = min(_machine_memory_bytes(), _cgroup_memory_bytes())
    capacity = declared.capacity
    return Inventory(
        capacity=max(1, cores_milli // 1_000) if capacity is None else capacity,
        cores_milli=cores_milli,
        memory_bytes=memory_bytes,
        capabilities=list(declared.capabilities),
        devices=list(declared.devices),
    )


def _machine_memory_bytes() -> int:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _cgroup_memory_bytes() -> int:
    """Read the limit of our own control group; without one, more than any machine has."""
    try:
        limit = Path("/sys/fs/cgroup/memory.max").read_text(encoding="ascii").strip()
        return int(limit)
    except (OSError, ValueError):
        return 2**63 - 1
