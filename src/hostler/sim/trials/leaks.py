"""Trials 8.1: a paid machine survives.

L23 (a machine ends by itself when it hears nothing for long) is each provider's and in their
conformance suite (`silence_ms_max`). L14's shutdown for good is: take every pool out of the
configuration, which says what is still held; the ledger stays.
"""

from __future__ import annotations

from msgspec.structs import replace

from hostler.core.events import EventKind
from hostler.engine.boundaries import Boundary
from hostler.model.command import LaunchMachine
from hostler.model.lease import LeaseOutcome, LeasePhase
from hostler.model.node import NodePhase
from hostler.sim.machine import MachinePlan
from hostler.sim.network import NetworkPlan
from hostler.sim.trials.answers import fail_all, fail_launches, failure
from hostler.sim.trials.stage import Stage
from hostler.sim.trials.trial import PROMPT, a_pool, trial


@trial("L01")
def provider_cut_off(stage: Stage) -> None:
    """A machine that cannot be reached is on its way out until it is confirmed gone."""
    tenant = stage.acquire()
    stage.all_held([tenant], within="2m")
    node_id = tenant.node_id
    stage.cloud.answers = fail_all("unreachable")
    tenant.fall_silent()
    stage.wait("20m")
    stage.expect(tenant.outcome is LeaseOutcome.EXPIRED, "the lease has expired")
    node = stage.fleet.nodes[node_id]
    stage.expect(node.phase is NodePhase.STOPPING, "the node is ending and not yet ended")
    stage.expect(len(stage.billed()) == 1, "the machine is still billed")
    stage.cloud.answers = None
    stage.until(lambda: not stage.billed(), "the machine is ended", within="2m")


@trial(
    "L02",
    cloud=replace(PROMPT, delay_ms=(1, 400)),
    seed_count=5,
)
def closing_with_a_launch_in_flight(stage: Stage) -> None:
    """A pool that is closed with a launch in flight leaves no machine, and the lease is refused."""
    for number in range(5):
        first = stage.acquire()
        stage.wait(stage.world.stream("race", str(number)).between(1, 900))
        stage.close_pools("p")
        second = stage.acquire()
        stage.until(lambda: not stage.billed(), "nothing is billed", within="5m")
        stage.wait("5s")
        for tenant in (first, second):
            is_over = tenant.refusal is not None or tenant.phase is LeasePhase.REFUSED
            if tenant.is_held:
                tenant.leave()
            else:
                stage.expect(is_over, "a request in a closed pool is refused", of=tenant.name)
        stage.until(lambda: not stage.nodes(), "no node is left", within="5m")
        stage.reopen()


@trial(
    "L04",
    a_pool(warm_count=20, launch_count_max=20),
)
def dying_while_creating(stage: Stage) -> None:
    """A server that dies while machines are made finds each of them again."""
    stage.crash(at=Boundary.AFTER_CALL_BEFORE_SETTLE)
    stage.warm_up(20, within="15m")
    stage.expect(stage.born_count() == 20, "no machine is made twice", born=stage.born_count())


@trial(
    "L05",
    a_pool(node_count_max=60, launch_count_max=60, warm_count=60, boot_failure_count_max=100),
    cloud=replace(PROMPT, never_boots_ppm=100_000),
)
def scaling_down_the_unregistered(stage: Stage) -> None:
    """Machines that never registered are ended too."""
    stage.wait("30s")
    stage.expect(stage.born_count() > 50, "they are made")
    stage.expect(len(stage.ready()) < len(stage.billed()), "some do not come up")
    stage.configure(warm_count=0, idle_ms=1_000)
    stage.until(lambda: not stage.billed(), "the bill is flat", within="4m")
    stage.until(lambda: not stage.nodes(), "no node is left", within="1m")


@trial(
    "L07",
    a_pool(warm_count=1),
)
def dying_before_the_id(stage: Stage) -> None:
    """A restart before the machine's id was written down makes no second machine."""
    stage.configure(warm_count=0, idle_ms=1_000)
    stage.until(lambda: not stage.nodes(), "it begins empty", within="5m")
    before = stage.born_count()
    for zone in ("", "elsewhere"):
        stage.crash(at=Boundary.AFTER_CALL_BEFORE_SETTLE)
        tenant = stage.acquire()
        stage.wait("1s")
        stage.configure(zone=zone)
        stage.all_held([tenant], within="15m")
        tenant.leave()
        stage.until(lambda: not stage.billed(), "it is ended", within="5m")
    stage.expect(stage.born_count() == before + 2, "one machine each", born=stage.born_count())


@trial(
    "L08",
    a_pool(warm_count=60, node_count_max=60, launch_count_max=60),
    cloud=replace(PROMPT, is_answer_lost_ppm=50_000),
)
def lost_answers(stage: Stage) -> None:
    """Lost answers never make two machines of one."""
    stage.warm_up(60, within="1h")
    stage.expect(stage.born_count() == 60, "exactly as many as wanted", born=stage.born_count())


@trial("L10")
def falling_back_to_another_type(stage: Stage) -> None:
    """Where one type is not to be had another is taken, and nobody sees an error."""
    stage.cloud.answers = fail_launches("capacity_unavailable", offer="small")
    tenant = stage.acquire()
    stage.all_held([tenant], within="3m")
    (machine,) = stage.billed()
    stage.expect(machine.offer == "large", "the other type serves")


@trial(
    "L11",
    a_pool(node_count_max=2),
)
def forgotten_by_the_provider(stage: Stage) -> None:
    """What the provider has forgotten is closed; an unknown launch stays open until known."""
    stage.all_held([stage.acquire()], within="2m")
    (machine,) = stage.billed()
    stage.crash(down="3h")
    stage.cloud.end(machine, "ended by somebody else")
    stage.wait("3h")
    stage.until(
        lambda: (
            stage.fleet.nodes.get(machine.node_id) is None
            or stage.fleet.nodes[machine.node_id].phase is NodePhase.RETIRED
        ),
        "its record is closed",
        within="5m",
    )
    stage.cloud.plan = replace(
        stage.cloud.plan, is_unknown_ppm=1_000_000, list_lag_ms=(90_000, 90_000)
    )
    second = stage.acquire()
    stage.wait("15m")
    stage.cloud.plan = PROMPT
    stage.all_held([second], within="15m")
    stage.until(lambda: len(stage.billed()) == 1, "what came of the others is ended", within="10m")


@trial(
    "L13",
    a_pool(warm_count=1),
)
def taken_while_created(stage: Stage) -> None:
    """A machine taken away while it is made is replaced, and no second stays."""
    for _ in range(5):
        stage.until(
            lambda: bool(stage.nodes(NodePhase.REQUESTED, NodePhase.STARTING)),
            "one is asked for",
            within="10m",
            step=100,
        )
        for machine in stage.billed():
            stage.cloud.end(machine, "taken back")
        stage.wait("1s")
    stage.warm_up(1)
    stage.expect(len(stage.billed()) == 1, "one is left")


@trial("L14")
def closing_for_good(stage: Stage) -> None:
    """Closing everything says what is held, and ends machines before it forgets them."""
    tenants = stage.acquire_many(3)
    stage.all_held(tenants, within="2m")
    stage.close_pools()
    stage.wait("30s")
    stage.expect(len(stage.held()) == 3, "what is held stays until its holder is done")
    stage.expect(all(node.is_held for node in stage.nodes()), "and is listed")
    for tenant in tenants:
        tenant.leave()
    stage.until(lambda: not stage.billed(), "machines end first", within="2m")
    stage.expect(bool(stage.fleet.nodes.rows), "the ledger is the last to go")


@trial(
    "L16",
    a_pool(warm_count=1, idle_ms=60_000),
)
def cancelled_requests(stage: Stage) -> None:
    """Of requests that are cancelled only the warm floor remains."""
    rng = stage.world.stream("script")
    for tenant in stage.acquire_many(20):
        stage.world.after(rng.below(30_000), tenant.leave)
    stage.wait("35s")
    stage.until(lambda: len(stage.billed()) == 1, "only the floor remains", within="4m")
    stage.expect(len(stage.free()) == 1, "and is free")


@trial(
    "L17",
    a_pool(warm_count=1, idle_ms=1_000),
    cloud=replace(PROMPT, list_lag_ms=(90_000, 90_000), stop_ms=(5_000, 5_000)),
)
def dying_after_each_stop(stage: Stage) -> None:
    """Each machine is told again to end, however often the server dies meanwhile."""
    tenants = stage.acquire_many(10)
    stage.all_held(tenants, within="5m")
    for tenant in tenants:
        stage.crash(at=Boundary.AFTER_DISPATCH_BEFORE_CALL)
        tenant.leave(LeaseOutcome.POISON)
        stage.wait("3s")
    stage.until(lambda: len(stage.billed()) == 1, "all of them are ended", within="5m")


@trial(
    "L19",
    a_pool(node_count_max=4, slot_count=10, waiting_count_max=200),
)
def lost_lease_answers(stage: Stage) -> None:
    """An answer that is lost loses no lease, and what nobody takes up frees itself."""
    stage.network.plan = NetworkPlan(is_request_lost_ppm=300_000)
    tenants = stage.acquire_many(40, ack_ms=30_000)
    stage.crash(at=Boundary.AFTER_COMMIT_BEFORE_KEEP)
    stage.wait("3m")
    stage.network.plan = NetworkPlan()
    stage.expect(all(len(each.lease_ids) == 1 for each in tenants), "one lease for each request")
    waiting_or_held = (LeasePhase.WAITING, LeasePhase.HELD)
    live = [each for each in stage.fleet.leases.in_order() if each.phase in waiting_or_held]
    stage.expect(len({each.holder for each in live}) == len(live), "and no second one that lives")
    for tenant in tenants[:20]:
        tenant.fall_silent()
    for tenant in tenants[20:]:
        tenant.leave()
    silent = stage.acquire(ack_ms=10_000)
    silent.fall_silent()
    stage.until(
        lambda: silent.outcome is LeaseOutcome.UNACKNOWLEDGED, "it frees itself", within="1m"
    )


@trial(
    "L20",
    a_pool(node_count_max=8, slot_count=10, lease_ms=120_000, waiting_count_max=200),
)
def lost_releases(stage: Stage) -> None:
    """Releases that are lost free their slots by time."""
    tenants = stage.acquire_many(80)
    stage.all_held(tenants, within="3m")
    stage.network.plan = NetworkPlan(is_request_lost_ppm=50_000)
    for tenant in tenants:
        tenant.leave(attempts=1)
    stage.until(lambda: not stage.held(), "all slots are free", within="3m")
    late = [tenant for tenant in tenants if tenant.outcome is LeaseOutcome.EXPIRED]
    stage.expect(0 < len(late) < 20, "those that were late are told apart", late=len(late))


@trial(
    "L22",
    a_pool(lease_ms=90_000, lease_ms_max=300_000),
)
def no_time_given(stage: Stage) -> None:
    """A request without a time has the pool's, and cannot have more."""
    tenant = stage.acquire()
    stage.all_held([tenant], within="2m")
    lease = tenant.lease
    stage.expect(lease is not None and lease.lease_ms == 90_000, "the pool's time applies")
    stage.expect(lease is not None and lease.ends_at_ms is not None, "and its end is known")
    greedy = stage.acquire(lease_ms=90_001)
    stage.wait("1s")
    stage.expect(
        greedy.refusal is not None and greedy.refusal.code == "lease_ms_invalid", "more is refused"
    )
    stage.until(lambda: not tenant.is_held, "heartbeats do not make it longer", within="6m")


@trial(
    "L25",
    a_pool(warm_count=1),
    machines=MachinePlan(agent_returns_ms=(36_000_000, 36_000_000)),
)
def dead_agents(stage: Stage) -> None:
    """A machine whose agent is dead is ended, leased or idle."""
    tenant = stage.acquire()
    stage.all_held([tenant], within="2m")
    stage.warm_up(1)
    old = {machine.machine_id for machine in stage.billed()}
    for machine in stage.hardware.running():
        machine.crash_agent()
    stage.until(
        lambda: not old & {each.machine_id for each in stage.billed()},
        "both machines are ended",
        within="3m",
    )
    stage.expect(tenant.outcome is LeaseOutcome.NODE_LOST, "the lease says so")
    stage.warm_up(1)


@trial("L26", a_pool(lease_ms=3_600_000))
def looking_renews_nothing(stage: Stage) -> None:
    """Looking at a machine renews nothing."""
    tenant = stage.acquire()
    stage.all_held([tenant], within="2m")
    tenant.fall_silent()
    lease = tenant.lease
    stage.expect(lease is not None, "it is there")
    expires_at_ms = None if lease is None else lease.expires_at_ms
    stage.wait("55m")
    now = tenant.lease
    stage.expect(now is not None and now.expires_at_ms == expires_at_ms, "nothing was renewed")
    stage.until(lambda: tenant.outcome is LeaseOutcome.EXPIRED, "it expires", within="6m")


@trial(
    "L28",
    a_pool(node_count_max=32, launch_count_max=32),
)
def breaking_half_way(stage: Stage) -> None:
    """Of many made at once that break half way, each is served or says why, none is left."""
    broken: dict[str, None] = {}

    def answers(command: object) -> object:
        if (
            isinstance(command, LaunchMachine)
            and len(broken) < 8
            and (command.node_id not in broken)
        ):
            broken[command.node_id] = None
            return failure("outcome_unknown")
        return None

    stage.cloud.answers = answers  # type: ignore[assignment]  # narrower than it says
    tenants = stage.acquire_many(32)
    stage.all_held(tenants, within="15m")
    stage.expect(len(stage.billed()) == 32, "no machine beyond the leases", n=len(stage.billed()))


@trial(
    "L23",
    a_pool(node_count_max=10, lease_ms=600_000),
)
def away_for_hours(stage: Stage) -> None:
    """What nobody could end while the server was away is ended when it is back."""
    tenants = stage.acquire_many(5)
    stage.all_held(tenants, within="2m")
    for tenant in tenants:
        tenant.fall_silent()
    stage.crash(down="2h")
    stage.wait("2h1s")
    stage.until(lambda: not stage.held(tenants), "they are over", within="11m")
    stage.until(lambda: not stage.billed(), "and their machines are ended", within="5m")
    stage.expect(len(stage.told(EventKind.LEASE_SETTLED)) == 5, "each is told once")
