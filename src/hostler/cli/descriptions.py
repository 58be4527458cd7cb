"""What `hostler describe` says of each kind of thing, section by section."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, assert_never

from hostler.base.units import format_duration
from hostler.cli.lease_descriptions import clean_up_text, lease_lines, tenant_text
from hostler.cli.lives import CONFIG_COLUMNS, config_text, moves_to, restarts_text
from hostler.cli.output import At, Cell, Column, fields, table
from hostler.cli.pool_descriptions import BOOT_COLUMNS, TIER_COLUMNS, money_an_hour, pool_pairs
from hostler.cli.protection_text import budgets_text, protected_text
from hostler.cli.remote import now_ms
from hostler.cli.tables import (
    ALLOCATION_COLUMNS,
    NODE_COLUMNS,
    REPLICA_COLUMNS,
    SERVICE_NODE_COLUMNS,
    ended_text,
    node_state,
    node_use,
    reported_text,
    stop_answer,
)
from hostler.cli.where_text import requirement_text, spread_text, where_text
from hostler.wire.http import (
    AllocationView,
    BundleView,
    DrainView,
    JobView,
    LeaseView,
    NodeMaintenanceView,
    NodeView,
    NoteView,
    NoticeView,
    PoolView,
    QuarantineView,
    ReadinessView,
    ReplicaView,
    ServiceView,
    TokenView,
)

if TYPE_CHECKING:
    from hostler.client import SyncClient

Pairs = list[tuple[str, Cell]]


View: TypeAlias = (
    BundleView
    | ServiceView
    | ReplicaView
    | AllocationView
    | NodeView
    | PoolView
    | LeaseView
    | TokenView
)


def described(client: SyncClient, view: View) -> list[str]:
    """Describe a thing."""
    match view:
        case NodeView():
            return _node(client, view)
        case PoolView():
            return _pool(client, view)
        case ServiceView():
            return _service(view)
        case BundleView():
            return _bundle(client, view)
        case ReplicaView():
            return _replica(client, view)
        case AllocationView():
            return _allocation(view)
        case LeaseView():
            return lease_lines(view)
        case TokenView():
            return _token(view)
        case _:
            assert_never(view)


def _fields(pairs: Sequence[tuple[str, Cell]]) -> list[str]:
    return fields(pairs, now_ms=now_ms())


def _section(title: str, lines: Iterable[str]) -> list[str]:
    """Give a titled block, or nothing when it is empty."""
    told = [f"  {line}" for line in lines]
    return [f"{title}:", *told] if told else []


def _table(title: str, rows: Sequence[Any], columns: Sequence[Column[Any]]) -> list[str]:
    return _section(title, table(rows, columns, now_ms=now_ms()) if rows else ())


def _notes(notes: Sequence[NoteView]) -> list[str]:
    return _section("Not now, because", (note_line(note) for note in notes))


def note_line(note: NoteView) -> str:
    """Write why something is not done, and who decides it."""
    detail = f": {note.detail}" if note.detail else ""
    return f"{note.reason}{detail} ({note.by})"


def _until(at_ms: int) -> str:
    return format_duration(max(0, at_ms - now_ms()))


def _since(word: str, at_ms: int) -> str:
    return f"{word} for {format_duration(max(0, now_ms() - at_ms))}"


def _node(client: SyncClient, view: NodeView) -> list[str]:
    cordon, drain, failure = view.cordon, view.drain, view.launch_failure
    pairs: Pairs = [
        ("Node", view.node_id),
        ("Pool and tier", f"{view.pool} / {view.tier}"),
        ("State", node_state(view)),
        ("Since", At(view.phase_since_at_ms)),
        ("Agent", _agent_text(view)),
        ("Host", view.hostname),
        ("Machine", view.machine_id),
        ("Origin", view.origin),
        ("Provider", f"{view.provider} / {view.offer}".strip(" /")),
        ("Zone", view.zone),
        ("Reliability", view.reliability),
        ("Price", money_an_hour(view.price_microusd_per_hour)),
        ("Has", reported_text(view)),
        ("Labels", ", ".join(f"{name}={value}" for name, value in view.labels.items())),
        ("Used for", node_use(view) or "nothing"),
        ("Leases served", view.use_count),
        ("Being cleaned up", f"{view.cleaning_count} slots" if view.cleaning_count else None),
        ("Last clean-up", clean_up_text(view.last_clean_up)),
        ("Last tenant", tenant_text(view.last_tenant)),
        ("Epoch", view.epoch),
        ("Cordoned by", f"{cordon.by} {cordon.reason}".strip() if cordon else None),
        (
            "Drained by",
            _drain_text(drain) if drain else None,
        ),
        ("Quarantine", _quarantine_text(view.quarantine)),
        ("Maintenance", _maintenance_text(view.maintenance)),
        ("Taken back", _notice_text(view.notice)),
        ("Retires because", view.retire_reason),
        ("Machine is still there", stop_answer(view.stop)),
        ("Ready check", _readiness_text(view.readiness)),
        ("Launch failed", f"{failure.code}: {failure.message}" if failure else None),
    ]
    placed = client.allocations(node=view.node_id)
    return [
        *_fields(pairs),
        *_table("Allocations", placed, ALLOCATION_COLUMNS),
        *_section("What its machine wrote last", view.boot_log.splitlines()),
        *_notes(view.notes),
    ]


def _agent_text(view: NodeView) -> str:
    if view.is_connected:
        return "connected"
    if view.silent_since_at_ms is None:
        return "not connected"
    return _since("silent", view.silent_since_at_ms)


def _readiness_text(view: ReadinessView | None) -> str | None:
    if view is None:
        return None
    told = f"not passed; {view.try_count} tries, the last {view.success_count} of them good"
    return f"{told}; {view.detail}" if view.detail else told


def _quarantine_text(view: QuarantineView | None) -> str | None:
    if view is None:
        return None
    why = f"for {view.cause}, {view.count} in a row"
    if view.trial_id is not None:
        return f"{why}; {view.trial_id} is on trial"
    if view.is_on_probation:
        return f"{why}; the next job is on trial"
    return f"{why}; a trial in {format_duration(max(0, view.until_at_ms - now_ms()))}"


def _maintenance_text(view: NodeMaintenanceView | None) -> str | None:
    if view is None:
        return None
    if view.is_called_off:
        return f"{view.name}, called off here"
    left_ms = view.from_at_ms - now_ms()
    if left_ms > 0:
        return f"{view.name}, in {format_duration(left_ms)}"
    return f"{view.name}, over in {_until(view.to_at_ms)}"


def _notice_text(view: NoticeView | None) -> str | None:
    if view is None:
        return None
    if view.kind == "rebalance":
        return f"likely soon, says its {view.source}"
    return f"in {format_duration(max(0, view.ends_at_ms - now_ms()))}, says its {view.source}"


def _drain_text(drain: DrainView) -> str:
    rest_ms = drain.deadline_at_ms - now_ms()
    is_overdue = drain.is_overdue or rest_ms < 0
    return f"{drain.by}, {'overdue' if is_overdue else f'until in {format_duration(rest_ms)}'}"


def _service(view: ServiceView) -> list[str]:
    is_renewing = view.generation != view.observed_generation
    pairs: Pairs = [
        ("Service", view.name),
        ("Bundle", view.bundle_id),
        ("Life", view.life),
        ("Runs in", ", ".join(view.tiers or view.pools)),
        ("Consumes", requirement_text(view.consumes)),
        ("Provides", ", ".join(f"{each.count} {each.name}" for each in view.provides)),
        ("Nodes", f"{view.node_count}, {view.ready_count} ready, {view.withdrawn_count} withdrawn"),
        ("Patience", format_duration(view.patience_ms)),
        ("Lingers for", format_duration(view.linger_ms) if view.life == "lazy" else None),
        ("Generation", f"{view.generation}{', being renewed' if is_renewing else ''}"),
    ]
    return [*_fields(pairs), *_table("Nodes", view.nodes, SERVICE_NODE_COLUMNS)]


def _pool(client: SyncClient, view: PoolView) -> list[str]:
    nodes = client.nodes(pool=view.name)
    return [
        *_fields(pool_pairs(view)),
        *_table("Tiers", view.tiers, TIER_COLUMNS),
        *_boots(view),
        *_table("Nodes", nodes, NODE_COLUMNS),
        *_notes(view.notes),
    ]


def _boots(view: PoolView) -> list[str]:
    """Tell of boots that failed in a row, tier by tier."""
    told: list[str] = []
    for tier in view.tiers:
        if tier.boot_failures:
            stopped = "" if tier.stopped_at_ms is None else ", launches stopped"
            title = f"Failed boots in {tier.name}: {tier.boot_failure_count} in a row{stopped}"
            told += _table(title, tier.boot_failures, BOOT_COLUMNS)
    return told


_JOB_COLUMNS: tuple[Column[JobView], ...] = (
    Column("JOB", lambda view: view.name),
    Column("BAND", lambda view: view.band),
    Column("NEEDS", lambda view: requirement_text(view.requires)),
    Column("READY BY", lambda view: view.readiness),
    Column("RUNS", lambda view: " ".join(view.argv)),
)


def _bundle(client: SyncClient, view: BundleView) -> list[str]:
    pairs: Pairs = [
        ("Bundle", view.bundle_id),
        ("Phase", view.phase),
        ("Since", At(view.phase_since_at_ms)),
        ("Pool", ", then ".join([view.pool, *view.fallback_pools])),
        ("Goes on to the next", view.fallback if view.fallback_pools else None),
        ("Starts", "all at once, or not" if view.is_gang else None),
        ("Copies of each job", view.replica_count),
        ("Ready", f"{view.ready_count} of {view.desired_count}"),
        ("Apart", ", ".join(map(spread_text, view.spread))),
        ("Backup apart", None if view.backup_apart is None else spread_text(view.backup_apart)),
        (
            "Where",
            "; ".join(f"{job.name}: {told}" for job in view.jobs if (told := where_text(job))),
        ),
        ("Protected", protected_text(view)),
        ("Disruption budgets", budgets_text(view)),
        ("Together", "the jobs of one copy on one node" if view.is_colocated else None),
        ("Labels", ", ".join(f"{name}={value}" for name, value in view.labels.items())),
        ("Generation", view.generation),
        ("Submitted by", view.submitted_by),
    ]
    replicas = client.replicas(bundle=view.bundle_id)
    return [
        *_fields(pairs),
        *_table("Jobs", view.jobs, _JOB_COLUMNS),
        *_table("Replicas", replicas, REPLICA_COLUMNS),
        *_table("Configurations", [each for each in replicas if each.config], CONFIG_COLUMNS),
    ]


def _replica(client: SyncClient, view: ReplicaView) -> list[str]:
    waits = f"{view.reason}: {view.reason_detail}" if view.reason_detail else view.reason
    pairs: Pairs = [
        ("Replica", view.replica_id),
        ("Role and band", f"{view.role}, {view.band}"),
        ("Phase", view.phase),
        ("Since", At(view.phase_since_at_ms)),
        ("Allocation", view.allocation_id),
        ("Allocation is", view.allocation_phase),
        ("Node", view.node_id),
        ("Waits for", waits),
        ("Room is made on", None if view.claim is None else view.claim.node_id),
        ("Gave way to", None if view.preempted is None else view.preempted.by),
        ("Tried again in", None if view.retry_at_ms is None else _until(view.retry_at_ms)),
        ("Restarts that count", restarts_text(view)),
        ("Moves to", moves_to(view)),
        ("Degraded by", ", ".join(view.degraded_by)),
        ("Generation", view.generation),
        ("Configuration", None if view.config is None else config_text(view.config)),
    ]
    past = [
        one
        for one in client.allocations(bundle=view.bundle_id, include_ended=True)
        if one.replica_id == view.replica_id
    ]
    return [*_fields(pairs), *_table("Allocations", past, ALLOCATION_COLUMNS)]


def _allocation(view: AllocationView) -> list[str]:
    started, ready = view.started_at_ms, view.ready_at_ms
    devices = [f"{kind}: {', '.join(ids)}" for kind, ids in view.devices.items()]
    return _fields(
        [
            ("Allocation", view.allocation_id),
            ("Replica", view.replica_id),
            ("Role and band", f"{view.role}, {view.band}"),
            ("Node", view.node_id),
            ("Phase", view.phase),
            ("Since", At(view.phase_since_at_ms)),
            ("Created", At(view.created_at_ms)),
            ("Started", None if started is None else At(started)),
            ("Ready", None if ready is None else At(ready)),
            ("Needs", requirement_text(view.requires)),
            ("Devices", "; ".join(devices)),
            ("Degraded by", ", ".join(view.degraded_by)),
            ("Epoch", view.epoch),
            ("Stopped because", view.stop_reason),
            ("Ended", ended_text(view.ended)),
        ]
    )


def _token(view: TokenView) -> list[str]:
    expires = view.expires_at_ms
    return _fields(
        [
            ("Token", view.token_id),
            ("Name", view.name),
            ("Role", view.role),
            ("State", "revoked" if view.is_revoked else "active"),
            ("Pool", view.pool),
            ("Tier", view.tier),
            ("Created", At(view.created_at_ms)),
            ("Created by", view.created_by),
            ("Expires in", None if expires is None else _until(expires)),
        ]
    )
