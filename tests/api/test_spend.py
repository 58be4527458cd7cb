"""Spend over HTTP and in metrics: on a real engine, with an agent on a priced tier."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.api.lab import Lab, running
from tests.eventually import eventually_async

PRICED = """
fleet: {spend: {currency: EUR}}
pools:
  runners:
    tiers: [{name: fixed, kind: fixed, price_per_hour: 3600000 EUR}]
budgets:
  runners:
    pool: runners
    daily: {cost: "900000000", lease_time: 100000h}
    concurrent: {leases: 1}
"""


@pytest.fixture
async def priced(tmp_path: Path) -> AsyncIterator[Lab]:
    async with running(tmp_path, config=PRICED) as lab:
        yield lab


async def test_what_runs_is_counted_and_budgets_say_what_is_left(priced: Lab) -> None:
    await priced.agent("runners")
    async with priced.client() as client, priced.http() as http:
        asked = {"pool": "runners", "key": "k", "timeout_ms": 5_000, "wait_ms": 5_000}
        lease_id = (await http.post("/v1/leases", json=asked)).json()["lease_id"]

        async def has_cost() -> bool:
            rows = await client.spend(by="key,day")
            return bool(rows) and rows[0].cost_micros > 0

        await eventually_async(has_cost)
        assert (await client.lease_view(lease_id)).cost_micros
        (by_pool,) = await client.spend()
        assert (by_pool.pool, by_pool.currency) == ("runners", "EUR")
        assert by_pool.node_ms * 1_000_000 == by_pool.cost_micros  # one euro a millisecond
        lines = {(line.period, line.quantity): line for line in await client.budgets()}
        assert lines["daily", "cost"].used > 0
        assert lines["daily", "lease_time"].reserved > 0
        assert lines["concurrent", "leases"].left == 0
        told = (await http.get("/metrics")).text
        assert 'hostler_spend_total{currency="EUR",offer="",pool="runners",tier="fixed"}' in told
        assert 'hostler_budget_used_ratio{budget="runners",period="concurrent"' in told
        first = await http.get("/v1/budgets?limit=2")
        rest = await http.get(f"/v1/budgets?limit=2&cursor={first.json()['next_cursor']}")
        assert len(first.json()["items"]) == 2
        assert len(rest.json()["items"]) == 1
        for bad in ("by=colour", "since=yesterday", "by=key,offer", "cursor=x"):
            assert (await http.get(f"/v1/spend?{bad}")).status_code == 400
