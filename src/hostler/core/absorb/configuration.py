"""A configuration is applied, whole or not at all; and the process has begun."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import asdict, replace

from hostler.core import outbox
from hostler.core.absorb.configuration_check import problems_of
from hostler.core.absorb.services import keep_services
from hostler.core.absorb.time_zones import keep_time_zones
from hostler.core.events import EventKind
from hostler.core.inputs import ApplyConfiguration, ServerStarted
from hostler.core.replies import Refused
from hostler.core.services import services_of, with_promises
from hostler.core.txn import Txn
from hostler.model import (
    Allocation,
    AuditEntry,
    Budget,
    Counter,
    Lease,
    Meter,
    Node,
    Pool,
    ProviderState,
    Replica,
    Settings,
)
from hostler.model.node import Health, NodePhase
from hostler.model.record import COPIED, FLOOR, NODE_PREFIX


def apply_configuration(txn: Txn, one: ApplyConfiguration) -> None:
    """Make the configuration the desired one, or name every problem with it and change nothing."""
    problems = problems_of(txn.fleet, one)
    if problems:
        txn.reply(
            one.request_id,
            Refused(
                code="configuration_invalid",
                message=f"the configuration has {len(problems)} problem(s)",
                problems=tuple(problems),
            ),
        )
        return
    is_changed = _put_settings(txn, one)
    is_changed |= keep_time_zones(txn, one.time_zones)
    is_changed |= keep_services(txn, one)
    services = services_of(txn.fleet)
    for pool in sorted(one.pools, key=lambda each: each.name):
        is_changed |= _put_pool(txn, with_promises(pool, services))
    named = {pool.name for pool in one.pools}
    for pool in list(txn.fleet.pools.in_order()):
        if pool.name not in named:
            is_changed |= _put_pool(txn, replace(pool, is_enabled=False, is_configured=False))
    is_changed |= _put_budgets(txn, one.budgets)
    txn.accept(one.request_id, Settings.KEY, is_repeat=not is_changed)
    if not is_changed:
        return
    for table in (txn.fleet.cooldowns, txn.fleet.breakers):
        for failed in list(table.in_order()):
            txn.remove(failed)  # whoever changed the configuration may have mended it
    for kind in (Node, Lease, Allocation, Replica, Meter, AuditEntry):
        txn.retime(kind.KIND)
    txn.touch_all()
    txn.emit(EventKind.CONFIGURATION_APPLIED, {"principal": one.principal})


def _put_settings(txn: Txn, one: ApplyConfiguration) -> bool:
    """Write the settings; the fleet's id is given once and stays."""
    before = txn.fleet.settings
    fleet_id = one.fleet_id if before is None else before.fleet_id
    generation = 1 if before is None else before.generation
    wanted = Settings(fleet_id=fleet_id, generation=generation, **asdict(one.settings))
    if wanted == before:
        return False
    txn.put(replace(wanted, generation=generation + (before is not None)))
    if before is not None and wanted.fence_after_ms < before.fence_after_ms:
        _remember_fence_limit(txn, before.fence_after_ms)
    return True


def _remember_fence_limit(txn: Txn, fence_after_ms: int) -> None:
    """Note that agents have authority by a longer limit until they have taken in the new one."""
    for node in list(txn.fleet.nodes.in_order()):
        if node.phase is not NodePhase.RETIRED and node.fence_after_ms < fence_after_ms:
            txn.change(node, fence_after_ms=fence_after_ms)


def _put_budgets(txn: Txn, budgets: Iterable[Budget]) -> bool:
    """Make these the budgets; what people were told of one that stays is not told again."""
    wanted = {budget.name: budget for budget in budgets}
    is_changed = False
    for before in list(txn.fleet.budgets.in_order()):
        if before.name not in wanted:
            txn.remove(before)
            is_changed = True
    for name in sorted(wanted):
        known = txn.fleet.budgets.get(name)
        budget = wanted[name]
        if known is not None:
            as_before = replace(budget, warned=known.warned, held_back_at_ms=known.held_back_at_ms)
            is_changed |= as_before != known
            budget = replace(budget, warned=known.warned)
        is_changed |= known is None
        txn.put(budget)  # whatever it held back is tried again
    return is_changed


def _put_pool(txn: Txn, pool: Pool) -> bool:
    before = txn.fleet.pools.get(pool.name)
    generation = 1 if before is None else before.generation
    closing = None if before is None else before.closing  # the controller's own
    wanted = replace(pool, generation=generation, closing=closing)
    if wanted == before:
        return False
    txn.put(replace(wanted, generation=generation + (before is not None)))
    return True


def server_started(txn: Txn, one: ServerStarted) -> None:
    """Begin to listen: silence counts from now, everything unsettled is sent again.

    A node that was suspect stays so until it is heard, but none may become so, or be lost, before
    we have listened to it for as long as the settings say.
    """
    keep_time_zones(txn, one.time_zones)
    fleet = txn.fleet
    is_restored = _leave_ids_out(txn)
    for phase in (NodePhase.READY, NodePhase.DRAINING):
        for key in fleet.index.nodes_by_phase.keys(phase.value):
            node = fleet.nodes[key]
            if node.health is not Health.LOST:
                txn.change(node, silent_since_at_ms=txn.now_ms, is_link_down=False)
    for provider in list(fleet.tables[ProviderState.KIND].in_order()):
        txn.change(provider, next_list_at_ms=txn.now_ms)
    outbox.make_all_due(txn)
    txn.touch_all()
    restored = {"is_restored": True} if is_restored else {}
    txn.emit(EventKind.SERVER_STARTED, {}, version=one.version, **restored)


def _leave_ids_out(txn: Txn) -> bool:
    """Give out no id again that another server may have, when this store is a copy of its.

    It went on after the backup, and machines, agents and clients may know what it named since. So
    all numbers go on from the present instant: nobody has given out one for each millisecond.
    """
    counters = txn.fleet.counters
    copied = counters.get(COPIED)
    if copied is None:
        return False
    txn.remove(copied)
    for name in sorted({*counters.rows, FLOOR, NODE_PREFIX} - {COPIED}):
        counter = counters.get(name) or Counter(name=name, value=0)
        value = max(counter.value, txn.now_ms)
        gaps = (*counter.gaps, (counter.value, value)) if name == NODE_PREFIX else ()
        txn.put(replace(counter, value=value, gaps=gaps))
    return True
