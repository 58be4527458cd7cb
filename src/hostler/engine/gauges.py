"""Gauges: what the engine counts of itself, for metrics and for people."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from hostler.engine.tally import Histogram, Tally

SHORT_US: Final = (
    *(50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000),
    *(1_000_000, 5_000_000),
)
"""Bounds in microseconds for steps and commits."""


@dataclass
class Gauges:
    """Totals since the start, and a few present values.

    Attributes:
        input_counts: Inputs absorbed, by their tag.
        outcome_counts: How commands ended, by (command, code); `succeeded` is a code here.
        step_times: How long steps took, in microseconds.
        commit_times: The same of commits.
        tally: What is counted of committed steps.
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
    step_times: Histogram = field(default_factory=lambda: Histogram(SHORT_US))
    commit_times: Histogram = field(default_factory=lambda: Histogram(SHORT_US))
    tally: Tally = field(default_factory=Tally)
    input_counts: Counter[str] = field(default_factory=Counter)
    outcome_counts: Counter[tuple[str, str]] = field(default_factory=Counter)
