"""Fleet-wide settings: the numbers that policy is tuned with, and whose fleet this is."""

from __future__ import annotations

from typing import ClassVar

from hostler.model.record import Record, Value


class RecoveryLimits(Value, frozen=True, kw_only=True):
    """How hard and how often we try after failures. Sources: spec/placement.md 1.2 and 5.12."""

    restart_count_max: int = 6
    """Recoveries of one replica inside the window; one more breaks the bundle. Bronze has none."""
    restart_window_ms: int = 3_600_000
    spacing_ms: int = 5_000
    """Least time between two recoveries of one replica."""
    healthy_after_ms: int = 600_000
    """Time of being ready after which a replica's restart history is erased."""
    exclusion_ms: int = 30_000
    """How long a replica avoids the node on which it failed."""


class RepayLimits(Value, frozen=True, kw_only=True):
    """When a replica whose place breaks a rule is moved to a better one."""

    settle_ms: int = 600_000
    """How long a better place must have been there: what comes and goes moves nobody."""
    spacing_ms: int = 1_800_000
    """Pause of a replica after such a move, doubling with each further one within a day."""


class Retention(Value, frozen=True, kw_only=True):
    """How much history is kept. What is older goes, in the order of its age."""

    event_count_max: int = 100_000
    journal_count_max: int = 20_000
    ended_ms: int = 900_000
    """How long ended allocations, settled leases and retired nodes stay to be asked about."""
    decision_count_max: int = 10
    """Decisions kept in the trace of one replica."""


class Settings(Record, frozen=True, kw_only=True):
    """The one record of fleet-wide settings. Written when a configuration is applied."""

    KIND: ClassVar[str] = "settings"
    KEY: ClassVar[str] = "settings"

    fleet_id: str
    """Made once, when the store is new; the label by which our machines are known."""
    generation: int = 1
    heartbeat_ms: int = 5_000
    """How often an agent says that it lives."""
    suspect_after_ms: int = 15_000
    """Silence after which a node takes no new work (spec 5.12: cordon after 15 s)."""
    fence_after_ms: int = 35_000
    """Silence after which an agent stops its own work."""
    lost_after_ms: int = 60_000
    """Silence after which work is placed elsewhere (spec 5.12: recover after 60 s).

    Greater than `fence_after_ms` plus the longest stop grace that we honour while fencing.
    """
    list_every_ms: int = 60_000
    """How often each provider is asked for all machines of ours."""
    orphan_grace_ms: int = 120_000
    """Age below which an unknown machine of ours may still be a launch in flight."""
    lost_node_count_max: int = 20
    """Brake: more nodes lost inside `brake_window_ms` than this hold back further recoveries."""
    brake_window_ms: int = 300_000
    recovery: RecoveryLimits = RecoveryLimits()
    repay: RepayLimits = RepayLimits()
    retention: Retention = Retention()

    @property
    def key(self) -> str:
        """Always the same: there is one."""
        return self.KEY
