"""Maintaining: empties nodes before a maintenance of theirs, and opens them again after it.

Reads:    settings (the plans), time zones, pools, maintenances (plans that were added), nodes.
Writes:   maintenances (which coming is next; added ones go when they are over), nodes (closed to
          leases, cordoned and drained by the beginning, open again), allocations and leases (that
          they may stay after all).
Sends:    nothing (drain moves the work).
Keeps:    INV-MAINTENANCE-1 (a node that is to be empty takes nothing new), INV-MAINTENANCE-2.
Waits on: nothing (that a node is closed is in its record; what is there waits on drain).

A node closes to leases as long before as one may last, where its pool says how long that is. At
the lead it takes nothing new and is drained by the beginning, as by an operator: what has no other
place stays, unless the plan is to stop it. An operator who uncordons it has it left alone until
this coming is over; an operator's own cordon or drain is not ended. A machine that is launched
meanwhile is not meant.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from hostler.core.events import EventKind
from hostler.core.leaving import stay
from hostler.core.maintenance import coming_of, is_about, plan_of, pools_of
from hostler.core.txn import Txn
from hostler.model import Maintenance, Node, Pool, Settings, TimeZone
from hostler.model.maintenance import NodeMaintenance
from hostler.model.node import Cordon, Drain, NodePhase

READS: Final = (Settings, TimeZone, Pool, Maintenance, Node)

_OPEN: Final = (NodePhase.READY,)


def reconcile(txn: Txn) -> None:
    """Keep the comings of all plans, and the nodes that they are about."""
    fleet = txn.fleet
    settings = fleet.settings
    is_planned = settings is not None and bool(settings.maintenance)
    if not is_planned and not len(fleet.maintenances):
        return
    is_news = any(txn.changed_keys(kind) for kind in (Settings, TimeZone, Pool))
    keys = dict.fromkeys(txn.changed_keys(Node))
    names = [] if settings is None else [plan.name for plan in settings.maintenance]
    for name in sorted({*names, *fleet.maintenances.rows}):
        if is_news or name in txn.changed_keys(Maintenance) or name not in fleet.maintenances:
            keys.update(dict.fromkeys(_keep(txn, name)))
    near = [each for each in fleet.maintenances.in_order() if each.is_near]
    if near or fleet.index.nodes_maintained.count("all"):
        for key in keys:
            node = fleet.nodes.get(key)
            if node is not None:
                _keep_node(txn, node, near)


def _keep(txn: Txn, name: str) -> Iterator[str]:
    """Keep the coming of one plan; give the nodes that may be closed or opened for it."""
    fleet = txn.fleet
    plan, known = plan_of(fleet, name), fleet.maintenances.get(name)
    coming = None if plan is None else coming_of(fleet, plan, known, txn.now_ms)
    if plan is None or coming is None or (coming.added and coming.from_at_ms is None):
        # Nobody wants it any more, or it was added for once and is over.
        if known is not None:
            txn.remove(known)
            yield from fleet.index.nodes_maintained.keys("all")
        return
    was_near = known is not None and known.is_near
    txn.put(coming)
    if was_near:
        yield from fleet.index.nodes_maintained.keys("all")
    if coming.is_near:
        for pool in list(pools_of(fleet, plan)):
            yield from fleet.index.nodes_by_pool.keys(pool.name)


def _keep_node(txn: Txn, node: Node, near: list[Maintenance]) -> None:
    wanted = _wanted(txn, node, near)
    have = node.maintenance
    if wanted is None:
        if have is not None:
            _end(txn, node, have)
    elif have is not None and have.to_at_ms == wanted.to_at_ms and have.is_called_off:
        return
    elif wanted.is_begun and not (have is not None and have.is_begun):
        _begin(txn, node, wanted)
    elif (
        have is None
        or have.is_called_off
        or (have.name, have.to_at_ms)
        != (
            wanted.name,
            wanted.to_at_ms,
        )
    ):
        txn.change(node, maintenance=wanted)


def _wanted(txn: Txn, node: Node, near: list[Maintenance]) -> NodeMaintenance | None:
    """Return what a node is to be closed for now, all that fall together taken as one."""
    if node.phase not in _OPEN or node.retire_reason is not None:
        return None
    found = [each for each in near if is_about(txn.fleet, each, node, txn.now_ms)]
    if not found:
        return None
    found.sort(key=lambda each: (each.from_at_ms or 0, each.name))
    have = node.maintenance
    names = [each.name for each in found]
    return NodeMaintenance(
        # The name that it has stays, as long as that one holds: `is_about` goes by it.
        name=have.name if have is not None and have.name in names else names[0],
        from_at_ms=found[0].from_at_ms or 0,
        to_at_ms=max(each.to_at_ms or 0 for each in found),
        is_begun=any((each.prepare_at_ms or 0) <= txn.now_ms for each in found),
    )


def _begin(txn: Txn, node: Node, wanted: NodeMaintenance) -> None:
    """Let nothing new onto a node, and have what is there leave by the beginning."""
    record = txn.fleet.maintenances[wanted.name]
    plan = record.plan
    told = f"maintenance {wanted.name}"
    # Who hears of it late, has as much time as everybody.
    deadline_at_ms = max(wanted.from_at_ms, min(record.since_at_ms, txn.now_ms) + plan.lead_ms)
    cordon = Cordon(by="hostler", reason=told, at_ms=txn.now_ms, is_passing=True)
    drain = Drain(
        by=told,
        deadline_at_ms=deadline_at_ms,
        is_forced=plan.is_forced,
        is_of_maintenance=True,
    )
    txn.change(
        node,
        maintenance=wanted,
        cordon=node.lasting_cordon or cordon,
        drain=node.drain or drain,
    )
    txn.emit(
        EventKind.NODE_MAINTENANCE_BEGUN,
        {"node": node.node_id, "pool": node.pool, "maintenance": wanted.name},
        from_at_ms=wanted.from_at_ms,
        to_at_ms=wanted.to_at_ms,
        why=plan.reason,
    )


def _end(txn: Txn, node: Node, have: NodeMaintenance) -> None:
    """Open a node again, as far as it was closed for this."""
    is_ours = node.drain is not None and node.drain.is_of_maintenance
    is_going = node.phase not in _OPEN or node.retire_reason is not None
    node = txn.change(
        node,
        maintenance=None,
        drain=None if is_ours and not is_going else node.drain,
        cordon=node.cordon if is_going else node.lasting_cordon,
    )
    if is_ours and not is_going:
        stay(txn, node)
    if have.is_begun:
        txn.emit(
            EventKind.NODE_MAINTENANCE_ENDED,
            {"node": node.node_id, "pool": node.pool, "maintenance": have.name},
            is_called_off=have.is_called_off,
        )
