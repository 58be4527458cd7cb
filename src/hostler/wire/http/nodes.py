"""Nodes and pools, and what an operator asks of nodes."""

from __future__ import annotations

from typing import Annotated

import msgspec
from msgspec import Meta

from hostler.wire.documents.where import LabelName
from hostler.wire.http.maintenance import NodeMaintenanceView
from hostler.wire.http.shapes import ShapeView


class CordonView(msgspec.Struct, frozen=True, kw_only=True):
    """No new allocations or leases."""

    by: str
    reason: str
    at_ms: int


class QuarantineView(msgspec.Struct, frozen=True, kw_only=True):
    """No new allocations for a while, then one on trial."""

    cause: str
    """`rejections` or `losses`."""
    since_at_ms: int
    until_at_ms: int
    """When its probation begins."""
    count: int
    """Times in a row."""
    is_on_probation: bool
    trial_id: str | None
    """The one allocation that it has been given on probation."""


class NoticeView(msgspec.Struct, frozen=True, kw_only=True):
    """The machine is about to be taken back."""

    kind: str
    """`terminate` or `rebalance`."""
    ends_at_ms: int
    source: str
    """`agent` or `provider`."""
    noticed_at_ms: int


class LeftView(msgspec.Struct, frozen=True, kw_only=True):
    """Something that is still on a node that is to be empty."""

    kind: str
    """`allocation` or `lease`."""
    id: str
    replica_id: str | None
    phase: str
    reason: str
    """What it waits for before it leaves; empty: it is ending."""
    detail: str


class DrainView(msgspec.Struct, frozen=True, kw_only=True):
    """The node is to be empty by an instant."""

    by: str
    deadline_at_ms: int
    is_forced: bool
    """What is left at the deadline is stopped."""
    then_retire: bool
    is_overdue: bool
    is_done: bool
    """Its agent has said that nothing is left, or its machine is gone."""
    left: list[LeftView]


class LaunchFailureView(msgspec.Struct, frozen=True, kw_only=True):
    """The last word about a launch that brought nothing."""

    code: str
    message: str
    is_certain: bool


class NoteView(msgspec.Struct, frozen=True, kw_only=True):
    """Why something is not (yet) done, by who decides it."""

    by: str
    """The controller."""
    reason: str
    detail: str
    since_at_ms: int


class TenantView(msgspec.Struct, frozen=True, kw_only=True):
    """Who held a slot of a node last, and how that ended."""

    lease_id: str
    key: str
    outcome: str
    ended_at_ms: int


class CleanUpView(msgspec.Struct, frozen=True, kw_only=True):
    """How the pool's clean-up went after a lease."""

    lease_id: str
    argv: list[str]
    is_success: bool
    detail: str
    """Of a failure: the exit code, the signal, or why it did not run."""
    ended_at_ms: int


class StopView(msgspec.Struct, frozen=True, kw_only=True):
    """How far the end of a node's machine is."""

    since_at_ms: int
    is_stuck: bool
    """It has taken so long that people were told; it is asked to end for as long as it takes."""
    is_foreign: bool
    """Its label names a node that the fleet never had: it is not ended before somebody says so."""
    attempt_count: int
    next_at_ms: int | None
    """When it is asked again, or given up to answer."""
    last_code: str
    """How the last attempt failed; empty while none has."""
    last_message: str


class ReadinessView(msgspec.Struct, frozen=True, kw_only=True):
    """How far a node is with its pool's ready check, or was when its boot failed."""

    since_at_ms: int
    next_at_ms: int | None
    """When the next try is due; `null` while one is under way."""
    try_count: int
    success_count: int
    """In a row."""
    detail: str
    """How the last try that failed did."""


class NodeView(msgspec.Struct, frozen=True, kw_only=True):
    """A place where work can run."""

    node_id: str
    pool: str
    tier: str
    provider: str
    offer: str
    origin: str
    zone: str
    labels: dict[str, str]
    """Its own, which win over those of its tier."""
    reliability: str
    price_microusd_per_hour: int
    shape: ShapeView
    is_inventory_reported: bool
    has_agent: bool = True
    """False: the server acts in its agent's place, and it takes leases only."""
    phase: str
    phase_since_at_ms: int
    created_at_ms: int
    epoch: int
    machine_id: str | None
    launch_failure: LaunchFailureView | None
    boot_log: str = ""
    """The end of what its machine wrote, when its boot has failed; without secrets."""
    readiness: ReadinessView | None = None
    """While its ready check has not passed."""
    hostname: str
    health: str
    health_since_at_ms: int
    silent_since_at_ms: int | None
    is_connected: bool
    """Its agent's link is up at this server."""
    cordon: CordonView | None
    drain: DrainView | None
    quarantine: QuarantineView | None
    maintenance: NodeMaintenanceView | None = None
    """Its machine is about to be worked on, or is."""
    notice: NoticeView | None
    retire_reason: str | None
    is_spare: bool
    spare_band: str | None
    slot_count: int
    lease_count: int
    allocation_count: int
    use_count: int
    last_tenant: TenantView | None
    cleaning_count: int
    """Slots that are being cleaned up."""
    last_clean_up: CleanUpView | None
    idle_since_at_ms: int | None
    stop: StopView | None = None
    """While its machine is being ended."""
    notes: list[NoteView]


class CordonRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Let nothing new onto a node."""

    reason: str = ""


class LabelsRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Give a node labels."""

    labels: dict[LabelName, Annotated[str, Meta(max_length=63)]]
    """By name; an empty value takes the label away."""


class DrainRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Cordon a node and move what is there."""

    deadline_ms: Annotated[int, Meta(ge=0, le=366 * 86_400_000)] = 600_000
    is_forced: bool = False
    """Stop what is left at the deadline, whether it has another place or not."""
    then_retire: bool = False
    """Stop its machine when it is empty."""


class OfferView(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of machine that a tier can launch."""

    name: str
    shape: ShapeView
    price_microusd_per_hour: int
    cooling_until_at_ms: int | None
    """Left alone until then, after a failed launch."""


class BootFailureView(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a machine that was launched and never became ready."""

    node_id: str
    offer: str
    at_ms: int
    code: str
    message: str


class TierView(msgspec.Struct, frozen=True, kw_only=True):
    """One source of capacity."""

    name: str
    kind: str
    provider: str
    reliability: str
    zone: str
    labels: dict[str, str]
    """Of each of its nodes."""
    node_count: int
    """Nodes that are not retired."""
    node_count_max: int
    offers: list[OfferView]
    stopped_at_ms: int | None = None
    """Since when nothing but a trial now and then is launched; `null`: not stopped."""
    trial_at_ms: int | None = None
    """When one machine is tried again."""
    boot_failure_count: int = 0
    """Machines that failed to boot, in a row."""
    boot_failures: list[BootFailureView] = []
    """The latest of them, newest last."""


class WindowComingView(msgspec.Struct, frozen=True, kw_only=True):
    """One coming of a pool's window."""

    pool: str
    window: str
    time_zone: str
    from_at_ms: int
    to_at_ms: int
    local: str
    """The same on the wall clock there: `Mon 2026-03-30 09:00 to 17:00`."""
    warm_count: int | None
    node_count_min: int | None
    node_count_max: int | None
    note: str
    """What a clock change does to it, or which window goes before it; empty: nothing."""


class WindowsView(msgspec.Struct, frozen=True, kw_only=True):
    """What the windows of pools bring, earliest first in each pool."""

    items: list[WindowComingView]


class ClosingView(msgspec.Struct, frozen=True, kw_only=True):
    """How far a disabled pool is on its way to hold nothing and have no machine."""

    begun_at_ms: int
    deadline_at_ms: int
    """Until then leases may stay and work may move; then what is left is ended."""
    is_done: bool


class ConsolidationView(msgspec.Struct, frozen=True, kw_only=True):
    """How far a pool is in emptying machines that are little used."""

    node_id: str | None
    """The node that is being emptied."""
    begun_at_ms: int | None
    look_at_ms: int | None
    """When the next one is looked for; `null`: when something changes."""
    move_count: int
    """Replicas moved within the window."""
    move_count_max: int
    used_percent_max: int
    """Nodes that are used more stay."""


class SpareTargetView(msgspec.Struct, frozen=True, kw_only=True):
    """How many idle nodes are kept for the recoveries of a band."""

    band: str | None
    """`null`: gold and silver."""
    count: int
    """Desired."""
    present_count: int
    """There, or on their way."""


class PoolView(msgspec.Struct, frozen=True, kw_only=True):
    """Nodes under one policy, counted."""

    name: str
    is_enabled: bool
    closing: ClosingView | None = None
    """While it is disabled."""
    generation: int
    tiers: list[TierView]
    warm_count: int
    """Desired at present: what the windows make of it."""
    node_count_min: int
    """Desired at present."""
    node_count_max: int | None
    """Allowed at present; `null`: what the tiers allow."""
    windows: list[str]
    """Windows that hold at present, or are prepared for."""
    sizes_until_at_ms: int | None
    """When the windows may change that next."""
    replacing_count: int
    """Nodes in whose place another is to come: out of date or old."""
    consolidation: ConsolidationView | None = None
    """Where machines that are little used are emptied."""
    age_ms_max: int | None
    spare_count: int
    """Desired."""
    spares: list[SpareTargetView]
    """The same by band."""
    slot_count: int
    node_count: int
    starting_count: int
    """Requested or booting."""
    ready_count: int
    idle_count: int
    """Ready, live and empty, spares included."""
    present_spare_count: int
    held_count: int
    """Leases held."""
    waiting_count: int
    """Leases in line."""
    lease_ms: int
    lease_ms_max: int | None
    notes: list[NoteView]
