"""The fleet: every record in memory, with the indexes that make a step cost what is dirty.

It changes only through a transaction, and a transaction ends in `keep` or `drop`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import msgspec

from hostler.base.encoding import digest, encode
from hostler.base.errors import check
from hostler.core.indexes import Indexes
from hostler.core.tables import Table, Timers
from hostler.core.wakes import wake_at_ms
from hostler.model import (
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
from hostler.model.reason import Reason
from hostler.model.record import Record

if TYPE_CHECKING:
    from hostler.core.delta import Delta


class Note(msgspec.Struct, frozen=True):
    """Why a controller did not (yet) do something about a record."""

    reason: Reason
    detail: str
    since_at_ms: int


class Fleet:
    """Everything one Hostler looks after, as it is after the last step."""

    def __init__(self) -> None:
        self.allocations = Table(Allocation)
        self.audit = Table(AuditEntry)
        self.breakers = Table(Breaker)
        self.bundles = Table(Bundle)
        self.budgets = Table(Budget)
        self.consolidations = Table(Consolidation)
        self.cooldowns = Table(Cooldown)
        self.counters = Table(Counter)
        self.leases = Table(Lease)
        self.maintenances = Table(Maintenance)
        self.meters = Table(Meter)
        self.nodes = Table(Node)
        self.commands = Table(OutboxEntry)
        self.pools = Table(Pool)
        self.providers = Table(ProviderState)
        self.receipts = Table(Receipt)
        self.replicas = Table(Replica)
        self.rollouts = Table(Rollout)
        self.settings_table = Table(Settings)
        self.shifts = Table(Shift)
        self.spend = Table(SpendRow)
        self.sizes = Table(Sizes)
        self.time_zones = Table(TimeZone)
        self.tokens = Table(Token)
        self.traces = Table(Trace)
        self.tables: dict[str, Table[Any]] = {
            table.kind.KIND: table for table in vars(self).values() if isinstance(table, Table)
        }
        self.index = Indexes()
        self.timers = Timers()
        self.notes: dict[str, dict[str, Note]] = {}
        """By record key, then by controller. Explanations only; recomputed after a restart."""
        self.revision = 0
        self.event_seq = 0
        self.now_ms = 0
        """The clock of the last step; it never goes backwards."""
        self.open_delta: Delta | None = None

    @property
    def settings(self) -> Settings | None:
        """The fleet-wide settings, or `None` before the first configuration."""
        return self.settings_table.rows.get(Settings.KEY)

    def committed(self, kind: str, key: str) -> Record | None:
        """Return a record as it was before the open step, or as it is when no step is open."""
        if self.open_delta is not None and (kind, key) in self.open_delta.before:
            return self.open_delta.before[(kind, key)]
        found: Record | None = self.tables[kind].get(key)
        return found

    def is_different(self, record: Record) -> bool:
        """Say whether a record that is there now is not as it was before the open step."""
        before = self.committed(record.KIND, record.key)
        return before is not record and before != record

    def write(self, kind: str, key: str, new: Record | None) -> Record | None:
        """Put or remove one record with its indexes; return what was there.

        Only transactions and loading call this; setting the record's timer is up to them.
        """
        rows = self.tables[kind].rows
        old: Record | None = rows.get(key)
        if new is None:
            rows.pop(key, None)
        else:
            rows[key] = new
        self.index.update(kind, key, old, new)
        return old

    def load(
        self, records: Iterable[Record], *, revision: int, event_seq: int, now_ms: int
    ) -> None:
        """Fill an empty fleet from a store: first what timers read, settings and pools."""
        check(not any(len(table) for table in self.tables.values()), "fleet_not_empty", "load once")
        by_kind: dict[str, dict[str, Record]] = {}
        for record in records:
            by_kind.setdefault(record.KIND, {})[record.key] = record
        for kind in sorted(by_kind, key=lambda kind: (_LOAD_RANK.get(kind, 2), kind)):
            for key, record in sorted(by_kind[kind].items()):
                self.write(kind, key, record)
                self.timers.set(kind, key, wake_at_ms(self, record, now_ms))
        self.revision, self.event_seq, self.now_ms = revision, event_seq, now_ms

    def keep(self, delta: Delta) -> None:
        """Make a step's changes final, after they are durable."""
        check(self.open_delta is delta, "delta_not_open", "this step is not the open one")
        self.open_delta = None
        self.revision = delta.revision
        self.event_seq += len(delta.events)
        for key, controller, note in delta.notes:
            self._note(key, controller, note)
        if self.notes:
            for (kind, key), record in delta.changes.items():
                if record is None and kind in _NOTED:
                    self.notes.pop(key, None)

    def _note(self, key: str, controller: str, note: Note | None) -> None:
        by_controller = self.notes.setdefault(key, {})
        if note is None:
            by_controller.pop(controller, None)
        else:
            before = by_controller.get(controller)
            if before is not None and before.reason is note.reason:
                note = msgspec.structs.replace(note, since_at_ms=before.since_at_ms)
            by_controller[controller] = note
        if not by_controller:
            del self.notes[key]

    def drop(self, delta: Delta) -> None:
        """Undo a step, because it could not be made durable or was only a question."""
        check(self.open_delta is delta, "delta_not_open", "this step is not the open one")
        self.open_delta = None
        for (kind, key), old in reversed(delta.before.items()):
            self.write(kind, key, old)
        for (kind, key), at_ms in delta.timers_before.items():
            self.timers.set(kind, key, at_ms)
        self.now_ms = delta.now_before_ms

    def digest(self) -> str:
        """Return a digest of every record, the same for equal fleets on any machine."""
        content = {
            kind: {key: table.rows[key] for key in sorted(table.rows)}
            for kind, table in sorted(self.tables.items())
        }
        return digest(encode(content))


_NOTED = frozenset({Allocation.KIND, Lease.KIND, Node.KIND, Pool.KIND, Replica.KIND})
"""Kinds that controllers have something to say about; it is forgotten with the record."""

_LOAD_RANK = {Settings.KIND: 0, TimeZone.KIND: 0, Pool.KIND: 1}
