"""Spending: keeps the books, tells people when a budget runs out, and lets go on what it held back.

Reads:    nodes, leases, meters, budgets, settings.
Writes:   nodes (since when and until when the books have their machines), meters, spend rows,
          budgets (what was told, whether they hold something back).
Sends:    nothing.
Keeps:    INV-SPEND-1 (each meter is the sum of the machines on it), INV-SPEND-2 (a machine that
          may exist is metered, once, from its start to its confirmed end), INV-SPEND-3 (no row is
          below nothing).
Waits on: nothing that people ask about; leasing, sizing and placing wait on Reason.BUDGET_SPENT and
          Reason.BUDGET_IN_USE.

Whether something fits is asked of `core/budgets` by whoever would begin it. What is held back is
tried again when something that counts has ended or turns out to have cost less, a machine has come,
or a period begins anew; until then less and less is left, so there is nothing to try.
"""

from __future__ import annotations

from typing import Final

from hostler.core import books
from hostler.core.budgets import amount_text, quantities, resets_at_ms, usage, window_of
from hostler.core.events import EventKind
from hostler.core.spend_days import day_at
from hostler.core.spend_index import NOTHING_RUNS, Scope, lease_scopes, machine_scopes, scope_of
from hostler.core.txn import Txn
from hostler.model import Budget, Lease, Meter, Node, Settings
from hostler.model.lease import LeasePhase
from hostler.model.node import NodePhase, Origin
from hostler.model.spend import SpendCap

READS: Final = (Node, Lease, Meter, Budget, Settings)

_BOOTING: Final = (NodePhase.REQUESTED, NodePhase.STARTING)


def reconcile(txn: Txn) -> None:
    """Meter what has come and gone, close the day, and look after budgets that are affected."""
    _close_day(txn)
    moved: dict[Scope, None] = {}
    freed: dict[Scope, None] = {}
    for node in txn.changed(Node):
        if _is_to_be_kept(node) and _keep(txn, node):
            moved.update(dict.fromkeys(machine_scopes(node.pool, node.tier)))
            if _has_cost_less(node):
                freed.update(dict.fromkeys(machine_scopes(node.pool, node.tier)))
        if node.phase_since_at_ms == txn.now_ms and _has_moved_on(txn, node):
            freed.update(dict.fromkeys(machine_scopes(node.pool, node.tier)))
    if not len(txn.fleet.budgets):
        return
    for lease in txn.changed(Lease):
        if lease.meter is not None:
            scopes = lease_scopes(lease.pool, lease.meter.tier, lease.fairness_key)
            moved.update(dict.fromkeys(scopes))
            if lease.phase is LeasePhase.SETTLED and _was_held(txn, lease):
                freed.update(dict.fromkeys(scopes))
    _look_after_budgets(txn, moved, freed)


# -- machines ----------------------------------------------------------------------------------


def _has_moved_on(txn: Txn, node: Node) -> bool:
    """Say whether a node has ceased in this step to boot, or to be."""
    before = txn.fleet.committed(Node.KIND, node.node_id)
    return (
        isinstance(before, Node) and before.phase is not node.phase and node.phase not in _BOOTING
    )


def _was_held(txn: Txn, lease: Lease) -> bool:
    before = txn.fleet.committed(Lease.KIND, lease.lease_id)
    return isinstance(before, Lease) and before.phase is LeasePhase.HELD


def _is_to_be_kept(node: Node) -> bool:
    """Say whether the books may not have all of a node's machine; most nodes are only leased."""
    return (
        node.metered_from_ms is None
        or node.metered_from_ms != node.started_at_ms
        or node.phase is NodePhase.RETIRED
    )


def _keep(txn: Txn, node: Node) -> bool:
    """Bring the books in line with a node's machine; say whether they were not."""
    if node.metered_until_ms is not None:
        return False
    if node.phase is NodePhase.RETIRED:
        if node.metered_from_ms is None and node.started_at_ms is None:
            return False
        books.close_machine(txn, node)
        return True
    started_at_ms = node.started_at_ms
    if started_at_ms is None:
        if node.phase is NodePhase.REQUESTED or not _has_machine(node):
            return False
        started_at_ms = node.phase_since_at_ms
    if started_at_ms == node.metered_from_ms:
        return False
    books.keep_machine(txn, node, started_at_ms)
    return True


def _has_cost_less(node: Node) -> bool:
    """Say whether a machine has begun later than the books had it."""
    from_ms, began_ms = node.metered_from_ms, node.started_at_ms
    return from_ms is not None and began_ms is not None and began_ms > from_ms


def _has_machine(node: Node) -> bool:
    """Say whether there surely is one: an agent has spoken, or a provider has named it."""
    return node.machine_id is not None or node.incarnation > 0 or node.origin is Origin.JOINED


def _close_day(txn: Txn) -> None:
    """Write down what ran until midnight, once it has passed; and add up what has grown old."""
    if not txn.changed_keys(Meter) and not txn.changed_keys(Budget):
        return
    today = day_at(txn.fleet, txn.now_ms)
    for meter in txn.changed(Meter):
        if meter.as_of_ms < today.from_at_ms:
            books.settle(txn, meter)
    books.fold(txn)


# -- budgets -----------------------------------------------------------------------------------


def _look_after_budgets(txn: Txn, moved: dict[Scope, None], freed: dict[Scope, None]) -> None:
    index = txn.fleet.index.spend
    names = dict.fromkeys(txn.changed_keys(Budget))
    let_go = set(index.budgets_of(freed))
    names.update(dict.fromkeys(index.budgets_of({**moved, **freed})))
    for name in names:
        budget = txn.fleet.budgets.get(name)
        if budget is None:
            continue
        budget = _warn(txn, budget)
        since_at_ms = budget.held_back_at_ms
        if since_at_ms is not None and (name in let_go or _begins_anew(txn, budget, since_at_ms)):
            budget = txn.change(budget, held_back_at_ms=None)
        _wake(txn, budget)


def _begins_anew(txn: Txn, budget: Budget, since_at_ms: int) -> bool:
    """Say whether a period of a budget has begun since an instant."""
    windows = (window_of(txn.fleet, cap.period, txn.now_ms) for cap in budget.caps)
    return any(begin_at_ms > since_at_ms for _, _, begin_at_ms in windows)


def _warn(txn: Txn, budget: Budget) -> Budget:
    """Tell of each share of a cap once in each of its periods."""
    for cap in budget.caps:
        _, first, _ = window_of(txn.fleet, cap.period, txn.now_ms)
        window, _, told = budget.warned.get(cap.period.value, "").partition("/")
        told_percent = int(told) if window == str(first) else 0
        percent, name, used, limit = _fullest(txn, budget, cap)
        reached = [each for each in budget.warn_percents if told_percent < each <= percent]
        for each in reached:
            txn.emit(
                EventKind.BUDGET_WARNED,
                {"budget": budget.name, **({"pool": budget.pool} if budget.pool else {})},
                percent=each,
                period=cap.period.value,
                quantity=name,
                used=amount_text(txn.fleet, name, used),
                limit=amount_text(txn.fleet, name, limit),
            )
        if reached:
            told_now = {**budget.warned, cap.period.value: f"{first}/{reached[-1]}"}
            budget = txn.change(budget, warned=told_now)
    return budget


def _fullest(txn: Txn, budget: Budget, cap: SpendCap) -> tuple[int, str, int, int]:
    """Return the quantity of a cap that is used most, in percent, with its use and limit."""
    used = usage(txn.fleet, budget, cap.period, txn.now_ms)
    return max(
        (each.used * 100 // max(1, each.limit), each.name, each.used, each.limit)
        for each in quantities(cap, used)
    )


def _wake(txn: Txn, budget: Budget) -> None:
    """Look again when a period ends, or when what runs now reaches the next share of a cap."""
    instants = []
    for cap in budget.caps:
        resets_ms = resets_at_ms(txn.fleet, cap.period, txn.now_ms)
        if resets_ms is not None:
            instants.append(resets_ms)
        instants += _warnings_due(txn, budget, cap)
    if instants:
        txn.wake(budget, min(instants))


def _warnings_due(txn: Txn, budget: Budget, cap: SpendCap) -> list[int]:
    scope = scope_of(budget)
    index = txn.fleet.index.spend
    running = index.running.get(scope, NOTHING_RUNS)
    held = index.held.get(scope)
    held_rate, held_count = (0, 0) if held is None else (held.rate, held.count)
    rates = {
        "cost": held_rate if budget.fairness_key else running.rate,
        "node_time": running.count,
        "lease_time": held_count,
    }
    used = usage(txn.fleet, budget, cap.period, txn.now_ms)
    instants = []
    for each in quantities(cap, used):
        left = [
            each.limit * percent // 100 - each.used
            for percent in budget.warn_percents
            if each.limit * percent // 100 > each.used
        ]
        if left and rates[each.name]:
            instants.append(txn.now_ms + -(-min(left) // rates[each.name]))
    return instants
