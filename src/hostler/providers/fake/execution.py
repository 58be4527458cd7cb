"""Commands in machines that do not exist: a few that need none."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Final

from hostler.ports.commands import CommandEnd, MachineCommand, StreamName

KNOWN: Final = ("cat", "echo", "env", "false", "sleep", "true")
"""What can be run; anything else is not found."""

PIECES_MAX: Final = 16
"""Pieces of input that wait; then whoever writes waits."""

SLEEP_S_MAX: Final = 86_400.0


class FakeExecution:
    """A command that only seems to run."""

    def __init__(self, command: MachineCommand) -> None:
        self._command = command
        self._input: asyncio.Queue[bytes] = asyncio.Queue(PIECES_MAX)
        self._signal = asyncio.Event()
        self._end: CommandEnd | None = None
        self._output = self._run()
        if not command.has_stdin:
            self._input.put_nowait(b"")

    @property
    def folder(self) -> str:
        """Its lease's."""
        return self._command.folder

    @property
    def is_over(self) -> bool:
        """Nobody reads it any more, or a signal has ended it."""
        return self._signal.is_set()

    async def read(self) -> tuple[StreamName, bytes] | None:
        """See `Execution.read`."""
        reading = asyncio.ensure_future(anext(self._output, None))
        signalled = asyncio.ensure_future(self._signal.wait())
        try:
            await asyncio.wait((reading, signalled), return_when=asyncio.FIRST_COMPLETED)
            return reading.result() if reading.done() and self._end is None else None
        finally:
            reading.cancel()
            signalled.cancel()
            await asyncio.gather(reading, signalled, return_exceptions=True)

    async def write(self, data: bytes) -> None:
        """See `Execution.write`."""
        if data and self._command.argv[0] == "cat" and self._end is None:
            await self._input.put(data)

    async def write_eof(self) -> None:
        """See `Execution.write_eof`."""
        if self._end is None:
            await self._input.put(b"")

    async def signal(self, name: str) -> None:
        """See `Execution.signal`; every signal ends it."""
        if self._end is None:
            self._end = CommandEnd(signal=name)
            self._signal.set()

    async def wait(self) -> CommandEnd:
        """See `Execution.wait`."""
        return self._end or CommandEnd(exit_code=self._exit_code())

    async def close(self) -> None:
        """See `Execution.close`."""
        self._signal.set()

    def _exit_code(self) -> int:
        program = self._command.argv[0]
        return 127 if program not in KNOWN else int(program == "false")

    async def _run(self) -> AsyncIterator[tuple[StreamName, bytes]]:
        program, *arguments = self._command.argv
        match program:
            case "true" | "false":
                pass
            case "echo":
                yield "stdout", f"{' '.join(arguments)}\n".encode()
            case "env":
                for name, value in sorted(self._command.env.items()):
                    yield "stdout", f"{name}={value}\n".encode()
            case "cat":
                while data := await self._input.get():
                    yield "stdout", data
            case "sleep":
                await asyncio.sleep(_seconds(arguments))
            case _:
                known = ", ".join(KNOWN)
                told = f"hostler: {program}: a fake machine has only {known}\n"
                yield "stderr", told.encode()


def _seconds(arguments: list[str]) -> float:
    try:
        return min(max(float(arguments[0]), 0.0), SLEEP_S_MAX)
    except (IndexError, ValueError):
        return 0.0
