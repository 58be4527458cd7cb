"""Money in `hostler.yaml`: prices, budgets, and everything wrong with them at once."""

from hostler.engine.translate import apply_configuration, time_zone_problems
from hostler.model.spend import Period
from hostler.wire.documents import read_config

GOOD = """
fleet: {spend: {currency: EUR, time_zone: Europe/Berlin}}
pools:
  p:
    tiers:
      - {name: own, kind: fixed, price_per_hour: 0.02 EUR}
      - name: burst
        kind: elastic
        provider: local
        node_count_max: 4
        offers: [{name: small, price_per_hour: "0.10"}]
budgets:
  one: {pool: p, tier: burst, daily: {cost: 20 EUR, node_time: 5000h}, concurrent: {nodes: 3}}
  two: {key: nightly, lifetime: {lease_time: 40000h}, warn_at: [50]}
"""

BAD = """
fleet: {spend: {currency: EUR}}
pools:
  p:
    tiers:
      - name: burst
        kind: elastic
        provider: local
        node_count_max: 4
        price_per_hour: "1"
        offers: [{name: small, price_per_hour: 0.10 USD}]
budgets:
  a: {pool: q, daily: {cost: "1"}}
  b: {pool: p, tier: t, daily: {cost: "1"}}
  c: {tier: burst, daily: {cost: "1"}}
  d: {key: k, daily: {node_time: 1h}, concurrent: {nodes: 1}}
  e: {pool: p}
  f: {pool: p, daily: {cost: "2"}, monthly: {cost: 1 GBP}}
  g: {lifetime: {cost: "0"}}
  h: {pool: p, tier: burst, daily: {lease_time: 1h}}
"""


def test_prices_and_budgets_are_read() -> None:
    document = read_config(GOOD).require()
    asked = apply_configuration(document, now_ms=0, request_id="r", principal="t")
    one, two = asked.budgets
    assert (one.pool, one.tier, one.node_count_max) == ("p", "burst", 3)
    assert one.caps[0].period is Period.DAILY
    assert (one.caps[0].cost_micros, one.caps[0].node_ms) == (20_000_000, 5_000 * 3_600_000)
    assert (two.fairness_key, two.warn_percents) == ("nightly", (50,))
    assert two.caps[0].held_ms == 40_000 * 3_600_000
    (own, burst) = asked.pools[0].tiers
    assert own.price_microusd_per_hour == 20_000
    assert burst.offers[0].price_microusd_per_hour == 100_000
    assert asked.settings.spend.currency == "EUR"


def test_everything_wrong_is_told_at_once() -> None:
    told = {(each.path, each.code) for each in read_config(BAD).problems}
    assert told == {
        ("pools.p.tiers[0].price_per_hour", "not_here"),
        ("pools.p.tiers[0].offers[0].price_per_hour", "currency_mixed"),
        ("budgets.a.pool", "unknown_pool"),
        ("budgets.b.tier", "unknown_tier"),
        ("budgets.c.pool", "missing_key"),
        ("budgets.d.daily.node_time", "not_here"),
        ("budgets.d.concurrent.nodes", "not_here"),
        ("budgets.e", "empty_budget"),
        ("budgets.f", "duplicate"),
        ("budgets.f.daily.cost", "never_reached"),
        ("budgets.f.monthly.cost", "currency_mixed"),
        ("budgets.g.lifetime.cost", "too_small"),
        ("budgets.h.daily.lease_time", "not_here"),
    }


def test_a_time_zone_that_there_is_not_is_refused_by_name() -> None:
    document = read_config("fleet: {spend: {time_zone: Europe/Berln}}").require()
    (problem,) = time_zone_problems(document)
    assert problem.path == "fleet.spend.time_zone"
    assert "did you mean Europe/Berlin?" in problem.message
