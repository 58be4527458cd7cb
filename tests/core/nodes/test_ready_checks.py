"""Ready checks: no work before a new node has passed what its pool asks of it (L-080, INV-11).

Left to others: SC-003 and SC-004 (three probes 50 ms apart) are the source's numbers; here
interval, count and deadline are the pool's.
"""

from typing import Any

from hostler.core.replies import Accepted
from hostler.model import Pool
from hostler.model.command import CheckReady
from hostler.model.lease import LeasePhase
from hostler.model.node import NodePhase, RetireReason
from hostler.model.ready import ReadyCheck
from hostler.testing.builders import a_fixed_tier, a_pool
from tests.core.nodes.conftest import NewStable
from tests.core.nodes.stable import Stable

CHECK = ReadyCheck(
    argv=("pg_isready",),
    told="pg_isready",
    interval_ms=1_000,
    timeout_ms=3_000,
    deadline_ms=30_000,
    success_count=2,
)


def a_checked_pool(**changes: Any) -> Pool:
    return a_pool(**{"warm_count": 1, "ready": CHECK, **changes})


def booted(stable: NewStable, **changes: Any) -> Stable:
    """Return a world in which a machine's agent has just reported."""
    world = stable(a_checked_pool(**changes))
    world.boot()
    return world


def the_try(world: Stable) -> str:
    (command_id,) = world.commands("check_ready")
    return command_id


def test_a_new_node_is_held_by_nobody_before_its_check_has_passed_often_enough(
    stable: NewStable,
) -> None:
    world = booted(stable)
    command = world.fleet.commands[the_try(world)].command
    assert isinstance(command, CheckReady)
    assert (command.argv, command.timeout_ms) == (CHECK.argv, CHECK.timeout_ms)
    lease = world.acquire(timeout_ms=900_000)
    assert (lease.phase, lease.reason) == (LeasePhase.WAITING, "machine_starting")
    world.succeed(the_try(world))
    assert world.node("n-000001").phase is NodePhase.STARTING
    assert world.commands("check_ready") == []
    world.advance(1_000)
    world.succeed(the_try(world))
    node = world.node("n-000001")
    assert (node.phase, node.readiness) == (NodePhase.READY, None)
    assert world.fleet.leases[lease.lease_id].node_id == "n-000001"


def test_one_failure_begins_the_count_anew_and_is_told(stable: NewStable) -> None:
    world = booted(stable)
    world.succeed(the_try(world))
    world.advance(1_000)
    world.fail(the_try(world), "refused", "not_ready: exit code 2: no response")
    state = world.node("n-000001").readiness
    assert state is not None
    assert (state.try_count, state.success_count) == (2, 0)
    (note,) = world.fleet.notes["n-000001"].values()
    assert note.reason == "ready_check"
    assert "exit code 2: no response" in note.detail
    world.advance(2_000)
    world.succeed(the_try(world))
    world.advance(3_000)
    world.succeed(the_try(world))
    assert world.node("n-000001").phase is NodePhase.READY


def test_one_that_never_passes_is_a_failed_boot_and_keeps_what_the_check_said(
    stable: NewStable,
) -> None:
    world = booted(stable, boot_failure_count_max=1)
    for at_ms in range(1_000, 30_000, 1_000):
        world.fail(the_try(world), "refused", "not_ready: exit code 1: disk not mounted")
        world.advance(at_ms)
    world.advance(30_000)
    node = world.node("n-000001")
    assert node.retire_reason is RetireReason.BOOT_FAILED
    assert node.readiness is not None
    assert "disk not mounted" in node.readiness.detail
    (breaker,) = world.fleet.breakers.in_order()
    assert breaker.failures[-1].code == "never_ready"
    assert "disk not mounted" in breaker.failures[-1].message
    assert breaker.stopped_at_ms is not None


def test_an_agent_that_does_not_answer_its_check_is_given_up_as_well(stable: NewStable) -> None:
    world = booted(stable)
    world.advance(30_000)
    assert world.node("n-000001").retire_reason is RetireReason.BOOT_FAILED
    assert "no try has had a result" in world.fleet.breakers["p/cloud"].failures[-1].message


def test_a_machine_of_ours_may_take_its_time_as_long_as_it_answers(stable: NewStable) -> None:
    world = stable(a_checked_pool(warm_count=0, tiers=(a_fixed_tier(),)))
    joined = world.join()
    assert isinstance(joined, Accepted)
    world.hello(joined.subject_id)
    for at_ms in range(20_000, 100_000, 20_000):
        world.fail(the_try(world), "refused", "not_ready: exit code 1")
        world.advance(at_ms)
    assert world.node(joined.subject_id).phase is NodePhase.STARTING
    for at_ms in (101_000, 102_000):
        world.succeed(the_try(world))
        world.advance(at_ms)
    assert world.node(joined.subject_id).phase is NodePhase.READY


def test_a_check_that_is_taken_out_of_the_configuration_is_waited_for_no_more(
    stable: NewStable,
) -> None:
    world = booted(stable)
    pool = a_checked_pool(ready=None)
    world.configure(pool)
    assert world.node("n-000001").phase is NodePhase.READY


def test_a_check_is_tried_only_once_the_launch_has_been_answered(stable: NewStable) -> None:
    world = stable(a_checked_pool())
    world.hello("n-000001")
    assert world.commands("check_ready") == []
    world.launch()
    assert len(world.commands("check_ready")) == 1


def test_an_answer_that_comes_too_late_changes_nothing(stable: NewStable) -> None:
    world = booted(stable)
    command_id = the_try(world)
    world.advance(30_000)
    world.succeed(command_id)
    assert world.node("n-000001").phase is NodePhase.STOPPING
