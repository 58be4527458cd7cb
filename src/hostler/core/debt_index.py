"""Who is in debt: replicas whose place breaks a rule, the one that is looked at last first."""

from __future__ import annotations

from hostler.core.tables import Line
from hostler.model import Replica


class DebtIndex(Line):
    """All of them in the bucket `all`."""

    def update(self, key: str, _old: Replica | None, new: Replica | None) -> None:
        """Follow one write."""
        debt = None if new is None else new.debt
        self.set(key, None if debt is None else ("all", (-debt.look_at_ms, key)))
