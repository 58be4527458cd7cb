"""Leasing: gives free slots to those in line, and ends what has run out of time.

Reads:    leases, nodes (free slots), pools, their sizes, cooldowns and breakers (why there is no
          more), budgets.
Writes:   leases (waiting to held or refused, held to settled), nodes (counts, through holds),
          budgets (that they hold somebody back).
Sends:    EndLease (through holds).
Keeps:    INV-LEASE-1 (no more leases than slots), INV-LEASE-5 (who waits is told why),
          INV-LEASE-6 (nobody waits for a pool that is disabled), INV-LEASE-7 (nor who could be
          served).
Waits on: Reason.NO_CAPACITY, Reason.MACHINE_STARTING, Reason.LIMIT_REACHED,
          Reason.OFFER_COOLING_DOWN, Reason.KEY_CAP_REACHED, Reason.AFFINITY_WAIT,
          Reason.BUDGET_SPENT, Reason.BUDGET_IN_USE.

New requests join the line and the line is served in order, so nobody is overtaken who could have
had the slot (G-07). A lease that no free slot fits, or whose key is at its cap, is passed over and
holds nobody up. Machines that the line lacks are asked for by sizing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from hostler.base.units import format_duration
from hostler.core import limits
from hostler.core.budgets import hold_back, lease_refusal, pools_about
from hostler.core.events import EventKind
from hostler.core.holds import grant_lease, settle_lease
from hostler.core.provider_pauses import pools_of_cooldown
from hostler.core.slot_choice import slot_for
from hostler.core.slots import could_ever_fit, may_serve_again
from hostler.core.surplus import has_idle_surplus
from hostler.core.txn import Txn
from hostler.core.waiting import why_waiting
from hostler.model import Breaker, Budget, Cooldown, Lease, Node, Pool, Sizes
from hostler.model.lease import LeaseOutcome, LeasePhase, LeaseTrigger
from hostler.model.reason import Reason

READS: Final = (Lease, Node, Pool, Sizes, Cooldown, Breaker, Budget)


def reconcile(txn: Txn) -> None:
    """End what is over, serve the lines of pools where something changed, tell the rest why."""
    line = txn.fleet.index.leases_waiting
    leases = txn.changed(Lease)
    for lease in leases:
        _tell_time(txn, lease)
    pools = dict.fromkeys(lease.pool for lease in leases)
    nodes = txn.changed(Node)
    pools.update(dict.fromkeys(node.pool for node in nodes))
    if any(line.has_pinned(name) for name in pools):
        for node in nodes:
            if not may_serve_again(node):
                _give_up_node(txn, node)
    for key in (*txn.changed_keys(Cooldown), *txn.changed_keys(Breaker)):
        pools.update(dict.fromkeys(pools_of_cooldown(txn.fleet, key)))
    for name in txn.changed_keys(Pool):
        pools[name] = None
        _refuse_unsatisfiable(txn, name)
    pools.update(dict.fromkeys(txn.changed_keys(Sizes)))
    pools.update(dict.fromkeys(pools_about(txn.fleet, txn.changed_keys(Budget))))
    lines = [name for name in pools if line.count(name)]
    for name in lines:
        _serve(txn, name)
    if any(line.count(name) for name in lines):
        _line_up(txn, leases)
        for name in lines:
            _explain(txn, name)


# -- time ------------------------------------------------------------------------------------


def _tell_time(txn: Txn, lease: Lease) -> None:
    """End a lease whose time has run out before anybody is served."""
    if lease.phase is LeasePhase.HELD:
        _expire(txn, lease)
    elif lease.phase is LeasePhase.WAITING:
        if lease.wait_deadline_at_ms < txn.now_ms:
            _time_out(txn, lease)
        elif lease.is_pinned:
            _free_of_preference(txn, lease)


def _free_of_preference(txn: Txn, lease: Lease) -> None:
    """Let a lease take any node, once it has waited for the one for as long as it wanted."""
    if not lease.is_affinity_required and (
        lease.requested_at_ms + lease.affinity_wait_ms <= txn.now_ms
    ):
        txn.change(lease, is_pinned=False)


def _give_up_node(txn: Txn, node: Node) -> None:
    """Let those who wait for a node that will serve no more take another, or refuse them."""
    fleet = txn.fleet
    for lease_id in fleet.index.leases_waiting.pinned(node.pool, node.node_id):
        lease = fleet.leases[lease_id]
        if lease.is_affinity_required:
            _refuse(
                txn, lease, Reason.AFFINITY_GONE, f"node {node.node_id} will take no more leases"
            )
        else:
            txn.change(lease, is_pinned=False)


def _expire(txn: Txn, lease: Lease) -> None:
    if not lease.is_acknowledged and (lease.expires_at_ms or 0) <= txn.now_ms:
        detail = f"no heartbeat within {format_duration(lease.ack_ms or 0)} of the grant (ack_ms)"
        settle_lease(txn, lease, LeaseOutcome.UNACKNOWLEDGED, detail)
        return
    if lease.retiring_at_ms is not None and lease.retiring_at_ms <= txn.now_ms:
        detail = f"{lease.node_id} is to go, and its deadline has passed"
        settle_lease(txn, lease, LeaseOutcome.REVOKED, detail)
        return
    if lease.expires_at_ms is not None and lease.expires_at_ms <= txn.now_ms:
        silent_ms = txn.now_ms - (lease.heartbeat_at_ms or 0)
        allowed = format_duration(lease.lease_ms)
        detail = f"no heartbeat for {format_duration(silent_ms)} (lease_ms {allowed})"
    elif lease.ends_at_ms is not None and lease.ends_at_ms <= txn.now_ms:
        held_ms = txn.now_ms - (lease.granted_at_ms or 0)
        detail = (
            f"held for {format_duration(held_ms)}, the longest that the pool allows (lease_ms_max)"
        )
    else:
        return
    settle_lease(txn, lease, LeaseOutcome.EXPIRED, detail)


def _time_out(txn: Txn, lease: Lease) -> None:
    why = why_waiting(txn.fleet, lease)
    waited_ms = txn.now_ms - lease.requested_at_ms
    _refuse(
        txn,
        lease,
        Reason.TIMED_OUT,
        f"after {format_duration(waited_ms)}: {why.reason.value}: {why.detail}",
    )


def _refuse(txn: Txn, lease: Lease, reason: Reason, detail: str) -> None:
    txn.move(lease, LeaseTrigger.REFUSED, reason=reason, reason_detail=detail)
    txn.emit(
        EventKind.LEASE_REFUSED,
        {"lease": lease.lease_id, "pool": lease.pool},
        reason=reason.value,
        detail=detail,
    )


# -- serving ---------------------------------------------------------------------------------


def _serve(txn: Txn, name: str) -> None:
    """Grant for as long as somebody in line fits a free slot."""
    fleet = txn.fleet
    pool = fleet.pools.get(name)
    if pool is None or not pool.is_enabled:
        for lease_id in fleet.index.leases_waiting.keys(name):
            _refuse(
                txn,
                fleet.leases[lease_id],
                Reason.POOL_DISABLED,
                f"pool {name} takes no new work",
            )
        return
    if has_idle_surplus(fleet, pool):
        return  # sizing lets it go within the step: a lowered maximum is kept, whatever the demand
    while _grant_next(txn, pool):
        pass


def _grant_next(txn: Txn, pool: Pool) -> bool:
    """Grant to the first in line for whom there is a slot; say whether there was one."""
    fleet = txn.fleet
    if not fleet.index.nodes_free.count(pool.name):
        return False
    for lease_id in fleet.index.leases_waiting.fronts(pool.name):
        lease = fleet.leases[lease_id]
        node = slot_for(fleet, lease)
        if node is None:
            continue
        refusal = lease_refusal(fleet, pool, lease, node)
        if refusal is not None:
            is_news = hold_back(txn, refusal)
            if lease.reason is not None:
                _tell(txn, lease, refusal.reason)
            if is_news and fleet.budgets[refusal.budget].fairness_key:
                return True  # its key stands aside now, and lets the next one forward
            continue
        ends_at_ms = None if pool.lease_ms_max is None else txn.now_ms + pool.lease_ms_max
        is_last_use = pool.use_count_max is not None and node.use_count + 1 >= pool.use_count_max
        grant_lease(txn, lease, node, ends_at_ms=ends_at_ms, is_last_use=is_last_use)
        return True
    return False


def _refuse_unsatisfiable(txn: Txn, name: str) -> None:
    """Send away those whom the pool, as it is configured now, could never serve."""
    fleet = txn.fleet
    pool = fleet.pools.get(name)
    if pool is None or not fleet.index.leases_waiting.count(name):
        return
    hopeless = [
        requirement
        for requirement in fleet.index.leases_waiting.requirements(name)
        # Labels come and go by an operator's word: who waits for them goes on waiting.
        if not could_ever_fit(fleet, pool, replace(requirement, node_labels=()))
    ]
    if not hopeless:
        return
    for lease_id in fleet.index.leases_waiting.keys(name):
        lease = fleet.leases[lease_id]
        if lease.requirement in hopeless:
            _refuse(
                txn, lease, Reason.UNSATISFIABLE, f"no node or offer of pool {name} could serve it"
            )


# -- the rest --------------------------------------------------------------------------------


def _line_up(txn: Txn, leases: Sequence[Lease]) -> None:
    """Refuse those who may wait no longer or for whom the line is too long; tell the others why.

    A lease without a reason is new here. When the line is too long the newest go.
    """
    fleet = txn.fleet
    staying = []
    for each in leases:
        lease = fleet.leases[each.lease_id]
        if lease.phase is not LeasePhase.WAITING:
            continue
        if lease.wait_deadline_at_ms <= txn.now_ms:
            _time_out(txn, lease)
        elif lease.reason is None:
            staying.append(lease)
    for lease in reversed(staying):
        longest = fleet.pools[lease.pool].waiting_count_max
        if fleet.index.leases_waiting.count(lease.pool) > longest:
            _refuse(txn, lease, Reason.OVERLOADED, f"{longest} wait already (waiting_count_max)")
            continue
        why = why_waiting(fleet, lease)
        txn.change(lease, reason=why.reason)
        txn.emit(
            EventKind.LEASE_WAITING,
            {"lease": lease.lease_id, "pool": lease.pool},
            reason=why.reason.value,
            detail=why.detail,
        )


def _explain(txn: Txn, name: str) -> None:
    """Keep the reasons true of those who are next in line."""
    for lease_id in txn.fleet.index.leases_waiting.fronts(name)[: limits.FRONTS_EXPLAINED_MAX]:
        lease = txn.fleet.leases[lease_id]
        why = why_waiting(txn.fleet, lease)
        _tell(txn, lease, why.reason)


def _tell(txn: Txn, lease: Lease, reason: Reason) -> None:
    """Write down why a lease waits, if that is news.

    What a budget has left depends on other pools too, whose steps do not look at this line. A scan
    finds such a reason changed and nothing missed, so it leaves the record as it is; whoever asks
    is told the present state.
    """
    of_money = (Reason.BUDGET_SPENT, Reason.BUDGET_IN_USE)
    if txn.is_scan and (lease.reason in of_money or reason in of_money):
        return
    if lease.reason is not reason:
        txn.change(lease, reason=reason)
