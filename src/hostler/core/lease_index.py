"""Leases by what they hold, when they ended, and where they stand in line.

All of it changes with the phase, or with who waits for one node, so a heartbeat costs nothing here.
"""

from __future__ import annotations

from hostler.core.line import LeaseLine
from hostler.core.slot_index import SlotIndex
from hostler.core.tables import Buckets, Line
from hostler.model import Lease, Pool
from hostler.model.lease import LeasePhase

_OVER = (LeasePhase.SETTLED, LeasePhase.REFUSED)


class LeaseIndex:
    """Every index of leases, fed by one look at each write."""

    def __init__(self, slots: SlotIndex) -> None:
        self.by_node = Buckets()
        """Held ones."""
        self.held = Buckets()
        """Held ones, by pool."""
        self.over = Line()
        """In `all`: settled and refused ones, the oldest first."""
        self.waiting = LeaseLine(slots)

    def update(self, key: str, old: Lease | None, new: Lease | None) -> None:
        """Follow one write of a lease."""
        was = None if old is None else old.phase
        now = None if new is None else new.phase
        if was is now:
            if was is LeasePhase.WAITING and old.is_pinned is not new.is_pinned:  # type: ignore[union-attr]  # both have a phase
                self.waiting.update(key, old, new)
            return
        holder = old if was is LeasePhase.HELD else None
        heir = new if now is LeasePhase.HELD else None
        if holder is not None or heir is not None:
            self.by_node.move(
                key,
                None if holder is None else holder.node_id,
                None if heir is None else heir.node_id,
            )
            self.held.move(
                key, None if holder is None else holder.pool, None if heir is None else heir.pool
            )
        if new is not None and now in _OVER:
            self.over.set(key, ("all", (new.phase_since_at_ms, len(key), key)))
        elif was in _OVER:
            self.over.set(key, None)
        self.waiting.update(key, old, new)

    def update_pool(self, key: str, old: Pool | None, new: Pool | None) -> None:
        """Follow one write of a pool."""
        self.waiting.update_pool(key, old, new)
