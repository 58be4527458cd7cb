"""Maintenance as arithmetic: when a plan next holds, which nodes it means, and when each closes."""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Iterator

from hostler.core import timetable
from hostler.core.fleet import Fleet
from hostler.core.replies import Problem
from hostler.model import Maintenance, Node, Pool
from hostler.model.maintenance import MaintenancePlan
from hostler.model.node import Origin

LEAD_MS_MAX = 86_400_000
"""A day: emptying a node takes minutes, and a closed node serves nobody."""

ADDED_COUNT_MAX = 1_000
"""Plans that operators may have added: one for each node of a large fleet, a few times over. All
are looked at whenever one comes near."""


def coming_of(
    fleet: Fleet, plan: MaintenancePlan, known: Maintenance | None, now_ms: int
) -> Maintenance:
    """Work out the coming of a plan that holds, or else the next one."""
    is_same = known is not None and known.plan == plan
    since_at_ms = known.since_at_ms if known is not None and is_same else now_ms
    added = None if known is None else known.added
    base = Maintenance(name=plan.name, plan=plan, added=added, since_at_ms=since_at_ms)
    span = timetable.next_span(fleet, plan.timetable, now_ms)
    if span is None:
        return base
    from_at_ms = max(span.from_at_ms, 0)
    if known is not None and is_same and known.to_at_ms == span.to_at_ms and known.from_at_ms:
        from_at_ms = known.from_at_ms  # of windows that touch, only what is left is found
    closings = sorted(
        {closes_at_ms(pool, plan, from_at_ms) for pool in pools_of(fleet, plan)}
        | {from_at_ms - plan.lead_ms}
    )
    ahead = [at_ms for at_ms in closings if at_ms > now_ms]
    return Maintenance(
        name=plan.name,
        plan=plan,
        added=added,
        since_at_ms=since_at_ms,
        from_at_ms=from_at_ms,
        to_at_ms=span.to_at_ms,
        is_near=closings[0] <= now_ms,
        look_at_ms=min((*ahead, span.to_at_ms)),
    )


def pools_of(fleet: Fleet, plan: MaintenancePlan) -> Iterator[Pool]:
    """Give the pools in which a plan may mean nodes."""
    for name in plan.pools or sorted(fleet.pools.rows):
        pool = fleet.pools.get(name)
        if pool is not None:
            yield pool


def closes_at_ms(pool: Pool | None, plan: MaintenancePlan, from_at_ms: int) -> int:
    """Return from when on a node takes no more leases: none may be longer than what is left.

    Where leases have no longest time they come until the node is emptied, and are told then.
    """
    longest_ms = None if pool is None else pool.lease_ms_max
    return from_at_ms - max(plan.lead_ms, longest_ms or 0)


def means(fleet: Fleet, plan: MaintenancePlan, node: Node) -> bool:
    """Say whether a plan is about a node."""
    if plan.pools and node.pool not in plan.pools:
        return False
    if plan.node_ids and node.node_id not in plan.node_ids:
        return False
    if not plan.labels:
        return True
    pool = fleet.pools.get(node.pool)
    tier = None if pool is None else pool.tier(node.tier)
    labels = node.labels if tier is None else {**tier.labels, **node.labels}
    return plan.labels.items() <= labels.items()


def is_about(fleet: Fleet, record: Maintenance, node: Node, now_ms: int) -> bool:
    """Say whether a node is to be closed for a maintenance by now.

    A machine that was launched since, and since it is planned, is new: it is not worked on, or
    another one would be launched in its place for as long as there is room.
    """
    if record.from_at_ms is None or not record.is_near or not means(fleet, record.plan, node):
        return False
    closes = closes_at_ms(fleet.pools.get(node.pool), record.plan, record.from_at_ms)
    came_at_ms = node.created_at_ms
    is_late = came_at_ms >= closes and came_at_ms > record.since_at_ms
    is_new = node.origin is Origin.LAUNCHED and is_late
    # What it was closed for before limits of leases were changed, it stays closed for.
    is_closed_for_it = node.maintenance is not None and node.maintenance.name == record.name
    return closes <= now_ms and not (is_new and not is_closed_for_it)


def configured(fleet: Fleet, name: str) -> MaintenancePlan | None:
    """Return the plan of this name that the configuration has."""
    plans = () if fleet.settings is None else fleet.settings.maintenance
    return next((each for each in plans if each.name == name), None)


def plan_of(fleet: Fleet, name: str) -> MaintenancePlan | None:
    """Return the plan of this name: the configuration's, or one that was added."""
    known = fleet.maintenances.get(name)
    added = known.plan if known is not None and known.added is not None else None
    return configured(fleet, name) or added


def problems_of_maintenance(
    at: str,
    plans: Iterable[MaintenancePlan],
    pools: Iterable[Pool],
    time_zones: Iterable[str],
    added: Container[str],
) -> Iterator[Problem]:
    """Yield what is wrong with the plans of a configuration, with its place."""
    known, names, seen = frozenset(time_zones), {pool.name for pool in pools}, set[str]()
    for number, plan in enumerate(plans):
        path = f"{at}[{number}]"
        if plan.name in seen:
            told = f"another one above is named {plan.name}"
            yield Problem(path=f"{path}.name", code="duplicate", message=told)
        elif plan.name in added:
            told = (
                f"an operator has added one of this name: `hostler maintenance remove {plan.name}`"
            )
            yield Problem(path=f"{path}.name", code="duplicate", message=told)
        seen.add(plan.name)
        yield from problems_of_plan(path, plan, names, known)


def problems_of_plan(
    path: str, plan: MaintenancePlan, pools: Collection[str], time_zones: Container[str]
) -> Iterator[Problem]:
    """Yield what is wrong with one plan as it is asked for, with its place."""
    table = plan.timetable
    dot = f"{path}." if path else ""
    for index, name in enumerate(plan.pools):
        if name not in pools:
            told = f"there is no pool {name!r}; pools are {', '.join(sorted(pools))}"
            yield Problem(path=f"{dot}pools[{index}]", code="unknown_pool", message=told)
    if not (plan.pools or plan.labels or plan.node_ids):
        told = "say which nodes are meant: by pools, labels or nodes"
        yield Problem(path=path, code="missing", message=told)
    if table.time_zone not in time_zones:
        told = f"nothing is known of the time zone {table.time_zone!r}"
        yield Problem(path=f"{dot}time_zone", code="unknown_time_zone", message=told)
    elif not table.windows and None in (table.from_at_ms, table.to_at_ms):
        told = "give windows that recur, or an instant at which it begins and one at which it ends"
        yield Problem(path=path, code="missing", message=told)
    elif not 0 <= (table.from_at_ms or 0) < (table.to_at_ms or timetable.FOR_EVER_MS):
        told = "it must end after it begins"
        yield Problem(path=path, code="bad_order", message=told)
    if not 0 <= plan.lead_ms <= LEAD_MS_MAX:
        told = f"is {plan.lead_ms}, must be from 0 to {LEAD_MS_MAX}"
        yield Problem(path=f"{dot}lead_ms", code="out_of_range", message=told)
