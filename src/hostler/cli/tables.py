"""The columns of every table, in the order in which people look for them."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from hostler.base.units import format_duration, format_size
from hostler.cli.output import At, Column
from hostler.cli.protection_text import budgets_text, protected_text
from hostler.cli.remote import now_ms

if TYPE_CHECKING:
    from hostler.wire.http import (
        AllocationView,
        BundleView,
        EndedView,
        LeaseView,
        MaintenanceView,
        NodeView,
        PoolView,
        ReplicaView,
        ServiceOnNodeView,
        ServiceView,
        ShapeView,
        StopView,
        TokenView,
        UpcomingView,
        WindowComingView,
    )


def cores_text(cores_milli: int | None) -> str | None:
    """Write an amount of CPU: `2`, `0.5`."""
    if cores_milli is None:
        return None
    return f"{cores_milli / 1_000:g}"


def money_text(microusd: int) -> str:
    """Write an amount of US dollars: `$0.10`."""
    return f"${microusd / 1_000_000:.2f}"


def shape_text(shape: ShapeView) -> str:
    """Write what a node or an offer has on one line."""
    parts = []
    if shape.capacity is not None:
        parts.append(f"capacity {shape.capacity}")
    if shape.cores_milli is not None:
        parts.append(f"{cores_text(shape.cores_milli)} cores")
    if shape.memory_bytes is not None:
        parts.append(format_size(shape.memory_bytes))
    parts += [f"{one.count} {one.name}" for one in shape.capabilities or ()]
    return ", ".join(parts)


def reported_text(node: NodeView) -> str:
    """Write what a node has, and what its agent has not said: that is neither nothing nor free."""
    if not node.is_inventory_reported:
        return "not reported yet"
    shape = node.shape
    missing = [
        name
        for name, value in (
            ("capacity", shape.capacity),
            ("cores", shape.cores_milli),
            ("memory", shape.memory_bytes),
            ("capabilities", shape.capabilities),
        )
        if value is None
    ]
    parts = [shape_text(shape)] if shape_text(shape) else []
    return ", ".join([*parts, *(f"{name} not reported" for name in missing)])


def node_state(node: NodeView) -> str:
    """Write how a node is: its phase, or its health where that says more, and who holds it back."""
    is_heard_of = node.health == "live" or node.phase in ("requested", "starting", "retired")
    words = [node.phase] if is_heard_of or node.phase != "ready" else []
    if not is_heard_of:
        words.append(node.health)
    if node.cordon is not None:
        words.append("cordoned")
    if node.maintenance is not None and not node.maintenance.is_called_off:
        words.append("maintenance" if node.maintenance.is_begun else "closing")
    if node.quarantine is not None:
        words.append("probation" if node.quarantine.is_on_probation else "quarantined")
    if node.drain is not None and node.phase == "ready":
        words.append("draining")
    return " ".join(words)


def maintained_text(view: MaintenanceView) -> str:
    """Write which nodes a maintenance is about."""
    labels = [f"{name}={value}" for name, value in sorted(view.labels.items())]
    return ", ".join([*view.pools, *labels, *view.node_ids])


def node_use(node: NodeView) -> str:
    """Write what a node is kept for or busy with."""
    parts = []
    if node.is_spare:
        parts.append(f"spare for {node.spare_band}" if node.spare_band else "spare")
    if node.allocation_count:
        parts.append(f"{node.allocation_count} placed")
    if node.lease_count:
        parts.append(f"{node.lease_count}/{node.slot_count} leased")
    return ", ".join(parts)


def ended_text(ended: EndedView | None) -> str | None:
    """Write how an allocation ended: `exited 1`, `exited SIGKILL`."""
    if ended is None:
        return None
    how = f"signal {ended.signal}" if ended.signal else ended.exit_code
    told = ended.cause if how is None else f"{ended.cause} {how}"
    return f"{told}: {ended.message}" if ended.message else told


NODE_COLUMNS: Final[tuple[Column[NodeView], ...]] = (
    Column("NODE", lambda view: view.node_id),
    Column("POOL", lambda view: view.pool),
    Column("TIER", lambda view: view.tier),
    Column("STATE", node_state, is_state=True),
    Column("USE", node_use),
    Column("HOST", lambda view: view.hostname),
    Column("AGE", lambda view: At(view.created_at_ms)),
    Column("ORIGIN", lambda view: view.origin, is_wide=True),
    Column("PROVIDER", lambda view: view.provider, is_wide=True),
    Column("OFFER", lambda view: view.offer, is_wide=True),
    Column("ZONE", lambda view: view.zone, is_wide=True),
    Column("SHAPE", lambda view: shape_text(view.shape), is_wide=True),
    Column("USED", lambda view: view.use_count, is_wide=True),
    Column("MACHINE", lambda view: view.machine_id, is_wide=True),
)


def stop_answer(stop: StopView | None) -> str | None:
    """Tell why a machine is still there."""
    if stop is None:
        return None
    if stop.is_foreign:
        return "not ended: its label names a node that this fleet never had; see `hostler end`"
    return ": ".join(part for part in (stop.last_code, stop.last_message) if part) or "no answer"


STUCK_COLUMNS: Final[tuple[Column[NodeView], ...]] = (
    Column("NODE", lambda view: view.node_id),
    Column("PROVIDER", lambda view: view.provider),
    Column("MACHINE", lambda view: view.machine_id),
    Column("SINCE", lambda view: At(view.phase_since_at_ms)),
    Column("TRIES", lambda view: view.stop.attempt_count if view.stop else None),
    Column("LAST ANSWER", lambda view: stop_answer(view.stop)),
    Column("POOL", lambda view: view.pool, is_wide=True),
    Column("AN HOUR", lambda view: money_text(view.price_microusd_per_hour), is_wide=True),
)


def pool_growth(view: PoolView) -> str:
    """Tell whether a pool can grow, and whether its machines are being replaced."""
    stopped = [tier.name for tier in view.tiers if tier.stopped_at_ms is not None]
    if stopped:
        return f"stopped: {','.join(stopped)}"
    return f"replacing {view.replacing_count}" if view.replacing_count else "ok"


POOL_COLUMNS: Final[tuple[Column[PoolView], ...]] = (
    Column("POOL", lambda view: view.name if view.is_enabled else f"{view.name} (disabled)"),
    Column("NODES", lambda view: view.node_count),
    Column("STARTING", lambda view: view.starting_count),
    Column("READY", lambda view: view.ready_count),
    Column("IDLE", lambda view: view.idle_count),
    Column("WARM", lambda view: view.warm_count),
    Column("SPARES", lambda view: f"{view.present_spare_count}/{view.spare_count}"),
    Column("HELD", lambda view: view.held_count),
    Column("WAITING", lambda view: view.waiting_count),
    Column("GROWTH", pool_growth, is_state=True),
    Column("TIERS", lambda view: ",".join(tier.name for tier in view.tiers), is_wide=True),
)
SERVICE_COLUMNS: Final[tuple[Column[ServiceView], ...]] = (
    Column("SERVICE", lambda view: view.name),
    Column("LIFE", lambda view: view.life),
    Column("POOLS", lambda view: ",".join(view.tiers or view.pools)),
    Column("READY", lambda view: f"{view.ready_count}/{view.node_count}"),
    Column("WITHDRAWN", lambda view: view.withdrawn_count),
    Column(
        "PROVIDES", lambda view: ",".join(f"{each.name}={each.count}" for each in view.provides)
    ),
    Column("GENERATION", lambda view: view.generation, is_wide=True),
    Column("BUNDLE", lambda view: view.bundle_id, is_wide=True),
)
SERVICE_NODE_COLUMNS: Final[tuple[Column[ServiceOnNodeView], ...]] = (
    Column("NODE", lambda view: view.node_id),
    Column("STATE", lambda view: view.state, is_state=True),
    Column("SINCE", lambda view: At(view.since_at_ms)),
    Column("CONSUMERS", lambda view: view.consumer_count),
    Column("ALLOCATION", lambda view: view.allocation_id),
    Column("WHY NOT", lambda view: f"{view.reason} {view.reason_detail}" if view.reason else None),
)
WINDOW_COLUMNS: Final[tuple[Column[WindowComingView], ...]] = (
    Column("POOL", lambda view: view.pool),
    Column("WINDOW", lambda view: view.window or None),
    Column("THERE", lambda view: view.local),
    Column("ZONE", lambda view: view.time_zone),
    Column("WARM", lambda view: view.warm_count),
    Column("MIN", lambda view: view.node_count_min),
    Column("MAX", lambda view: view.node_count_max),
    Column("NOTE", lambda view: view.note or None),
)
MAINTENANCE_COLUMNS: Final[tuple[Column[MaintenanceView], ...]] = (
    Column("MAINTENANCE", lambda view: view.name),
    Column("STATE", lambda view: view.state, is_state=True),
    Column("FROM", lambda view: view.from_local or None),
    Column("TO", lambda view: view.to_local or None),
    Column("OF", maintained_text),
    Column("NODES", lambda view: ", ".join(f"{n.node_id} {n.state}" for n in view.nodes) or None),
    Column("LEAD", lambda view: format_duration(view.lead_ms), is_wide=True),
    Column("FORCED", lambda view: view.is_forced, is_wide=True),
    Column("ADDED BY", lambda view: view.added_by, is_wide=True),
    Column("WHY", lambda view: view.reason or None, is_wide=True),
)
BUNDLE_COLUMNS: Final[tuple[Column[BundleView], ...]] = (
    Column("BUNDLE", lambda view: view.bundle_id),
    Column("POOL", lambda view: view.pool),
    Column("PHASE", lambda view: view.phase, is_state=True),
    Column("READY", lambda view: f"{view.ready_count}/{view.desired_count}"),
    Column("PLACED", lambda view: view.placed_count),
    Column("PENDING", lambda view: view.pending_count),
    Column("FAILED", lambda view: view.failed_count),
    Column("SINCE", lambda view: At(view.phase_since_at_ms)),
    Column("PROTECTED", protected_text, is_wide=True),
    Column("BUDGETS", budgets_text, is_wide=True),
    Column("GENERATION", lambda view: view.generation, is_wide=True),
    Column("JOBS", lambda view: ",".join(job.name for job in view.jobs), is_wide=True),
    Column("BY", lambda view: view.submitted_by, is_wide=True),
)
REPLICA_COLUMNS: Final[tuple[Column[ReplicaView], ...]] = (
    Column("REPLICA", lambda view: view.replica_id),
    Column("ROLE", lambda view: view.role),
    Column("BAND", lambda view: view.band),
    Column("STATE", lambda view: view.allocation_phase or view.phase, is_state=True),
    Column("NODE", lambda view: view.node_id),
    Column("RESTARTS", lambda view: view.restart_count),
    Column("WAITS FOR", lambda view: view.reason),
    Column("SINCE", lambda view: At(view.phase_since_at_ms)),
    Column("ALLOCATION", lambda view: view.allocation_id, is_wide=True),
    Column("DEGRADED", lambda view: ",".join(view.degraded_by), is_wide=True),
    Column("DETAIL", lambda view: view.reason_detail, is_wide=True),
)
ALLOCATION_COLUMNS: Final[tuple[Column[AllocationView], ...]] = (
    Column("ALLOCATION", lambda view: view.allocation_id),
    Column("REPLICA", lambda view: view.replica_id),
    Column("NODE", lambda view: view.node_id),
    Column("PHASE", lambda view: view.phase, is_state=True),
    Column("AGE", lambda view: At(view.created_at_ms)),
    Column("ENDED", lambda view: ended_text(view.ended)),
    Column("ROLE", lambda view: view.role, is_wide=True),
    Column("EPOCH", lambda view: view.epoch, is_wide=True),
    Column("STOP REASON", lambda view: view.stop_reason, is_wide=True),
)
LEASE_COLUMNS: Final[tuple[Column[LeaseView], ...]] = (
    Column("LEASE", lambda view: view.lease_id),
    Column("POOL", lambda view: view.pool),
    Column("PHASE", lambda view: view.outcome or view.phase, is_state=True),
    Column("NODE", lambda view: view.node_id),
    Column("HOLDER", lambda view: view.holder),
    Column("KEY", lambda view: view.key),
    Column("AGE", lambda view: At(view.requested_at_ms)),
    Column("WAITS FOR", lambda view: view.reason),
    Column("PRIORITY", lambda view: view.priority, is_wide=True),
    Column("EPOCH", lambda view: view.epoch, is_wide=True),
    Column("DETAIL", lambda view: view.reason_detail or view.outcome_detail, is_wide=True),
)


def _rest_text(at_ms: int) -> str:
    return format_duration(max(0, at_ms - now_ms()))


WAITING_COLUMNS: Final[tuple[Column[LeaseView], ...]] = (
    Column("PLACE", lambda view: None if view.position is None else view.position + 1),
    Column("LEASE", lambda view: view.lease_id),
    Column("POOL", lambda view: view.pool),
    Column("KEY", lambda view: view.key),
    Column("WAITED", lambda view: At(view.requested_at_ms)),
    Column("GIVES UP IN", lambda view: _rest_text(view.wait_deadline_at_ms)),
    Column("WAITS FOR", lambda view: view.reason),
    Column("DETAIL", lambda view: view.reason_detail),
    Column("PRIORITY", lambda view: view.priority, is_wide=True),
    Column("HOLDER", lambda view: view.holder, is_wide=True),
)
TOKEN_COLUMNS: Final[tuple[Column[TokenView], ...]] = (
    Column("TOKEN", lambda view: view.token_id),
    Column("NAME", lambda view: view.name),
    Column("ROLE", lambda view: view.role),
    Column("STATE", lambda view: "revoked" if view.is_revoked else "active", is_state=True),
    Column("POOL", lambda view: view.pool),
    Column("TIER", lambda view: view.tier),
    Column("AGE", lambda view: At(view.created_at_ms)),
    Column("BY", lambda view: view.created_by, is_wide=True),
)


def _utc_text(view: UpcomingView) -> str:
    return datetime.fromtimestamp(view.at_ms / 1_000, UTC).strftime("%Y-%m-%d %H:%M")


UPCOMING_COLUMNS: Final[tuple[Column[UpcomingView], ...]] = (
    Column("BUNDLE", lambda v: v.bundle_id),
    Column("WHAT", lambda v: v.what),
    Column("LOCAL", lambda v: v.local),
    Column("UTC", _utc_text),
    Column("NOTE", lambda v: v.note or None),
    Column("ZONE", lambda v: v.time_zone, is_wide=True),
)
