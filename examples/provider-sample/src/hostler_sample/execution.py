"""A command in a folder: a process, and what it writes in the order in which we read it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from typing import Final

from hostler.ports.commands import CommandEnd, MachineCommand, StreamName
from hostler.ports.posix import boot_argv, command_script

PIECE_BYTES_MAX: Final = 64 * 1024

PIECES_MAX: Final = 8
"""Pieces that wait for their reader; then the process waits in its writing."""


class Process:
    """A command that runs."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._pieces: asyncio.Queue[tuple[StreamName, bytes] | None] = asyncio.Queue(PIECES_MAX)
        self._pumps = [
            asyncio.ensure_future(self._pump("stdout", process.stdout)),
            asyncio.ensure_future(self._pump("stderr", process.stderr)),
        ]
        self._open_count = len(self._pumps)

    @classmethod
    async def start(cls, command: MachineCommand) -> Process:
        """Start a command: a shell reads what to become from its standard input."""
        script = command_script(command)
        pipe = asyncio.subprocess.PIPE
        starting = asyncio.ensure_future(
            asyncio.create_subprocess_exec(
                *boot_argv(script), stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True
            )
        )
        try:
            # Every call may be cancelled; asyncio does not like that in the midst of a start.
            process = cls(await asyncio.shield(starting))
            await process.write(script.encode())
            if not command.has_stdin:
                await process.write_eof()
        except asyncio.CancelledError:
            starting.add_done_callback(lambda started: started.result().kill())
            raise
        return process

    async def read(self) -> tuple[StreamName, bytes] | None:
        """See `Execution.read`."""
        while self._open_count:
            piece = await self._pieces.get()
            if piece is not None:
                return piece
            self._open_count -= 1
        return None

    async def _pump(self, name: StreamName, source: asyncio.StreamReader | None) -> None:
        while source is not None and (data := await source.read(PIECE_BYTES_MAX)):
            await self._pieces.put((name, data))
        await self._pieces.put(None)

    async def write(self, data: bytes) -> None:
        """See `Execution.write`."""
        if self._process.stdin is not None:
            with contextlib.suppress(ConnectionError):
                self._process.stdin.write(data)
                await self._process.stdin.drain()

    async def write_eof(self) -> None:
        """See `Execution.write_eof`."""
        if self._process.stdin is not None:
            self._process.stdin.close()

    async def signal(self, name: str) -> None:
        """See `Execution.signal`."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.Signals[name])

    async def wait(self) -> CommandEnd:
        """See `Execution.wait`."""
        code = await self._process.wait()
        if code < 0:
            return CommandEnd(signal=signal.Signals(-code).name)
        return CommandEnd(exit_code=code)

    async def close(self) -> None:
        """See `Execution.close`. Nobody reads it any more, so it need not go on."""
        await self.signal("SIGKILL")
        for pump in self._pumps:
            pump.cancel()
        await asyncio.gather(*self._pumps, return_exceptions=True)
        await self._process.wait()
