"""Gangs: bundles that start whole or not at all.

All members that want a place are placed in one scratch: written like any placement and taken back
when one of them has none. The most demanding go first; where that does not work out, other places
are tried for each, up to a bound. Nothing of a gang starts before each member has a node that is
there; what is reserved for one that did not come together is given back. While room is made for
some (`core/gang_room`) the others keep what they have.
"""

from __future__ import annotations

from typing import NamedTuple

from hostler.core import assigning, holds
from hostler.core.keys import bundle_phase_key
from hostler.core.limits import GANG_TRIES_MAX
from hostler.core.placement.demand import Demand, demand_of
from hostler.core.placement.walk import Crowd, Obstacle, Verdict, alternatives, decide
from hostler.core.txn import Txn
from hostler.model import Allocation, Bundle, Replica
from hostler.model.allocation import AllocationPhase
from hostler.model.bundle import Job
from hostler.model.reason import Reason
from hostler.model.replica import ReplicaPhase


class Member(NamedTuple):
    """One replica of a gang that wants a place."""

    replica: Replica
    job: Job


class Lack(NamedTuple):
    """Why a gang has no place."""

    replica_id: str
    """A member without one."""
    verdict: Verdict | None
    """Why it has none; `None`: it cannot be placed yet."""
    told: str


def place(txn: Txn, bundle: Bundle, obstacle: Obstacle, crowd: Crowd) -> Lack | None:
    """Give every member that wants a place one, or none of them; return what is lacking."""
    late = _late_member(txn, bundle)
    if late is not None:
        return _given_back(txn, bundle, Lack(late.replica_id, None, f"{late.replica_id} waits"))
    members = waiting(txn, bundle)
    for member in members:
        if member.replica.claim is not None:
            told = f"room is made for {member.replica.replica_id}"
            return Lack(member.replica.replica_id, None, told)
    mark = txn.mark()
    lack = _greedily(txn, bundle, members, obstacle, crowd)
    if lack is not None:
        txn.rewind(mark)
        alone = next(m for m in members if m.replica.replica_id == lack.replica_id)
        demand = _demand(txn, bundle, alone)
        if decide(demand, txn.fleet, obstacle).option is not None:
            search = _Search(txn, bundle, members, obstacle)
            if search.run(0):
                lack = None
            else:
                txn.rewind(mark)
    txn.forget_marks()
    if lack is not None:
        return _given_back(txn, bundle, lack)
    assigning.start_gang(txn, bundle)
    return None


def waiting(txn: Txn, bundle: Bundle) -> list[Member]:
    """Return the members that want a place, the most demanding first."""
    bucket = bundle_phase_key(bundle.bundle_id, ReplicaPhase.PENDING)
    found: list[Member] = []
    for key in txn.fleet.index.replicas_by_bundle_phase.keys(bucket):
        replica = txn.fleet.replicas[key]
        job = bundle.job(replica.job)
        if job is not None:
            found.append(Member(replica, job))
    return sorted(found, key=_most_demanding_first)


def _most_demanding_first(member: Member) -> tuple[int, int, int, int, str, int]:
    need = member.job.requirement
    devices = sum(request.total_milli for request in need.capabilities)
    job, index = member.replica.job, member.replica.index
    return -devices, -need.capacity, -need.cores_milli, -need.memory_bytes, job, index


def is_late(txn: Txn, bundle: Bundle) -> bool:
    """Say whether some member may not be placed yet, so that none is."""
    return _late_member(txn, bundle) is not None


def _late_member(txn: Txn, bundle: Bundle) -> Replica | None:
    """Return a member that may not be placed yet, while nothing of the gang has started."""
    if has_started(txn, bundle):
        return None
    index = txn.fleet.index
    in_phase = index.replicas_by_bundle_phase.keys
    keys = list(in_phase(bundle_phase_key(bundle.bundle_id, ReplicaPhase.BACKING_OFF)))
    # Whose place has just ended is pending only once recovery has looked at it.
    placed = in_phase(bundle_phase_key(bundle.bundle_id, ReplicaPhase.PLACED))
    keys += [key for key in placed if not index.allocations_by_replica.count(key)]
    return txn.fleet.replicas[keys[0]] if keys else None


def has_started(txn: Txn, bundle: Bundle) -> bool:
    """Say whether something of a gang runs, or was told to."""
    return any(each.phase is not AllocationPhase.RESERVED for each in live(txn, bundle))


def live(txn: Txn, bundle: Bundle) -> list[Allocation]:
    """Return what of a gang has a place."""
    keys = txn.fleet.index.allocations_by_bundle.keys(bundle.bundle_id)
    return [txn.fleet.allocations[key] for key in keys]


def _greedily(
    txn: Txn, bundle: Bundle, members: list[Member], obstacle: Obstacle, crowd: Crowd
) -> Lack | None:
    for number, member in enumerate(members):
        verdict = decide(_demand(txn, bundle, member), txn.fleet, obstacle, crowd)
        if verdict.option is None:
            why = "" if verdict.reason is None else f" ({verdict.reason.value})"
            name = member.replica.replica_id
            told = f"{name} has no place{why}; {number} of {len(members)} have one"
            return Lack(name, verdict, told)
        assigning.assign(txn, member.replica, bundle, member.job, verdict, verdict.option)
    return None


class _Search:
    """Tries other places for members when each taking its best leaves one without any."""

    def __init__(self, txn: Txn, bundle: Bundle, members: list[Member], obstacle: Obstacle) -> None:
        self._txn = txn
        self._bundle = bundle
        self._members = members
        self._obstacle = obstacle
        self._tries_left = GANG_TRIES_MAX

    def run(self, number: int) -> bool:
        """Place the members from one on; on false nothing of them is placed."""
        if number == len(self._members):
            return True
        txn, member = self._txn, self._members[number]
        demand = _demand(txn, self._bundle, member)
        for verdict in alternatives(demand, txn.fleet, self._obstacle):
            if self._tries_left <= 0 or verdict.option is None:
                return False
            self._tries_left -= 1
            mark = txn.mark()
            assigning.assign(txn, member.replica, self._bundle, member.job, verdict, verdict.option)
            if self.run(number + 1):
                return True
            txn.rewind(mark)
        return False


def _demand(txn: Txn, bundle: Bundle, member: Member) -> Demand:
    return demand_of(txn.fleet, bundle, member.job, member.replica, txn.now_ms)


def _given_back(txn: Txn, bundle: Bundle, lack: Lack) -> Lack:
    """Give back what the rest of a gang that never started holds."""
    if not has_started(txn, bundle):
        for allocation in live(txn, bundle):
            holds.request_stop(txn, allocation, "its gang is incomplete")
    return lack


def refusal_of(lack: Lack) -> Verdict:
    """Return what every waiting member is told."""
    attempts = () if lack.verdict is None else lack.verdict.attempts
    return Verdict(reason=Reason.GANG_INCOMPLETE, detail=lack.told, attempts=attempts)
