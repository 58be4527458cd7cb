"""Nodes and pools, with the notes of the controllers about them."""

from __future__ import annotations

from collections.abc import Iterator

from hostler.api.convert.maintenance import on_node
from hostler.api.convert.shapes import shape
from hostler.core.consolidation import moves_of, words
from hostler.core.fleet import Fleet
from hostler.core.keys import tier_key
from hostler.core.machine_commands import stop_command_id
from hostler.core.sizing_targets import sizes_of
from hostler.core.uses import Replaceable, Use, replaceable_key, use_key
from hostler.model import Allocation, Lease, Node, Pool, Sizes
from hostler.model.node import CleanUp, Drain, NodePhase, Notice, Quarantine, Tenant
from hostler.model.pool import Offer, Tier
from hostler.model.ready import Readiness
from hostler.model.reason import Reason
from hostler.wire.http import (
    BootFailureView,
    CleanUpView,
    ClosingView,
    ConsolidationView,
    CordonView,
    DrainView,
    LaunchFailureView,
    LeftView,
    NodeView,
    NoteView,
    NoticeView,
    OfferView,
    PoolView,
    QuarantineView,
    ReadinessView,
    SpareTargetView,
    StopView,
    TenantView,
    TierView,
)


def notes(fleet: Fleet, key: str) -> list[NoteView]:
    """Show why nothing is done (yet) about a record, by controller."""
    return [
        NoteView(by=by, reason=note.reason, detail=note.detail, since_at_ms=note.since_at_ms)
        for by, note in sorted(fleet.notes.get(key, {}).items())
    ]


def _node_notes(fleet: Fleet, record: Node) -> list[NoteView]:
    """Show the same of a node, with why its machine is not saved, or is."""
    found = [
        NoteView(by="consolidating", reason=one.reason, detail=one.detail, since_at_ms=since_at_ms)
        for one, since_at_ms in words(fleet, record, fleet.now_ms)
    ]
    return [*found, *notes(fleet, record.node_id)]


def _readiness(record: Readiness | None) -> ReadinessView | None:
    if record is None:
        return None
    return ReadinessView(
        since_at_ms=record.since_at_ms,
        next_at_ms=record.next_at_ms,
        try_count=record.try_count,
        success_count=record.success_count,
        detail=record.detail,
    )


def _clean_up(record: CleanUp | None) -> CleanUpView | None:
    if record is None:
        return None
    return CleanUpView(
        lease_id=record.lease_id,
        argv=list(record.argv),
        is_success=record.is_success,
        detail=record.detail,
        ended_at_ms=record.ended_at_ms,
    )


def _tenant(record: Tenant | None) -> TenantView | None:
    if record is None:
        return None
    return TenantView(
        lease_id=record.lease_id,
        key=record.fairness_key,
        outcome=record.outcome,
        ended_at_ms=record.ended_at_ms,
    )


def _quarantine(record: Quarantine | None) -> QuarantineView | None:
    if record is None or record.is_over:
        return None
    return QuarantineView(
        cause=record.cause,
        since_at_ms=record.since_at_ms,
        until_at_ms=record.until_at_ms,
        count=record.count,
        is_on_probation=record.is_on_probation,
        trial_id=record.trial_id,
    )


def _notice(record: Notice | None) -> NoticeView | None:
    if record is None:
        return None
    return NoticeView(
        kind=record.kind,
        ends_at_ms=record.ends_at_ms,
        source=record.source,
        noticed_at_ms=record.noticed_at_ms,
    )


def _drain(fleet: Fleet, record: Node, drain: Drain) -> DrainView:
    return DrainView(
        by=drain.by,
        deadline_at_ms=drain.deadline_at_ms,
        is_forced=drain.is_forced,
        then_retire=drain.then_retire,
        is_overdue=drain.is_overdue,
        is_done=drain.is_done,
        left=[*_allocations_left(fleet, record), *_leases_left(fleet, record)],
    )


def _allocations_left(fleet: Fleet, record: Node) -> Iterator[LeftView]:
    for key in fleet.index.allocations_by_node.keys(record.node_id):
        allocation = fleet.allocations[key]
        note = fleet.notes.get(key, {}).get("drain")
        yield LeftView(
            kind=Allocation.KIND,
            id=key,
            replica_id=allocation.replica_id,
            phase=allocation.phase,
            reason="" if note is None else note.reason,
            detail="" if note is None else note.detail,
        )


def _leases_left(fleet: Fleet, record: Node) -> Iterator[LeftView]:
    for key in fleet.index.leases_by_node.keys(record.node_id):
        yield LeftView(
            kind=Lease.KIND,
            id=key,
            replica_id=None,
            phase=fleet.leases[key].phase,
            reason=Reason.IN_USE,
            detail="its holder has until the deadline",
        )


def _stop(fleet: Fleet, record: Node) -> StopView | None:
    if record.phase is not NodePhase.STOPPING:
        return None
    entry = fleet.commands.get(stop_command_id(record))
    return StopView(
        since_at_ms=record.phase_since_at_ms,
        is_stuck=record.is_stuck,
        is_foreign=record.is_foreign,
        attempt_count=0 if entry is None else entry.attempt_count,
        next_at_ms=None if entry is None else entry.next_at_ms,
        last_code="" if entry is None else entry.last_code,
        last_message="" if entry is None else entry.last_message,
    )


def node(fleet: Fleet, record: Node, *, is_connected: bool) -> NodeView:
    """Show a node."""
    cordon, drain, failure = record.cordon, record.drain, record.launch_failure
    return NodeView(
        node_id=record.node_id,
        pool=record.pool,
        tier=record.tier,
        provider=record.provider,
        offer=record.offer,
        origin=record.origin,
        zone=record.zone,
        labels=dict(record.labels),
        reliability=record.reliability,
        price_microusd_per_hour=record.price_microusd_per_hour,
        shape=shape(record.shape),
        is_inventory_reported=record.is_inventory_reported,
        has_agent=record.has_agent,
        phase=record.phase,
        phase_since_at_ms=record.phase_since_at_ms,
        created_at_ms=record.created_at_ms,
        epoch=record.epoch,
        machine_id=record.machine_id,
        launch_failure=None
        if failure is None
        else LaunchFailureView(
            code=failure.code, message=failure.message, is_certain=failure.is_certain
        ),
        boot_log=record.boot_log,
        readiness=_readiness(record.readiness),
        hostname=record.hostname,
        health=record.health,
        health_since_at_ms=record.health_since_at_ms,
        silent_since_at_ms=record.silent_since_at_ms,
        is_connected=is_connected,
        cordon=None
        if cordon is None
        else CordonView(by=cordon.by, reason=cordon.reason, at_ms=cordon.at_ms),
        drain=None if drain is None else _drain(fleet, record, drain),
        quarantine=_quarantine(record.quarantine),
        notice=_notice(record.notice),
        maintenance=on_node(record.maintenance),
        retire_reason=record.retire_reason,
        is_spare=record.is_spare,
        spare_band=record.spare_band,
        slot_count=record.slot_count,
        lease_count=record.lease_count,
        allocation_count=record.allocation_count,
        use_count=record.use_count,
        last_tenant=_tenant(record.last_tenant),
        cleaning_count=record.cleaning_count,
        last_clean_up=_clean_up(record.last_clean_up),
        idle_since_at_ms=record.idle_since_at_ms,
        stop=_stop(fleet, record),
        notes=_node_notes(fleet, record),
    )


def _consolidation(fleet: Fleet, record: Pool) -> ConsolidationView | None:
    policy, state = record.consolidation, fleet.consolidations.get(record.name)
    if policy is None or state is None:
        return None
    return ConsolidationView(
        node_id=state.node_id,
        begun_at_ms=None if state.node_id is None else state.begun_at_ms,
        look_at_ms=state.look_at_ms,
        move_count=len(moves_of(state, policy, fleet.now_ms)),
        move_count_max=policy.move_count_max,
        used_percent_max=policy.used_percent_max,
    )


def _spares(fleet: Fleet, record: Pool) -> list[SpareTargetView]:
    keys = fleet.index.nodes_spare.keys(record.name)
    bands = [fleet.nodes[key].spare_band for key in keys]
    return [
        SpareTargetView(
            band=target.band, count=target.count, present_count=bands.count(target.band)
        )
        for target in record.spares
    ]


def pool(fleet: Fleet, record: Pool) -> PoolView:
    """Show a pool, with its nodes and leases counted."""
    index = fleet.index

    sizes = sizes_of(fleet, record)

    def in_phase(phase: NodePhase) -> int:
        return index.nodes_by_pool_phase.count(f"{record.name}/{phase.value}")

    return PoolView(
        name=record.name,
        is_enabled=record.is_enabled,
        closing=None
        if record.closing is None
        else ClosingView(
            begun_at_ms=record.closing.begun_at_ms,
            deadline_at_ms=record.closing.deadline_at_ms,
            is_done=record.closing.is_done,
        ),
        generation=record.generation,
        tiers=[_tier(fleet, record, tier) for tier in record.tiers],
        warm_count=sizes.warm_count,
        node_count_min=sizes.node_count_min,
        node_count_max=sizes.node_count_max,
        windows=list(sizes.windows) if isinstance(sizes, Sizes) else [],
        sizes_until_at_ms=sizes.until_at_ms if isinstance(sizes, Sizes) else None,
        replacing_count=sum(
            index.nodes_to_replace.count(replaceable_key(record.name, how)) for how in Replaceable
        ),
        consolidation=_consolidation(fleet, record),
        age_ms_max=record.age_ms_max,
        spare_count=record.spare_count,
        spares=_spares(fleet, record),
        slot_count=record.slot_count,
        node_count=index.nodes_by_pool.count(record.name),
        starting_count=in_phase(NodePhase.REQUESTED) + in_phase(NodePhase.STARTING),
        ready_count=in_phase(NodePhase.READY),
        idle_count=index.nodes_by_use.count(use_key(record.name, Use.WARM))
        + index.nodes_by_use.count(use_key(record.name, Use.SPARE)),
        present_spare_count=index.nodes_spare.count(record.name),
        held_count=index.leases_held.count(record.name),
        waiting_count=index.leases_waiting.count(record.name),
        lease_ms=record.lease_ms,
        lease_ms_max=record.lease_ms_max,
        notes=notes(fleet, record.name),
    )


def _tier(fleet: Fleet, record: Pool, tier: Tier) -> TierView:
    key = tier_key(record.name, tier.name)
    breaker = fleet.breakers.get(key)
    failures = () if breaker is None else breaker.failures
    return TierView(
        name=tier.name,
        kind=tier.kind,
        provider=tier.provider,
        reliability=tier.reliability,
        zone=tier.zone,
        labels=dict(tier.labels),
        node_count=fleet.index.nodes_by_tier.count(key),
        node_count_max=tier.node_count_max,
        offers=[_offer(fleet, record, tier, offer) for offer in tier.offers],
        stopped_at_ms=None if breaker is None else breaker.stopped_at_ms,
        trial_at_ms=None if breaker is None else breaker.trial_at_ms,
        boot_failure_count=0 if breaker is None else breaker.failure_count,
        boot_failures=[
            BootFailureView(
                node_id=each.node_id,
                offer=each.offer,
                at_ms=each.at_ms,
                code=each.code,
                message=each.message,
            )
            for each in failures
        ],
    )


def _offer(fleet: Fleet, record: Pool, tier: Tier, offer: Offer) -> OfferView:
    cooldown = fleet.cooldowns.get(f"{record.name}/{tier.name}/{offer.name}")
    is_cooling = cooldown is not None and cooldown.until_at_ms > fleet.now_ms
    return OfferView(
        name=offer.name,
        shape=shape(offer.shape),
        price_microusd_per_hour=offer.price_microusd_per_hour,
        cooling_until_at_ms=cooldown.until_at_ms if cooldown and is_cooling else None,
    )
