"""The suite for providers that run commands in their machines.

It asks for no more than `cat`, `echo`, `env`, `true`, `false` and `sleep` to be there.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from typing import Final

import pytest

from hostler.base.ids import MachineId
from hostler.ports.commands import (
    CommandEnd,
    CommandProvider,
    Execution,
    MachineCommand,
)
from hostler.ports.provider import ProviderFailed
from hostler.testing.provider_conformance.lab import ProviderLab
from hostler.testing.provider_conformance.suite import cut_short, end

PROBE_TRIES_MAX: Final = 600
"""Of asking whether commands can run, 100 ms apart."""

BIG_BYTES: Final = 4 * 2**20
"""More than any pipe, window or buffer on the way holds."""

_NUMBERS = count(1)


class Booted:
    """A machine in which commands run."""

    def __init__(self, provider: CommandProvider, machine_id: MachineId, leases: str) -> None:
        self.provider = provider
        self.machine_id = machine_id
        self.leases = leases

    async def start(
        self, *argv: str, lease: str = "l-1-1", has_stdin: bool = False, **env: str
    ) -> Execution:
        """Start a command under a lease."""
        command = MachineCommand(
            command_id=f"c{next(_NUMBERS)}",
            folder=f"{self.leases}/{lease}",
            argv=list(argv),
            env=env,
            has_stdin=has_stdin,
        )
        return await self.provider.exec(self.machine_id, command)

    async def run(
        self, *argv: str, stdin: bytes | None = None, **env: str
    ) -> tuple[CommandEnd, bytes, bytes]:
        """Run a command to its end; return that, its output and its errors."""
        execution = await self.start(*argv, has_stdin=stdin is not None, **env)
        return await finish(execution, stdin)


async def finish(execution: Execution, stdin: bytes | None) -> tuple[CommandEnd, bytes, bytes]:
    """Feed a command and read it to its end."""

    async def feed() -> None:
        if stdin:
            await execution.write(stdin)
        await execution.write_eof()

    feeding = asyncio.ensure_future(feed()) if stdin is not None else None
    found = {"stdout": bytearray(), "stderr": bytearray()}
    try:
        while (piece := await execution.read()) is not None:
            found[piece[0]] += piece[1]
        ended = await execution.wait()
    finally:
        if feeding is not None:
            feeding.cancel()
            await asyncio.gather(feeding, return_exceptions=True)
        await execution.close()
    return ended, bytes(found["stdout"]), bytes(found["stderr"])


@asynccontextmanager
async def booted(lab: ProviderLab) -> AsyncIterator[Booted]:
    """A machine for the time of a block."""
    provider = await lab.open()
    assert isinstance(provider, CommandProvider)
    machine = await provider.launch(lab.request("n-1/launch/1"))
    for _ in range(PROBE_TRIES_MAX):
        try:
            found = await provider.probe(machine.machine_id)
            break
        except ProviderFailed:
            await asyncio.sleep(0.1)
    else:
        raise AssertionError(f"no commands run in {machine.machine_id}")
    yield Booted(provider, machine.machine_id, f"{found.work_folder}/leases")
    await end(provider, machine.machine_id)
    await provider.close()


@pytest.mark.anyio
class CommandConformance:
    """The whole suite; a provider with commands passes it besides `ProviderConformance`."""

    @pytest.fixture
    def anyio_backend(self) -> str:
        """Run the suite on asyncio, as the engine is."""
        return "asyncio"

    async def test_output_and_exit_code_come_back(self, lab: ProviderLab) -> None:
        async with booted(lab) as machine:
            assert await machine.run("echo", "a  b", "c") == (
                CommandEnd(exit_code=0),
                b"a  b c\n",
                b"",
            )
            assert (await machine.run("false"))[0] == CommandEnd(exit_code=1)

    async def test_arguments_are_no_shells_business(self, lab: ProviderLab) -> None:
        hard = """$HOME `x` "q" 'q' \\ * ; & | > \n\tü"""
        async with booted(lab) as machine:
            _, told, _ = await machine.run("echo", hard)
            assert told.decode() == f"{hard}\n"

    async def test_a_program_that_is_not_there_exits_with_127(self, lab: ProviderLab) -> None:
        async with booted(lab) as machine:
            ended, _, errors = await machine.run("no-such-program")
            assert ended == CommandEnd(exit_code=127)
            assert b"no-such-program" in errors

    async def test_input_goes_in_and_its_end_too(self, lab: ProviderLab) -> None:
        data = bytes(range(256)) * (BIG_BYTES // 256)
        async with booted(lab) as machine:
            assert await machine.run("cat", stdin=data) == (CommandEnd(exit_code=0), data, b"")
            assert await machine.run("cat", stdin=b"") == (CommandEnd(exit_code=0), b"", b"")
            # Without input there is none to wait for.
            assert (await machine.run("cat"))[0] == CommandEnd(exit_code=0)

    async def test_the_environment_goes_in(self, lab: ProviderLab) -> None:
        async with booted(lab) as machine:
            ended, told, _ = await machine.run("env", GREETING="two words\nand 'a line'")
            assert ended == CommandEnd(exit_code=0)
            assert b"GREETING=two words\nand 'a line'\n" in told

    async def test_a_signal_ends_a_command(self, lab: ProviderLab) -> None:
        async with booted(lab) as machine:
            sleeping = await machine.start("sleep", "600")
            await sleeping.signal("SIGTERM")
            ended, _, _ = await finish(sleeping, None)
            assert ended in (CommandEnd(signal="SIGTERM"), CommandEnd(exit_code=143))

    async def test_commands_run_beside_each_other(self, lab: ProviderLab) -> None:
        async with booted(lab) as machine:
            sleeping = await machine.start("sleep", "600")
            results = await asyncio.gather(*[machine.run("echo", str(i)) for i in range(4)])
            assert [told for _, told, _ in results] == [f"{i}\n".encode() for i in range(4)]
            await sleeping.signal("SIGKILL")
            await finish(sleeping, None)

    async def test_a_command_that_is_let_go_does_no_harm(self, lab: ProviderLab) -> None:
        async with booted(lab) as machine:
            sleeping = await machine.start("sleep", "600")
            await cut_short(sleeping.read())
            await sleeping.close()
            await cut_short(machine.start("sleep", "600"))
            assert (await machine.run("true"))[0] == CommandEnd(exit_code=0)

    async def test_clearing_ends_what_runs_under_a_lease(self, lab: ProviderLab) -> None:
        async with booted(lab) as machine:
            one = await machine.start("cat", lease="l-1-1", has_stdin=True)
            two = await machine.start("cat", lease="l-1-10", has_stdin=True)
            for each in (one, two):
                await each.write(b"there")  # only what has begun to run can be found
                assert await each.read() == ("stdout", b"there")
            await machine.provider.clear(machine.machine_id, f"{machine.leases}/l-1-1")
            ended, _, _ = await finish(one, None)
            assert ended in (CommandEnd(signal="SIGKILL"), CommandEnd(exit_code=137))
            # The other's name begins the same, and it is none of this one's business.
            reading = asyncio.ensure_future(two.read())
            await machine.provider.clear(machine.machine_id, f"{machine.leases}/l-1-1")
            assert not reading.done()
            await machine.provider.clear(machine.machine_id, machine.leases)
            assert await reading is None
            await two.close()

    async def test_a_machine_that_is_gone_runs_nothing(self, lab: ProviderLab) -> None:
        async with booted(lab) as machine:
            await end(machine.provider, machine.machine_id)
            with pytest.raises(ProviderFailed):
                await machine.provider.probe(machine.machine_id)
            with pytest.raises(ProviderFailed):
                await machine.start("true")
