"""Consolidating: empties nodes that are little used, one of a pool at a time, so that they can go.

Reads:    pools, nodes, allocations, replicas, consolidations.
Writes:   consolidations, nodes (cordoned for as long as it takes), replicas (their move),
          allocations (the second place of each).
Sends:    StartAllocation, through `assigning`.
Keeps:    INV-CONSOLIDATION-1 (a node that is being emptied takes nothing new),
          INV-CONSOLIDATION-2 (who was moved is left alone for the pool's spacing).
Waits on: CONSOLIDATING, and of `core.consolidation` whatever it says.

A node is begun with only when each replica on it has a place on another node that is used already,
or is of our own: nothing is launched for it, no rule is broken by it that was not before, and no
job is stopped first. That is tried whole, and taken back; then the replicas move one after another
as far as budgets allow. What comes in between ends it: what has not moved stays, and the node takes
work again. An empty node is an idle one: when it goes is sizing's, so that nothing is let go that
the pool would launch again. A look follows a change, and looks without one are ever rarer.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import Final

from msgspec.structs import replace

from hostler.core import assigning, migration
from hostler.core.consolidation import (
    CORDON_REASON,
    Obstacle,
    gain_micros,
    is_candidate,
    is_ours,
    live_on,
    moves_of,
    obstacle,
)
from hostler.core.disruption import hindrance
from hostler.core.events import EventKind
from hostler.core.leaving import PATIENCE_MS
from hostler.core.limits import (
    CONSOLIDATION_LOOKED_AT_MAX,
    CONSOLIDATION_MS_MAX,
    CONSOLIDATION_PLANS_MAX,
    LEFT_ALONE_DOUBLINGS_MAX,
    LEFT_ALONE_KEPT_MAX,
    LEFT_ALONE_MS_MAX,
    LEFT_ALONE_MS_MIN,
)
from hostler.core.placement.demand import demand_of
from hostler.core.placement.walk import Option, Verdict, alternatives
from hostler.core.services import missing_service
from hostler.core.txn import Txn
from hostler.model import Allocation, Bundle, Consolidation, Node, Pool, Replica
from hostler.model.allocation import AllocationPhase
from hostler.model.bundle import Job
from hostler.model.consolidation import ConsolidationPolicy, LeftAlone
from hostler.model.node import Cordon, Health, NodePhase, Origin
from hostler.model.pool import Offer, Reliability, Tier
from hostler.model.reason import Reason
from hostler.model.replica import Migration, MigrationCause

READS: Final = (Pool, Node, Allocation, Replica, Consolidation)

_NEXT_PART_MS: Final = 1_000
_WHY: Final = "its node is little used, and its machine can go"


def reconcile(txn: Txn) -> None:
    """Go on with what is being emptied, and look for the next where something has changed."""
    for pool in txn.changed(Pool):
        _keep_record(txn, pool)
    records = txn.fleet.consolidations
    if not len(records):
        return
    for record in list(records.in_order()):
        if record.node_id is not None:
            _go_on(txn, record)
    for name in dict.fromkeys(_pools_of_changes(txn)):
        _look_later(txn, records.get(name))
    for record in txn.changed(Consolidation):
        if record.look_at_ms is not None and record.look_at_ms <= txn.now_ms:
            _look(txn, records[record.pool])


def _keep_record(txn: Txn, pool: Pool) -> None:
    """Have a record exactly of the pools that consolidate, and look anew where that changes."""
    record = txn.fleet.consolidations.get(pool.name)
    is_wanted = pool.consolidation is not None and pool.is_enabled
    look_at_ms = txn.now_ms + _policy(pool).settle_ms
    if is_wanted and record is None:
        txn.put(Consolidation(pool=pool.name, look_at_ms=look_at_ms))
    elif is_wanted and record is not None:
        if txn.fleet.is_different(pool):
            txn.change(record, look_at_ms=look_at_ms, left_alone=())
    elif record is not None:
        if record.node_id is not None:
            _end(txn, record, "the pool does not consolidate any more")
        txn.remove(txn.fleet.consolidations[pool.name])


def _policy(pool: Pool) -> ConsolidationPolicy:
    return pool.consolidation or ConsolidationPolicy()


def _pools_of_changes(txn: Txn) -> Iterator[str]:
    """Give the pools of nodes that are different now, or on which something is."""
    for node in txn.changed(Node):
        if txn.fleet.is_different(node):
            yield node.pool
    for allocation in txn.changed(Allocation):
        if txn.fleet.is_different(allocation):
            found = txn.fleet.nodes.get(allocation.node_id)
            if found is not None:
                yield found.pool


def _look_later(txn: Txn, record: Consolidation | None) -> None:
    if record is not None and record.node_id is None and record.look_at_ms is None:
        policy = _policy(txn.fleet.pools[record.pool])
        txn.change(record, look_at_ms=txn.now_ms + policy.settle_ms)


# -- looking ---------------------------------------------------------------------------------------


def _look(txn: Txn, record: Consolidation) -> None:
    """Look for a node that can be emptied: at some of the pool's, and at the others soon after."""
    fleet = txn.fleet
    policy = _policy(fleet.pools[record.pool])
    keys = fleet.index.nodes_by_pool.keys(record.pool)
    begin = bisect_right(keys, record.looked_until)
    part = keys[begin : begin + CONSOLIDATION_LOOKED_AT_MAX]
    is_last = begin + len(part) >= len(keys)
    record = txn.change(
        record,
        looked_until="" if is_last else part[-1],
        moved_at_ms=moves_of(record, policy, txn.now_ms),
        left_alone=tuple(each for each in record.left_alone if each.node_id in fleet.nodes),
    )
    again_at_ms: list[int] = [] if is_last else [txn.now_ms + _NEXT_PART_MS]
    found: list[Node] = []
    for node in (fleet.nodes[key] for key in part):
        if not is_candidate(node):
            continue
        obstructed = obstacle(fleet, policy, node, txn.now_ms)
        if obstructed is None:
            found.append(node)
        elif obstructed.until_at_ms is not None:
            again_at_ms.append(obstructed.until_at_ms)
    found.sort(key=lambda node: (-gain_micros(policy, node), node.allocation_count, node.node_id))
    for node in found[:CONSOLIDATION_PLANS_MAX]:
        stuck = _plan(txn, node)
        if stuck is None:
            _begin(txn, txn.fleet.consolidations[record.pool], node)
            return
        again_at_ms.append(_leave_alone(txn, record.pool, node, stuck))
    if len(found) > CONSOLIDATION_PLANS_MAX:
        again_at_ms.append(txn.now_ms + _NEXT_PART_MS)
    txn.change(txn.fleet.consolidations[record.pool], look_at_ms=min(again_at_ms, default=None))


def _leave_alone(txn: Txn, pool: str, node: Node, stuck: Obstacle) -> int:
    """Remember that a node could not be emptied; return when it is looked at again."""
    record = txn.fleet.consolidations[pool]
    before = [each for each in record.left_alone if each.node_id == node.node_id]
    count = 1 + max((each.count for each in before), default=0)
    pause_ms = max(_policy(txn.fleet.pools[pool]).spacing_ms, LEFT_ALONE_MS_MIN)
    pause_ms = min(pause_ms << min(count - 1, LEFT_ALONE_DOUBLINGS_MAX), LEFT_ALONE_MS_MAX)
    row = LeftAlone(
        node_id=node.node_id,
        reason=stuck.reason,
        detail=stuck.detail,
        since_at_ms=txn.now_ms,
        until_at_ms=txn.now_ms + pause_ms,
        count=count,
    )
    others = [each for each in record.left_alone if each.node_id != node.node_id]
    txn.change(record, left_alone=(*others, row)[-LEFT_ALONE_KEPT_MAX:])
    return row.until_at_ms


def _plan(txn: Txn, node: Node) -> Obstacle | None:
    """Say why a node cannot be emptied now; nothing is done yet."""
    places = live_on(txn.fleet, node)
    for place in places:
        hindered = hindrance(txn, place, MigrationCause.CONSOLIDATION, has_gap=False)
        if hindered is not None:
            return Obstacle(hindered.reason, f"{place.replica_id}: {hindered.detail}")
    mark = txn.mark()
    stuck = next((found for each in places if (found := _move(txn, each)) is not None), None)
    txn.rewind(mark)
    txn.forget_marks()
    return stuck


def _begin(txn: Txn, record: Consolidation, node: Node) -> None:
    cordon = Cordon(by="hostler", reason=CORDON_REASON, at_ms=txn.now_ms, is_passing=True)
    txn.change(node, cordon=cordon)
    record = txn.change(
        record,
        node_id=node.node_id,
        begun_at_ms=txn.now_ms,
        deadline_at_ms=txn.now_ms + CONSOLIDATION_MS_MAX,
        look_at_ms=None,
    )
    txn.emit(
        EventKind.NODE_CONSOLIDATION_STARTED,
        {"node": node.node_id, "pool": node.pool},
        replica_count=node.allocation_count,
        price_microusd_per_hour=node.price_microusd_per_hour,
    )
    _go_on(txn, record)


# -- emptying --------------------------------------------------------------------------------------


def _go_on(txn: Txn, record: Consolidation) -> None:
    """Move what may move from the node that is being emptied, or see that it is over."""
    node = txn.fleet.nodes.get(record.node_id)
    if node is None or not _is_undisturbed(node):
        _end(txn, record, "something else is done with the node")
    elif not node.allocation_count:
        _end(txn, record, None)
    elif node.health is Health.LOST:
        _end(txn, record, "the node is lost")
    elif record.deadline_at_ms <= txn.now_ms:
        _end(txn, record, "it took too long")
    else:
        stuck = _move_on(txn, record, node)
        if stuck is not None:
            _leave_alone(txn, record.pool, node, stuck)
            told = f"{stuck.reason.value}: {stuck.detail}".rstrip(": ")
            _end(txn, txn.fleet.consolidations[record.pool], told)


def _is_undisturbed(node: Node) -> bool:
    is_leaving = node.drain is not None or node.retire_reason is not None
    return node.phase is NodePhase.READY and is_ours(node.cordon) and not is_leaving


def _move_on(txn: Txn, record: Consolidation, node: Node) -> Obstacle | None:
    """Begin with whoever may move now; return why somebody never will."""
    for place in live_on(txn.fleet, node):
        replica = txn.fleet.replicas.get(place.replica_id)
        is_leaving = place.phase is AllocationPhase.STOPPING
        if replica is None or is_leaving or replica.migration is not None:
            continue
        if txn.now_ms < replica.migration_retry_at_ms:
            return Obstacle(Reason.BACKING_OFF, f"the move of {replica.replica_id} failed")
        hindered = hindrance(txn, place, MigrationCause.CONSOLIDATION, has_gap=False)
        if hindered is None:
            stuck = _move(txn, place)
            if stuck is not None:
                return stuck
            _remember(txn, record.pool, txn.fleet.replicas[replica.replica_id])
            txn.clear_note(place.allocation_id)
            continue
        txn.note(place.allocation_id, hindered.reason, hindered.detail)
        if hindered.until_at_ms is not None:
            txn.wake(node, hindered.until_at_ms)
    return None


def _remember(txn: Txn, pool: str, replica: Replica) -> None:
    record = txn.fleet.consolidations[pool]
    txn.change(record, moved_at_ms=(*record.moved_at_ms, txn.now_ms))
    txn.change(replica, consolidated_at_ms=txn.now_ms)


def _end(txn: Txn, record: Consolidation, why: str | None) -> None:
    """Let the node take work again; what has begun to move and is not ready stays."""
    fleet = txn.fleet
    node = fleet.nodes.get(record.node_id)
    policy = _policy(fleet.pools[record.pool])
    txn.change(
        fleet.consolidations[record.pool],
        node_id=None,
        look_at_ms=txn.now_ms + policy.settle_ms,
    )
    if node is None:
        return
    is_taken_over = node.drain is not None or node.retire_reason is not None
    for place in () if is_taken_over else live_on(fleet, node):
        txn.clear_note(place.allocation_id)
        replica = fleet.replicas.get(place.replica_id)
        moving = None if replica is None else replica.migration
        if (
            replica is not None
            and moving is not None
            and moving.cause is MigrationCause.CONSOLIDATION
            and place.phase is not AllocationPhase.STOPPING
        ):
            migration.cancel(txn, replica, why or "its node is emptied no more")
    if is_ours(node.cordon):
        txn.change(node, cordon=None)
    about = {"node": node.node_id, "pool": node.pool}
    if why is None:
        txn.emit(EventKind.NODE_CONSOLIDATED, about, took_ms=txn.now_ms - record.begun_at_ms)
    else:
        txn.emit(EventKind.NODE_CONSOLIDATION_ENDED, about, why=why)


# -- one move --------------------------------------------------------------------------------------


def _move(txn: Txn, place: Allocation) -> Obstacle | None:
    """Give a replica its second place on a node that is used already; or say why there is none."""
    fleet = txn.fleet
    replica, bundle = fleet.replicas.get(place.replica_id), fleet.bundles.get(place.bundle_id)
    job = None if bundle is None else bundle.job(place.job)
    if replica is None or bundle is None or job is None:
        return Obstacle(Reason.NOT_SETTLED, f"{place.replica_id} is being deleted")
    verdict = _other_place(txn, place, replica, bundle, job)
    if verdict is None or verdict.option is None:
        return Obstacle(
            Reason.NO_CAPACITY, f"no other node that is in use takes {place.replica_id}"
        )
    refused = migration.begin(txn, replica, MigrationCause.CONSOLIDATION, within_ms=PATIENCE_MS)
    if refused is not None:
        return Obstacle(refused, place.replica_id)
    moving = fleet.replicas[replica.replica_id]
    assigning.assign(txn, moving, bundle, job, verdict, verdict.option)
    return None


def _other_place(
    txn: Txn, place: Allocation, replica: Replica, bundle: Bundle, job: Job
) -> Verdict | None:
    """Return the best place that needs no machine which would not be there anyway."""
    fleet = txn.fleet
    here = fleet.nodes[place.node_id]
    thought_of = Migration(
        cause=MigrationCause.CONSOLIDATION,
        source_id=place.allocation_id,
        requested_at_ms=txn.now_ms,
        deadline_at_ms=txn.now_ms + PATIENCE_MS,
    )
    asked = demand_of(fleet, bundle, job, replace(replica, migration=thought_of), txn.now_ms)
    asked = replace(asked, pools=(here.pool,))
    for verdict in alternatives(asked, fleet, _nothing_new):
        option = verdict.option
        if option is not None and _is_as_good(option, place, here, job):
            return replace(verdict, rule=_WHY)
    return None


def _nothing_new(_pool: Pool, _tier: Tier, _offer: Offer) -> Reason | None:
    return Reason.NO_CAPACITY


def _is_as_good(option: Option, place: Allocation, here: Node, job: Job) -> bool:
    """Say whether a place costs nothing more and is no worse than the one that it is to replace."""
    if option.place is None:
        return False
    node = option.place.node
    is_there_anyway = node.allocation_count > 0 or node.origin is Origin.JOINED
    return (
        is_there_anyway
        and node.phase is NodePhase.READY
        and node.reliability in (here.reliability, Reliability.RELIABLE)
        and set(option.degraded_by) <= set(place.degraded_by)
        and missing_service(node, job.requirement) is None
    )
