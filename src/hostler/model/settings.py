"""Fleet-wide settings: the numbers that policy is tuned with, and whose fleet this is."""

from __future__ import annotations

from enum import StrEnum
from typing import ClassVar, Final

from hostler.model.disruption import DisruptionBudget
from hostler.model.maintenance import MaintenancePlan
from hostler.model.pool import Band
from hostler.model.record import Record, Value
from hostler.model.spend import SpendSettings


class RecoveryLimits(Value, frozen=True, kw_only=True):
    """How hard and how often we try after failures. Sources: spec/placement.md 1.2 and 5.12."""

    restart_count_max: int = 6
    """Recoveries of one replica inside the window; one more breaks the bundle. Bronze has none."""
    bundle_restart_count_max: int = 50
    """Crashes of all replicas of one bundle inside the window; one more breaks the bundle. The
    loss of nodes is not counted here: it says nothing about the bundle."""
    restart_window_ms: int = 3_600_000
    spacing_ms: int = 5_000
    """Least time between two recoveries of one replica."""
    healthy_after_ms: int = 600_000
    """Time of being ready after which a replica's restart history is erased."""
    exclusion_ms: int = 30_000
    """How long a replica avoids the node on which it failed."""


class QuarantineLimits(Value, frozen=True, kw_only=True):
    """When a node is left alone, and for how long. Sources: spec/placement.md 1.2 and 5.12."""

    rejection_count_max: int = 3
    """Refusals of a node inside the window that make it be left alone."""
    rejection_window_ms: int = 5_000
    pause_ms: int = 30_000
    """The first time; each time in a row is twice as long."""
    pause_ms_max: int = 3_600_000
    forget_ms: int = 3_600_000
    """Being trusted for so long ends the row."""


AGEING_MS: Final = 3_600_000
"""An hour: long enough for gold to be gold, short enough that bronze runs today."""


class RepayLimits(Value, frozen=True, kw_only=True):
    """When a replica whose place breaks a rule is moved to a better one."""

    settle_ms: int = 600_000
    """How long a better place must have been there: what comes and goes moves nobody."""
    spacing_ms: int = 1_800_000
    """Pause of a replica after such a move, doubling with each further one within a day."""


class BronzeVictims(StrEnum):
    """What becomes of bronze that gave way."""

    WAIT = "wait"
    """It wants a place again, behind everybody above it."""
    DROP = "drop"
    """It is given up until somebody starts it, as after a failure."""


class Preemption(Value, frozen=True, kw_only=True):
    """When a replica that fits nowhere may have lower work end, and how much of it."""

    bands: tuple[Band, ...] = (Band.GOLD, Band.SILVER)
    """Who may; each only at the cost of bands below its own. None: nobody ever gives way."""
    after_ms: int = 0
    """How long it must have waited before."""
    window_ms: int = 600_000
    """Over which victims are counted, and for which a victim is left alone afterwards."""
    victim_count_max: int = 100
    """Victims in the whole fleet within the window."""
    victim_per_bundle_count_max: int = 10
    """Victims of one bundle within the window."""
    bronze_victims: BronzeVictims = BronzeVictims.WAIT


class Retention(Value, frozen=True, kw_only=True):
    """How much history is kept. What is older goes, in the order of its age."""

    event_count_max: int = 100_000
    journal_count_max: int = 20_000
    ended_ms: int = 900_000
    """How long ended allocations, settled leases and retired nodes stay to be asked about."""
    decision_count_max: int = 10
    """Decisions kept in the trace of one replica."""
    life_count_max: int = 200
    """Events in the life of one node, replica, bundle or pool; they stay when `event_count_max`
    has cut the stream of events back."""
    lives_count_max: int = 200_000
    """The same of all lives together, some 60 MB on disk."""
    audit_ms: int = 7_776_000_000
    """How long the audit goes back: ninety days, unless `audit_count_max` comes first."""
    audit_count_max: int = 20_000
    """Changes in the audit, about 10 MB of memory. Refusals are kept apart, a tenth as many, so
    that whoever knocks cannot push out who acted."""


class ProviderLimits(Value, frozen=True, kw_only=True):
    """How much one provider is asked for at once. `None`: as much as pools want."""

    provider: str
    launch_count_max: int | None = None
    """Launches in flight at once."""
    launches_per_minute_max: int | None = None
    """Launches are at least so far apart that a minute has no more."""


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
    lost_node_percent_max: int | None = None
    """The same as a share of the nodes that are there, one at least; the lower of both holds."""
    brake_window_ms: int = 300_000
    providers: tuple[ProviderLimits, ...] = ()
    ageing_ms: int = AGEING_MS
    """A replica goes before one of the band above that has waited so much less; 0: bands always
    come first."""
    preemption: Preemption = Preemption()
    maintenance: tuple[MaintenancePlan, ...] = ()
    """When the machines of which nodes are worked on."""
    disruption_budgets: tuple[DisruptionBudget, ...] = ()
    """Bounds on moving what runs, over all jobs that each selects."""
    recovery: RecoveryLimits = RecoveryLimits()
    quarantine: QuarantineLimits = QuarantineLimits()
    repay: RepayLimits = RepayLimits()
    retention: Retention = Retention()
    spend: SpendSettings = SpendSettings()

    @property
    def key(self) -> str:
        """Always the same: there is one."""
        return self.KEY

    def provider_limits(self, provider: str) -> ProviderLimits | None:
        """Return the limits of a provider that has any."""
        return next((each for each in self.providers if each.provider == provider), None)
