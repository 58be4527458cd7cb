"""What must hold of the configurations of jobs after every step."""

from __future__ import annotations

from collections.abc import Iterator

from hostler.core.fleet import Fleet
from hostler.core.holds import configure_command_id
from hostler.core.pool_invariants import Broken
from hostler.core.rollout import config_of
from hostler.model import Allocation
from hostler.model.allocation import AllocationPhase

_RUNS = (AllocationPhase.RUNNING, AllocationPhase.READY)


def of_allocation(fleet: Fleet, allocation: Allocation) -> Iterator[Broken]:
    """A running copy has the latest configuration that is meant for it, or it is on its way."""
    if allocation.phase in _RUNS:
        config = config_of(fleet, allocation)
        is_behind = config is not None and config.generation > allocation.config_written
        if is_behind and configure_command_id(allocation) not in fleet.commands:
            yield "INV-CONFIG-1", "a running copy is behind, and nothing is sent to it"
