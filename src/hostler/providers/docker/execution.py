"""A command in a container: one connection to the engine, and a second one for each signal."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Final

from hostler.ports.commands import CommandEnd, MachineCommand, StreamName
from hostler.ports.posix import signal_script
from hostler.ports.provider import OutcomeUnknown
from hostler.providers.docker.engine_api import Absent, EngineApi

HEADER_BYTES: Final = 8
"""Before each piece of output: the stream's number, three zeros, the length (API, "attach")."""

PIECE_BYTES_MAX: Final = 64 * 1024

END_TRIES_MAX: Final = 250
"""Of asking how a command ended, 20 ms apart: its output ends a moment before it is known."""

KILLED_STATUS: Final = 128 + 9
"""What a command exits with whom SIGKILL has ended; so do all of a container that is killed."""

_STREAMS: Final[dict[int, StreamName]] = {1: "stdout", 2: "stderr"}


class DockerExecution:
    """A command that runs in a container."""

    def __init__(
        self,
        engine: EngineApi,
        machine_id: str,
        exec_id: str,
        command: MachineCommand | None,
        streams: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        run_script: Callable[[str], Awaitable[int]],
    ) -> None:
        self._engine = engine
        self._machine_id = machine_id
        self._exec_id = exec_id
        self._command = command
        self._reader, self._writer = streams
        self._run_script = run_script
        self._left_bytes = 0
        self._stream: StreamName = "stdout"

    async def read(self) -> tuple[StreamName, bytes] | None:
        """See `Execution.read`."""
        try:
            while not self._left_bytes:
                header = await self._reader.readexactly(HEADER_BYTES)
                self._stream = _STREAMS.get(header[0], "stderr")
                self._left_bytes = int.from_bytes(header[4:], "big")
            data = await self._reader.read(min(self._left_bytes, PIECE_BYTES_MAX))
        except (asyncio.IncompleteReadError, ConnectionError):
            return None  # how it ended is asked next; a lost connection shows there
        self._left_bytes -= len(data)
        return (self._stream, data) if data else None

    async def write(self, data: bytes) -> None:
        """See `Execution.write`."""
        with contextlib.suppress(ConnectionError, RuntimeError):
            self._writer.write(data)
            await self._writer.drain()

    async def write_eof(self) -> None:
        """See `Execution.write_eof`."""
        with contextlib.suppress(OSError, RuntimeError):
            self._writer.write_eof()

    async def signal(self, name: str) -> None:
        """See `Execution.signal`."""
        if self._command is not None:
            await self._run_script(signal_script(self._command, name))

    async def wait(self) -> CommandEnd:
        """See `Execution.wait`."""
        for _ in range(END_TRIES_MAX):
            try:
                seen = await self._engine.call("GET", f"/exec/{self._exec_id}/json")
            except Absent:
                break  # its container is gone, and it with that
            if not seen["Running"] and seen.get("ExitCode") is not None:
                if seen["ExitCode"] == KILLED_STATUS:
                    await self._check_container()
                return CommandEnd(exit_code=int(seen["ExitCode"]))
            await asyncio.sleep(0.02)
        raise OutcomeUnknown("the way to the command was lost before its end")

    async def _check_container(self) -> None:
        """See that a command that was killed has not been so with its whole container.

        Raises:
            OutcomeUnknown: It was; that is the machine's end and not the command's.
        """
        try:
            container = await self._engine.call("GET", f"/containers/{self._machine_id}/json")
            is_running = bool(container["State"]["Running"])
        except Absent:
            is_running = False
        if not is_running:
            raise OutcomeUnknown("the container has ended, and the command with it")

    async def close(self) -> None:
        """See `Execution.close`."""
        self.abandon()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()

    def abandon(self) -> None:
        """Leave the connection without waiting for its end."""
        self._writer.transport.abort()
