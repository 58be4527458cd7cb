"""The controllers, in the order in which they run.

The order is the order of urgency: what may no longer act is stopped before its room is given away;
what failed is known before anybody asks for the like again; leases and replicas take what is there
before anything new is bought; the books follow what was done, and whoever that lets go on is tried
in another round; the outbox comes last, so that a command that was superseded within the step never
leaves.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Final

from hostler.core import outbox
from hostler.core.controllers import (
    admission,
    closing,
    configuring,
    consolidating,
    drain,
    enrollment,
    fencing,
    interrupting,
    leasing,
    liveness,
    maintaining,
    migrating,
    orphans,
    placing,
    preempting,
    promoting,
    provisioning,
    quarantining,
    recovery,
    repaying,
    replacing,
    retention,
    retirement,
    rollouts,
    services,
    sizing,
    spending,
    timekeeping,
    timetables,
)
from hostler.core.txn import Txn
from hostler.model.record import Record


@dataclass(frozen=True)
class Controller:
    """One concern, and the kinds of record whose change wakes it."""

    name: str
    bit: int
    """Its place among those that have something to look at."""
    reads: tuple[str, ...]
    reconcile: Callable[[Txn], None]


def _controller(module: ModuleType, number: int) -> Controller:
    reads: tuple[type[Record], ...] = module.READS
    return Controller(
        name=module.__name__.rpartition(".")[2],
        bit=1 << number,
        reads=tuple(kind.KIND for kind in reads),
        reconcile=module.reconcile,
    )


CONTROLLERS: Final = tuple(
    _controller(module, number)
    for number, module in enumerate(
        (
            timetables,
            timekeeping,
            maintaining,
            admission,
            enrollment,
            liveness,
            fencing,
            interrupting,
            provisioning,
            migrating,
            recovery,
            quarantining,
            rollouts,
            closing,
            drain,
            services,
            promoting,
            preempting,
            leasing,
            placing,
            configuring,
            repaying,
            consolidating,
            replacing,
            sizing,
            retirement,
            orphans,
            spending,
            retention,
            outbox,
        )
    )
)

READERS: Final = {
    kind: sum(each.bit for each in CONTROLLERS if kind in each.reads)
    for kind in sorted({kind for each in CONTROLLERS for kind in each.reads})
}
"""By kind of record, the bits of the controllers that its change wakes."""
