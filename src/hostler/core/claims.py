"""Claims: room that is made on a node by ending lower work, and kept until it is taken or given up.

A claim is a part of its replica's record, so a restart loses none, and it holds room on its node
for everybody but its replica. Whoever gives way is told why, in its own trace too.
"""

from __future__ import annotations

from hostler.base.ids import ReplicaId
from hostler.core import holds
from hostler.core.events import EventKind
from hostler.core.limits import CLAIM_MARGIN_MS
from hostler.core.placement.preempt import Candidate, Sacrifice
from hostler.core.placement.trace import with_decision
from hostler.core.txn import Txn
from hostler.model import Node, Replica
from hostler.model.allocation import AllocationPhase
from hostler.model.reason import Reason
from hostler.model.replica import Claim, Preempted, ReplicaPhase
from hostler.model.settings import Retention
from hostler.model.shape import Requirement
from hostler.model.trace import Decision, Victim

_RETENTION = Retention()


def make(txn: Txn, replica: Replica, requirement: Requirement, sacrifice: Sacrifice) -> Replica:
    """Keep the room on a node for a replica, and ask what is in its way to end."""
    for key in sacrifice.lower_claims:
        end(txn, txn.fleet.replicas[key], f"{replica.replica_id} ({replica.band}) needs the room")
    node = sacrifice.place.node
    victims = tuple(_victim(each) for each in sacrifice.victims)
    told = ", ".join(f"{each.replica_id} ({each.band})" for each in victims)
    claim = Claim(
        node_id=node.node_id,
        requirement=requirement,
        at_ms=txn.now_ms,
        until_at_ms=_until_at_ms(txn, node, sacrifice),
        allocation_ids=tuple(each.allocation_id for each in victims),
    )
    replica = txn.change(
        replica,
        claim=claim,
        reason=Reason.ROOM_CLAIMED,
        reason_detail=f"{told or 'what is there'} ends on {node.node_id}",
    )
    txn.emit(
        EventKind.REPLICA_ROOM_CLAIMED,
        {"replica": replica.replica_id, "bundle": replica.bundle_id, "node": node.node_id},
        victims=told,
        until_at_ms=claim.until_at_ms,
    )
    rule = "room is made by the cheapest work of lower bands" if victims else "room comes by itself"
    decision = Decision(
        at_ms=txn.now_ms,
        revision=txn.fleet.revision + 1,
        is_recovery=replica.is_recovery,
        outcome="claimed",
        node_id=node.node_id,
        rule=rule,
        victims=victims,
    )
    _trace(txn, replica.replica_id, decision)
    for candidate in sacrifice.victims:
        _preempt(txn, replica, candidate)
    return replica


def keep(
    txn: Txn, replica: Replica, requirement: Requirement, node: Node, *, until_at_ms: int
) -> Replica:
    """Keep room for a replica that has a place, so that it has another when that one ends."""
    claim = Claim(
        node_id=node.node_id, requirement=requirement, at_ms=txn.now_ms, until_at_ms=until_at_ms
    )
    replica = txn.change(replica, claim=claim)
    txn.emit(
        EventKind.REPLICA_ROOM_CLAIMED,
        {"replica": replica.replica_id, "bundle": replica.bundle_id, "node": node.node_id},
        victims="",
        until_at_ms=until_at_ms,
    )
    decision = Decision(
        at_ms=txn.now_ms,
        revision=txn.fleet.revision + 1,
        is_recovery=False,
        outcome="claimed",
        node_id=node.node_id,
        rule="its copies must not overlap, so its room is kept before it stops",
    )
    _trace(txn, replica.replica_id, decision)
    return replica


def _until_at_ms(txn: Txn, node: Node, sacrifice: Sacrifice) -> int:
    graces = [each.allocation.launch.stop_grace_ms for each in sacrifice.victims]
    for key in txn.fleet.index.allocations_by_node.keys(node.node_id):
        allocation = txn.fleet.allocations[key]
        if allocation.phase is AllocationPhase.STOPPING:
            graces.append(allocation.launch.stop_grace_ms)
    return txn.now_ms + max(graces, default=0) + CLAIM_MARGIN_MS


def _victim(candidate: Candidate) -> Victim:
    allocation = candidate.allocation
    return Victim(
        allocation_id=allocation.allocation_id,
        replica_id=allocation.replica_id,
        band=allocation.band,
        is_primary=candidate.is_primary,
        age_ms=candidate.age_ms,
    )


def _preempt(txn: Txn, by: Replica, candidate: Candidate) -> None:
    allocation = candidate.allocation
    told = f"preempted by {by.replica_id} ({by.band})"
    victim = txn.fleet.replicas.get(allocation.replica_id)
    if victim is not None:
        preempted = Preempted(
            at_ms=txn.now_ms, by=by.replica_id, allocation_id=allocation.allocation_id
        )
        txn.change(victim, preempted=preempted)
        decision = Decision(
            at_ms=txn.now_ms,
            revision=txn.fleet.revision + 1,
            is_recovery=False,
            outcome="preempted",
            node_id=allocation.node_id,
            rule=f"{by.replica_id} ({by.band}) fits nowhere without its room",
        )
        _trace(txn, victim.replica_id, decision)
    txn.emit(
        EventKind.REPLICA_PREEMPTED,
        {
            "replica": allocation.replica_id,
            "bundle": allocation.bundle_id,
            "allocation": allocation.allocation_id,
            "node": allocation.node_id,
        },
        by=by.replica_id,
        band=allocation.band.value,
        by_band=by.band.value,
        grace_ms=allocation.launch.stop_grace_ms,
    )
    holds.request_stop(txn, allocation, told)


def end(txn: Txn, replica: Replica, why: str) -> None:
    """Give up the room that is kept for a replica; whoever waits is looked at for it."""
    claim = replica.claim
    if claim is None:
        return
    txn.change(replica, claim=None)
    txn.touch(Node.KIND, claim.node_id)
    txn.emit(
        EventKind.REPLICA_CLAIM_ENDED,
        {"replica": replica.replica_id, "bundle": replica.bundle_id, "node": claim.node_id},
        why=why,
    )
    bundle = txn.fleet.bundles.get(replica.bundle_id)
    if bundle is not None and bundle.is_gang and replica.phase is ReplicaPhase.PENDING:
        for key in txn.fleet.index.replicas_by_bundle.keys(bundle.bundle_id):
            other = txn.fleet.replicas[key]
            if other.claim is not None and other.phase is ReplicaPhase.PENDING:
                end(txn, other, f"{replica.replica_id} of its gang gets no room: {why}")


def let_go(txn: Txn, replica: Replica) -> Replica:
    """Hold no room any more on the node to which a replica was on its way."""
    if replica.moving_to is None:
        return replica
    txn.touch(Node.KIND, replica.moving_to)
    return txn.change(replica, moving_to=None)


def _trace(txn: Txn, replica_id: ReplicaId, decision: Decision) -> None:
    settings = txn.fleet.settings
    count_max = (_RETENTION if settings is None else settings.retention).decision_count_max
    trace = txn.fleet.traces.get(replica_id)
    txn.put(with_decision(trace, replica_id, decision, count_max))
