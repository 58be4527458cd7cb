"""Budgets: at the grant, at growth and for placing's buy; warned of once; begun anew."""

from typing import Any

import pytest

from hostler.core.absorb.configuration_check import problems_of
from hostler.core.fleet import Fleet
from hostler.core.fleet_settings import FleetSettings
from hostler.core.inputs import ApplyConfiguration, SubmitBundle
from hostler.core.spend_days import day_number
from hostler.engine.time_zones import read_time_zones
from hostler.model.lease import LeasePhase
from hostler.model.pool import Offer
from hostler.model.reason import Reason
from hostler.model.spend import UNITS_PER_MICRO, Period, SpendBy, SpendSettings, Stretch
from hostler.testing.builders import SMALL, a_job, a_node, a_pool, an_elastic_tier
from tests.core.leasing.rental import a_launched_node
from tests.core.spend.accounts import DAY_MS, HOUR_MS, MAY_29, OWN, a_budget, a_cap
from tests.core.spend.conftest import NewAccounts

DEAR = Offer(name="dear", shape=SMALL, price_microusd_per_hour=1_000_000)
CHEAP = Offer(name="cheap", shape=SMALL, price_microusd_per_hour=100_000)


def told(world: Any, kind: str = "budget_warned") -> list[dict[str, Any]]:
    """Return what events of a kind said."""
    return [e.data for delta in world.deltas for e in delta.events if e.kind.value == kind]


def test_the_worst_case_is_kept_at_the_grant_and_given_back_at_the_end(
    accounts: NewAccounts,
) -> None:
    pool = a_pool(tiers=OWN, lease_ms=60_000, lease_ms_max=100_000)
    world = accounts(pool, a_budget(a_cap(held_ms=150_000)), a_node("n-1"), a_node("n-2"))
    first = world.acquire()
    assert world.usage().reserved_held_ms == 100_000
    second = world.acquire(timeout_ms=90_000)
    assert second.reason is Reason.BUDGET_SPENT
    world.advance(30_000)
    assert (world.usage().held_ms, world.usage().reserved_held_ms) == (30_000, 70_000)
    assert world.now(second).phase is LeasePhase.WAITING
    world.release(first)
    assert world.now(second).phase is LeasePhase.HELD


def test_what_waits_for_budget_in_another_pool_is_let_in(accounts: NewAccounts) -> None:
    pools = (a_pool("p", tiers=OWN), a_pool("q", tiers=OWN))
    budget = a_budget(pool="", lease_count_max=1)
    world = accounts(*pools, budget, a_node("n-1"), a_node("n-2", pool="q"))
    first = world.acquire("p")
    second = world.acquire("q", timeout_ms=9_000)
    assert second.reason is Reason.BUDGET_IN_USE
    world.release(first)
    assert world.now(second).phase is LeasePhase.HELD


def test_a_key_that_is_held_back_holds_up_nobody_and_buys_nothing(accounts: NewAccounts) -> None:
    budget = a_budget(name="k", fairness_key="greedy", lease_count_max=1)
    world = accounts(a_pool(), budget, a_launched_node("n-1"), a_launched_node("n-2"))
    first = world.acquire(fairness_key="greedy")
    waiting = world.acquire(fairness_key="greedy", timeout_ms=90_000)
    other = world.acquire(fairness_key="modest", timeout_ms=90_000)
    assert waiting.reason is Reason.BUDGET_IN_USE
    assert other.phase is LeasePhase.HELD
    assert world.commands("launch_machine") == []
    world.release(first)
    assert world.now(waiting).phase is LeasePhase.HELD


def test_money_01_the_dear_offer_is_not_taken_when_the_cheap_one_is_out(
    accounts: NewAccounts,
) -> None:
    """$01: cheap type out, next costs 10x, hourly cap between: queued "cap", not leased."""
    pool = a_pool(tiers=(an_elastic_tier(offers=(CHEAP, DEAR)),))
    world = accounts(pool, a_budget(micros_per_hour_max=500_000))
    lease = world.acquire(timeout_ms=HOUR_MS)
    world.fail(world.commands("launch_machine")[0], "capacity_unavailable")
    assert world.commands("launch_machine") == []
    assert world.now(lease).phase is LeasePhase.WAITING
    assert world.why(lease).reason is Reason.BUDGET_IN_USE
    assert "cost_per_hour 0.50 USD: 0.00 USD is in use and this takes 1.00 USD" in (
        world.why(lease).detail
    )


def test_money_04_warned_at_80_and_100_once_and_what_runs_finishes(accounts: NewAccounts) -> None:
    """$04: cap reached with 5 leases running: nothing new, let finish; warned at 80 %."""
    pool = a_pool(tiers=OWN, lease_ms=10_000)
    budget = a_budget(a_cap(held_ms=500_000))
    world = accounts(pool, budget, *[a_node(f"n-{number}") for number in range(6)])
    leases = [world.acquire() for _ in range(5)]
    for at_ms in range(5_000, 130_000, 5_000):
        world.advance(at_ms)
        for lease in leases:
            world.heartbeat(lease)
    assert [(each["percent"], each["quantity"]) for each in told(world)] == [
        (80, "lease_time"),
        (100, "lease_time"),
    ]
    assert all(world.now(lease).phase is LeasePhase.HELD for lease in leases)
    assert world.acquire(timeout_ms=0).phase is LeasePhase.REFUSED


def test_a_warning_comes_when_time_alone_brings_it(accounts: NewAccounts) -> None:
    node = a_launched_node(price_microusd_per_hour=1_000_000)
    world = accounts(a_pool(warm_count=1), a_budget(a_cap(cost_micros=1_000_000)), node)
    world.advance(HOUR_MS - 1)
    assert [each["percent"] for each in told(world)] == [80]
    world.advance(HOUR_MS + 1)
    assert [each["percent"] for each in told(world)] == [80, 100]


def test_a_lowered_cap_ends_nothing_and_begins_nothing(accounts: NewAccounts) -> None:
    world = accounts(
        a_pool(tiers=OWN), a_budget(a_cap(held_ms=10**9)), a_node("n-1"), a_node("n-2")
    )
    lease = world.acquire()
    world.advance(60_000)
    world.configure_money(a_budget(a_cap(held_ms=1_000)))
    assert world.now(lease).phase is LeasePhase.HELD
    late = world.acquire(timeout_ms=9_000)
    assert late.reason is Reason.BUDGET_SPENT
    world.configure_money()
    assert world.now(late).phase is LeasePhase.HELD


def test_runaway_01_the_most_that_it_could_cost_is_stated_beforehand(
    accounts: NewAccounts,
) -> None:
    """T01: image `never_ready`, 200 requests waiting: spend bounded and stated beforehand."""
    pool = a_pool(tiers=(an_elastic_tier(offers=(CHEAP,)),), launch_count_max=50)
    least = CHEAP.price_microusd_per_hour * (120_000 + 600_000) // 3_600_000
    world = accounts(pool, a_budget(a_cap(cost_micros=3 * least)))
    for _ in range(200):
        world.acquire(timeout_ms=HOUR_MS)
    assert len(world.commands("launch_machine")) == 3
    assert world.usage().reserved_units == 3 * CHEAP.price_microusd_per_hour * 720_000
    for command_id in world.commands("launch_machine"):
        world.succeed(command_id)
    world.advance(120_001)
    for command_id in world.commands("stop_machine"):
        world.succeed(command_id)
    assert world.usage().cost_units <= 3 * CHEAP.price_microusd_per_hour * 120_001
    used = world.usage()
    assert used.cost_units + used.reserved_units <= 3 * least * UNITS_PER_MICRO


def test_placing_buys_nothing_beyond_a_budget(accounts: NewAccounts) -> None:
    world = accounts(a_pool(), a_budget(a_cap(Period.DAILY, cost_micros=1)), now_ms=MAY_29)
    world.ask(SubmitBundle, bundle_id="b", pool="p", jobs=(a_job(),))
    (replica,) = world.fleet.replicas.in_order()
    assert replica.reason is Reason.BUDGET_SPENT
    assert world.commands("launch_machine") == []
    world.configure_money(a_budget(a_cap(Period.DAILY, cost_micros=10**9)))
    assert len(world.commands("launch_machine")) == 1


@pytest.mark.parametrize(("night", "hours"), [("2026-03-29", 23), ("2026-10-25", 25)])
def test_both_clock_changes_make_days_of_23_and_25_hours(
    accounts: NewAccounts, night: str, hours: int
) -> None:
    zones = read_time_zones(["Europe/Berlin"], MAY_29)
    begin = (day_number(night) - 30) * DAY_MS
    world = accounts(
        a_pool(tiers=OWN),
        *zones,
        a_node(phase_since_at_ms=begin, idle_since_at_ms=begin),
        now_ms=begin,
        spend=SpendSettings(time_zone="Europe/Berlin"),
    )
    world.advance(begin + 40 * DAY_MS)
    index = world.fleet.index.spend
    day = index.used(("pool", "p"), SpendBy.OFFER, Stretch.DAY, day_number(night))
    assert day.node_ms == hours * HOUR_MS
    assert world.machine_ms() == 40 * DAY_MS


def test_old_days_are_added_up_and_nothing_is_lost(accounts: NewAccounts) -> None:
    world = accounts(
        a_pool(tiers=OWN),
        a_node(phase_since_at_ms=MAY_29, idle_since_at_ms=MAY_29),
        now_ms=MAY_29,
        spend=SpendSettings(day_count_max=32, month_count_max=1),
    )
    world.advance(MAY_29 + 150 * DAY_MS)
    assert world.machine_ms() == 150 * DAY_MS
    stretches = [row.stretch for row in world.fleet.spend.in_order()]
    assert stretches.count(Stretch.DAY) <= 32
    assert stretches.count(Stretch.MONTH) <= 3
    assert stretches.count(Stretch.TOTAL) == 1


def test_keys_beyond_the_limit_stand_together(accounts: NewAccounts) -> None:
    spend = SpendSettings(key_count_max=2)
    world = accounts(a_pool(tiers=OWN), a_budget(a_cap(held_ms=10**9)), a_node(), spend=spend)
    for number in range(5):
        lease = world.acquire(fairness_key=f"k{number}")
        world.advance(world.now_ms + 10)
        world.release(lease)
    by_name = {row.name: row.held_ms for row in world.fleet.spend.in_order() if row.by == "key"}
    assert by_name == {"k0": 10, "k1": 10, "": 30}


@pytest.mark.parametrize(
    ("budget", "code"),
    [
        (a_budget(a_cap(held_ms=1), pool="nowhere"), "unknown_pool"),
        (a_budget(a_cap(node_ms=10**9), tier="nowhere"), "unknown_tier"),
        (a_budget(a_cap(cost_micros=1)), "admits_nothing"),
        (a_budget(a_cap(node_ms=1)), "admits_nothing"),
        (a_budget(a_cap(held_ms=1)), "admits_nothing"),
        (a_budget(micros_per_hour_max=1), "admits_nothing"),
        (a_budget(a_cap(held_ms=10**9), warn_percents=(80, 50)), "bad_order"),
    ],
)
def test_budgets_that_mean_nothing_are_refused(
    accounts: NewAccounts, budget: Any, code: str
) -> None:
    settings = accounts().fleet.settings
    given = {name: getattr(settings, name) for name in FleetSettings.__struct_fields__}
    request = ApplyConfiguration(
        request_id="r",
        principal="tester",
        fleet_id="f",
        settings=FleetSettings(**given),
        pools=(a_pool(),),
        budgets=(budget,),
    )
    assert [problem.code for problem in problems_of(Fleet(), request)] == [code]


def test_a_lease_costs_nothing_more_an_hour_than_its_machine(accounts: NewAccounts) -> None:
    """Trial $01: what is there may be used, up to the last of an hourly cap on machines."""
    budget = a_budget(micros_per_hour_max=150_000)
    world = accounts(a_pool(), budget, a_launched_node(price_microusd_per_hour=100_000))
    assert world.acquire().phase is LeasePhase.HELD
