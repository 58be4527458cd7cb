"""The audit's entries by outcome, and which of them have been kept for long enough.

Changes and refusals are bounded apart: refusals come from whoever can reach the port.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from hostler.core.tables import Line
from hostler.model.audit import AuditEntry, AuditOutcome
from hostler.model.settings import Retention

if TYPE_CHECKING:
    from hostler.core.fleet import Fleet


class AuditIndex:
    """Entries by outcome, the oldest first."""

    def __init__(self) -> None:
        self.by_outcome = Line()

    def update(self, key: str, _old: AuditEntry | None, new: AuditEntry | None) -> None:
        """Follow one write."""
        place = None if new is None else (new.outcome.value, (new.number, key))
        self.by_outcome.set(key, place)


def count_max(retention: Retention, outcome: AuditOutcome) -> int:
    """Return how many entries of an outcome are kept."""
    count = retention.audit_count_max
    return count if outcome is AuditOutcome.DONE else max(1, count // 10)


def outlived(
    fleet: Fleet, changed: Sequence[AuditEntry], retention: Retention, now_ms: int
) -> Iterator[AuditEntry]:
    """Give the entries that are too old, and the oldest of those that are too many."""
    if not changed:
        return
    for entry in changed:
        if entry.at_ms + retention.audit_ms <= now_ms:
            yield entry
    line = fleet.index.audit.by_outcome
    for outcome in AuditOutcome:
        while line.count(outcome.value) > count_max(retention, outcome):
            yield fleet.audit[line.first(outcome.value) or ""]


def broken(fleet: Fleet, entry: AuditEntry) -> Iterator[tuple[str, str]]:
    """INV-AUDIT-1: the audit is bounded, whoever knocks."""
    settings, line = fleet.settings, fleet.index.audit.by_outcome
    if settings is None:
        return
    if line.count(entry.outcome.value) > count_max(settings.retention, entry.outcome):
        yield "INV-AUDIT-1", "more entries in the audit than are kept"
