"""Planning: what would follow from submitting a bundle, without doing it.

A plan is a real step that is then dropped, so it cannot differ from what applying would decide on
the same revision; the fleet is left exactly as it was. Whatever else is due at that instant takes
part in the step, as it would in the next one anyway, but is not told.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from hostler.base.ids import NodeId, ReplicaId
from hostler.core.collisions import Collision, collisions_of
from hostler.core.delta import Delta
from hostler.core.fleet import Fleet
from hostler.core.inputs import SubmitBundle
from hostler.core.placement.trace import summary
from hostler.core.protection import Protection, protection_of
from hostler.core.replies import Refused, Result
from hostler.core.step import step
from hostler.model import Node, Replica
from hostler.model.reason import Reason
from hostler.model.replica import ReplicaPhase
from hostler.model.trace import Decision


class Change(StrEnum):
    """What submitting would change about a replica or a bundle."""

    CREATE = "create"
    UPDATE = "update"
    KEEP = "keep"
    REMOVE = "remove"


class Outcome(StrEnum):
    """Where a replica would stand after the first step."""

    PLACED = "placed"
    """On a node that exists, or is on its way already."""
    LAUNCHING = "launching"
    """On a machine that is asked for because of it."""
    WAITING = "waiting"
    """Without a place; the reason says why."""
    GONE = "gone"
    """Ended, or on its way to that."""


class PlannedReplica(msgspec.Struct, frozen=True, kw_only=True):
    """One replica and what would become of it."""

    replica_id: ReplicaId
    role: str
    change: Change
    """An updated one that runs is replaced when its turn comes."""
    outcome: Outcome
    node_id: NodeId | None = None
    """The node that it is or would be on; one that does not exist yet would get this id."""
    pool: str = ""
    tier: str = ""
    offer: str = ""
    """Of the machine that would be launched."""
    degraded_by: tuple[str, ...] = ()
    reason: Reason | None = None
    reason_detail: str = ""
    trace: str = ""
    """Each tier looked at, in one line."""
    decision: Decision | None = None
    """The same in full, where a decision would be made."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What would follow from submitting a bundle to a fleet as of one revision."""

    bundle_id: str
    revision: int
    result: Result
    """What the submission would be answered with."""
    change: Change
    replicas: tuple[PlannedReplica, ...] = ()
    launch_count: int = 0
    """Machines that would be asked for because of it."""
    launch_microusd_per_hour: int = 0
    """What they would cost."""
    protection: Protection | None = None
    """Which single losses it would then not survive."""
    collisions: tuple[Collision, ...] = ()
    """When the timetable asks for more than the pool will have."""


def plan(fleet: Fleet, submission: SubmitBundle, now_ms: int) -> Plan:
    """Return what submitting would do now; the fleet must have no step open, and none is left."""
    revision = fleet.revision
    bundle_id = submission.bundle_id
    known = fleet.bundles.get(bundle_id)
    before = _replicas_of(fleet, bundle_id)
    delta = step(fleet, [submission], now_ms)
    try:
        (result,) = (r.result for r in delta.replies if r.request_id == submission.request_id)
        if isinstance(result, Refused):
            return Plan(bundle_id=bundle_id, revision=revision, result=result, change=Change.KEEP)
        replicas = _planned_replicas(fleet, delta, bundle_id, before)
        ids = [each.node_id for each in replicas if each.outcome is Outcome.LAUNCHING]
        new = [fleet.nodes[node_id] for node_id in dict.fromkeys(ids) if node_id is not None]
        changed = Change.CREATE if known is None else Change.UPDATE
        return Plan(
            bundle_id=bundle_id,
            revision=revision,
            result=result,
            change=Change.KEEP if result.is_repeat else changed,
            replicas=replicas,
            launch_count=len(new),
            launch_microusd_per_hour=sum(node.price_microusd_per_hour for node in new),
            protection=protection_of(fleet, bundle_id, now_ms),
            collisions=collisions_of(fleet, fleet.bundles[bundle_id]),
        )
    finally:
        fleet.drop(delta)


def _replicas_of(fleet: Fleet, bundle_id: str) -> dict[str, Replica]:
    return {key: fleet.replicas[key] for key in fleet.index.replicas_by_bundle.keys(bundle_id)}


def _planned_replicas(
    fleet: Fleet, delta: Delta, bundle_id: str, before: dict[str, Replica]
) -> tuple[PlannedReplica, ...]:
    bundle = fleet.bundles[bundle_id]
    after = _replicas_of(fleet, bundle_id)
    told = [
        _planned(fleet, delta, replica, before.get(key), bundle.generation)
        for key, replica in after.items()
    ]
    told += [_gone(replica) for key, replica in before.items() if key not in after]
    order = {job.name: number for number, job in enumerate(bundle.jobs)}
    return tuple(sorted(told, key=lambda each: _rank(each, order)))


def _rank(planned: PlannedReplica, order: dict[str, int]) -> tuple[int, str, int]:
    """Return the place of a replica in a plan: in the order of the bundle's jobs, then by index."""
    _, job, index = planned.replica_id.rsplit("/", 2)
    return order.get(job, len(order)), job, int(index)


def _gone(replica: Replica) -> PlannedReplica:
    return PlannedReplica(
        replica_id=replica.replica_id,
        role=replica.role,
        change=Change.REMOVE,
        outcome=Outcome.GONE,
    )


def _planned(
    fleet: Fleet, delta: Delta, replica: Replica, before: Replica | None, generation: int
) -> PlannedReplica:
    if replica.phase is ReplicaPhase.STOPPING:
        return _gone(replica)
    keys = fleet.index.allocations_by_replica.keys(replica.replica_id)
    allocation = fleet.allocations[keys[0]] if keys else None
    node = None if allocation is None else fleet.nodes.get(allocation.node_id)
    decision = _decision(fleet, delta, replica)
    outcome = _outcome(delta, node)
    return PlannedReplica(
        replica_id=replica.replica_id,
        role=replica.role,
        change=_change(replica, before, generation),
        outcome=outcome,
        node_id=None if node is None else node.node_id,
        pool="" if node is None else node.pool,
        tier="" if node is None else node.tier,
        offer=node.offer if node is not None and outcome is Outcome.LAUNCHING else "",
        degraded_by=() if allocation is None else allocation.degraded_by,
        reason=replica.reason,
        reason_detail=replica.reason_detail,
        trace="" if decision is None else summary(decision.attempts),
        decision=decision,
    )


def _change(replica: Replica, before: Replica | None, generation: int) -> Change:
    if before is None:
        return Change.CREATE
    is_same = replica.generation == generation and replica.spec == before.spec
    return Change.KEEP if is_same else Change.UPDATE


def _outcome(delta: Delta, node: Node | None) -> Outcome:
    if node is None:
        return Outcome.WAITING
    name = (Node.KIND, node.node_id)
    is_new = name in delta.changes and delta.before[name] is None
    return Outcome.LAUNCHING if is_new else Outcome.PLACED


def _decision(fleet: Fleet, delta: Delta, replica: Replica) -> Decision | None:
    """Return the latest decision about a replica, if it was made in this step."""
    trace = fleet.traces.get(replica.replica_id)
    if trace is None or not trace.decisions or (trace.KIND, trace.key) not in delta.changes:
        return None
    return trace.decisions[-1]
