"""spec/leasing.md 6.4 and the ledger half of 6.9: spend.

Others: SC-180 to SC-183 are listeners and in the events of leasing; SC-185 and SC-189 are the
store's (its conformance suite); SC-186 has no counterpart, since there is one store for all
providers. SC-078 and SC-080 are about a sidecar file that does not exist here: rows are records of
the same commit as what they record, which `test_books_follow_from_records` holds.
"""

import pytest

from hostler.core.inputs import ReleaseLease
from hostler.model.lease import LeaseOutcome, LeasePhase
from hostler.model.node import NodePhase, Origin
from hostler.model.reason import Reason
from hostler.model.spend import Period
from hostler.testing.builders import a_fixed_tier, a_node, a_pool, an_elastic_tier
from tests.core.leasing.rental import a_launched_node
from tests.core.spend.accounts import DAY_MS, MAY_29, OWN, a_budget, a_cap
from tests.core.spend.conftest import NewAccounts

SECONDS = 1_000
BIG = a_budget(a_cap(held_ms=10**12))


def test_sc_070_full_window(accounts: NewAccounts) -> None:
    """Given a lease with a heartbeat every 30 s for 600 s, then 600 worker-seconds are billed."""
    world = accounts(a_pool(tiers=OWN), BIG, a_node())
    lease = world.acquire()
    world.keep(lease, 600 * SECONDS)
    world.release(lease)
    assert world.held_ms() == 600 * SECONDS


def test_sc_071_overlap(accounts: NewAccounts) -> None:
    """Given slots 2, lease A from 0 to 300 s, B from 100 to 300 s, then 500 are billed."""
    world = accounts(a_pool(tiers=OWN, slot_count=2), BIG, a_node(slot_count=2))
    first = world.acquire()
    world.advance(100 * SECONDS)
    second = world.acquire()
    world.advance(300 * SECONDS)
    world.release(first)
    world.release(second)
    assert world.held_ms() == 500 * SECONDS


def test_sc_072_lifetime_cap(accounts: NewAccounts) -> None:
    """Given cap 500 and SC-070, when another acquire is made, then it is refused, worker idle."""
    budget = a_budget(a_cap(held_ms=600 * SECONDS))
    world = accounts(a_pool(tiers=OWN), budget, a_node())
    lease = world.acquire()
    world.keep(lease, 600 * SECONDS)
    world.release(lease)
    late = world.acquire(timeout_ms=0)
    assert late.phase is LeasePhase.REFUSED
    assert "budget b, lifetime lease_time 10m: 10m is used" in late.reason_detail
    assert Reason.BUDGET_SPENT.value in late.reason_detail


def test_sc_073_daily_cap_and_sc_261_midnight(accounts: NewAccounts) -> None:
    """Given a daily cap that is used up, when midnight passes, then who waits is leased at once."""
    budget = a_budget(a_cap(Period.DAILY, held_ms=5 * SECONDS))
    pool = a_pool(tiers=OWN, lease_ms=5 * SECONDS)
    world = accounts(pool, budget, a_node("n-1"), a_node("n-2"), now_ms=MAY_29)
    lease = world.acquire()
    world.advance(MAY_29 + 5 * SECONDS - 1)
    world.release(lease)
    waiting = world.acquire(timeout_ms=2 * DAY_MS)
    assert waiting.reason is Reason.BUDGET_SPENT
    assert "begins anew on 2026-05-30" in world.why(waiting).detail
    world.advance(MAY_29 + DAY_MS - 1)
    assert world.now(waiting).phase is LeasePhase.WAITING
    world.advance(MAY_29 + DAY_MS)
    assert world.now(waiting).granted_at_ms == MAY_29 + DAY_MS


def test_sc_074_and_075_split_at_midnight(accounts: NewAccounts) -> None:
    """Given 23:59:50 on 29 May to 00:09:50, then 10 s belong to 29 May and 590 s to 30 May."""
    world = accounts(a_pool(tiers=OWN), BIG, a_node(), now_ms=MAY_29)
    world.advance(MAY_29 + DAY_MS - 10 * SECONDS)
    lease = world.acquire()
    world.keep(lease, MAY_29 + DAY_MS + 590 * SECONDS)
    assert world.usage(period=Period.DAILY).held_ms == 590 * SECONDS
    world.release(lease)
    assert world.held_ms(day="2026-05-29") == 10 * SECONDS
    assert world.held_ms(day="2026-05-30") == 590 * SECONDS


def test_sc_076_forced_windows(accounts: NewAccounts) -> None:
    """Given a lease held for 500 s, when it is revoked, then it is billed to that instant, once."""
    world = accounts(a_pool(tiers=OWN), BIG, a_node())
    lease = world.acquire()
    world.advance(500 * SECONDS)
    world.ask(ReleaseLease, lease_id=lease.lease_id, outcome=LeaseOutcome.REVOKED, is_operator=True)
    world.advance(550 * SECONDS)
    world.release(lease)
    assert world.held_ms() == 500 * SECONDS


def test_sc_077_clean_flush(accounts: NewAccounts) -> None:
    """Given five leases of 7 s each, then the books say 35."""
    world = accounts(a_pool(tiers=OWN), BIG, a_node())
    for number in range(5):
        lease = world.acquire()
        world.advance((number + 1) * 7 * SECONDS)
        world.release(lease)
    assert world.held_ms() == 35 * SECONDS


def test_sc_079_day_roll(accounts: NewAccounts) -> None:
    """Given 200 on a day, when asked the next day, then 0 under the new key; after 45 more, 45."""
    world = accounts(a_pool(tiers=OWN), BIG, a_node(), now_ms=MAY_29)
    lease = world.acquire()
    world.advance(MAY_29 + 200)
    world.release(lease)
    world.advance(MAY_29 + DAY_MS)
    assert world.usage(period=Period.DAILY).held_ms == 0
    lease = world.acquire()
    world.advance(MAY_29 + DAY_MS + 45)
    world.release(lease)
    assert world.usage(period=Period.DAILY).held_ms == 45
    assert world.held_ms(day="2026-05-29") == 200


def test_sc_084_free_machines_have_budgets_too(accounts: NewAccounts) -> None:
    """Given static hosts, daily cap 100, 60 s used, restarted and 50 s more, then refused."""
    budget = a_budget(a_cap(Period.DAILY, held_ms=120 * SECONDS))
    pool = a_pool(tiers=OWN, lease_ms=60 * SECONDS)
    world = accounts(pool, budget, a_node(), now_ms=MAY_29)
    lease = world.acquire()
    world.keep(lease, MAY_29 + 60 * SECONDS)
    world.release(lease)
    world.reload_from_store()
    lease = world.acquire()
    world.keep(lease, MAY_29 + 110 * SECONDS)
    world.release(lease)
    late = world.acquire(timeout_ms=0)
    assert late.phase is LeasePhase.REFUSED
    assert Reason.BUDGET_SPENT.value in late.reason_detail


def test_sc_086_no_buying_without_budget(accounts: NewAccounts) -> None:
    """Given the daily cap exhausted and warm 2, then no machine is provisioned."""
    pool = a_pool(warm_count=2, idle_ms=0)
    budget = a_budget(a_cap(Period.DAILY, cost_micros=1))
    world = accounts(pool, budget, now_ms=MAY_29)
    assert world.commands("launch_machine") == []
    assert world.fleet.notes["p"]["sizing"].reason is Reason.BUDGET_SPENT
    world.configure_money()
    assert len(world.commands("launch_machine")) == 2


def test_sc_021_concurrent_cap(accounts: NewAccounts) -> None:
    """Given max 4 and concurrent cap 1 with one lease out, then only one machine ever exists."""
    pool = a_pool(tiers=(an_elastic_tier(node_count_max=4),))
    world = accounts(pool, a_budget(node_count_max=1), a_launched_node())
    first = world.acquire()
    second = world.acquire(timeout_ms=5_000)
    assert second.reason is Reason.BUDGET_IN_USE
    assert "concurrent nodes 1: 1 is in use" in world.why(second).detail
    assert world.commands("launch_machine") == []
    world.release(first)
    assert world.now(second).phase is LeasePhase.HELD


def test_sc_184_write_ahead(accounts: NewAccounts) -> None:
    """Given a launch, then its record and what is kept for it are there before the machine is."""
    world = accounts(a_pool(), a_budget(a_cap(cost_micros=10**9)))
    world.acquire(timeout_ms=60_000)
    (node,) = world.fleet.nodes.in_order()
    assert (node.phase, node.machine_id) == (NodePhase.REQUESTED, None)
    assert world.usage().reserved_units == node.price_microusd_per_hour * node.reserve_ms
    assert world.usage().cost_units == 0


@pytest.mark.parametrize("origin", [Origin.JOINED, Origin.LAUNCHED])
def test_books_follow_from_records(accounts: NewAccounts, origin: Origin) -> None:
    """What a restart reads is what was there, to the millisecond, with nothing else written."""
    tier = a_fixed_tier(price_microusd_per_hour=500_000)
    node = a_node(price_microusd_per_hour=500_000) if origin is Origin.JOINED else a_launched_node()
    world = accounts(a_pool(tiers=(tier, an_elastic_tier())), BIG, node)
    world.acquire()
    world.advance(12_345)
    before = (world.machine_ms(), world.usage())
    world.reload_from_store()
    assert (world.machine_ms(), world.usage()) == before
    assert before[0] == 12_345


def test_sc_248_two_meters(accounts: NewAccounts) -> None:
    """Given a machine existing from 0 to 1,000 s with leases 100 to 400 and 200 to 400, then 1,000
    machine-seconds and 500 lease-seconds are recorded."""
    node = a_node(
        slot_count=2, tier="cloud", provider="fake", origin=Origin.LAUNCHED, started_at_ms=0
    )
    world = accounts(a_pool(slot_count=2, idle_ms=600 * SECONDS), BIG, node)
    world.advance(100 * SECONDS)
    first = world.acquire()
    world.advance(200 * SECONDS)
    second = world.acquire()
    world.advance(400 * SECONDS)
    world.release(first)
    world.release(second)
    world.advance(1_000 * SECONDS)
    assert world.held_ms() == 500 * SECONDS
    assert world.machine_ms() == 1_000 * SECONDS
