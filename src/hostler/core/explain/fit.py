"""Fit: whether one named node would do for a replica, in full.

If not: every check that fails, and the smallest changes after which none does. If so: how it
compares with the place that the replica has, or would get. A replica that has a place is looked at
as if it had none, so that it does not stand in its own way.
"""

from __future__ import annotations

from collections.abc import Sequence

from hostler.base.ids import NodeId
from hostler.core.explain.alterations import Alteration
from hostler.core.explain.answer import Comparison, Fit, check_of
from hostler.core.explain.supposing import decided, demand_in, supposing
from hostler.core.explain.ways import refusals_in, ways_of
from hostler.core.fleet import Fleet
from hostler.core.keys import tier_key
from hostler.core.placement.demand import Demand
from hostler.core.placement.feasible import Place, refusal
from hostler.core.placement.score import PARTS, packed, scored
from hostler.core.txn import Txn
from hostler.model import Node, Replica


def fit_of(
    fleet: Fleet,
    replica: Replica,
    node_id: NodeId,
    given: Sequence[Alteration] = (),
    *,
    now_ms: int,
) -> Fit:
    """Say everything about one node for one replica, with some facts taken to be different.

    Raises:
        Rejected: An alteration does not go with what there is.
    """
    current = _current(fleet, replica)
    with supposing(fleet, replica, given, now_ms=now_ms) as txn:
        demand = demand_in(txn, replica.replica_id)
        node = txn.fleet.nodes.get(node_id)
        if demand is None or node is None:
            return Fit(node_id=node_id)
        place = txn.fleet.index.places.of(txn.fleet, node_id)
        checks = tuple(
            check_of(reason, demand, place)
            for reason in refusals_in(txn, replica.replica_id, node_id)
        )
        if not checks:
            return Fit(node_id=node_id, comparison=_compared(txn, demand, node, current))
    ways = ways_of(fleet, replica, node_id, given, now_ms=now_ms)
    return Fit(node_id=node_id, checks=checks, ways=ways)


def _current(fleet: Fleet, replica: Replica) -> NodeId | None:
    keys = fleet.index.allocations_by_replica.keys(replica.replica_id)
    return fleet.allocations[keys[-1]].node_id if keys else None


def _compared(txn: Txn, demand: Demand, node: Node, current: NodeId | None) -> Comparison:
    score = _score(txn, demand, node)
    if node.node_id == current:
        return Comparison(
            other_node_id=None, score=score, decided_by="", text="It is the place that it has."
        )
    other = txn.fleet.nodes.get(current)
    if other is not None and refusal(demand, _place(txn, other)) is None:
        return _against(txn, demand, node, other, f"It has its place on {other.node_id}")
    verdict = decided(txn, demand)
    option = verdict.option
    if option is None or (option.place is not None and option.place.node == node):
        text = f"It would be chosen: {verdict.rule}."
        return Comparison(other_node_id=None, score=score, decided_by="", text=text)
    if option.place is None:
        offer = "" if option.offer is None else f" ({option.offer.name})"
        where = tier_key(option.pool.name, option.tier.name)
        text = f"A new machine in {where}{offer} would be chosen: {verdict.rule}."
        return Comparison(other_node_id=None, score=score, decided_by="rule", text=text)
    other = option.place.node
    return _against(txn, demand, node, other, f"{other.node_id} would be chosen: {verdict.rule}")


def _against(txn: Txn, demand: Demand, node: Node, other: Node, told: str) -> Comparison:
    score, other_score = _score(txn, demand, node), _score(txn, demand, other)
    if tier_key(node.pool, node.tier) != tier_key(other.pool, other.tier):
        here, there = tier_key(node.pool, node.tier), tier_key(other.pool, other.tier)
        comes = "before" if _rank(txn, demand, other) < _rank(txn, demand, node) else "after"
        return Comparison(
            other_node_id=other.node_id,
            score=score,
            decided_by="tier_order",
            text=f"{told}; its tier {there} comes {comes} {here}.",
        )
    part = _deciding(score, other_score)
    if part is None:
        how = "the scores are equal, and the lower id goes first"
        return Comparison(
            other_node_id=other.node_id,
            score=score,
            other_score=other_score,
            decided_by="node_id",
            text=f"{told}; {how}.",
        )
    mine, theirs = score[part], other_score[part]
    worse = "more" if mine > theirs else "less, so it would win today"
    return Comparison(
        other_node_id=other.node_id,
        score=score,
        other_score=other_score,
        decided_by=PARTS[part],
        text=f"{told}; {node.node_id} has a {PARTS[part]} of {mine} against {theirs}: {worse}.",
    )


def _score(txn: Txn, demand: Demand, node: Node) -> tuple[int, ...]:
    places = txn.fleet.index.places
    market = places.in_tier(txn.fleet, node.pool, node.tier).market(places.mix)
    return scored(demand, places.of(txn.fleet, node.node_id), market).parts


def _place(txn: Txn, node: Node) -> Place:
    return txn.fleet.index.places.of(txn.fleet, node.node_id)


def _rank(txn: Txn, demand: Demand, node: Node) -> tuple[int, int]:
    """Return where a node's tier stands in the walk."""
    pool = txn.fleet.pools.get(node.pool)
    tiers = () if pool is None else tuple(tier.name for tier in pool.tiers)
    pool_rank = demand.pools.index(node.pool) if node.pool in demand.pools else len(demand.pools)
    return pool_rank, tiers.index(node.tier) if node.tier in tiers else len(tiers)


def _deciding(score: tuple[int, ...], other: tuple[int, ...]) -> int | None:
    """Return the first part that makes a difference, in the grain in which parts are compared."""
    for part in range(len(score)):
        if packed((*score[:part], other[part], *score[part + 1 :])) != packed(score):
            return part
    return None
