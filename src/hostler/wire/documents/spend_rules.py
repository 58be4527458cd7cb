"""What must hold of money in `hostler.yaml`: one currency, and budgets that mean something."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Final

from hostler.base.errors import Rejected
from hostler.base.units import currency_of_money, machine_time_ms, money_microusd
from hostler.wire.documents.problem import DocumentProblem
from hostler.wire.documents.spend import PERIODS
from hostler.wire.documents.tree import Plain, child_path

Problems = Iterator[DocumentProblem]

_PARSERS: Final[dict[str, Callable[[str], int]]] = {
    "cost": money_microusd,
    "node_time": machine_time_ms,
    "lease_time": machine_time_ms,
}


def spend_rules(config: Plain) -> Problems:
    """Try all rules on a configuration's plain value, as far as it is sound."""
    if not isinstance(config, dict):
        return
    yield from _one_currency(config)
    budgets = _mapping(config.get("budgets"))
    pools = _mapping(config.get("pools"))
    scopes: dict[tuple[object, ...], str] = {}
    for name, budget in budgets.items():
        path = child_path("budgets", name)
        if not isinstance(budget, dict):
            continue
        yield from _about(budget, path, pools)
        yield from _amounts(budget, path)
        scope = (budget.get("pool"), budget.get("tier"), budget.get("key"))
        if scope in scopes:
            message = f"budget `{scopes[scope]}` is about the same; put both into one"
            yield DocumentProblem(path=path, code="duplicate", message=message)
        scopes.setdefault(scope, name)


def _mapping(found: Plain) -> dict[str, Plain]:
    return found if isinstance(found, dict) else {}


def _about(budget: dict[str, Plain], path: str, pools: dict[str, Plain]) -> Problems:
    pool, tier, key = budget.get("pool"), budget.get("tier"), budget.get("key")
    if isinstance(pool, str) and pool not in pools:
        known = ", ".join(pools) or "none"
        yield _problem(path, "pool", "unknown_pool", f"there is no pool `{pool}`; known: {known}")
    if isinstance(tier, str):
        if pool is None:
            yield _problem(path, "pool", "missing_key", "a tier is one of a pool; name the pool")
        tiers = _mapping(pools.get(str(pool))).get("tiers")
        names = [_mapping(each).get("name") for each in tiers] if isinstance(tiers, list) else []
        if pool in pools and tier not in names:
            told = f"pool `{pool}` has no tier `{tier}`"
            yield _problem(path, "tier", "unknown_tier", told)
        if key is not None:
            yield _problem(path, "tier", "not_here", "a key's leases count in all tiers; remove it")
    for period in (*PERIODS, "concurrent"):
        cap = _mapping(budget.get(period))
        for name in ("nodes", "node_time"):
            if key is not None and name in cap:
                told = "machines are nobody's key; bound `leases` or `lease_time` instead"
                yield _problem(child_path(path, period), name, "not_here", told)
        if isinstance(tier, str) and key is None and "lease_time" in cap:
            told = "leases are counted by pool and key; bound `node_time` of a tier"
            yield _problem(child_path(path, period), "lease_time", "not_here", told)


def _amounts(budget: dict[str, Plain], path: str) -> Problems:
    caps = {each: budget[each] for each in (*PERIODS, "concurrent") if each in budget}
    if not caps:
        told = f"caps nothing; give {', '.join(PERIODS)} or concurrent"
        yield DocumentProblem(path=path, code="empty_budget", message=told)
    for period, cap in caps.items():
        if isinstance(cap, dict) and not any(value is not None for value in cap.values()):
            yield _problem(path, period, "empty_budget", "caps nothing; give an amount")
    for name, parse in _PARSERS.items():
        amounts: list[tuple[str, int]] = []
        for period in PERIODS:
            amount = _amount(_mapping(caps.get(period)).get(name), parse)
            if amount == 0:
                at = child_path(path, period)
                yield _problem(at, name, "too_small", "nothing could ever begin; give more")
            if amount is not None:
                amounts.append((period, amount))
        for (short, low), (long, high) in pairwise(amounts):
            if low > high:
                at, told = (
                    child_path(path, short),
                    f"is more than `{long}` allows, so never reached",
                )
                yield _problem(at, name, "never_reached", told)


def _amount(value: Plain, parse: Callable[[str], int]) -> int | None:
    if value is None:
        return None
    try:
        return parse(str(value))
    except Rejected:
        return None  # it has been told


def _one_currency(config: dict[str, Plain]) -> Problems:
    spend = _mapping(_mapping(config.get("fleet")).get("spend"))
    wanted = spend.get("currency", "USD")
    for path, text in _prices(config):
        found = currency_of_money(text)
        if found and found != wanted:
            told = f"is in {found}, but the fleet counts in {wanted} (fleet.spend.currency)"
            yield DocumentProblem(path=path, code="currency_mixed", message=told)


def _prices(config: dict[str, Plain]) -> Iterator[tuple[str, str]]:
    for name, pool in _mapping(config.get("pools")).items():
        tiers = _mapping(pool).get("tiers")
        for number, tier in enumerate(tiers if isinstance(tiers, list) else []):
            at = f"{child_path(child_path('pools', name), 'tiers')}[{number}]"
            yield from _money(tier, "price_per_hour", at)
            offers = _mapping(tier).get("offers")
            for index, offer in enumerate(offers if isinstance(offers, list) else []):
                yield from _money(offer, "price_per_hour", f"{child_path(at, 'offers')}[{index}]")
    for name, budget in _mapping(config.get("budgets")).items():
        for period in (*PERIODS, "concurrent"):
            at = child_path(child_path("budgets", name), period)
            for field in ("cost", "cost_per_hour"):
                yield from _money(_mapping(budget).get(period), field, at)


def _money(holder: Plain, field: str, at: str) -> Iterator[tuple[str, str]]:
    value = _mapping(holder).get(field)
    if isinstance(value, str):
        yield child_path(at, field), value


def _problem(path: str, field: str, code: str, message: str) -> DocumentProblem:
    return DocumentProblem(path=child_path(path, field), code=code, message=message)
