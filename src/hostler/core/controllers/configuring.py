"""Configuring: gives each running copy the configuration of its job when that has changed.

Reads:    bundles, allocations.
Writes:   allocations (what was last sent).
Sends:    ConfigureAllocation `"{allocation_id}/configure/{generation}"`.
Keeps:    INV-CONFIG-1.
Waits on: nothing; `describe replica` tells how far a copy is and why an attempt failed.

A start carries the configuration of its time. A later one is sent once the copy runs, under a
command of its own that takes the place of an earlier one, and is tried again until the agent has
put it into the copy's folder or the copy ends.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from hostler.core import holds, outbox
from hostler.core.rollout import config_of
from hostler.core.txn import Txn
from hostler.model import Allocation, Bundle
from hostler.model.allocation import AllocationPhase
from hostler.model.command import ConfigureAllocation

READS: Final = (Allocation, Bundle)

_RUNS = (AllocationPhase.RUNNING, AllocationPhase.READY)


def reconcile(txn: Txn) -> None:
    """Look at each copy that changed, or whose bundle did."""
    for allocation in _copies_to_look_at(txn):
        if allocation.phase in _RUNS:
            _configure(txn, allocation)


def _copies_to_look_at(txn: Txn) -> Iterator[Allocation]:
    bundles = txn.changed(Bundle)
    yield from txn.changed(Allocation)
    for bundle in bundles:
        if any(job.config is not None for job in bundle.jobs):
            for key in txn.fleet.index.allocations_by_bundle.keys(bundle.bundle_id):
                yield txn.fleet.allocations[key]


def _configure(txn: Txn, allocation: Allocation) -> None:
    config = config_of(txn.fleet, allocation)
    wanted = 0 if config is None else config.generation
    if allocation.config_sent not in (0, wanted):
        outbox.withdraw(txn, holds.configure_command_id(allocation))
        allocation = txn.change(allocation, config_sent=0)
    if wanted <= max(allocation.config_sent, allocation.config_written):
        return
    allocation = txn.change(allocation, config_sent=wanted)
    txn.send(
        holds.configure_command_id(allocation),
        ConfigureAllocation(
            node_id=allocation.node_id,
            node_epoch=txn.fleet.nodes[allocation.node_id].epoch,
            allocation_id=allocation.allocation_id,
            epoch=allocation.epoch,
        ),
    )
