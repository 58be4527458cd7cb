"""Real jobs under real supervisors: they start, tell, stop, and leave nothing."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import socket
from pathlib import Path

import pytest

from hostler.wire.agent import ReadLogs
from hostler.wire.work import EndCause, HttpReadiness, SdNotifyReadiness
from tests.agent_real.conftest import RealAgent, a_launch, a_script, a_start, a_stop
from tests.agent_real.server import TinyServer
from tests.eventually import eventually_async, holds

pytestmark = [pytest.mark.slow, pytest.mark.e2e]

STUBBORN = """
import signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("deaf", flush=True)
while True: time.sleep(60)
"""

WITH_GRANDCHILD = """
import os, subprocess, time
# One in our group, and one that runs away: own session, own group, orphan.
subprocess.Popen(["sleep", "600"])
subprocess.Popen(["sh", "-c", "setsid sleep 601 & exit 0"]).wait()
print("born", flush=True)
while True: time.sleep(60)
"""


async def log_has(agent: RealAgent, text: bytes, allocation_id: str = "a-1") -> None:
    log = agent.folder(allocation_id) / "log"

    async def probe() -> bool:
        return holds(log, text)

    await eventually_async(probe, what=f"{text!r} in {log}")


async def test_a_job_runs_to_its_end_and_tells_its_code(
    agent: RealAgent, server: TinyServer
) -> None:
    await agent.start()
    await server.say(a_start(a_script("print('hello'); raise SystemExit(7)")))
    ended = (await server.reported("a-1", "ended")).ended
    assert ended is not None
    assert (ended.cause, ended.exit_code) == (EndCause.EXITED, 7)
    assert (await server.answered("a-1/start/1")).outcome == "done"
    await server.say(ReadLogs(request_id="r", allocation_id="a-1"))
    assert await server.output_of("r", 6) == b"hello\n"


async def test_a_job_knows_who_it_is_and_little_else(agent: RealAgent, server: TinyServer) -> None:
    await agent.start(machine_id="m-1")
    launch = a_launch(
        "/usr/bin/env",
        "-0",
        env={"OUT": "${HOSTLER_JOB}-${HOSTLER_REPLICA_INDEX}.m3u8"},
        devices={"video-in": ["sdi0", "sdi1"]},
    )
    await server.say(a_start(launch))
    await server.reported("a-1", "ended")
    log = (agent.folder("a-1") / "log").read_text()
    env = dict(entry.split("=", 1) for entry in log.split("\0") if entry)
    work = str(agent.folder("a-1") / "work")
    assert env.pop("PATH")
    assert env.pop("NOTIFY_SOCKET")
    assert env == {
        "HOME": work,
        "TMPDIR": str(agent.folder("a-1") / "tmp"),
        "LANG": "C.UTF-8",
        "OUT": "encoder-0.m3u8",
        "HOSTLER_ALLOCATION_FOLDER": work,
        "HOSTLER_ALLOCATION_ID": "a-1",
        "HOSTLER_BUNDLE": "live",
        "HOSTLER_CONFIG": str(agent.folder("a-1") / "config"),
        "HOSTLER_DEVICE_VIDEO_IN": "sdi0,sdi1",
        "HOSTLER_EPOCH": "1",
        "HOSTLER_FLEET_ID": "f",
        "HOSTLER_JOB": "encoder",
        "HOSTLER_MACHINE_ID": "m-1",
        "HOSTLER_NODE_ID": agent.node_id,
        "HOSTLER_NOTICE": str(agent.data.path / "notice"),
        "HOSTLER_POOL": "",
        "HOSTLER_REPLICA": "",
        "HOSTLER_REPLICA_INDEX": "0",
        "HOSTLER_ROLE": "primary",
        "HOSTLER_ROLE_FILE": str(agent.folder("a-1") / "role"),
        "HOSTLER_TIER": "",
    }


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["/no/such/program"], "cannot run /no/such/program: No such file or directory"),
        (["echo", "${HOSTLER_TYPO}"], "${HOSTLER_TYPO} does not exist"),
    ],
)
async def test_a_job_that_cannot_start_says_why(
    agent: RealAgent, server: TinyServer, argv: list[str], message: str
) -> None:
    await agent.start()
    await server.say(a_start(a_launch(*argv)))
    ended = (await server.reported("a-1", "ended")).ended
    assert ended is not None
    assert ended.cause is EndCause.START_FAILED
    assert message in ended.message


async def test_a_machine_without_room_for_a_job_refuses_it(
    agent: RealAgent, server: TinyServer
) -> None:
    await agent.start()
    folder = agent.data.allocations
    folder.rmdir()
    folder.write_text("")  # as good as a full disk, also for root
    await server.say(a_start(a_launch("sleep", "60")))
    ended = (await server.reported("a-1", "ended")).ended
    assert ended is not None
    assert ended.cause is EndCause.REJECTED
    assert "Not a directory" in ended.message
    folder.unlink()
    folder.mkdir()
    await server.say(a_start(a_launch("sleep", "60"), allocation_id="a-2"))
    await server.reported("a-2", "ready")


async def test_a_stop_is_gentle_first(agent: RealAgent, server: TinyServer) -> None:
    await agent.start()
    await server.say(a_start(a_launch("sleep", "600")))
    await server.reported("a-1", "ready")
    await server.say(a_stop(grace_ms=600_000))
    ended = (await server.reported("a-1", "ended")).ended
    assert ended is not None
    assert (ended.cause, ended.signal) == (EndCause.STOPPED, "SIGTERM")
    assert (await server.answered("a-1/stop/1")).outcome == "done"


async def test_a_job_that_ignores_the_stop_is_killed_after_the_grace(
    agent: RealAgent, server: TinyServer
) -> None:
    await agent.start()
    await server.say(a_start(a_script(STUBBORN)))
    await log_has(agent, b"deaf")
    await server.say(a_stop(grace_ms=300))
    ended = (await server.reported("a-1", "ended")).ended
    assert ended is not None
    assert (ended.cause, ended.signal) == (EndCause.STOPPED, "SIGKILL")


async def test_descendants_that_ran_away_die_with_the_job(
    agent: RealAgent, server: TinyServer
) -> None:
    await agent.start()
    await server.say(a_start(a_script(WITH_GRANDCHILD)))
    await log_has(agent, b"born")
    assert len(agent.processes()) == 5  # warden, supervisor, job and its two
    await server.say(a_stop())
    await server.reported("a-1", "ended")
    assert len(agent.processes()) <= 2


async def test_a_killed_supervisor_takes_the_job_along_and_is_told(
    agent: RealAgent, server: TinyServer
) -> None:
    await agent.start()
    await server.say(a_start(a_script(WITH_GRANDCHILD)))
    await log_has(agent, b"born")
    os.kill(agent.supervisor_pid("a-1"), signal.SIGKILL)
    ended = (await server.reported("a-1", "ended")).ended
    assert ended is not None
    assert ended.cause is EndCause.SUPERVISOR_LOST
    assert len(agent.processes()) == 1  # the warden


async def test_a_supervisor_that_hangs_is_killed(agent: RealAgent, server: TinyServer) -> None:
    await agent.start()
    await server.say(a_start(a_launch("sleep", "600")))
    await server.reported("a-1", "ready")
    os.kill(agent.supervisor_pid("a-1"), signal.SIGSTOP)
    await server.say(a_stop(grace_ms=100))
    ended = (await server.reported("a-1", "ended")).ended
    assert ended is not None
    assert ended.cause is EndCause.SUPERVISOR_LOST


async def test_logs_are_bounded_and_followed_across_rotation(
    agent: RealAgent, server: TinyServer
) -> None:
    await agent.start()
    code = """
import time
for number in range(3000):
    print(f"line {number:06}", flush=True)
print("done", flush=True)
time.sleep(600)
"""
    launch = a_script(code, log_file_bytes_max=4_096, log_file_count_max=3)
    await server.say(a_start(launch))
    await log_has(agent, b"done")
    files = sorted(each.name for each in agent.folder("a-1").glob("log*"))
    assert files == ["log", "log.1", "log.2"]
    assert all((agent.folder("a-1") / each).stat().st_size <= 4_096 for each in files)
    await server.say(ReadLogs(request_id="all", allocation_id="a-1"))
    await server.say(ReadLogs(request_id="tail", allocation_id="a-1", tail_bytes=17))
    assert await server.output_of("tail", 17) == b"line 002999\ndone\n"
    kept = sum((agent.folder("a-1") / each).stat().st_size for each in files)
    whole = await server.output_of("all", kept)
    assert len(whole) == kept
    numbers = [int(each[5:]) for each in whole.split(b"\n")[1:] if each.startswith(b"line")]
    assert numbers == list(range(numbers[0], 3_000))


async def test_a_follower_sees_everything_to_the_end(agent: RealAgent, server: TinyServer) -> None:
    await agent.start()
    code = """
import sys, time
for number in range(200):
    print(f"line {number:06}", flush=True)
    time.sleep(0.002)
"""
    launch = a_script(code, log_file_bytes_max=400, log_file_count_max=8)
    await server.say(a_start(launch))
    await server.say(ReadLogs(request_id="f", allocation_id="a-1", follow=True))
    await server.reported("a-1", "ended")
    whole = await server.output_of("f", 200 * 12)
    assert whole == b"".join(b"line %06d\n" % number for number in range(200))


async def test_sd_notify_makes_ready(agent: RealAgent, server: TinyServer) -> None:
    await agent.start()
    code = """
import os, socket, time
with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
    notify.sendto(b"STATUS=warm\\nREADY=1\\n", os.environ["NOTIFY_SOCKET"])
time.sleep(600)
"""
    await server.say(a_start(a_script(code, readiness=SdNotifyReadiness())))
    await server.reported("a-1", "running")
    assert (await server.reported("a-1", "ready")).pid is not None
    assert "status=warm" in (agent.folder("a-1") / "state").read_text()


async def test_http_makes_ready_and_unready(agent: RealAgent, server: TinyServer) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    code = f"""
import http.server
class Handler(http.server.BaseHTTPRequestHandler):
    count = 0
    def do_GET(self):
        Handler.count += 1
        self.send_response(200 if 2 < Handler.count < 6 else 503)
        self.end_headers()
http.server.HTTPServer(("127.0.0.1", {port}), Handler).serve_forever()
"""
    await agent.start()
    readiness = HttpReadiness(port=port, path="/ready", interval_ms=50, timeout_ms=1_000)
    await server.say(a_start(a_script(code, readiness=readiness)))
    await server.reported("a-1", "ready")
    await server.reported("a-1", "unready")


async def test_folders_with_long_names_work(tmp_path: Path, server: TinyServer) -> None:
    deep = RealAgent(tmp_path / ("x" * 100) / ("y" * 100), server)
    await deep.start()
    code = """
import os, socket
with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
    notify.sendto(b"READY=1", os.environ["NOTIFY_SOCKET"])
import time; time.sleep(600)
"""
    await server.say(a_start(a_script(code, readiness=SdNotifyReadiness())))
    await server.reported("a-1", "ready")
    assert await deep.ends(signal.SIGINT) == 0
    await deep.nothing_is_left()


async def test_a_full_disk_costs_output_but_not_the_job(
    agent: RealAgent, server: TinyServer
) -> None:
    await agent.start()
    code = """
import pathlib, time
while not pathlib.Path("go").exists():
    time.sleep(0.01)
print("x" * 100_000)
"""
    await server.say(a_start(a_script(code)))
    await server.reported("a-1", "ready")
    # As on a full disk, the supervisor's log takes nothing beyond this.
    resource.prlimit(agent.supervisor_pid("a-1"), resource.RLIMIT_FSIZE, (4_096, 4_096))
    (agent.folder("a-1") / "work" / "go").touch()
    ended = (await server.reported("a-1", "ended")).ended
    assert ended is not None
    assert ended.exit_code == 0
    assert (agent.folder("a-1") / "log").stat().st_size == 4_096


async def test_a_flood_of_output_does_not_delay_a_stop(
    agent: RealAgent, server: TinyServer
) -> None:
    await agent.start()
    launch = a_launch("yes", log_file_bytes_max=100_000, log_file_count_max=2)
    await server.say(a_start(launch))
    await log_has(agent, b"y\n")
    await server.say(a_stop(grace_ms=600_000))
    await server.reported("a-1", "ended")
    assert sum(each.stat().st_size for each in agent.folder("a-1").glob("log*")) <= 200_000


async def test_a_paused_job_hears_the_stop(agent: RealAgent, server: TinyServer) -> None:
    await agent.start()
    await server.say(a_start(a_launch("sleep", "600")))
    pid = (await server.reported("a-1", "ready")).pid
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    await server.say(a_stop(grace_ms=600_000))
    ended = (await server.reported("a-1", "ended")).ended
    assert ended is not None
    assert ended.signal == "SIGTERM"


async def test_many_jobs_start_at_once(agent: RealAgent, server: TinyServer) -> None:
    await agent.start()
    names = [f"a-{number}" for number in range(12)]
    for name in names:
        await server.say(a_start(a_launch("sleep", "600"), name))
    await asyncio.gather(*(server.reported(name, "ready") for name in names))
