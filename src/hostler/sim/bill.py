"""The cloud's own bill against our books: to the millisecond, for machines that we heard of."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from hostler.core.fleet import Fleet
from hostler.core.spend_index import machine_scopes
from hostler.model import Node
from hostler.model.spend import SpendBy, Stretch
from hostler.sim.cloud import Cloud


def books_problems(
    cloud: Cloud,
    fleet: Fleet,
    named: Collection[str],
    nameless: Iterable[Node],
    now_ms: int,
    clock_jumped_ms: int = 0,
) -> Iterator[str]:
    """Return what our books say too much or too little, once all that was said has arrived.

    A machine that no record ever named, since every word of it was lost until it had ended by
    itself, may be on the bill only; and the record that stood for it, whose agent may have spoken,
    may be wrong by all that it booked. By as much as the server's clock has jumped, it may be wrong
    about each machine.
    """
    billed: dict[tuple[str, str], int] = {}
    unnamed: dict[tuple[str, str], int] = {}
    slack: dict[tuple[str, str], int] = {}
    for machine in cloud.machines.values():
        place = machine.pool, machine.tier
        slack[place] = slack.get(place, 0) + clock_jumped_ms
        ended_at_ms = now_ms if machine.gone_at_ms is None else machine.gone_at_ms
        lifetime_ms = ended_at_ms - machine.born_at_ms
        billed[place] = billed.get(place, 0) + lifetime_ms
        if machine.machine_id not in named:
            unnamed[place] = unnamed.get(place, 0) + lifetime_ms
    for node in nameless:
        place = node.pool, node.tier
        booked_ms = (node.metered_until_ms or 0) - (node.metered_from_ms or 0)
        slack[place] = slack.get(place, 0) + booked_ms
    index = fleet.index.spend
    for (pool, tier), bill_ms in sorted(billed.items()):
        scope = machine_scopes(pool, tier)[-1]
        running = index.running.get(scope)
        booked_ms = index.used(scope, SpendBy.OFFER, Stretch.TOTAL, 0).node_ms
        booked_ms += 0 if running is None else running.node_ms(now_ms)
        most_ms = bill_ms + slack[pool, tier]
        if not bill_ms - slack[pool, tier] - unnamed.get((pool, tier), 0) <= booked_ms <= most_ms:
            yield f"machines of {pool}/{tier} are billed {bill_ms} ms, our books say {booked_ms}"
