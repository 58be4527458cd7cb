"""Retention: forgets what is over, once it has been there long enough to be asked about.

Reads:    allocations, leases, nodes, receipts, cooldowns, pools, audit.
Writes:   the same (removes them).
Sends:    nothing.
Keeps:    INV-HISTORY-1 (what is over does not stay for ever), INV-AUDIT-1 (nor does the audit).
Waits on: nothing that people ask about.

Events and the journal are history of the store's, and the engine prunes them.
"""

from __future__ import annotations

from typing import Final

from hostler.core import audit, limits
from hostler.core.txn import Txn
from hostler.model import Allocation, AuditEntry, Cooldown, Lease, Node, Pool, Receipt
from hostler.model.allocation import AllocationPhase
from hostler.model.lease import LeasePhase
from hostler.model.node import NodePhase

READS: Final = (Allocation, Lease, Node, Receipt, Cooldown, Pool, AuditEntry)

_OVER: Final = (LeasePhase.SETTLED, LeasePhase.REFUSED)


def reconcile(txn: Txn) -> None:
    """Remove what has been over for long enough."""
    settings = txn.fleet.settings
    if settings is None:
        return
    before_ms = txn.now_ms - settings.retention.ended_ms
    for allocation in txn.changed(Allocation):
        if allocation.phase is AllocationPhase.ENDED and allocation.phase_since_at_ms <= before_ms:
            txn.remove(allocation)
    for lease in txn.changed(Lease):
        if lease.phase in _OVER and lease.phase_since_at_ms <= before_ms:
            txn.remove(lease)
    _bound_leases(txn)
    _forget_nodes_and_pools(txn, before_ms)
    for entry in audit.outlived(txn.fleet, txn.changed(AuditEntry), settings.retention, txn.now_ms):
        txn.remove(entry)
    _forget_answers(txn)


def _forget_answers(txn: Txn) -> None:
    for receipt in txn.changed(Receipt):
        if receipt.expires_at_ms <= txn.now_ms:
            txn.remove(receipt)
    for cooldown in txn.changed(Cooldown):
        if cooldown.is_over and cooldown.until_at_ms + limits.COOLDOWN_MEMORY_MS <= txn.now_ms:
            txn.remove(cooldown)


def _bound_leases(txn: Txn) -> None:
    """Forget the oldest leases that are over when there are too many, however young."""
    over = txn.fleet.index.leases_over
    for _ in range(over.count("all") - limits.LEASES_OVER_MAX):
        txn.remove(txn.fleet.leases[over.first("all") or ""])


def _forget_nodes_and_pools(txn: Txn, before_ms: int) -> None:
    leaving = {pool.name: pool for pool in txn.changed(Pool) if not pool.is_configured}
    for node in txn.changed(Node):
        if node.phase is not NodePhase.RETIRED:
            continue
        pool = txn.fleet.pools.get(node.pool)
        if pool is not None and not pool.is_configured:
            leaving[pool.name] = pool
        if node.phase_since_at_ms <= before_ms:
            txn.remove(node)
    for name, pool in leaving.items():
        index = txn.fleet.index
        if index.nodes_by_pool.count(name) == 0 and index.leases_waiting.count(name) == 0:
            txn.remove(pool)
