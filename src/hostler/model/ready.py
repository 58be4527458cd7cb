"""Ready checks: what a new machine has to pass before work is put on it."""

from __future__ import annotations

from hostler.model.record import Value


class ReadyCheck(Value, frozen=True, kw_only=True):
    """What an agent runs on a new node, again and again, until it has passed."""

    argv: tuple[str, ...]
    """Passes with exit code 0."""
    told: str
    """What is looked for, in words: `tcp 5432`."""
    interval_ms: int = 2_000
    """Between the end of one try and the next."""
    timeout_ms: int = 10_000
    """How long one try may take."""
    deadline_ms: int = 300_000
    """How long after the agent's report a launched machine may take; then its boot has failed."""
    success_count: int = 1
    """Tries in a row that must pass."""


class Readiness(Value, frozen=True, kw_only=True):
    """How far a node is with its pool's ready check. Kept as evidence when its boot fails."""

    since_at_ms: int
    next_at_ms: int | None
    """When the next try is due; `None` while one is under way."""
    try_count: int = 0
    success_count: int = 0
    """In a row."""
    answered_at_ms: int
    """When a try last had a result; the beginning while none has."""
    detail: str = ""
    """How the last try that failed did: exit code, and the end of what it wrote."""
