"""Preempting: has lower work end where a replica fits nowhere, and gives it the room then.

Reads:    replicas, allocations, nodes, bundles, pools, settings.
Writes:   replicas (a claim on room; that they gave way; pending to placed), allocations (asked to
          stop; reserved, starting), traces.
Sends:    StopAllocation and StartAllocation, through `holds`.
Keeps:    INV-CLAIM-1, INV-CLAIM-2.
Waits on: ROOM_CLAIMED.

Placing comes first: only who has been refused, on existing nodes and for new machines alike, is
looked at here, and a launch that is merely put off is waited for. Who was refused is looked at on
all nodes; whoever waits longer only on the nodes on which something changed, or everywhere when
somebody may give way again. A claim ends when its replica has a place, asks for something else, or
the room does not come in time; its victims are not asked for twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from hostler.core import assigning, claims, gang_room, growth
from hostler.core.keys import bundle_phase_key, pending_line
from hostler.core.limits import PREEMPTION_FRONT_MAX
from hostler.core.placement.buy import preferences_broken
from hostler.core.placement.demand import Demand, demand_of, spec_of
from hostler.core.placement.feasible import Place, refusals
from hostler.core.placement.places import hold_of, live_on
from hostler.core.placement.room import free_room
from hostler.core.placement.walk import Option, Verdict, degraded_by
from hostler.core.txn import Txn
from hostler.core.victims import (
    Victims,
    beside_claims,
    is_leaving,
    leaves_until_ms,
    other_claims,
    with_kept_room,
)
from hostler.model import Allocation, Bundle, Node, Pool, Replica, Settings
from hostler.model.bundle import Job
from hostler.model.pool import Offer, Tier
from hostler.model.reason import Reason
from hostler.model.replica import Claim, ReplicaPhase
from hostler.model.settings import Preemption

READS: Final = (Replica, Allocation, Node, Bundle, Pool, Settings)

RULE_CLAIMED: Final = "the room that was made for it"

_NOT_FOR_ROOM: Final = frozenset(
    {
        Reason.ROOM_CLAIMED,
        Reason.BUNDLE_BROKEN,
        Reason.GANG_INCOMPLETE,
        Reason.LAUNCHES_IN_FLIGHT,
        Reason.POOL_NOT_CONFIGURED,
        Reason.POOL_DISABLED,
    }
)
"""Reasons to wait that no end of other work would change, or that pass by themselves soon."""

_DEFAULTS: Final = Preemption()


def reconcile(txn: Txn) -> None:
    """Follow the claims that there are, then see who needs one."""
    if not txn.fleet.replicas.rows:
        return  # a fleet that only lends its nodes
    is_eased = _is_eased(txn)
    fresh = _followed(txn)
    for node_id in _changed_nodes(txn):
        for key in txn.fleet.index.replicas_claiming.keys(node_id):
            _follow_claim(txn, txn.fleet.replicas[key])
    if _policy(txn).bands:
        look = _Look(txn)
        look.everywhere(fresh, is_eased=is_eased)
        look.on_changed()


def _policy(txn: Txn) -> Preemption:
    settings = txn.fleet.settings
    return _DEFAULTS if settings is None else settings.preemption


# -- claims --------------------------------------------------------------------------------------


def _is_eased(txn: Txn) -> bool:
    """Forget who gave way long enough ago; say whether more may give way than before."""
    window_ms = _policy(txn).window_ms
    is_eased = bool(txn.is_scan or txn.changed_keys(Settings) or txn.changed_keys(Pool))
    for key in txn.changed_keys(Replica):
        replica = txn.fleet.replicas.get(key)
        if replica is None:
            before = txn.fleet.committed(Replica.KIND, key)
            is_eased = is_eased or (isinstance(before, Replica) and before.preempted is not None)
        elif replica.preempted is not None and replica.preempted.at_ms + window_ms <= txn.now_ms:
            txn.change(replica, preempted=None)
            is_eased = True
    return is_eased


def _followed(txn: Txn) -> list[Replica]:
    """Follow what became of replicas; return those that wait and were looked at by others."""
    ids: dict[str, None] = {}
    for changed in txn.changed(Replica):
        replica = txn.fleet.replicas[changed.replica_id]
        if replica.phase is ReplicaPhase.PENDING:
            ids[replica.replica_id] = None
        if replica.claim is not None:
            _follow_claim(txn, replica)
    for bundle_id in _bundles_moved(txn):
        bucket = bundle_phase_key(bundle_id, ReplicaPhase.PENDING)
        ids.update(dict.fromkeys(txn.fleet.index.replicas_by_bundle_phase.keys(bucket)))
    return [txn.fleet.replicas[key] for key in ids]


def _bundles_moved(txn: Txn) -> Iterable[str]:
    """Return the bundles of which something ended: rules about siblings may have eased."""
    ended = (a.bundle_id for a in txn.changed(Allocation) if not a.is_live)
    return dict.fromkeys((*ended, *(bundle.bundle_id for bundle in txn.changed(Bundle))))


def _changed_nodes(txn: Txn) -> list[str]:
    ids = dict.fromkeys(txn.changed_keys(Node))
    ids.update(dict.fromkeys(a.node_id for a in txn.changed(Allocation)))
    ids.update(dict.fromkeys(_nodes_of_settled(txn)))
    return [node_id for node_id in ids if node_id in txn.fleet.nodes]


def _nodes_of_settled(txn: Txn) -> Iterator[str]:
    """Give the nodes of those who may be asked to give way again: their move is over."""
    for replica in txn.changed(Replica):
        before = txn.fleet.committed(Replica.KIND, replica.replica_id)
        place = txn.fleet.allocations.get(replica.place_id)
        was_moving = isinstance(before, Replica) and before.migration is not None
        if was_moving and replica.migration is None and place is not None:
            yield place.node_id


def _follow_claim(txn: Txn, replica: Replica) -> None:
    """Take the room that is there, keep waiting for it, or give it up."""
    replica = txn.fleet.replicas[replica.replica_id]
    claim = replica.claim
    if claim is None:
        return
    spec = spec_of(txn.fleet, replica)
    node = txn.fleet.nodes.get(claim.node_id)
    if replica.kept_room is None or spec is None or node is None:
        claims.end(txn, replica, f"the replica is {replica.phase.value}")
        return
    demand = demand_of(txn.fleet, *spec, replica, txn.now_ms)
    place = txn.fleet.index.places.of(txn.fleet, node.node_id)
    if replica.phase is ReplicaPhase.PLACED:
        if claim.until_at_ms <= txn.now_ms or place.standing:
            claims.end(txn, replica, f"{claim.node_id} does not take it in time")
        return
    with_room = with_kept_room(txn, place, replica)
    if next(refusals(demand, with_room), None) is None:
        _take(txn, replica, spec, demand, with_room)
        return
    why = _why_to_end(txn, replica, claim, demand, place)
    if why:
        claims.end(txn, replica, why)
        return
    ends = [leaves_until_ms(each) for each in live_on(txn.fleet, node.node_id)]
    if still_to_come := [at_ms for at_ms in ends if at_ms is not None and at_ms > txn.now_ms]:
        txn.wake(replica, min(still_to_come))  # from then on it counts as staying


def _why_to_end(txn: Txn, replica: Replica, claim: Claim, demand: Demand, place: Place) -> str:
    if claim.until_at_ms <= txn.now_ms:
        return f"{claim.node_id} did not become free in time"
    if claim.requirement != demand.requirement or place.node.pool not in demand.pools:
        return "the replica asks for something else"
    if assigning.is_broken(txn, replica.bundle_id):
        return "its bundle is broken"
    staying = [
        hold_of(each)
        for each in live_on(txn.fleet, place.node.node_id)
        if not is_leaving(txn, each)
    ]
    staying += other_claims(txn, place.node, replica)
    emptied = free_room(place.node.shape, staying)
    refused = next(refusals(demand, msgspec.structs.replace(place, room=emptied)), None)
    return "" if refused is None else f"it would not fit on {claim.node_id} any more: {refused}"


def _take(
    txn: Txn, replica: Replica, spec: tuple[Bundle, Job], demand: Demand, place: Place
) -> None:
    pool = txn.fleet.pools[place.node.pool]
    tier = pool.tier(place.node.tier)
    if tier is None:
        claims.end(txn, replica, "its tier is not configured any more")
        return
    broken = preferences_broken(demand, place.domains)
    told = degraded_by(demand, broken, place.node.reliability)
    option = Option(pool=pool, tier=tier, place=place, degraded_by=told)
    assigning.assign(txn, replica, *spec, Verdict(option=option, rule=RULE_CLAIMED), option)
    if spec[0].is_gang:
        assigning.start_gang(txn, spec[0])


# -- victims -------------------------------------------------------------------------------------


class _Look:
    """One look for room that others could leave, for those who have been refused any."""

    def __init__(self, txn: Txn) -> None:
        self.txn = txn
        self.policy = _policy(txn)
        self.victims = Victims(txn, self.policy)
        self.hopeless: set[str] = set()
        """Lines of which somebody has been looked for in vain in whose stead all others stand."""
        self.gangs: set[str] = set()
        """Those for which room has been looked for."""

    def everywhere(self, fresh: list[Replica], *, is_eased: bool) -> None:
        """Look on all nodes: for whoever was just refused, or for the first of every line.

        Args:
            fresh: Who changed; a scan, to which all have, looks at the front of each line instead.
            is_eased: More may give way than before, so that every line has a chance again.
        """
        pending = self.txn.fleet.index.replicas_pending
        there = [each for each in fresh if pending.has(each.replica_id)]
        if not self.txn.is_scan:
            for replica in sorted(there, key=lambda each: pending.order_of(each.replica_id)):
                self._help(replica, None)
        for line in pending.buckets() if is_eased else ():
            self._go_down(line, PREEMPTION_FRONT_MAX, None)

    def on_changed(self) -> None:
        """Look for all who wait on the nodes on which something changed."""
        changed = _changed_nodes(self.txn)
        if changed and len(self.txn.fleet.allocations):
            for line in self.txn.fleet.index.replicas_pending.buckets():
                self._go_down(line, len(changed) + PREEMPTION_FRONT_MAX, changed)

    def _go_down(self, line: str, count: int, node_ids: list[str] | None) -> None:
        """Help one after the other in a line, until there is no help for those behind either."""
        pending = self.txn.fleet.index.replicas_pending
        head = self.txn.fleet.replicas.get(pending.first(line))
        if head is None or head.band not in self.policy.bands:
            return
        for _, key in pending.front(line, count):
            if line in self.hopeless or not self._help(self.txn.fleet.replicas[key], node_ids):
                return

    def _help(self, replica: Replica, node_ids: list[str] | None) -> bool:
        """Make room for a replica if it needs any and there is a way.

        Returns:
            Whether there may be a way for those behind it in line; what holds it back may be its
            own affair.
        """
        replica = self.txn.fleet.replicas[replica.replica_id]
        line = pending_line(replica)
        if line in self.hopeless:
            return False
        spec = spec_of(self.txn.fleet, replica)
        if spec is None or not self._may(replica, spec[0]):
            return True
        if spec[0].is_gang:
            return self._help_gang(spec[0], node_ids)
        demand = beside_claims(self.txn, *spec, replica)
        found = self.victims.cheapest(demand, replica, node_ids)
        if found is not None:
            replica = claims.make(self.txn, replica, demand.requirement, found)
            _follow_claim(self.txn, replica)
            return True
        if self.victims.is_particular:
            return True
        if node_ids is None:
            self.hopeless.add(line)
        return False

    def _help_gang(self, bundle: Bundle, node_ids: list[str] | None) -> bool:
        """Make room for all of a gang, once in a look; in its lines nobody else stands."""
        if bundle.bundle_id in self.gangs:
            return False
        if node_ids is not None and not gang_room.may_help(
            self.txn, bundle, self.victims, node_ids
        ):
            return False
        self.gangs.add(bundle.bundle_id)
        for replica in gang_room.make(self.txn, bundle, self.victims, self._obstacle):
            _follow_claim(self.txn, replica)
        return False

    def _obstacle(self, pool: Pool, tier: Tier, offer: Offer) -> Reason | None:
        return growth.growth_obstacle(self.txn, pool, tier, offer)

    def _may(self, replica: Replica, bundle: Bundle) -> bool:
        if replica.phase is not ReplicaPhase.PENDING or replica.claim is not None:
            return False
        is_refused = replica.reason not in (None, *_NOT_FOR_ROOM)
        if bundle.is_gang:
            is_refused = replica.reason is Reason.GANG_INCOMPLETE
        if replica.band not in self.policy.bands or not is_refused:
            return False
        if assigning.is_broken(self.txn, replica.bundle_id):
            return False
        from_at_ms = replica.waiting_since_at_ms + self.policy.after_ms
        if from_at_ms > self.txn.now_ms:
            self.txn.wake(replica, from_at_ms)
            return False
        return True
