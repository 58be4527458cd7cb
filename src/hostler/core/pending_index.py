"""Who wants a place, by demand, the most urgent first.

A band is worth so much waiting: whoever is one band below another goes first when it has waited
longer by that much. Seen so, urgency is an instant that never moves, and nobody has to be sorted
anew as time goes by. Who has a place and is only to be moved comes after everybody who has none.
"""

from __future__ import annotations

from typing import Final

from hostler.core.keys import pending_line
from hostler.core.tables import Line, Order
from hostler.model import Replica, Settings

_FOREVER_MS: Final = 2**50
"""What a band is worth when nothing ages: longer than anybody waits."""


class PendingIndex(Line):
    """The replicas that want a place, or a second one, in their lines."""

    def __init__(self) -> None:
        super().__init__()
        self._band_ms = Settings(fleet_id="").ageing_ms or _FOREVER_MS

    def update(self, key: str, _old: Replica | None, new: Replica | None) -> None:
        """Follow one write."""
        is_in_line = new is not None and new.is_placeable
        self.set(key, (pending_line(new), self._order(new)) if new and is_in_line else None)

    def _order(self, replica: Replica) -> Order:
        rank, migration = replica.band.rank, replica.migration
        since_at_ms = replica.waiting_since_at_ms
        if migration is not None:
            since_at_ms = migration.requested_at_ms
        urgent_at_ms = since_at_ms + rank * self._band_ms
        is_moving = int(migration is not None)
        return is_moving, urgent_at_ms, rank, replica.bundle_id, replica.job, replica.index

    def update_settings(self, _key: str, _old: Settings | None, new: Settings | None) -> None:
        """Sort everybody anew when a band has come to be worth something else."""
        ageing_ms = Settings(fleet_id="").ageing_ms if new is None else new.ageing_ms
        before_ms, self._band_ms = self._band_ms, ageing_ms or _FOREVER_MS
        if before_ms == self._band_ms:
            return
        for key, (line, (is_moving, urgent_at_ms, rank, *rest)) in list(self._places.items()):
            moved_ms = int(rank) * (self._band_ms - before_ms)
            self.set(key, (line, (is_moving, int(urgent_at_ms) + moved_ms, rank, *rest)))
