"""Why bundles, replicas and allocations are as they are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hostler.base.ids import AllocationId, BundleId, NodeId, ReplicaId
from hostler.base.units import format_instant
from hostler.core.explain.alterations import Alteration
from hostler.core.explain.answer import Explanation, Why, counted, next_at_ms, notes, why
from hostler.core.explain.fit import fit_of
from hostler.core.explain.waiting import FITS_NOW, Waiting, why_pending
from hostler.core.fleet import Fleet
from hostler.core.holds import start_command_id, stop_command_id
from hostler.core.sentences import SENTENCES
from hostler.core.waiting import why_in_line
from hostler.model import Allocation, Bundle, Replica
from hostler.model.allocation import AllocationPhase
from hostler.model.node import NodePhase
from hostler.model.reason import Reason
from hostler.model.replica import ReplicaPhase


def explain_replica(
    fleet: Fleet,
    replica_id: ReplicaId,
    node_id: NodeId | None = None,
    given: Sequence[Alteration] = (),
    *,
    now_ms: int | None = None,
) -> Explanation | None:
    """Explain a replica; with a node, also all about that for it.

    Args:
        fleet: With no step open.
        replica_id: The replica.
        node_id: The node to be told about.
        given: Facts that are taken to be different where the node is looked at.
        now_ms: The present instant; that of the last step unless told.

    Raises:
        Rejected: An alteration does not go with what there is.
    """
    now_ms = fleet.now_ms if now_ms is None else max(now_ms, fleet.now_ms)
    replica = fleet.replicas.get(replica_id)
    if replica is None:
        return None
    allocation = _live(fleet, replica)
    present = why_pending(fleet, replica, now_ms=now_ms)
    trace = fleet.traces.get(replica_id)
    commands = () if allocation is None else _allocation_commands(fleet, allocation)
    return Explanation(
        about=replica_id,
        kind="replica",
        phase=replica.phase.value,
        summary=_replica_summary(fleet, replica, allocation, present),
        reasons=tuple(_replica_reasons(fleet, replica, allocation, present)),
        next_at_ms=next_at_ms(fleet, replica),
        commands=commands,
        decisions=() if trace is None else trace.decisions,
        fit=None if node_id is None else fit_of(fleet, replica, node_id, given, now_ms=now_ms),
    )


def _live(fleet: Fleet, replica: Replica) -> Allocation | None:
    keys = fleet.index.allocations_by_replica.keys(replica.replica_id)
    return fleet.allocations[keys[0]] if keys else None


def _replica_summary(
    fleet: Fleet, replica: Replica, allocation: Allocation | None, present: Waiting | None
) -> str:
    if allocation is not None:
        return _allocation_summary(fleet, allocation)
    if present is not None:
        return FITS_NOW if present.reason is None else SENTENCES[present.reason][0]
    match replica.phase:
        case ReplicaPhase.BACKING_OFF:
            when = format_instant(replica.retry_at_ms or 0)
            return f"It is placed again at {when}: {replica.reason_detail}."
        case ReplicaPhase.STOPPING | ReplicaPhase.ENDED:
            return "It is no longer desired."
        case _:
            return "It waits." if replica.reason is None else SENTENCES[replica.reason][0]


def _replica_reasons(
    fleet: Fleet, replica: Replica, allocation: Allocation | None, present: Waiting | None
) -> Iterator[Why]:
    if present is not None and present.reason is not None:
        since = replica.waiting_since_at_ms or replica.phase_since_at_ms
        yield why("placing", present.reason, present.detail, since)
    elif present is None and replica.reason is not None:
        yield why("record", replica.reason, replica.reason_detail, replica.phase_since_at_ms)
    preempted = replica.preempted
    if preempted is not None:
        told = f"{preempted.allocation_id} ended so that {preempted.by} has its room"
        yield why("record", Reason.PREEMPTED, told, preempted.at_ms)
    if allocation is not None:
        yield from _allocation_reasons(fleet, allocation)
    yield from notes(fleet, replica.replica_id)


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
        if (waits := why_in_line(fleet, replica)) is not None
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
