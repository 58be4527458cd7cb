"""Who wants a place, by demand, the most urgent first.

A band is worth so much waiting: whoever is one band below another goes first when it has waited
longer by that much. Seen so, urgency is an instant that never moves, and nobody has to be sorted
anew as time goes by.
"""

from __future__ import annotations

from typing import Final

from hostler.core.keys import pending_line
from hostler.core.tables import Line, Order
from hostler.model import Replica, Settings
from hostler.model.replica import ReplicaPhase

_FOREVER_MS: Final = 2**50
"""What a band is worth when nothing ages: longer than anybody waits."""


class PendingIndex(Line):
    """The pending replicas in their lines."""

    def __init__(self) -> None:
        super().__init__()
        self._band_ms = Settings(fleet_id="").ageing_ms or _FOREVER_MS

    def update(self, key: str, _old: Replica | None, new: Replica | None) -> None:
        """Follow one write."""
        if new is None or new.phase is not ReplicaPhase.PENDING:
            self.set(key, None)
        else:
            self.set(key, (pending_line(new), self._order(new)))

    def _order(self, replica: Replica) -> Order:
        rank = replica.band.rank
        urgent_at_ms = replica.waiting_since_at_ms + rank * self._band_ms
        return urgent_at_ms, rank, replica.bundle_id, replica.job, replica.index

    def update_settings(self, _key: str, _old: Settings | None, new: Settings | None) -> None:
        """Sort everybody anew when a band has come to be worth something else."""
        ageing_ms = Settings(fleet_id="").ageing_ms if new is None else new.ageing_ms
        before_ms, self._band_ms = self._band_ms, ageing_ms or _FOREVER_MS
        if before_ms == self._band_ms:
            return
        for key, (bucket, (urgent_at_ms, rank, *rest)) in list(self._places.items()):
            moved_ms = int(rank) * (self._band_ms - before_ms)
            self.set(key, (bucket, (int(urgent_at_ms) + moved_ms, rank, *rest)))
