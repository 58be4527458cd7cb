"""Repaying: moves replicas whose place breaks a rule to a better one, once that is there to stay.

Reads:    replicas, allocations, nodes.
Writes:   replicas (what their place breaks, when they are looked at again, their move), allocations
          (by what they are degraded; asked to stop).
Sends:    StopAllocation, through `holds`.
Keeps:    INV-DEBT-1.
Waits on: NO_BETTER_PLACE, BETTER_PLACE_SETTLING, MOVED_LATELY, SIBLINGS_UNSETTLED, LAST_READY_COPY.

A replica in debt is looked at now and then, ever less often while nothing changes, and soon after
something has opened. It moves when a place that breaks fewer rules has been there for `settle_ms`:
by a second copy where the job allows one, else with the room on the better node held for it. Copies
of a bundle move one at a time, and who has moved lately waits, for twice as long each time, so that
nobody is sent to and fro.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import replace

from hostler.core import claims, disruption, growth, holds, migration
from hostler.core.events import EventKind
from hostler.core.limits import (
    DEBT_LOOK_MS_MAX,
    DEBT_LOOK_MS_MIN,
    DEBT_MOVES_KEPT_MAX,
    DEBTS_PER_STEP_MAX,
)
from hostler.core.placement.demand import Demand, demand_of
from hostler.core.placement.feasible import standing_of
from hostler.core.placement.resilience import (
    INTERRUPTIBLE_PRIMARY,
    NODE,
    DomainRule,
    broken_node_rules,
    broken_rules,
)
from hostler.core.placement.walk import Option, decide
from hostler.core.txn import Txn
from hostler.model import Allocation, Bundle, Node, Replica
from hostler.model.allocation import AllocationPhase
from hostler.model.pool import Offer, Pool, Tier
from hostler.model.reason import Reason
from hostler.model.replica import Debt, MigrationCause, ReplicaPhase
from hostler.model.settings import RepayLimits

READS: Final = (Replica, Allocation, Node)

_DAY_MS: Final = 86_400_000
_UNSETTLED: Final = (ReplicaPhase.PENDING, ReplicaPhase.BACKING_OFF)
_DEFAULTS: Final = RepayLimits()


def reconcile(txn: Txn) -> None:
    """Keep account of what places break, and repay what can be repaid."""
    keys = dict.fromkeys(replica.replica_id for replica in txn.changed(Replica))
    keys.update(dict.fromkeys(each.replica_id for each in txn.changed(Allocation)))
    for key in keys:
        replica = txn.fleet.replicas.get(key)
        if replica is not None:
            _keep_account(txn, replica)
    if not txn.fleet.index.replicas_in_debt.buckets():
        return
    if _has_opened(txn):
        _look_sooner(txn)
    for key in keys:
        replica = txn.fleet.replicas.get(key)
        debt = None if replica is None else replica.debt
        if replica is not None and debt is not None and debt.look_at_ms <= txn.now_ms:
            _look(txn, replica, debt)


# -- the account ---------------------------------------------------------------------------------


def _keep_account(txn: Txn, replica: Replica) -> None:
    place = _place_of(txn, replica)
    changes: dict[str, Any] = {}
    if not _is_on_its_way(replica, place):
        replica = claims.let_go(txn, replica)
    debt = replica.debt
    rules = () if place is None else _owed(place.degraded_by)
    if not rules and debt is not None:
        changes["debt"] = None
        txn.clear_note(replica.replica_id)
    elif rules and debt is None:
        look_at_ms = txn.now_ms + DEBT_LOOK_MS_MIN
        changes["debt"] = Debt(rules=rules, since_at_ms=txn.now_ms, look_at_ms=look_at_ms)
    elif debt is not None and debt.rules != rules:
        changes["debt"] = replace(debt, rules=rules)
    if changes:
        txn.change(replica, **changes)


def _place_of(txn: Txn, replica: Replica) -> Allocation | None:
    place = txn.fleet.allocations.get(replica.place_id)
    is_placed = replica.phase is ReplicaPhase.PLACED and place is not None and place.is_live
    return place if is_placed else None


def _is_on_its_way(replica: Replica, place: Allocation | None) -> bool:
    is_leaving = place is not None and place.phase is AllocationPhase.STOPPING
    return is_leaving or replica.phase is ReplicaPhase.PENDING


def _owed(rules: tuple[str, ...]) -> tuple[str, ...]:
    # A primary on capacity that may be taken back is what the bundle allows: said, and not owed.
    return tuple(rule for rule in rules if rule != INTERRUPTIBLE_PRIMARY)


def _has_opened(txn: Txn) -> bool:
    """Say whether room has come: a node that takes work now, or an end on one."""
    for allocation in txn.changed(Allocation):
        if not allocation.is_live:
            had = txn.fleet.committed(Allocation.KIND, allocation.allocation_id)
            if isinstance(had, Allocation) and had.is_live:
                return True
    for node in txn.changed(Node):
        if not standing_of(node):
            before = txn.fleet.committed(Node.KIND, node.node_id)
            if not isinstance(before, Node) or standing_of(before):
                return True
    return False


def _look_sooner(txn: Txn) -> None:
    """Bring forward who would be looked at last; a bounded number, since more opens later."""
    soon_at_ms = txn.now_ms + DEBT_LOOK_MS_MIN
    for _ in range(DEBTS_PER_STEP_MAX):
        key = txn.fleet.index.replicas_in_debt.first("all")
        replica = txn.fleet.replicas.get(key)
        if replica is None or replica.debt is None or replica.debt.look_at_ms <= soon_at_ms:
            return
        txn.change(replica, debt=replace(replica.debt, look_at_ms=soon_at_ms, look_count=0))


# -- repaying ------------------------------------------------------------------------------------


def _look(txn: Txn, replica: Replica, debt: Debt) -> None:
    bundle = txn.fleet.bundles.get(replica.bundle_id)
    job = None if bundle is None else bundle.job(replica.job)
    place = _place_of(txn, replica)
    is_leaving = place is None or place.phase is AllocationPhase.STOPPING
    if (
        bundle is None
        or job is None
        or place is None
        or is_leaving
        or replica.migration is not None
    ):
        _look_again(txn, replica, debt, None, DEBT_LOOK_MS_MIN)
        return
    demand = demand_of(txn.fleet, bundle, job, replica, txn.now_ms)
    broken = _broken_by(txn, demand, place)
    if not broken:
        allowed = tuple(rule for rule in place.degraded_by if rule == INTERRUPTIBLE_PRIMARY)
        txn.change(place, degraded_by=allowed)
        txn.change(replica, debt=None)
        txn.clear_note(replica.replica_id)
        return
    better = _better(txn, demand, place, len(broken))
    if better is None:
        resting_ms = min(DEBT_LOOK_MS_MIN << min(debt.look_count, 16), DEBT_LOOK_MS_MAX)
        rested = replace(debt, better_since_at_ms=None, look_count=debt.look_count + 1)
        _look_again(txn, replica, rested, Reason.NO_BETTER_PLACE, resting_ms)
        return
    since_at_ms = debt.better_since_at_ms
    settled_at_ms = _limits(txn).settle_ms + (txn.now_ms if since_at_ms is None else since_at_ms)
    if txn.now_ms < settled_at_ms:
        seen = replace(debt, better_since_at_ms=settled_at_ms - _limits(txn).settle_ms)
        # Looked at all along: what comes and goes in between begins anew.
        wait_ms = min(settled_at_ms - txn.now_ms, DEBT_LOOK_MS_MIN)
        _look_again(txn, replica, seen, Reason.BETTER_PLACE_SETTLING, wait_ms)
        return
    hindrance = _hindrance(txn, bundle, replica, place) or _move(
        txn, replica, place, better, len(broken)
    )
    moving = txn.fleet.replicas[replica.replica_id]
    _look_again(txn, moving, debt, hindrance, DEBT_LOOK_MS_MIN)


def _broken_by(txn: Txn, demand: Demand, place: Allocation) -> list[Reason]:
    here = txn.fleet.index.places.of(txn.fleet, place.node_id).domains
    return [
        reason
        for is_required in (True, False)
        for reason in (
            *broken_rules(demand.rules, here, is_required=is_required),
            *broken_node_rules(demand.node_rules, here, is_required=is_required),
        )
    ]


def _better(txn: Txn, demand: Demand, place: Allocation, broken_count: int) -> Option | None:
    """Return a place that breaks fewer rules than the present one."""
    here = frozenset({place.node_id})
    left = DomainRule(NODE, Reason.SPREAD_NODE, is_required=True, refused=here)
    asked = replace(
        demand, rules=(left, *demand.rules), broken_count_max=broken_count - 1, avoided=frozenset()
    )

    def obstacle(pool: Pool, tier: Tier, offer: Offer) -> Reason | None:
        return growth.growth_obstacle(txn, pool, tier, offer)

    return decide(asked, txn.fleet, obstacle).option


def _hindrance(txn: Txn, bundle: Bundle, replica: Replica, place: Allocation) -> Reason | None:
    moves = [at_ms for at_ms in replica.repaid_at_ms if at_ms > txn.now_ms - _DAY_MS]
    if moves and txn.now_ms < moves[-1] + (_limits(txn).spacing_ms << (len(moves) - 1)):
        return Reason.MOVED_LATELY
    for key in txn.fleet.index.replicas_by_bundle.keys(bundle.bundle_id):
        other = txn.fleet.replicas[key]
        theirs = _place_of(txn, other)
        is_unsteady = theirs is not None and theirs.phase is not AllocationPhase.READY
        if other.phase in _UNSETTLED or other.migration is not None or is_unsteady:
            return Reason.SIBLINGS_UNSETTLED
    job = bundle.job(replica.job)
    has_gap = job is None or not job.can_overlap
    if has_gap and _is_last_ready(txn, place):
        return Reason.LAST_READY_COPY
    found = disruption.hindrance(txn, place, MigrationCause.DEBT, has_gap=has_gap)
    return None if found is None else found.reason


def _is_last_ready(txn: Txn, place: Allocation) -> bool:
    """Say whether no other copy of the job is ready: of each one is always left."""
    others = (
        txn.fleet.allocations[key]
        for key in txn.fleet.index.allocations_by_bundle.keys(place.bundle_id)
    )
    return not any(
        each.job == place.job
        and each.replica_id != place.replica_id
        and each.phase is AllocationPhase.READY
        for each in others
    )


def _move(
    txn: Txn, replica: Replica, place: Allocation, better: Option, broken_count: int
) -> Reason | None:
    """Let a replica go to a better place; or say why it cannot be now."""
    moved = (*replica.repaid_at_ms, txn.now_ms)[-DEBT_MOVES_KEPT_MAX:]
    refusal = migration.begin(
        txn,
        replica,
        MigrationCause.DEBT,
        within_ms=_limits(txn).settle_ms,
        broken_count_max=broken_count - 1,
    )
    if refusal is Reason.OVERLAP_FORBIDDEN:
        if better.place is None:
            return Reason.NO_BETTER_PLACE  # a machine that is still to come holds no room
        refusal = None
        txn.change(replica, moving_to=better.place.node.node_id)
        holds.request_stop(txn, place, "a place that breaks fewer rules is free")
    if refusal is None:
        txn.change(txn.fleet.replicas[replica.replica_id], repaid_at_ms=moved)
        txn.emit(
            EventKind.REPLICA_REPAYING,
            {**migration.about(replica, place)},
            rules=", ".join(place.degraded_by),
        )
    return refusal


def _look_again(
    txn: Txn, replica: Replica, debt: Debt, reason: Reason | None, after_ms: int
) -> None:
    """Look later; the reason says why, and there is none for who is on the move."""
    if reason is None:
        txn.clear_note(replica.replica_id)
    else:
        txn.note(replica.replica_id, reason, ", ".join(debt.rules))
    txn.change(replica, debt=replace(debt, look_at_ms=txn.now_ms + after_ms))


def _limits(txn: Txn) -> RepayLimits:
    settings = txn.fleet.settings
    return _DEFAULTS if settings is None else settings.repay
