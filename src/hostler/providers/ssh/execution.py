"""Commands on a host: one of a lease, and scripts of ours."""

from __future__ import annotations

import shlex
from contextlib import AsyncExitStack
from typing import Final

from hostler.ports.commands import CommandEnd, MachineCommand, StreamName
from hostler.ports.posix import boot_argv, signal_script
from hostler.providers.ssh.connections import HostConnections
from hostler.providers.ssh.session import CommandSession

TOLD_BYTES_MAX: Final = 64 * 1024
"""Of what a script of ours prints; labels are a hundredth of it."""


def command_line(script: str) -> str:
    """Return what the user's login shell, whichever it is, is told."""
    return f"exec {shlex.join(boot_argv(script))}"


class SshExecution:
    """A command that runs on a host."""

    def __init__(
        self,
        connections: HostConnections,
        command: MachineCommand,
        stack: AsyncExitStack,
        session: CommandSession,
    ) -> None:
        self._connections = connections
        self._command = command
        self._stack = stack
        self._session = session

    @classmethod
    async def start(
        cls, connections: HostConnections, script: str, command: MachineCommand
    ) -> SshExecution:
        """Start a command by its script.

        Raises:
            ProviderFailed: It was not started; after `OutcomeUnknown` it may have been.
        """
        stack = AsyncExitStack()
        try:
            session = await stack.enter_async_context(connections.session(command_line(script)))
            await session.write(script.encode())
            if not command.has_stdin:
                await session.write_eof()
        except BaseException:
            await stack.aclose()
            raise
        return cls(connections, command, stack, session)

    async def read(self) -> tuple[StreamName, bytes] | None:
        """See `Execution.read`."""
        return await self._session.read()

    async def write(self, data: bytes) -> None:
        """See `Execution.write`."""
        await self._session.write(data)

    async def write_eof(self) -> None:
        """See `Execution.write_eof`."""
        await self._session.write_eof()

    async def signal(self, name: str) -> None:
        """See `Execution.signal`; over a session of its own, since sshd passes few signals on."""
        await run_script(self._connections, signal_script(self._command, name))

    async def wait(self) -> CommandEnd:
        """See `Execution.wait`."""
        return await self._session.wait()

    async def close(self) -> None:
        """See `Execution.close`."""
        await self._stack.aclose()


async def run_script(connections: HostConnections, script: str) -> tuple[int, str]:
    """Run a script of ours to its end; return its exit code and what it printed.

    Raises:
        ProviderFailed: It was not run; after `OutcomeUnknown` it may have been.
    """
    async with connections.session(command_line(script)) as session:
        await session.write(script.encode())
        await session.write_eof()
        told = bytearray()
        while (piece := await session.read()) is not None:
            stream, data = piece
            if stream == "stdout" and len(told) < TOLD_BYTES_MAX:
                told += data
        end = await session.wait()
        code = 255 if end.exit_code is None else end.exit_code
        return code, told.decode(errors="replace")
