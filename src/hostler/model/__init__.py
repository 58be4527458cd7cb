"""Records and their lifecycles: what Hostler remembers, as frozen values.

A record is changed only by replacing it inside a transaction of the core. `KINDS` is the closed
list of them; stores, journals and invariants go by it.
"""

from hostler.model.allocation import Allocation
from hostler.model.audit import AuditEntry
from hostler.model.bundle import Bundle
from hostler.model.calendar import TimeZone
from hostler.model.command import OutboxEntry
from hostler.model.consolidation import Consolidation
from hostler.model.lease import Lease
from hostler.model.maintenance import Maintenance
from hostler.model.node import Node
from hostler.model.pool import Pool
from hostler.model.provider import Cooldown, ProviderState
from hostler.model.receipt import Receipt
from hostler.model.record import Counter, Record
from hostler.model.replica import Replica
from hostler.model.rollout import Rollout
from hostler.model.settings import Settings
from hostler.model.sizes import Breaker, Sizes
from hostler.model.spend import Budget, Meter, SpendRow
from hostler.model.timetable import Shift
from hostler.model.token import Token
from hostler.model.trace import Trace

KINDS: dict[str, type[Record]] = {
    kind.KIND: kind
    for kind in (
        Allocation,
        AuditEntry,
        Breaker,
        Budget,
        Bundle,
        Consolidation,
        Cooldown,
        Counter,
        Lease,
        Maintenance,
        Meter,
        Node,
        OutboxEntry,
        Pool,
        ProviderState,
        Receipt,
        Replica,
        Rollout,
        Settings,
        Shift,
        Sizes,
        SpendRow,
        TimeZone,
        Token,
        Trace,
    )
}
"""Every kind of record by its name in the store."""

__all__ = [
    "KINDS",
    "Allocation",
    "AuditEntry",
    "Breaker",
    "Budget",
    "Bundle",
    "Consolidation",
    "Cooldown",
    "Counter",
    "Lease",
    "Maintenance",
    "Meter",
    "Node",
    "OutboxEntry",
    "Pool",
    "ProviderState",
    "Receipt",
    "Record",
    "Replica",
    "Rollout",
    "Settings",
    "Shift",
    "Sizes",
    "SpendRow",
    "TimeZone",
    "Token",
    "Trace",
]
