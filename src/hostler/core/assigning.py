"""Assigning: carries out what placement decided, and writes down what it could not.

Placement is arithmetic on values; whatever it decides becomes records here and nowhere else, so
that an allocation, its replica, its node and the trace always change together.
"""

from __future__ import annotations

from msgspec import structs

from hostler.base.errors import Defect
from hostler.base.ids import AllocationId
from hostler.core import growth, holds
from hostler.core.events import EventKind
from hostler.core.keys import bundle_phase_key
from hostler.core.placement.places import hold_of, live_on
from hostler.core.placement.room import free_room, pick_devices, shortages
from hostler.core.placement.trace import decision_of, summary, with_decision
from hostler.core.placement.walk import Option, Verdict
from hostler.core.services import missing_service
from hostler.core.txn import Txn
from hostler.model import Allocation, Bundle, Node, Replica
from hostler.model.allocation import AllocationPhase, EndCause, Ended
from hostler.model.bundle import Job
from hostler.model.node import Health, NodePhase
from hostler.model.reason import Reason
from hostler.model.replica import ReplicaPhase, ReplicaTrigger
from hostler.model.settings import Retention

_RETENTION = Retention()


def assign(
    txn: Txn, replica: Replica, bundle: Bundle, job: Job, verdict: Verdict, option: Option
) -> Allocation:
    """Give a replica the place that was chosen, asking for its machine where there is none."""
    if replica.claim is not None:
        txn.touch(Node.KIND, replica.claim.node_id)  # whatever is left there is open to others
        replica = txn.change(replica, claim=None)  # else the room would be kept from itself
    node = _launch(txn, option) if option.place is None else option.place.node
    start_at_ms = _held_until(txn, bundle)
    missing = missing_service(node, job.requirement)
    is_startable = missing is None and start_at_ms is None and _takes_starts(node)
    room = txn.fleet.index.places.of(txn.fleet, node.node_id).room
    allocation = Allocation(
        allocation_id=AllocationId(txn.mint("a")),
        replica_id=replica.replica_id,
        bundle_id=bundle.bundle_id,
        job=job.name,
        replica_index=replica.index,
        role=replica.role,
        band=job.band,
        node_id=node.node_id,
        epoch=replica.epoch + 1,
        requirement=job.requirement,
        launch=job.launch,
        devices=pick_devices(job.requirement, room) if is_startable else {},
        degraded_by=option.degraded_by,
        phase=AllocationPhase.RESERVED,
        phase_since_at_ms=txn.now_ms,
        created_at_ms=txn.now_ms,
        start_at_ms=start_at_ms,
    )
    # A gang starts together; a second copy of one that runs waits for nobody.
    is_started = is_startable and (not bundle.is_gang or replica.migration is not None)
    allocation = holds.reserve(txn, allocation, node, is_started=is_started)
    if missing is not None and not bundle.is_gang:  # a gang's place may be taken back
        txn.note(allocation.allocation_id, Reason.SERVICE_NOT_READY, missing)
    _take_place(txn, replica, allocation, bundle.generation)
    _tell(txn, allocation, node, is_recovery=replica.is_recovery)
    _trace(txn, replica, verdict, allocation)
    return allocation


def _held_until(txn: Txn, bundle: Bundle) -> int | None:
    """Return before when nothing of a bundle is started, if its shift is only being prepared."""
    shift = txn.fleet.shifts.get(bundle.bundle_id)
    if shift is None or not shift.is_on or shift.run_at_ms is None:
        return None
    return shift.run_at_ms if shift.run_at_ms > txn.now_ms else None


def _take_place(txn: Txn, replica: Replica, allocation: Allocation, generation: int) -> None:
    """Let a replica have its place, or in a migration a second one beside it."""
    if replica.migration is None:
        txn.move(
            replica,
            ReplicaTrigger.PLACED,
            epoch=allocation.epoch,
            place_id=allocation.allocation_id,
            generation=generation,
            reason=None,
            reason_detail="",
        )
        return
    found = structs.replace(
        replica.migration, target_id=allocation.allocation_id, reason=None, reason_detail=""
    )
    txn.change(replica, epoch=allocation.epoch, migration=found)


def refuse(txn: Txn, replica: Replica, verdict: Verdict) -> None:
    """Write down why a replica has no place; say it to people only when it is news.

    A scan over everything looks for places that were missed. It finds none, and then the reason
    stands as of the last decision that something brought about.
    """
    reason = verdict.reason
    if reason is None:
        raise Defect("no_reason", "a replica is refused a place for nothing")
    _wake_when_forgiven(txn, replica)
    if replica.claim is not None:
        return  # it waits for room that is being made, and knows it
    known = replica.waiting_reason
    if txn.is_scan and known is not None:
        return
    detail = verdict.detail or summary(verdict.attempts)
    if known is reason:
        if verdict.detail:
            _say_why(txn, replica, reason, detail)
        return
    _say_why(txn, replica, reason, detail)
    txn.emit(
        EventKind.REPLICA_PLACEMENT_FAILED,
        {"replica": replica.replica_id, "bundle": replica.bundle_id},
        reason=reason.value,
        detail=detail,
    )
    _trace(txn, replica, verdict, None)


def hold_back(txn: Txn, replica: Replica) -> None:
    """Let a replica wait because a sibling is broken: nobody of the bundle is placed."""
    if replica.waiting_reason is not Reason.BUNDLE_BROKEN:
        told = "a replica of its bundle is over its restart ceiling"
        _say_why(txn, replica, Reason.BUNDLE_BROKEN, told)


def _say_why(txn: Txn, replica: Replica, reason: Reason, detail: str) -> None:
    if replica.migration is None:
        txn.change(replica, reason=reason, reason_detail=detail)
        return
    waiting = structs.replace(replica.migration, reason=reason, reason_detail=detail)
    txn.change(replica, migration=waiting)


def is_broken(txn: Txn, bundle_id: str) -> bool:
    """Say whether some replica of a bundle is over its restart ceiling."""
    bucket = bundle_phase_key(bundle_id, ReplicaPhase.BROKEN)
    return txn.fleet.index.replicas_by_bundle_phase.count(bucket) > 0


def start_reserved(txn: Txn, node: Node) -> None:
    """Start what waited for a machine, now that its agent is there and says what it has."""
    keys = txn.fleet.index.allocations_reserved.keys(node.node_id)
    if not keys or not _takes_starts(node):
        return
    reserved = [txn.fleet.allocations[key] for key in keys]
    together = [each for each in reserved if _starts_together(txn, each)]
    _start(txn, node, [each for each in reserved if each not in together])
    _start(txn, node, together, is_held_back=True)
    for bundle_id in dict.fromkeys(each.bundle_id for each in together):
        start_gang(txn, txn.fleet.bundles[bundle_id])


def _start(txn: Txn, node: Node, reserved: list[Allocation], *, is_held_back: bool = False) -> None:
    """Start what is reserved on a node whose agent is there; what does not fit there ends.

    What is held back, for others of its gang or for a service, is only looked at.
    """
    taken = [
        hold_of(each)
        for each in live_on(txn.fleet, node.node_id)
        if each.phase is not AllocationPhase.RESERVED
    ]
    for allocation in sorted(reserved, key=lambda a: (a.band.rank, a.allocation_id)):
        if allocation.start_at_ms is not None and allocation.start_at_ms > txn.now_ms:
            taken.append(hold_of(allocation))
            continue
        room = free_room(node.shape, taken)
        # What the agent does not report is taken from the offer, which was looked at before.
        short = [r for r in shortages(allocation.requirement, room) if r is not Reason.NOT_REPORTED]
        if short:
            told = f"the machine has less than its offer promised: {', '.join(short)}"
            ended = Ended(cause=EndCause.START_FAILED, message=told)
            holds.end_allocation(txn, allocation, ended)
            continue
        missing = missing_service(node, allocation.requirement)
        if missing is not None:
            txn.note(allocation.allocation_id, Reason.SERVICE_NOT_READY, missing)
        if missing is not None or is_held_back:
            taken.append(hold_of(allocation))
            continue
        txn.clear_note(allocation.allocation_id)
        devices = pick_devices(allocation.requirement, room)
        taken.append(hold_of(holds.start(txn, allocation, node, devices=devices)))


def start_gang(txn: Txn, bundle: Bundle) -> None:
    """Start what is reserved of a gang, once each member has a node that is there."""
    fleet = txn.fleet
    keys = fleet.index.allocations_by_bundle.keys(bundle.bundle_id)
    live = [fleet.allocations[key] for key in keys]
    reserved = [
        each
        for each in live
        if each.phase is AllocationPhase.RESERVED and _starts_together(txn, each)
    ]
    if len(reserved) == len(live) and any(
        fleet.index.replicas_by_bundle_phase.count(bundle_phase_key(bundle.bundle_id, phase))
        for phase in (ReplicaPhase.PENDING, ReplicaPhase.BACKING_OFF)
    ):
        return  # nothing of it has started, and somebody is missing
    nodes = {each.node_id: fleet.nodes[each.node_id] for each in reserved}
    is_any_missing = any(
        missing_service(nodes[each.node_id], each.requirement) is not None for each in reserved
    )
    if all(map(_takes_starts, nodes.values())) and not is_any_missing:
        for node in nodes.values():
            _start(txn, node, [each for each in reserved if each.node_id == node.node_id])


def _starts_together(txn: Txn, allocation: Allocation) -> bool:
    """Say whether a place waits for those of its gang: a second copy of one that runs does not."""
    bundle = txn.fleet.bundles.get(allocation.bundle_id)
    replica = txn.fleet.replicas.get(allocation.replica_id)
    is_target = replica is not None and replica.migration is not None
    return bundle is not None and bundle.is_gang and not is_target


def _takes_starts(node: Node) -> bool:
    return (
        node.phase is NodePhase.READY
        and node.health is Health.LIVE
        and node.drain is None
        and node.retire_reason is None
    )


def _launch(txn: Txn, option: Option) -> Node:
    if option.offer is None:
        raise Defect("no_offer", "a place is neither a node nor a machine to launch")
    node = growth.request_node(txn, option.pool, option.tier, option.offer)
    if isinstance(node, Reason):
        raise Defect("growth_refused", "a machine that could be had cannot", reason=node.value)
    return node


def _wake_when_forgiven(txn: Txn, replica: Replica) -> None:
    """Have a refused replica looked at when the next node that it avoids is open to it again."""
    until = [each.until_at_ms for each in replica.avoided if each.until_at_ms >= txn.now_ms]
    if until:
        txn.wake(replica, min(until) + 1)


def _tell(txn: Txn, allocation: Allocation, node: Node, *, is_recovery: bool) -> None:
    about = {
        "replica": allocation.replica_id,
        "bundle": allocation.bundle_id,
        "allocation": allocation.allocation_id,
        "node": node.node_id,
        "pool": node.pool,
    }
    txn.emit(
        EventKind.REPLICA_PLACED,
        about,
        role=allocation.role,
        tier=node.tier,
        epoch=allocation.epoch,
        is_recovery=is_recovery,
        degraded_by=", ".join(allocation.degraded_by),
    )
    if node.is_spare:
        txn.emit(EventKind.SPARE_USED, about, role=allocation.role)


def _trace(txn: Txn, replica: Replica, verdict: Verdict, allocation: Allocation | None) -> None:
    decision = decision_of(
        verdict,
        at_ms=txn.now_ms,
        revision=txn.fleet.revision + 1,
        is_recovery=replica.is_recovery,
        node_id=None if allocation is None else allocation.node_id,
        devices=None if allocation is None else allocation.devices,
    )
    settings = txn.fleet.settings
    retention = _RETENTION if settings is None else settings.retention
    trace = txn.fleet.traces.get(replica.replica_id)
    txn.put(with_decision(trace, replica.replica_id, decision, retention.decision_count_max))
