"""A node: our durable record of a place where work can run.

Three questions are three fields: how far its machine is (`phase`), whether we hear from it
(`health`), and whether it takes new work (`cordon`, `drain`).
"""

from __future__ import annotations

from enum import StrEnum
from typing import ClassVar, Final

from hostler.base.ids import AllocationId, LeaseId, MachineId, NodeId
from hostler.base.lifecycle import Lifecycle
from hostler.model.lease import LeaseOutcome, Share
from hostler.model.maintenance import NodeMaintenance
from hostler.model.pool import Band, Reliability
from hostler.model.ready import Readiness
from hostler.model.record import Record, Value
from hostler.model.service import ServiceState
from hostler.model.shape import Shape


class NodePhase(StrEnum):
    """How far the machine behind the node is."""

    REQUESTED = "requested"
    """A launch is in the outbox; the machine may or may not exist."""
    STARTING = "starting"
    """The machine exists; its agent has not said hello."""
    READY = "ready"
    DRAINING = "draining"
    """Takes nothing new; what is there moves or ends, then the machine goes."""
    STOPPING = "stopping"
    """The machine is being stopped, until the provider says gone."""
    RETIRED = "retired"


class NodeTrigger(StrEnum):
    """What moves a node."""

    LAUNCHED = "launched"
    LAUNCH_FAILED = "launch_failed"
    REGISTERED = "registered"
    RETIREMENT_STARTED = "retirement_started"
    STOP_STARTED = "stop_started"
    GONE = "gone"


_P = NodePhase
_T = NodeTrigger

NODE_LIFECYCLE: Final = Lifecycle(
    name="node",
    initial=NodePhase.REQUESTED,
    terminal=frozenset({NodePhase.RETIRED}),
    table={
        (_P.REQUESTED, _T.LAUNCHED): _P.STARTING,
        (_P.REQUESTED, _T.LAUNCH_FAILED): _P.RETIRED,
        (_P.REQUESTED, _T.REGISTERED): _P.READY,
        (_P.REQUESTED, _T.STOP_STARTED): _P.STOPPING,
        (_P.STARTING, _T.REGISTERED): _P.READY,
        (_P.STARTING, _T.STOP_STARTED): _P.STOPPING,
        (_P.READY, _T.RETIREMENT_STARTED): _P.DRAINING,
        (_P.READY, _T.STOP_STARTED): _P.STOPPING,
        (_P.DRAINING, _T.STOP_STARTED): _P.STOPPING,
        (_P.STOPPING, _T.GONE): _P.RETIRED,
    },
)


class Health(StrEnum):
    """Whether we hear from the agent."""

    LIVE = "live"
    SUSPECT = "suspect"
    """Heartbeats are late: no new work."""
    LOST = "lost"
    """Gone for so long, or so surely, that its work is placed elsewhere."""


class Origin(StrEnum):
    """Where the record came from."""

    LAUNCHED = "launched"
    """We asked a provider for it."""
    JOINED = "joined"
    """An agent enrolled by itself with a join token (fixed tiers)."""
    ORPHAN = "orphan"
    """A machine with our label and no record was found; it only retires."""


class RetireReason(StrEnum):
    """Why a node's machine is ended."""

    IDLE = "idle"
    SURPLUS = "surplus"
    POISONED = "poisoned"
    USED_UP = "used_up"
    BOOT_FAILED = "boot_failed"
    LOST = "lost"
    OPERATOR = "operator"
    POOL_DISABLED = "pool_disabled"
    ORPHAN = "orphan"
    OUTDATED = "outdated"
    """Its tier makes other machines now: another provider, image, options or shape."""
    AGED = "aged"
    INTERRUPTED = "interrupted"
    """Its provider takes the machine back."""
    GONE = "gone"
    """The provider says that the machine no longer exists."""


class NoticeKind(StrEnum):
    """What a provider has announced."""

    REBALANCE = "rebalance"
    """The machine is likely to be taken back; better to leave it while there is time."""
    TERMINATE = "terminate"
    """The machine ends at an instant."""


class Notice(Value, frozen=True, kw_only=True):
    """That the machine's provider wants it back."""

    kind: NoticeKind
    ends_at_ms: int
    """When the machine ends, as far as is known."""
    source: str
    """Who told us: `agent` or `provider`."""
    noticed_at_ms: int
    is_heeded: bool = False
    """The node is being emptied for it."""


class QuarantineCause(StrEnum):
    """Why a node is left alone."""

    REJECTIONS = "rejections"
    """Its agent refused several allocations within a short time, or the one on trial."""
    LOSSES = "losses"
    """It was lost and has come back."""


class Quarantine(Value, frozen=True, kw_only=True):
    """No new allocations for a while, then one on trial; leases and what is there stay."""

    cause: QuarantineCause
    since_at_ms: int
    until_at_ms: int
    """When its probation begins; each time in a row is twice as long."""
    count: int = 1
    """Times in a row."""
    is_on_probation: bool = False
    trial_id: AllocationId | None = None
    """The one allocation that it has been given on probation."""
    over_at_ms: int | None = None
    """When it was trusted again; remembered a while, so that the next time is longer."""

    @property
    def is_over(self) -> bool:
        """True when the node is trusted."""
        return self.over_at_ms is not None


class Cordon(Value, frozen=True, kw_only=True):
    """No new allocations or leases; existing ones stay."""

    by: str
    reason: str
    at_ms: int
    is_passing: bool = False
    """True: Hostler's own for a while, which it ends itself; an operator's takes its place."""


class Drain(Value, frozen=True, kw_only=True):
    """An operator wants the node empty by an instant."""

    by: str
    deadline_at_ms: int
    is_forced: bool = False
    """True: at the deadline what is left is stopped; false: it stays, and that is said."""
    then_retire: bool = False
    """True: the machine is stopped when it is empty; false: the node stays, cordoned."""
    is_overdue: bool = False
    """The deadline has passed and something is still here; it has been said once."""
    is_done: bool = False
    """The node has been seen empty; it has been said once."""
    is_of_pool: bool = False
    """Its pool is disabled: it is called off when the pool is enabled again."""
    is_of_maintenance: bool = False
    """It is called off when the node's maintenance is over."""


class LaunchFailure(Value, frozen=True, kw_only=True):
    """The last word about a launch that brought nothing."""

    code: str
    """One of the closed set of provider failures."""
    message: str
    is_certain: bool
    """True: surely no machine exists. False: one may, so the node retires through a stop."""


class Tenant(Value, frozen=True, kw_only=True):
    """Who held a slot of a node last, and how that ended: what the next one inherits."""

    lease_id: LeaseId
    fairness_key: str
    outcome: LeaseOutcome
    ended_at_ms: int


class CleanUp(Value, frozen=True, kw_only=True):
    """How the pool's clean-up went after a lease."""

    lease_id: LeaseId
    argv: tuple[str, ...]
    is_success: bool
    detail: str
    """Of a failure: the exit code, the signal, or why it did not run."""
    ended_at_ms: int


class Node(Record, frozen=True, kw_only=True):
    """One place where work can run. Never reused: a new machine is a new node."""

    KIND: ClassVar[str] = "node"

    node_id: NodeId
    pool: str
    tier: str
    provider: str = ""
    offer: str = ""
    origin: Origin
    zone: str = ""
    labels: dict[str, str] = {}
    """Given by an operator; they win over those of its tier."""
    reliability: Reliability = Reliability.RELIABLE
    price_microusd_per_hour: int = 0
    shape: Shape = Shape()
    """What the offer promises, then what the agent reports."""
    provided: tuple[str, ...] = ()
    """Capabilities in its shape that node services add, and not the machine."""
    services: dict[str, ServiceState] = {}
    """Node services that are, or could be, here, by name."""
    has_agent: bool = True
    """False: the server acts in its agent's place, and it takes leases only."""
    is_inventory_reported: bool = False
    phase: NodePhase
    phase_since_at_ms: int
    created_at_ms: int
    boot_ms: int
    """Longest time from the launch to the agent's hello."""
    readiness: Readiness | None = None
    """How far it is with its pool's ready check, while it boots or when it never passed."""
    epoch: int = 1
    """Raised whenever authority over this node changes hands; agents refuse a lower one."""
    machine_id: MachineId | None = None
    launch_failure: LaunchFailure | None = None
    boot_log: str = ""
    """The end of what its machine wrote, when its boot has failed; without secrets."""
    version: str = ""
    """Which edition of its tier and offer it was made by (`core/versions.py`)."""
    replace_reason: RetireReason | None = None
    """Why another is to take its place, when the rollout comes to it. It may be used until then."""
    ages_out_at_ms: int | None = None
    """When it has been there for long enough; recomputed when its pool changes."""
    leases_until_at_ms: int | None = None
    """From then on a lease might have to end because of the node's age; `None`: never before."""
    is_aging: bool = False
    """That instant has passed: no more leases; what is there stays until it ages out."""
    hostname: str = ""
    incarnation: int = 0
    """Which life of its agent spoke last."""
    greeted_epoch: int = 0
    """In which epoch its agent last said what it has: what it says in an older one is the past."""
    health: Health = Health.LIVE
    health_since_at_ms: int = 0
    silent_since_at_ms: int | None = None
    """Since when we hear nothing although we listen; `None` while we hear."""
    is_link_down: bool = False
    """The silence began with the end of its connection, so the machine may be gone."""
    checked_at_ms: int | None = None
    """When the provider was last asked, in this silence, whether the machine exists."""
    loss_held_until_at_ms: int | None = None
    """The brake keeps it suspect until here although its silence is long enough to be lost."""
    is_loss_confirmed: bool = False
    """An operator says that it is gone, so the brake does not hold it."""
    fence_grace_ms: int = 0
    """Longest stop grace of what it holds: what a cut-off agent may need to stop its own work."""
    fence_after_ms: int = 0
    """A limit by which its agent may have authority still, longer than the one of the settings: set
    when they are shortened, until the agent says that it goes by another."""
    cordon: Cordon | None = None
    drain: Drain | None = None
    quarantine: Quarantine | None = None
    """It lately refused work or was lost; also when that is over, for a while."""
    notice: Notice | None = None
    """Its provider is about to take the machine back."""
    maintenance: NodeMaintenance | None = None
    """Its machine is about to be worked on, or is."""
    retire_reason: RetireReason | None = None
    """Why it is to go; set before the phase follows, by whoever decides it."""
    is_machine_gone: bool = False
    """The provider has said that the machine no longer exists."""
    gone_doubted_at_ms: int | None = None
    """When its provider said so although its agent was speaking; nothing was done about it."""
    is_foreign: bool = False
    """A machine with our fleet's label and the name of a node that we never had: perhaps another
    server's. It is not ended before an operator says so."""
    is_stuck: bool = False
    """Its machine has been asked to end for long, and people were told."""
    started_at_ms: int | None = None
    """When its machine began to cost: the provider's word, else when we first knew of it."""
    ended_at_ms: int | None = None
    """When its machine ended, where the provider has said so."""
    metered_from_ms: int | None = None
    """From when the books have it; `None` while they do not."""
    metered_until_ms: int | None = None
    """Until when the books have it; `None` while it runs up cost."""
    reserve_ms: int = 0
    """Time for which money is kept while it boots: the boot, and the first use of it."""
    is_spare: bool = False
    spare_band: Band | None = None
    slot_count: int = 1
    lease_count: int = 0
    """Held leases; equals what the index of leases says (INV-NODE-1)."""
    allocation_count: int = 0
    """Live allocations; equals what the index of allocations says (INV-NODE-2)."""
    use_count: int = 0
    """Leases that it has served."""
    idle_since_at_ms: int | None = None
    """Since when it is ready and holds nothing; `None` while it holds something or is not ready."""
    share: Share = Share.ANY
    """Strictest consent to sharing of those who have come since it was last idle."""
    tenant_key: str | None = None
    """The one fairness key of all who have come since it was last idle, where it has several slots;
    `None` when there are several keys or none."""
    last_tenant: Tenant | None = None
    cleaning_count: int = 0
    """Slots that are being cleaned up: an `EndLease` with a clean-up is out for each."""
    last_clean_up: CleanUp | None = None
    lease_epoch: int = 0
    """The last lease epoch given on this node; rises by one with each grant."""

    @property
    def key(self) -> str:
        """The node's id."""
        return self.node_id

    @property
    def takes_work(self) -> bool:
        """True when new work may be put here now."""
        return (
            self.phase is NodePhase.READY
            and self.health is Health.LIVE
            and self.cordon is None
            and self.drain is None
            and self.retire_reason is None
        )

    @property
    def is_closing(self) -> bool:
        """True while leases would come too late: the node is soon too old, or worked on."""
        maintenance = self.maintenance
        return self.is_aging or (maintenance is not None and not maintenance.is_called_off)

    @property
    def lasting_cordon(self) -> Cordon | None:
        """The cordon that stays until somebody ends it, if there is one."""
        return None if self.cordon is None or self.cordon.is_passing else self.cordon

    @property
    def is_held(self) -> bool:
        """True while any lease or allocation is on it."""
        return self.lease_count > 0 or self.allocation_count > 0

    @property
    def is_paid(self) -> bool:
        """True while a machine of a provider may exist for it."""
        return self.provider != "" and self.phase is not NodePhase.RETIRED
