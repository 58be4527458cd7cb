"""Why bundles, replicas and allocations are as they are."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from hostler.base.ids import AllocationId, BundleId, NodeId, ReplicaId
from hostler.core.explain.answer import Check, Explanation, Why, counted, next_at_ms, notes, why
from hostler.core.fleet import Fleet
from hostler.core.holds import start_command_id, stop_command_id
from hostler.core.placement.demand import Demand, demand_of
from hostler.core.placement.feasible import Place, detail_of, refusals
from hostler.core.sentences import SENTENCES
from hostler.core.waiting import why_pending
from hostler.model import Allocation, Bundle, Node, Replica
from hostler.model.allocation import AllocationPhase
from hostler.model.node import NodePhase
from hostler.model.reason import Reason
from hostler.model.replica import ReplicaPhase


def explain_replica(
    fleet: Fleet, replica_id: ReplicaId, node_id: NodeId | None = None
) -> Explanation | None:
    """Explain a replica; with a node, also everything that keeps it from there now."""
    replica = fleet.replicas.get(replica_id)
    if replica is None:
        return None
    allocation = _live(fleet, replica)
    trace = fleet.traces.get(replica_id)
    commands = () if allocation is None else _allocation_commands(fleet, allocation)
    return Explanation(
        about=replica_id,
        kind="replica",
        phase=replica.phase.value,
        summary=_replica_summary(fleet, replica, allocation),
        reasons=tuple(_replica_reasons(fleet, replica, allocation)),
        next_at_ms=next_at_ms(fleet, replica),
        commands=commands,
        decisions=() if trace is None else trace.decisions,
        node_id=node_id,
        checks=() if node_id is None else tuple(_checks(fleet, replica, node_id)),
    )


def _live(fleet: Fleet, replica: Replica) -> Allocation | None:
    keys = fleet.index.allocations_by_replica.keys(replica.replica_id)
    return fleet.allocations[keys[0]] if keys else None


def _replica_summary(fleet: Fleet, replica: Replica, allocation: Allocation | None) -> str:
    if allocation is not None:
        return _allocation_summary(fleet, allocation)
    match replica.phase:
        case ReplicaPhase.BACKING_OFF:
            return f"It is placed again at {replica.retry_at_ms} ms: {replica.reason_detail}."
        case ReplicaPhase.STOPPING | ReplicaPhase.ENDED:
            return "It is no longer desired."
        case _:
            return "It waits." if replica.reason is None else SENTENCES[replica.reason][0]


def _replica_reasons(
    fleet: Fleet, replica: Replica, allocation: Allocation | None
) -> Iterator[Why]:
    if replica.reason is not None:
        is_in_line = replica.phase is ReplicaPhase.PENDING
        waits_since_at_ms = replica.waiting_since_at_ms if is_in_line else None
        since = waits_since_at_ms or replica.phase_since_at_ms
        waits = why_pending(fleet, replica)
        if waits is not None:
            yield why("record", waits.reason, waits.detail, since)
    preempted = replica.preempted
    if preempted is not None:
        told = f"{preempted.allocation_id} ended so that {preempted.by} has its room"
        yield why("record", Reason.PREEMPTED, told, preempted.at_ms)
    if allocation is not None:
        yield from _allocation_reasons(fleet, allocation)
    yield from notes(fleet, replica.replica_id)


def _checks(fleet: Fleet, replica: Replica, node_id: NodeId) -> Iterator[Check]:
    node = fleet.nodes.get(node_id)
    bundle = fleet.bundles.get(replica.bundle_id)
    job = None if bundle is None else bundle.job(replica.job)
    if node is None or bundle is None or job is None:
        return
    demand = demand_of(fleet, bundle, job, replica, fleet.now_ms)
    place = fleet.index.places.of(fleet, node_id)
    for reason in chain(_wrong_home(fleet, demand, node), refusals(demand, place)):
        yield _check(reason, demand, place)


def _wrong_home(fleet: Fleet, demand: Demand, node: Node) -> Iterator[Reason]:
    if node.pool not in demand.pools:
        yield Reason.WRONG_POOL
        return
    pool = fleet.pools.get(node.pool)
    if pool is None or pool.tier(node.tier) is None:
        yield Reason.WRONG_TIER


def _check(reason: Reason, demand: Demand, place: Place) -> Check:
    meaning, advice = SENTENCES[reason]
    return Check(
        reason=reason, detail=detail_of(reason, demand, place), meaning=meaning, advice=advice
    )


def explain_allocation(fleet: Fleet, allocation_id: AllocationId) -> Explanation | None:
    """Explain an allocation."""
    allocation = fleet.allocations.get(allocation_id)
    if allocation is None:
        return None
    return Explanation(
        about=allocation_id,
        kind="allocation",
        phase=allocation.phase.value,
        summary=_allocation_summary(fleet, allocation),
        reasons=(*_allocation_reasons(fleet, allocation), *notes(fleet, allocation_id)),
        next_at_ms=next_at_ms(fleet, allocation),
        commands=_allocation_commands(fleet, allocation),
    )


def _allocation_summary(fleet: Fleet, allocation: Allocation) -> str:
    where = allocation.node_id
    match allocation.phase:
        case AllocationPhase.RESERVED:
            node = fleet.nodes.get(where)
            state = "unknown" if node is None else node.phase.value
            return f"It has room on {where}, which is {state}, and starts when that is ready."
        case AllocationPhase.STARTING:
            return f"Its start was sent to {where}; the agent there has not said that it runs."
        case AllocationPhase.RUNNING:
            return f"It runs on {where} and is not ready."
        case AllocationPhase.READY:
            return f"It runs on {where} and is ready."
        case AllocationPhase.STOPPING:
            return f"It is being stopped on {where}: {allocation.stop_reason or 'as it failed'}."
        case AllocationPhase.ENDED:
            ended = allocation.ended
            cause = "" if ended is None else f": {ended.cause.value} {ended.message}".rstrip()
            return f"It has ended on {where}{cause}."


def _allocation_reasons(fleet: Fleet, allocation: Allocation) -> Iterator[Why]:
    node = fleet.nodes.get(allocation.node_id)
    if node is None or not allocation.is_live:
        return
    is_coming = node.phase in (NodePhase.REQUESTED, NodePhase.STARTING)
    if allocation.phase is AllocationPhase.RESERVED and is_coming:
        told = f"{node.node_id} is {node.phase.value}"
        yield why("record", Reason.MACHINE_STARTING, told, node.phase_since_at_ms)
    yield from notes(fleet, node.node_id)


def _allocation_commands(fleet: Fleet, allocation: Allocation) -> tuple[str, ...]:
    ids = (start_command_id(allocation), stop_command_id(allocation))
    return tuple(each for each in ids if each in fleet.commands)


def explain_bundle(fleet: Fleet, bundle_id: BundleId) -> Explanation | None:
    """Explain a bundle: what its replicas wait for."""
    bundle = fleet.bundles.get(bundle_id)
    if bundle is None:
        return None
    keys = fleet.index.replicas_by_bundle.keys(bundle_id)
    replicas = [fleet.replicas[key] for key in keys]
    waits = [
        why(
            replica.replica_id,
            waits.reason,
            waits.detail,
            replica.waiting_since_at_ms or replica.phase_since_at_ms,
        )
        for replica in replicas
        if (waits := why_pending(fleet, replica)) is not None
    ]
    return Explanation(
        about=bundle_id,
        kind="bundle",
        phase=bundle.phase.value,
        summary=_bundle_summary(fleet, bundle, replicas),
        reasons=(*waits, *notes(fleet, bundle_id)),
    )


def _bundle_summary(fleet: Fleet, bundle: Bundle, replicas: list[Replica]) -> str:
    live = [each for replica in replicas if (each := _live(fleet, replica)) is not None]
    ready_count = sum(each.phase is AllocationPhase.READY for each in live)
    told = f"It has {counted(len(replicas), 'replica')}, {len(live)} placed and {ready_count} ready"
    if bundle.observed_generation != bundle.generation:
        return f"{told}; generation {bundle.generation} is being brought about."
    return f"{told}."
