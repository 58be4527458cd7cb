"""Pending: everything that waits, grouped by what it asks for and what it waits for.

Told from the present state, as far as a bound goes: for each group that is shown the most urgent
member is decided about anew, and the decision undone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final

import msgspec

from hostler.core.explain.helping import Help, help_for
from hostler.core.explain.waiting import Waiting, why_pending
from hostler.core.fleet import Fleet
from hostler.core.keys import tier_key
from hostler.core.placement.demand import pools_of
from hostler.core.placement.walk import WAITS
from hostler.core.services import missing_service
from hostler.core.waiting import Why, why_waiting
from hostler.model import Allocation, Lease, Node, Replica
from hostler.model.allocation import AllocationPhase
from hostler.model.node import NodePhase
from hostler.model.pool import Band
from hostler.model.reason import Reason
from hostler.model.replica import ReplicaPhase
from hostler.model.shape import NOTHING_REQUIRED, Requirement

GROUPS_MAX: Final = 100
"""Groups of one kind that are told: each costs a decision, and nobody reads more."""
EXAMPLES_MAX: Final = 3
"""Members of a group that are named."""
LEASES_ASKED_MAX: Final = 256
"""Kinds of waiting leases (requirement, key, wanted node) that are asked about; the rest keep the
reason that they have."""


class PendingGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Some that ask alike and wait for the same."""

    kind: str
    """`replica` or `lease`."""
    phase: str
    pools: tuple[str, ...]
    requirement: Requirement
    band: Band | None
    count: int
    since_at_ms: int
    """Since when the first of them waits."""
    reason: Reason | None
    """What they wait for; `None`: the next step serves them."""
    detail: str
    helps: tuple[str, ...]
    """What capacity would help, tier by tier; empty where capacity is not what they lack."""
    next_at_ms: int | None
    """When they are looked at again, whatever happens."""
    examples: tuple[str, ...]
    """The first of them."""


class Pending(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that waits."""

    replica_count: int
    lease_count: int
    groups: tuple[PendingGroup, ...]
    left_out_count: int
    """Groups beyond those that are told."""


def pending(fleet: Fleet, *, now_ms: int | None = None) -> Pending:
    """Return everything that waits for a place, a slot, a machine, an instant or a person."""
    now_ms = fleet.now_ms if now_ms is None else max(now_ms, fleet.now_ms)
    index = fleet.index
    lines = _lines(fleet)
    groups: list[PendingGroup] = []
    for line in lines[:GROUPS_MAX]:
        groups += _pending_replicas(fleet, index.replicas_pending.keys(line), now_ms)
    groups += _leases(fleet)
    others = [*_booting(fleet), *_held_off(fleet)]
    groups += others[:GROUPS_MAX]
    count_of = index.replicas_by_phase.count
    return Pending(
        replica_count=sum(count_of(phase.value) for phase in _WAITING)
        + index.allocations_by_phase.count(AllocationPhase.RESERVED.value),
        lease_count=sum(index.leases_waiting.count(pool) for pool in fleet.pools.rows),
        groups=tuple(groups),
        left_out_count=len(lines[GROUPS_MAX:]) + len(others[GROUPS_MAX:]),
    )


_WAITING: Final = (ReplicaPhase.PENDING, ReplicaPhase.BACKING_OFF, ReplicaPhase.BROKEN)


# -- replicas without a place --------------------------------------------------------------------


def _lines(fleet: Fleet) -> list[str]:
    """Return the demands of pending replicas, the one with the most urgent member first."""
    line = fleet.index.replicas_pending
    heads = ((line.head(bucket), bucket) for bucket in line.buckets())
    return [bucket for head, bucket in sorted(each for each in heads if each[0] is not None)]


def _pending_replicas(fleet: Fleet, keys: Sequence[str], now_ms: int) -> Iterator[PendingGroup]:
    """Tell one demand apart by what its members wait for."""
    by_reason: dict[Reason | None, list[Replica]] = {}
    for key in keys:
        replica = fleet.replicas[key]
        by_reason.setdefault(replica.reason, []).append(replica)
    merged: dict[tuple[Reason | None, str], tuple[Waiting, list[Replica]]] = {}
    for members in by_reason.values():
        found = why_pending(fleet, members[0], now_ms=now_ms)
        if found is not None:
            _, alike = merged.setdefault((found.reason, found.detail), (found, []))
            alike += members
    for found, members in merged.values():
        members.sort(key=lambda each: fleet.index.replicas_pending.order_of(each.replica_id))
        helps: tuple[Help, ...] = ()
        if found.demand is not None and found.reason is not None:
            helps = help_for(fleet, found.demand, found.attempts, len(members))
        yield _replica_group(fleet, members, found.reason, found.detail, helps)


def _replica_group(
    fleet: Fleet,
    members: Sequence[Replica],
    reason: Reason | None,
    detail: str,
    helps: Iterable[Help] = (),
) -> PendingGroup:
    first = members[0]
    bundle = fleet.bundles.get(first.bundle_id)
    job = None if bundle is None else bundle.job(first.job)
    helps = tuple(helps)
    instants = [each.at_ms for each in helps if each.at_ms is not None]
    instants += [each.until_at_ms + 1 for each in first.avoided if reason in WAITS]
    instants += [each.retry_at_ms for each in members if each.retry_at_ms is not None]
    return PendingGroup(
        kind="replica",
        phase=first.phase.value,
        pools=() if bundle is None else pools_of(bundle),
        requirement=NOTHING_REQUIRED if job is None else job.requirement,
        band=first.band,
        count=len(members),
        since_at_ms=min(_waits_since(each) for each in members),
        reason=reason,
        detail=detail,
        helps=tuple(each.text for each in helps),
        next_at_ms=min((at for at in instants if at > fleet.now_ms), default=None),
        examples=tuple(each.replica_id for each in members[:EXAMPLES_MAX]),
    )


def _waits_since(replica: Replica) -> int:
    if replica.phase is ReplicaPhase.PENDING:
        return replica.waiting_since_at_ms or replica.phase_since_at_ms
    return replica.phase_since_at_ms


# -- leases --------------------------------------------------------------------------------------


def _leases(fleet: Fleet) -> Iterator[PendingGroup]:
    for pool in sorted(fleet.pools.rows):
        keys = fleet.index.leases_waiting.keys(pool)
        asked: dict[tuple[str, str, str | None], Why] = {}
        groups: dict[tuple[str, Reason], list[Lease]] = {}
        told: dict[tuple[str, Reason], Why] = {}
        for key in keys:
            lease = fleet.leases[key]
            text = _requirement_key(lease.requirement)
            name = (text, lease.fairness_key, lease.affinity_node_id)
            why = asked.get(name)
            if why is None and len(asked) < LEASES_ASKED_MAX:
                why = asked[name] = why_waiting(fleet, lease)
            if why is None:
                why = Why(lease.reason or Reason.NO_CAPACITY, lease.reason_detail)
            groups.setdefault((text, why.reason), []).append(lease)
            told.setdefault((text, why.reason), why)
        yield from (
            _lease_group(fleet, members, told[name])
            for name, members in islice(groups.items(), GROUPS_MAX)
        )


def _requirement_key(requirement: Requirement) -> str:
    return "" if requirement == NOTHING_REQUIRED else repr(requirement)


def _lease_group(fleet: Fleet, members: Sequence[Lease], why: Why) -> PendingGroup:
    first = members[0]
    deadlines = [fleet.timers.get(Lease.KIND, each.lease_id) for each in members]
    return PendingGroup(
        kind="lease",
        phase=first.phase.value,
        pools=(first.pool,),
        requirement=first.requirement,
        band=None,
        count=len(members),
        since_at_ms=min(each.requested_at_ms for each in members),
        reason=why.reason,
        detail=why.detail,
        helps=(),
        next_at_ms=min((at for at in deadlines if at is not None), default=None),
        examples=tuple(each.lease_id for each in members[:EXAMPLES_MAX]),
    )


# -- what waits for a machine, an instant or a person --------------------------------------------


def _booting(fleet: Fleet) -> Iterator[PendingGroup]:
    """Give the replicas that have room where something is not ready: the machine, or a service."""
    groups: dict[tuple[str, str, str, str], list[Allocation]] = {}
    for key in fleet.index.allocations_by_phase.keys(AllocationPhase.RESERVED.value):
        allocation = fleet.allocations[key]
        node = fleet.nodes[allocation.node_id]
        where = tier_key(node.pool, node.tier)
        is_there = node.phase is NodePhase.READY
        missing = missing_service(node, allocation.requirement) if is_there else None
        name = (where, node.phase.value, missing or "", _requirement_key(allocation.requirement))
        groups.setdefault(name, []).append(allocation)
    for (where, phase, missing, _), members in sorted(groups.items()):
        nodes = {each.node_id: fleet.nodes[each.node_id] for each in members}
        ready = [fleet.timers.get(Node.KIND, node_id) for node_id in nodes]
        is_coming = phase in (NodePhase.REQUESTED, NodePhase.STARTING)
        reason = Reason.MACHINE_STARTING if is_coming else Reason.NODE_NOT_RUNNING
        detail = f"room is kept on {_some(nodes)} of {where}, which is {phase}"
        if missing:
            reason = Reason.SERVICE_NOT_READY
            detail = f"service {missing} is not ready on {_some(nodes)}"
        first = members[0]
        yield PendingGroup(
            kind="replica",
            phase=ReplicaPhase.PLACED.value,
            pools=(where.partition("/")[0],),
            requirement=first.requirement,
            band=first.band,
            count=len(members),
            since_at_ms=min(each.created_at_ms for each in members),
            reason=reason,
            detail=detail,
            helps=(),
            next_at_ms=min((at for at in ready if at is not None), default=None),
            examples=tuple(each.replica_id for each in members[:EXAMPLES_MAX]),
        )


def _some(nodes: Iterable[str]) -> str:
    ids = sorted(nodes)
    more = len(ids) - EXAMPLES_MAX
    told = ", ".join(ids[:EXAMPLES_MAX])
    return f"{told} and {more} more" if more > 0 else told


def _held_off(fleet: Fleet) -> Iterator[PendingGroup]:
    """Give those that wait for their next try, for a person, or for what their one node lacks."""
    groups: dict[tuple[str, str, str], list[Replica]] = {}
    index = fleet.index
    keys = [
        *index.replicas_by_phase.keys(ReplicaPhase.BACKING_OFF.value),
        *index.replicas_by_phase.keys(ReplicaPhase.BROKEN.value),
    ]
    for bundle_id in index.bundles_of_services.keys("all"):
        # A copy of a node service stands in no line: it has its node, or none at all.
        copies = (fleet.replicas[key] for key in index.replicas_by_bundle.keys(bundle_id))
        keys += [each.replica_id for each in copies if each.phase is ReplicaPhase.PENDING]
    for key in keys:
        replica = fleet.replicas[key]
        name = (replica.phase.value, replica.demand, str(replica.reason))
        groups.setdefault(name, []).append(replica)
    for members in groups.values():
        details = Counter(each.reason_detail for each in members)
        detail, count = details.most_common(1)[0]
        told = detail if count == len(members) else f"{detail} (and others)"
        yield _replica_group(fleet, members, members[0].reason, told)
