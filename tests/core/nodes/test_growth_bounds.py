"""Growth is bounded: failed boots, pauses of providers, launches in flight and a minute."""

from hostler.core import limits
from hostler.core.inputs import (
    AgentSaidHello,
    CommandFailed,
    CommandSettled,
    RetryGrowth,
    Succeeded,
)
from hostler.core.replies import Accepted, Refused
from hostler.core.waiting import why_waiting
from hostler.model.node import NodePhase
from hostler.model.reason import Reason
from hostler.model.settings import ProviderLimits
from hostler.testing.builders import a_pool, an_elastic_tier
from tests.core.nodes.conftest import NewStable
from tests.core.nodes.stable import Stable

BOOT_MS = 120_000
ONE_OFFER = an_elastic_tier(offers=an_elastic_tier().offers[:1], node_count_max=50)


def broken(world: Stable, count: int = 20) -> None:
    """Let machines come whose agents never say hello."""
    for _ in range(count):
        world.launch()
        world.advance(world.now_ms + BOOT_MS + 1_000)
        world.bury()


def test_t_01_a_broken_image_stops_growth_with_its_evidence(stable: NewStable) -> None:
    """Trial T01: image never ready, requests waiting, ceiling: back-off, pool stopped after N."""
    world = stable(a_pool(tiers=(ONE_OFFER,), launch_count_max=1, boot_failure_count_max=3))
    lease = world.acquire(timeout_ms=100 * BOOT_MS)
    broken(world, 6)
    breaker = world.fleet.breakers["p/cloud"]
    assert breaker.failure_count == 3
    assert [each.code for each in breaker.failures] == ["boot_timeout"] * 3
    why = why_waiting(world.fleet, world.fleet.leases[lease.lease_id])
    assert why.reason is Reason.GROWTH_STOPPED
    assert "boot_timeout" in why.detail
    assert world.fleet.counters["n"].value == 3


def test_t_03_a_stopped_tier_tries_one_now_and_then_and_goes_on_after_a_good_one(
    stable: NewStable,
) -> None:
    """Trial T03: at most N + probes; resumes by itself after one good probe."""
    world = stable(a_pool(warm_count=2, tiers=(ONE_OFFER,), boot_failure_count_max=2))
    broken(world, 4)
    stopped_at_ms = world.fleet.breakers["p/cloud"].stopped_at_ms or 0
    before = world.fleet.counters["n"].value
    world.advance(stopped_at_ms + limits.BOOT_TRIAL_MS - 1)
    assert world.fleet.counters["n"].value == before
    world.advance(stopped_at_ms + limits.BOOT_TRIAL_MS)
    assert world.fleet.counters["n"].value == before + 1
    world.boot()
    assert not world.fleet.breakers.rows
    world.boot()
    assert len(world.in_phase(NodePhase.READY)) == 2
    assert "growth_resumed" in world.events()


def test_an_operator_can_have_it_tried_again_at_once(stable: NewStable) -> None:
    world = stable(a_pool(warm_count=1, tiers=(ONE_OFFER,), boot_failure_count_max=1))
    broken(world, 1)
    assert not world.commands("launch_machine")
    assert isinstance(world.ask(RetryGrowth, pool="p"), Accepted)
    assert len(world.commands("launch_machine")) == 1
    assert isinstance(world.ask(RetryGrowth, pool="nope"), Refused)


def test_a_change_of_the_configuration_clears_it(stable: NewStable) -> None:
    world = stable(a_pool(warm_count=1, tiers=(ONE_OFFER,), boot_failure_count_max=1))
    broken(world, 1)
    world.configure(a_pool(warm_count=1, tiers=(ONE_OFFER,), boot_failure_count_max=2))
    assert len(world.commands("launch_machine")) == 1


def test_q_01_a_lack_of_capacity_is_no_failed_boot(stable: NewStable) -> None:
    """Trial Q01: no capacity for long: the request keeps its place, and is served after."""
    tier = an_elastic_tier(offers=ONE_OFFER.offers, boot_ms=3_600_000)
    world = stable(a_pool(tiers=(tier,), boot_failure_count_max=1))
    lease = world.acquire(timeout_ms=3_600_000)
    for _ in range(5):
        for command_id in world.commands("launch_machine"):
            world.fail(command_id, "capacity_unavailable")
        world.advance(world.now_ms + 300_000)
    assert not world.fleet.breakers.rows
    world.boot()
    assert world.fleet.leases[lease.lease_id].node_id is not None


def test_q_07_a_throttling_provider_is_left_alone_as_a_whole_and_others_go_on(
    stable: NewStable,
) -> None:
    """Trial Q07: `throttle` with retry-after 60 s: whole provider backs off together, jittered."""
    other = an_elastic_tier("else", provider="other")
    world = stable(a_pool("p", warm_count=3), a_pool("q", warm_count=1, tiers=(other,)))
    command_id = world.commands("launch_machine")[0]
    throttled = CommandFailed(code="throttled", retry_after_ms=60_000)
    world.run(
        CommandSettled(command_id=world.fleet.commands[command_id].command_id, outcome=throttled)
    )
    until_ms = world.fleet.cooldowns["provider:fake"].until_at_ms
    assert 60_000 <= until_ms <= 72_000
    world.configure(world.fleet.pools["p"], a_pool("q", warm_count=2, tiers=(other,)))
    for each in world.commands("launch_machine"):
        command = world.fleet.commands[each].command
        assert command.provider in ("fake", "other")  # type: ignore[union-attr]  # a launch has one
    assert len([n for n in world.fleet.nodes.in_order() if n.provider == "other"]) == 2


def test_launches_wait_while_their_provider_is_paused(stable: NewStable) -> None:
    world = stable(a_pool(warm_count=1, tiers=(ONE_OFFER,)))
    world.fail("n-000001/launch/1", "throttled")
    lease = world.acquire(timeout_ms=60_000)
    assert "n-000002" not in world.fleet.nodes
    why = why_waiting(world.fleet, world.fleet.leases[lease.lease_id])
    assert why.reason in (Reason.MACHINE_STARTING, Reason.PROVIDER_PAUSED)
    world.advance(5_000)
    assert "n-000002" in world.fleet.nodes


def test_no_more_launches_are_out_at_a_provider_than_it_may_have(stable: NewStable) -> None:
    bounds = (ProviderLimits(provider="fake", launch_count_max=2),)
    world = stable(a_pool("p", warm_count=3), a_pool("q", warm_count=3), providers=bounds)
    for _ in range(6):
        assert len(world.commands("launch_machine")) <= 2
        world.boot()
    assert len(world.in_phase(NodePhase.READY)) == 6


def test_no_more_launches_are_made_in_a_minute_than_a_provider_may_have(
    stable: NewStable,
) -> None:
    bounds = (ProviderLimits(provider="fake", launches_per_minute_max=6),)
    world = stable(a_pool(warm_count=5), providers=bounds)
    seen = []
    for second in range(0, 60, 5):
        world.advance(second * 1_000)
        seen.append(len(world.fleet.nodes))
        world.boot()
    assert seen == [1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 5, 5]


def test_q_08_a_machine_that_dies_while_it_boots_is_noticed_before_its_deadline(
    stable: NewStable,
) -> None:
    """Trial Q08: create accepted, machine gone in 2 s."""
    world = stable(a_pool(warm_count=1))
    (node,) = world.launch()
    world.advance(limits.BOOT_CHECK_MS)
    world.succeed(f"{node.node_id}/check/1")
    assert world.node(node.node_id).phase is NodePhase.RETIRED
    assert world.fleet.breakers["p/cloud"].failures[0].code == "machine_gone"


def test_f_01_whoever_waits_comes_before_refills(stable: NewStable) -> None:
    """Trial F01: refill 50 with 5 build slots, one request: it is next; refill yields."""
    world = stable(a_pool(warm_count=50))
    assert len(world.commands("launch_machine")) == 5
    lease = world.acquire(timeout_ms=60_000)
    world.launch()
    world.hello("n-000001")
    assert world.fleet.leases[lease.lease_id].node_id == "n-000001"


def test_one_that_comes_at_the_very_moment_of_a_failure_does_not_make_up_for_it(
    stable: NewStable,
) -> None:
    """Which of the two is looked at first must not matter: a second look found growth resumed."""
    world = stable(a_pool(warm_count=2, tiers=(ONE_OFFER,), boot_failure_count_max=1))
    good, bad = world.launch()
    world.advance(world.now_ms + limits.BOOT_CHECK_MS)
    check = CommandSettled(
        command_id=world.fleet.commands[f"{bad.node_id}/check/1"].command_id, outcome=Succeeded()
    )
    world.run(AgentSaidHello(node_id=good.node_id, incarnation=1, shape=good.shape), check)
    assert world.fleet.breakers["p/cloud"].stopped_at_ms == world.now_ms
    world.check_calm()
