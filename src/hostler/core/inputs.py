"""Everything that can come in: requests of people, observations, outcomes of commands, alarms.

An input is a value that goes into the journal as it is. Requests carry a `request_id`, which the
reply repeats, and the `principal` who asked.
"""

from __future__ import annotations

import msgspec

from hostler.base.ids import (
    BundleId,
    CommandId,
    LeaseId,
    MachineId,
    NodeId,
    ReplicaId,
)
from hostler.core.allocation_fact import AllocationFact
from hostler.core.asking import AccessNoted, Input, Request
from hostler.core.fleet_settings import FleetSettings
from hostler.core.job_inputs import ConfigureJob, StartJob, StopJob
from hostler.core.machine_fact import MachineFact
from hostler.core.maintenance_inputs import AddMaintenance, RemoveMaintenance
from hostler.core.services import NodeService
from hostler.model.bundle import Fallback, Job, RolloutPolicy
from hostler.model.calendar import TimeZone
from hostler.model.constraint import SpreadRule
from hostler.model.disruption import DisruptionBudget
from hostler.model.lease import LeaseOutcome, Share
from hostler.model.node import NoticeKind
from hostler.model.pool import Pool
from hostler.model.rollout import Steering
from hostler.model.shape import NOTHING_REQUIRED, Requirement, Shape
from hostler.model.spend import Budget
from hostler.model.timetable import Timetable
from hostler.model.token import Role


class ApplyConfiguration(Request, frozen=True, kw_only=True, tag="apply_configuration"):
    """Make this the desired configuration, whole: pools that are not in it are disabled."""

    fleet_id: str
    """Used only when the store is new."""
    settings: FleetSettings
    pools: tuple[Pool, ...]
    services: tuple[NodeService, ...] = ()
    """Every node service; one that is not here is taken away."""
    budgets: tuple[Budget, ...] = ()
    time_zones: tuple[TimeZone, ...] = ()
    """Every zone that it names, as the shell read it just now."""


class SubmitBundle(Request, frozen=True, kw_only=True, tag="submit_bundle"):
    """Create a bundle, or change what is desired of one."""

    bundle_id: BundleId
    pool: str
    jobs: tuple[Job, ...]
    replica_count: int = 1
    fallback_pools: tuple[str, ...] = ()
    fallback: Fallback = Fallback.WHEN_FULL
    is_gang: bool = False
    spread: tuple[SpreadRule, ...] = ()
    is_primary_interruptible: bool = True
    is_colocated: bool = False
    backup_apart: SpreadRule | None = None
    is_protection_required: bool = False
    is_backup_promoted: bool = False
    disruption_budgets: tuple[DisruptionBudget, ...] = ()
    labels: dict[str, str] = {}
    rollout: RolloutPolicy = RolloutPolicy()
    timetable: Timetable | None = None
    time_zones: tuple[TimeZone, ...] = ()
    """Those that the timetable names."""
    if_generation: int | None = None
    """Only if the bundle is at this generation, so nobody has changed it since; 0: if none is."""


class DeleteBundle(Request, frozen=True, kw_only=True, tag="delete_bundle"):
    """Stop everything of a bundle, then forget it."""

    bundle_id: BundleId


class SteerRollout(Request, frozen=True, kw_only=True, tag="steer_rollout"):
    """Pause a bundle's rollout, let it go on, or turn it back."""

    bundle_id: BundleId
    steering: Steering


class ResetBundle(Request, frozen=True, kw_only=True, tag="reset_bundle"):
    """Forget the restarts of a bundle's replicas, or of one, and try again what was given up."""

    bundle_id: BundleId
    replica_id: ReplicaId | None = None


class CordonNode(Request, frozen=True, kw_only=True, tag="cordon_node"):
    """Let nothing new onto a node."""

    node_id: NodeId
    reason: str = ""


class LabelNode(Request, frozen=True, kw_only=True, tag="label_node"):
    """Give a node labels, or take some away."""

    node_id: NodeId
    labels: dict[str, str]
    """By name; an empty value takes the label away."""


class UncordonNode(Request, frozen=True, kw_only=True, tag="uncordon_node"):
    """Let new work onto a node again; ends its drain too."""

    node_id: NodeId


class DrainNode(Request, frozen=True, kw_only=True, tag="drain_node"):
    """Cordon a node and move what is there."""

    node_id: NodeId
    deadline_ms: int
    is_forced: bool = False
    """Stop what is left at the deadline, whether it has another place or not."""
    then_retire: bool = False


class EndOrphan(Request, frozen=True, kw_only=True, tag="end_orphan"):
    """End a machine that was held back because its label names a node that we never had."""

    node_id: NodeId


class RetryGrowth(Request, frozen=True, kw_only=True, tag="retry_growth"):
    """Launch again in a pool what lately failed: whoever asks has mended it."""

    pool: str


class ConfirmLoss(Request, frozen=True, kw_only=True, tag="confirm_loss"):
    """Say that a silent node is really gone, so that the brake on many losses does not hold it."""

    node_id: NodeId


class AcquireLease(Request, frozen=True, kw_only=True, tag="acquire_lease"):
    """Ask for a slot. The reply names the lease, which may still wait in line."""

    pool: str
    fairness_key: str = ""
    requirement: Requirement = NOTHING_REQUIRED
    labels: dict[str, str] = {}
    priority: int = 0
    affinity_node_id: NodeId | None = None
    affinity_lease_id: LeaseId | None = None
    """Prefer the node of a former lease; instead of `affinity_node_id`."""
    affinity_wait_ms: int = 0
    """How long to wait for that node alone before another is taken."""
    is_affinity_required: bool = False
    """Take no other node."""
    excluded_node_ids: tuple[NodeId, ...] = ()
    share: Share = Share.ANY
    ack_ms: int | None = None
    """Take the lease back unless its first heartbeat comes so soon after the grant."""
    timeout_ms: int
    """Longest time in line; 0 refuses at once when nothing is free."""
    lease_ms: int | None = None
    """Shorter than the pool's, if given."""
    is_operator: bool = False
    """The principal may be near to former leases of others."""


class HeartbeatLease(Request, frozen=True, kw_only=True, tag="heartbeat_lease"):
    """Renew a held lease."""

    lease_id: LeaseId
    epoch: int
    is_operator: bool = False
    """The principal may renew leases of others."""


class ExtendLease(Request, frozen=True, kw_only=True, tag="extend_lease"):
    """Stay longer on a node that is to go, as far as its pool lets holders."""

    lease_id: LeaseId
    epoch: int
    by_ms: int
    is_operator: bool = False
    """The principal may extend leases of others."""


class ReleaseLease(Request, frozen=True, kw_only=True, tag="release_lease"):
    """Settle a held lease, or leave the line. Repeating it changes nothing and answers alike."""

    lease_id: LeaseId
    epoch: int | None = None
    """`None`: whatever it is; otherwise refused unless equal."""
    outcome: LeaseOutcome = LeaseOutcome.HEALTHY
    """A holder says healthy or poison; an operator may also say revoked."""
    detail: str = ""
    is_operator: bool = False
    """The principal may end leases of others."""


class CreateToken(Request, frozen=True, kw_only=True, tag="create_token"):
    """Remember a token by the hash of its secret."""

    name: str
    role: Role
    sha256: str
    expires_at_ms: int | None = None
    pool: str = ""
    tier: str = ""


class RevokeToken(Request, frozen=True, kw_only=True, tag="revoke_token"):
    """Make a token worthless."""

    token_id: str


class JoinAgent(Request, frozen=True, kw_only=True, tag="join_agent"):
    """An agent whose join token was verified wants to be a node.

    With `node_id` it claims the node that was launched with that token; without, a new node in a
    fixed tier is made, or found again by `machine_id`.
    """

    node_id: NodeId | None = None
    pool: str = ""
    tier: str = ""
    machine_id: MachineId | None = None
    hostname: str = ""


class AgentSaidHello(Input, frozen=True, kw_only=True, tag="agent_said_hello"):
    """An agent's link is up, with a new session: this is everything it has."""

    node_id: NodeId
    incarnation: int
    hostname: str = ""
    shape: Shape | None = None
    """`None`: not reported yet."""
    allocations: tuple[AllocationFact, ...] = ()


class InventoryReported(Input, frozen=True, kw_only=True, tag="inventory_reported"):
    """An agent says what its node has in total."""

    node_id: NodeId
    shape: Shape


class NoticeReported(Input, frozen=True, kw_only=True, tag="notice_reported"):
    """An agent says that its machine is about to be taken back."""

    node_id: NodeId
    kind: NoticeKind
    left_ms: int
    """How long it stays: no two clocks are compared."""


class AllocationReported(Input, frozen=True, kw_only=True, tag="allocation_reported"):
    """An agent says what became of an allocation."""

    node_id: NodeId
    fact: AllocationFact


class FenceLimitKept(Input, frozen=True, kw_only=True, tag="fence_limit_kept"):
    """An agent says by which limit it has authority."""

    node_id: NodeId
    fence_after_ms: int


class SilenceNoticed(Input, frozen=True, kw_only=True, tag="silence_noticed"):
    """Nothing was heard of a node since then, although we listened; or its link went down."""

    node_id: NodeId
    since_at_ms: int
    is_link_down: bool = False


class ContactResumed(Input, frozen=True, kw_only=True, tag="contact_resumed"):
    """A node that was silent is heard again."""

    node_id: NodeId


class ServerStarted(Input, frozen=True, kw_only=True, tag="server_started"):
    """The process has begun: nobody was listened to before now, and nothing sent is remembered."""

    version: str = ""
    time_zones: tuple[TimeZone, ...] = ()
    """The zones in use, read again: the zone database may be a newer one."""


class FullScan(Input, frozen=True, kw_only=True, tag="full_scan"):
    """Let every controller look at everything; it must find nothing to do."""


class AlarmRang(Input, frozen=True, kw_only=True, tag="alarm_rang"):
    """The instant that the last step asked for has come. Carries nothing: records know."""


class Succeeded(msgspec.Struct, frozen=True, kw_only=True, tag="succeeded"):
    """The command did what it asks for.

    A launch brings one machine, a check brings it or none (gone), a list brings all.
    """

    machines: tuple[MachineFact, ...] = ()
    ended_at_ms: int | None = None
    """When the machine that is gone ended, where its provider can say."""
    boot_log: str = ""
    """The end of what a machine wrote that did not boot, where that was wanted."""


class CommandFailed(msgspec.Struct, frozen=True, kw_only=True, tag="failed"):
    """The command did not do it, or nobody knows.

    Codes: `request_invalid`, `capacity_unavailable`, `quota_exceeded`, `credentials_rejected`,
    `throttled`, `outcome_unknown`, `unreachable` (it never left), `refused` (the agent said no),
    `defect` (the provider broke its contract).
    """

    code: str
    message: str = ""
    retry_after_ms: int | None = None
    machines: tuple[MachineFact, ...] = ()
    """What was met on the way: a stop by label learns which machine it stops."""
    boot_log: str = ""
    """As in `Succeeded`."""


Outcome = Succeeded | CommandFailed


class CommandSettled(Input, frozen=True, kw_only=True, tag="command_settled"):
    """How one attempt at a command ended."""

    command_id: CommandId
    outcome: Outcome


AnyRequest = (
    ApplyConfiguration
    | SubmitBundle
    | DeleteBundle
    | StartJob
    | StopJob
    | ConfigureJob
    | ResetBundle
    | SteerRollout
    | CordonNode
    | LabelNode
    | UncordonNode
    | DrainNode
    | ConfirmLoss
    | AddMaintenance
    | RemoveMaintenance
    | EndOrphan
    | RetryGrowth
    | AcquireLease
    | HeartbeatLease
    | ExtendLease
    | ReleaseLease
    | CreateToken
    | RevokeToken
    | JoinAgent
)

AnyInput = (
    AnyRequest
    | AgentSaidHello
    | InventoryReported
    | NoticeReported
    | AllocationReported
    | FenceLimitKept
    | SilenceNoticed
    | ContactResumed
    | AccessNoted
    | ServerStarted
    | FullScan
    | AlarmRang
    | CommandSettled
)
