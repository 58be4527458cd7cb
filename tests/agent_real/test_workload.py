"""The examples of docs/workload.md, run as real jobs, and what their files look like."""

import asyncio
import json
import os
import re
import signal
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from hostler.wire.agent import AssignRole, ConfigureAllocation
from hostler.wire.work import Config, Launch, SdNotifyReadiness
from tests.agent_real.conftest import RealAgent, a_launch, a_script, a_start, a_stop
from tests.agent_real.server import TinyServer
from tests.agent_real.test_jobs import log_has
from tests.eventually import eventually_async

pytestmark = [pytest.mark.slow, pytest.mark.e2e]

PAGE = Path(__file__).parents[2] / "docs" / "workload.md"

HEEDS_SIGNAL = """
import os, signal, time
signal.signal(signal.SIGHUP, lambda *_: print("told", open(os.environ["HOSTLER_CONFIG"] + "/number").read(), flush=True))
print("listens", flush=True)
while True: time.sleep(60)
"""  # noqa: E501 - a job

DEAF_AT_FIRST = """
import os, signal, sys, time
print("deaf", flush=True)
while not os.path.exists(os.environ["HOME"] + "/wake"): time.sleep(0.02)
signal.signal(signal.SIGHUP, lambda *_: print("told", flush=True))
while True: time.sleep(60)
"""

FOLLOWS_ITS_ROLE = """
from hostler import workload
workload.on_role(lambda role: print("is", role, flush=True), every_s=0.05)
while not workload.stopping(1): pass
"""

RAISES_ONCE = """
from hostler import workload
def take(config):
    if config.number == 2: raise ValueError("not this one")
    print("took", config.number, flush=True)
workload.on_change(take, every_s=0.05)
while not workload.stopping(1): pass
"""


def example(language: str) -> str:
    """Return the first example in a language."""
    found = re.search(rf"```{language}\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None
    return found.group(1)


async def start(server: TinyServer, launch: Launch, config: Config | None) -> None:
    await server.say(replace(a_start(launch), config=config))


async def configure(server: TinyServer, config: Config) -> None:
    command_id = f"a-1/configure/{config.number}"
    await server.say(
        ConfigureAllocation(
            command_id=command_id, node_epoch=1, allocation_id="a-1", epoch=1, config=config
        )
    )
    assert (await server.answered(command_id)).outcome == "done"


async def applied(server: TinyServer, number: int) -> None:
    async def probe() -> bool:
        reports = [each.report for each in server.heard if hasattr(each, "report")]
        return any(each.config_applied == number for each in reports)

    await eventually_async(probe, what=f"the job works by {number}")


async def test_the_example_in_python_follows_its_configuration_and_stops(
    agent: RealAgent, server: TinyServer
) -> None:
    await agent.start()
    launch = a_script(example("python"), readiness=SdNotifyReadiness())
    await start(server, launch, Config(number=1, values_json='{"title":"news"}'))
    await server.reported("a-1", "ready")
    await log_has(agent, b"playing news at 1")
    await applied(server, 1)
    config = Config(number=3, values_json='{"title":"film"}', files={"intro.txt": "hi"})
    await configure(server, config)
    await log_has(agent, b"playing film at 3")
    await applied(server, 3)
    agent.data.write_notice("terminate", 1)
    await log_has(agent, b"this machine goes: terminate")
    await server.say(a_stop())
    ended = (await server.reported("a-1", "ended")).ended
    assert ended is not None
    assert ended.exit_code == 0
    await log_has(agent, b"done")


async def test_the_example_in_shell_follows_its_configuration_and_stops(
    agent: RealAgent, server: TinyServer
) -> None:
    await agent.start()
    await start(server, a_launch("sh", "-c", example("sh")), None)
    await log_has(agent, b"works by 0: ")
    await configure(server, Config(number=2, values_json='{"a":1}'))
    await log_has(agent, b'works by 2: {"a":1}')
    await server.say(a_stop())
    ended = (await server.reported("a-1", "ended")).ended
    assert ended is not None
    assert ended.exit_code == 0


async def test_the_example_runs_without_hostler_too(tmp_path: Path) -> None:
    code = example("python").replace("workload.stopping(within_s=1)", "workload.stopping()")
    code = code.replace("    pass  # the work", "    break")
    launch_env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    output = await _output_of(code, launch_env)
    assert output == b" () on \nplaying nothing at 0\ndone\n"


async def test_the_main_process_is_told_by_the_signal_that_it_asked_for(
    agent: RealAgent, server: TinyServer
) -> None:
    await agent.start()
    await start(server, a_script(HEEDS_SIGNAL), Config(number=1))
    await log_has(agent, b"listens")
    await configure(server, Config(number=2, signal="SIGHUP"))
    await log_has(agent, b"told 2")


async def test_a_change_never_kills_a_job_that_does_not_listen_yet(
    agent: RealAgent, server: TinyServer
) -> None:
    await agent.start()
    await start(server, a_script(DEAF_AT_FIRST), Config(number=1))
    await log_has(agent, b"deaf")
    await configure(server, Config(number=2, signal="SIGHUP"))
    (agent.folder("a-1") / "work" / "wake").touch()
    await log_has(agent, b"told")


async def test_what_one_agent_could_not_tell_yet_the_next_one_tells(
    agent: RealAgent, server: TinyServer
) -> None:
    await agent.start()
    await start(server, a_script(DEAF_AT_FIRST), Config(number=1))
    await log_has(agent, b"deaf")
    await configure(server, Config(number=2, signal="SIGHUP"))
    await agent.kill()
    await server.forget()
    await agent.start()
    (agent.folder("a-1") / "work" / "wake").touch()
    await log_has(agent, b"told")


async def test_what_a_function_raises_is_in_the_log_and_the_next_change_is_taken(
    agent: RealAgent, server: TinyServer
) -> None:
    await agent.start()
    await start(server, a_script(RAISES_ONCE), Config(number=1))
    await log_has(agent, b"took 1")
    await configure(server, Config(number=2))
    await log_has(agent, b"ValueError: not this one")
    await configure(server, Config(number=3))
    await log_has(agent, b"took 3")
    await applied(server, 3)
    reports = [each.report for each in server.heard if hasattr(each, "report")]
    assert not any(each.config_applied == 2 for each in reports)


async def test_files_are_the_owners_and_two_generations_of_them_are_kept(
    agent: RealAgent, server: TinyServer
) -> None:
    await agent.start()
    await start(server, a_launch("sleep", "600"), Config(number=1, files={"a": "1"}))
    await server.reported("a-1", "ready")
    for number in (2, 3):
        await configure(server, Config(number=number, files={"a": str(number)}))
    folder = agent.folder("a-1")
    assert sorted(each.name for each in folder.glob("config*")) == [
        "config",
        "config-2",
        "config-3",
    ]
    link = folder / "config"
    assert (link / "files" / "a").read_text() == "3"
    assert json.loads((link / "values.json").read_text()) == {}
    assert {each.stat().st_mode & 0o77 for each in link.rglob("*") if each.is_file()} == {0}


async def test_the_next_agent_knows_what_the_job_has_and_works_by(
    agent: RealAgent, server: TinyServer
) -> None:
    await agent.start()
    launch = a_script(example("python"), readiness=SdNotifyReadiness())
    await start(server, launch, Config(number=1))
    await configure(server, Config(number=2))
    await applied(server, 2)
    await agent.kill()
    await server.forget()
    await agent.start()
    (report,) = server.hellos[-1].allocations
    assert (report.config_written, report.config_applied) == (2, 2)
    await configure(server, Config(number=4, values_json='{"title":"late"}'))
    await log_has(agent, b"playing late at 4")
    await agent.ends(signal.SIGINT)


async def _output_of(code: str, env: dict[str, str]) -> bytes:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", code, env=env, stdout=asyncio.subprocess.PIPE
    )
    async with asyncio.timeout(30):
        output, _ = await process.communicate()
    assert process.returncode == 0
    return output


async def test_a_job_hears_that_it_is_the_primary_now(agent: RealAgent, server: TinyServer) -> None:
    await agent.start()
    launch = a_script(FOLLOWS_ITS_ROLE)
    await start(server, replace(launch, identity=replace(launch.identity, role="backup")), None)
    await log_has(agent, b"is backup")
    command = AssignRole(
        command_id="a-1/role/1",
        node_epoch=1,
        allocation_id="a-1",
        epoch=1,
        role="primary",
        term=1,
    )
    await server.say(command)
    assert (await server.answered("a-1/role/1")).outcome == "done"
    await log_has(agent, b"is primary")
