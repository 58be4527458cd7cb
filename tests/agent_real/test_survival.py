"""What is killed, cut off or upgraded: work goes on, comes back, or is gone without a rest."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from hostler.agent.strays import marked
from hostler.wire.agent import EndLease, ExecStart, Shutdown
from hostler.wire.work import EndCause
from tests.agent_real.conftest import RealAgent, a_launch, a_start, a_stop
from tests.agent_real.server import TinyServer
from tests.eventually import eventually_async, holds

pytestmark = [pytest.mark.slow, pytest.mark.e2e]

SLEEP = ("sleep", "600")


async def test_a_killed_agent_comes_back_to_the_same_job(
    agent: RealAgent, server: TinyServer
) -> None:
    await agent.start()
    await server.say(a_start(a_launch(*SLEEP)))
    before = await server.reported("a-1", "ready")
    await agent.kill()
    await agent.start()
    hello = server.hellos[-1]
    assert hello.incarnation == server.hellos[0].incarnation + 1
    assert hello.session_id is None
    (after,) = hello.allocations
    assert (after.pid, after.started_at_ms, after.phase) == (
        before.pid,
        before.started_at_ms,
        "ready",
    )
    await server.say(a_start(a_launch(*SLEEP)))
    await server.answered("a-1/start/1")
    await server.say(a_stop())
    ended = (await server.reported("a-1", "ended")).ended
    assert ended is not None
    assert (ended.cause, ended.signal) == (EndCause.STOPPED, "SIGTERM")


async def test_a_job_that_ended_while_nobody_looked_is_reported(
    agent: RealAgent, server: TinyServer
) -> None:
    await agent.start()
    await server.say(a_start(a_launch(*SLEEP)))
    pid = (await server.reported("a-1", "ready")).pid
    await agent.kill()
    assert pid is not None
    os.kill(pid, signal.SIGUSR1)

    async def is_over() -> bool:
        return holds(agent.folder("a-1") / "state", b"ended_at_ms")

    await eventually_async(is_over)
    await agent.start()
    ended = server.hellos[-1].allocations[0].ended
    assert ended is not None
    assert (ended.cause, ended.signal) == (EndCause.EXITED, "SIGUSR1")


async def test_agent_and_supervisor_killed_together_leave_no_job(
    agent: RealAgent, server: TinyServer
) -> None:
    await agent.start()
    await server.say(a_start(a_launch("sh", "-c", "setsid sleep 601 & exec sleep 600")))
    await server.reported("a-1", "ready")

    async def both_run() -> bool:
        return len(marked("HOSTLER_ALLOCATION_ID=a-1")) >= 2

    await eventually_async(both_run)
    supervisor = agent.supervisor_pid("a-1")
    await agent.kill()
    os.kill(supervisor, signal.SIGKILL)
    await agent.start()
    ended = server.hellos[-1].allocations[0].ended
    assert ended is not None
    assert ended.cause is EndCause.SUPERVISOR_LOST
    mark = f"HOSTLER_ALLOCATION_FOLDER={agent.folder('a-1')}/work\0"
    assert marked(mark) == []


async def test_an_upgrade_does_not_touch_the_work(agent: RealAgent, server: TinyServer) -> None:
    await agent.start()
    await server.say(a_start(a_launch(*SLEEP)))
    before = await server.reported("a-1", "ready")
    assert await agent.ends(signal.SIGTERM) == 0
    await agent.start()
    assert server.hellos[-1].allocations[0].pid == before.pid


async def test_ctrl_c_leaves_nothing(agent: RealAgent, server: TinyServer) -> None:
    await agent.start()
    await server.say(a_start(a_launch(*SLEEP)))
    await server.reported("a-1", "ready")
    assert await agent.ends(signal.SIGINT) == 0
    await server.reported("a-1", "ended")
    await agent.nothing_is_left()


async def test_a_server_can_end_the_agent_and_its_work(
    agent: RealAgent, server: TinyServer
) -> None:
    await agent.start()
    await server.say(a_start(a_launch(*SLEEP)))
    await server.reported("a-1", "ready")
    await server.say(Shutdown(reason="retired"))
    assert await agent.ends() == 0
    await agent.nothing_is_left()


async def test_a_cut_off_agent_stops_its_work_and_tells_when_it_is_back(
    agent: RealAgent, server: TinyServer
) -> None:
    server.fence_after_ms = 1_500
    await agent.start()
    await server.say(a_start(a_launch(*SLEEP)))
    await server.say(a_start(a_launch(*SLEEP, disconnect="keep"), "a-2"))
    await server.reported("a-1", "ready")
    kept = await server.reported("a-2", "ready")
    await server.cut_off()

    async def is_stopped() -> bool:
        return holds(agent.folder("a-1") / "state", b"ended_at_ms")

    await eventually_async(is_stopped)
    server.is_deaf = False
    ended = (await server.reported("a-1", "ended")).ended
    assert ended is not None
    assert ended.cause is EndCause.FENCED
    hello = await server.greeted(2)
    assert [each.pid for each in hello.allocations if each.allocation_id == "a-2"] == [kept.pid]


async def test_a_supervisor_keeps_to_the_authority_when_its_agent_is_dead(
    agent: RealAgent, server: TinyServer
) -> None:
    server.fence_after_ms = 1_500
    await agent.start()
    await server.say(a_start(a_launch(*SLEEP)))
    await server.reported("a-1", "ready")
    await agent.kill()
    await agent.nothing_is_left()
    assert "is_fenced=1" in (agent.folder("a-1") / "state").read_text()
    await agent.start()
    ended = server.hellos[-1].allocations[0].ended
    assert ended is not None
    assert ended.cause is EndCause.FENCED


async def test_a_broken_link_loses_and_repeats_nothing(
    agent: RealAgent, server: TinyServer
) -> None:
    await agent.start()
    for number in range(5):
        await server.say(a_start(a_launch("true"), f"a-{number}"))
        await server.break_link()
        await server.greeted(number + 2)
    for number in range(5):
        await server.reported(f"a-{number}", "ended")
    answers = [each for each in server.heard if type(each).__name__ == "CommandAnswered"]
    assert len(answers) == 5
    assert all(each.session_id == "s-1" for each in server.hellos[1:])


async def test_leased_commands_do_not_outlive_a_killed_agent(
    agent: RealAgent, server: TinyServer
) -> None:
    await agent.start()
    argv = ["sh", "-c", "setsid sleep 601 & echo up; sleep 600"]
    await server.say(ExecStart(request_id="r", lease_id="l", lease_epoch=1, argv=argv))
    await server.output_of("r", 3)
    await agent.kill()
    await agent.nothing_is_left()
    await agent.start()

    async def is_removed() -> bool:
        return agent.data.found_leases() == []

    await eventually_async(is_removed)


async def test_the_end_of_a_lease_kills_what_its_commands_left(
    agent: RealAgent, server: TinyServer
) -> None:
    await agent.start()
    # It ends only when the other has left the group.
    runaway = "setsid sh -c 'touch up; exec sleep 601' >/dev/null 2>&1"
    argv = ["sh", "-c", f"{runaway} & until [ -e up ]; do sleep 0.01; done"]
    await server.say(ExecStart(request_id="r", lease_id="l", lease_epoch=1, argv=argv))
    assert (await server.exec_ended("r")).exit_code == 0
    assert len(marked(f"HOSTLER_LEASE_FOLDER={agent.data.leases}/l-1\0")) == 1
    end = EndLease(command_id="end", node_epoch=1, lease_id="l", epoch=1)
    await server.say(end)
    await server.answered("end")
    assert marked(f"HOSTLER_LEASE_FOLDER={agent.data.leases}/l-1\0") == []
    assert agent.data.found_leases() == []


async def test_leased_commands_do_not_outlive_the_authority_of_an_agent_that_hangs(
    agent: RealAgent, server: TinyServer
) -> None:
    server.fence_after_ms = 1_500
    await agent.start()
    argv = ["sh", "-c", "echo up; sleep 600"]
    await server.say(ExecStart(request_id="r", lease_id="l", lease_epoch=1, argv=argv))
    await server.output_of("r", 3)
    assert agent.process is not None
    agent.process.send_signal(signal.SIGSTOP)

    async def is_killed() -> bool:
        return not marked(f"HOSTLER_LEASE_FOLDER={agent.data.leases}/")

    try:
        await eventually_async(is_killed)
    finally:
        agent.process.send_signal(signal.SIGCONT)


async def test_a_job_does_not_outlive_the_authority_when_agent_and_supervisor_are_frozen(
    agent: RealAgent, server: TinyServer
) -> None:
    """Nobody is left to stop it but the warden; what may run on without authority is let be."""
    server.fence_after_ms = 1_500
    await agent.start()
    await server.say(a_start(a_launch(*SLEEP, stop_grace_ms=300)))
    await server.say(a_start(a_launch(*SLEEP, disconnect="keep"), "a-2"))
    bound = (await server.reported("a-1", "ready")).pid
    kept = (await server.reported("a-2", "ready")).pid
    assert agent.process is not None
    frozen = [agent.process.pid, agent.supervisor_pid("a-1"), agent.supervisor_pid("a-2")]
    for pid in frozen:
        os.kill(pid, signal.SIGSTOP)

    async def is_dead() -> bool:
        # Its supervisor is frozen and does not collect it.
        return Path(f"/proc/{bound}/stat").read_text().rpartition(")")[2].split()[0] == "Z"

    await eventually_async(is_dead, what="the warden has ended the job")
    assert Path(f"/proc/{kept}/stat").read_text().rpartition(")")[2].split()[0] == "S"
    for pid in frozen:
        os.kill(pid, signal.SIGCONT)
