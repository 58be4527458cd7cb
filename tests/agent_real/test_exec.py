"""Leased commands on a real agent: streams in order, with back-pressure, to the true end."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

import pytest

from hostler.agent.strays import marked
from hostler.wire.agent import (
    STREAM_CHUNK_BYTES_MAX,
    STREAM_WINDOW_BYTES,
    CancelStream,
    CheckReady,
    EndLease,
    ExecInput,
    ExecOutput,
    ExecSignal,
    ExecStart,
    StreamCredit,
)
from tests.agent_real.conftest import RealAgent
from tests.agent_real.server import TinyServer

pytestmark = [pytest.mark.slow, pytest.mark.e2e]


def an_exec(*argv: str, **more: object) -> ExecStart:
    return ExecStart(
        request_id="r",
        lease_id="l",
        lease_epoch=1,
        argv=list(argv),
        **more,  # type: ignore[arg-type]  # a test's short hand
    )


async def test_a_command_gets_input_and_gives_output_and_code(
    agent: RealAgent, server: TinyServer
) -> None:
    await agent.start()
    await server.say(an_exec("sh", "-c", "cat; echo no >&2; exit 9", has_stdin=True))
    await server.say(ExecInput(request_id="r", data=b"one "))
    await server.say(ExecInput(request_id="r", data=b"two", eof=True))
    assert (await server.exec_ended("r")).exit_code == 9
    streams = {"stdout": b"", "stderr": b""}
    for each in server.heard:
        if isinstance(each, ExecOutput):
            streams[each.stream] += each.data
    assert streams == {"stdout": b"one two", "stderr": b"no\n"}


async def test_much_output_arrives_whole_and_in_order(agent: RealAgent, server: TinyServer) -> None:
    await agent.start()
    code = "import sys; sys.stdout.write(''.join(f'{n}\\n' for n in range(400_000)))"
    await server.say(an_exec(sys.executable, "-c", code))
    assert (await server.exec_ended("r")).exit_code == 0
    expected = "".join(f"{n}\n" for n in range(400_000)).encode()
    assert hashlib.sha256(server.output("r")).digest() == hashlib.sha256(expected).digest()
    assert all(
        len(each.data) <= STREAM_CHUNK_BYTES_MAX
        for each in server.heard
        if isinstance(each, ExecOutput)
    )


async def test_output_survives_a_broken_link(agent: RealAgent, server: TinyServer) -> None:
    await agent.start()
    code = "import sys; sys.stdout.write(''.join(f'{n}\\n' for n in range(200_000)))"
    await server.say(an_exec(sys.executable, "-c", code))
    for count in range(3):
        await server.output_of("r", (count + 1) * 100_000)
        await server.break_link()
        await server.greeted(count + 2)
    assert (await server.exec_ended("r")).exit_code == 0
    assert server.output("r") == "".join(f"{n}\n" for n in range(200_000)).encode()


async def test_a_reader_that_stops_reading_stops_the_writer(
    agent: RealAgent, server: TinyServer
) -> None:
    server.gives_credit = False
    await agent.start()
    await server.say(an_exec("yes"))
    # The silent stderr keeps room for one chunk of its own.
    await server.output_of("r", STREAM_WINDOW_BYTES - STREAM_CHUNK_BYTES_MAX)
    # Another stream is not held up by it, so everything before its answer has been heard.
    other = ExecStart(request_id="q", lease_id="l", lease_epoch=1, argv=["echo", "hi"])
    await server.say(other)
    assert (await server.exec_ended("q")).exit_code == 0
    stopped_at_bytes = len(server.output("r"))
    assert stopped_at_bytes <= STREAM_WINDOW_BYTES
    await server.say(StreamCredit(request_id="r", bytes_count=10))
    await server.output_of("r", stopped_at_bytes + 10)
    await server.say(CancelStream(request_id="r"))
    assert (await server.exec_ended("r")).signal == "SIGKILL"


async def test_a_signal_reaches_the_command(agent: RealAgent, server: TinyServer) -> None:
    await agent.start()
    await server.say(
        an_exec("sh", "-c", "trap 'exit 5' INT; echo up; while :; do sleep 0.05; done")
    )
    await server.output_of("r", 3)
    await server.say(ExecSignal(request_id="r", signal="SIGINT"))
    assert (await server.exec_ended("r")).exit_code == 5


@pytest.mark.parametrize(
    ("argv", "status", "told"),
    [
        (("no-such-program",), 127, b"hostler: no-such-program: there is no such program\n"),
        (("/no/such/program",), 127, b"hostler: /no/such/program: no such file or directory\n"),
        (("/etc/passwd",), 126, b"hostler: /etc/passwd: permission denied\n"),
    ],
)
async def test_a_command_that_cannot_be_run_ends_as_in_a_shell(
    agent: RealAgent, server: TinyServer, argv: tuple[str, ...], status: int, told: bytes
) -> None:
    await agent.start()
    await server.say(an_exec(*argv))
    ended = await server.exec_ended("r")
    assert (ended.exit_code, ended.error) == (status, None)
    assert server.output("r") == told


async def test_a_lost_session_kills_its_commands(agent: RealAgent, server: TinyServer) -> None:
    await agent.start()
    await server.say(an_exec("sh", "-c", "echo up; sleep 600"))
    await server.output_of("r", 3)
    await server.forget()
    await server.greeted(2)
    await server.say(ExecStart(request_id="q", lease_id="l", lease_epoch=1, argv=["true"]))
    assert (await server.exec_ended("q")).exit_code == 0


@pytest.mark.parametrize("stream", ["", " >/dev/null 2>&1"])
async def test_a_command_ends_though_somebody_holds_its_output_and_the_lease_ends_him(
    agent: RealAgent, server: TinyServer, tmp_path: Path, stream: str
) -> None:
    await agent.start()
    note = tmp_path / "there"
    left = f"setsid sh -c 'echo >{note}; exec sleep 600'{stream} & until test -e {note}; do :; done"
    await server.say(an_exec("sh", "-c", f"{left}; echo out"))
    assert (await server.exec_ended("r")).exit_code == 0
    assert server.output("r") == b"out\n"
    mark = f"HOSTLER_LEASE_FOLDER={agent.data.leases}/"
    assert len(marked(mark)) == 1
    await server.say(EndLease(command_id="l/end/1", node_epoch=1, lease_id="l", epoch=1))
    await server.answered("l/end/1")
    assert not marked(mark)


async def test_a_ready_check_tells_how_it_went_and_sends_no_output(
    agent: RealAgent, server: TinyServer
) -> None:
    await agent.start()
    script = "head -c 300000 /dev/zero | tr '\\0' x; echo; echo not mounted >&2; exit 3"
    for number, argv in enumerate((["true"], ["sh", "-c", script], ["no-such-program"])):
        check = CheckReady(command_id=f"c{number}", node_epoch=1, argv=argv, timeout_ms=20_000)
        await server.say(check)
    assert (await server.answered("c0")).outcome == "done"
    failed = await server.answered("c1")
    assert (failed.outcome, failed.code) == ("refused", "not_ready")
    assert failed.message.startswith("exit code 3: ")
    assert failed.message.endswith("not mounted")
    assert "no-such-program" in (await server.answered("c2")).message
    assert not any(isinstance(each, ExecOutput) for each in server.heard)
