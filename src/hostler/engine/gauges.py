"""Gauges: what the engine counts of itself, for metrics and for people."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field


@dataclass
class Gauges:
    """Totals since the start, and a few present values.

    Attributes:
        input_counts: Inputs absorbed, by their tag.
        outcome_counts: How commands ended, by (command, code); `succeeded` is a code here.
        scan_find_count: Records that full scans wrote: an index or a wake-up was wrong.
    """

    started_at_ms: int = 0
    step_count: int = 0
    step_us_total: int = 0
    step_us_max: int = 0
    commit_count: int = 0
    commit_us_total: int = 0
    commit_us_max: int = 0
    commit_failed_count: int = 0
    commit_doubtful_count: int = 0
    scan_count: int = 0
    scan_find_count: int = 0
    input_counts: Counter[str] = field(default_factory=Counter)
    outcome_counts: Counter[tuple[str, str]] = field(default_factory=Counter)
