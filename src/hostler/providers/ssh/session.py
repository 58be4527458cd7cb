"""One command on a host: what it writes in the order in which it came, and how it ended."""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Any, Final

import asyncssh

from hostler.ports.commands import CommandEnd, StreamName
from hostler.ports.provider import OutcomeUnknown

HELD_BYTES_MAX: Final = 256 * 1024
"""Output that waits for its reader; then the channel's window closes, and the command waits."""

WINDOW_BYTES: Final = 1024 * 1024
"""What a host may send before it is read: 100 MB/s at a round trip of 10 ms."""

LINGER_S: Final = 0.5
"""How long output may stay open without a byte after the command has ended: somebody whom it has
started holds it."""


class CommandSession(asyncssh.SSHClientSession[bytes]):
    """The client's end of a channel that runs a command."""

    def __init__(self) -> None:
        self._channel: asyncssh.SSHClientChannel[bytes] | None = None
        self._pieces: deque[tuple[StreamName, bytes]] = deque()
        self._held_bytes = 0
        self._pausing: asyncio.Handle | None = None
        self._news = asyncio.Event()
        self._can_write = asyncio.Event()
        self._can_write.set()
        self._end: CommandEnd | None = None
        self._is_output_over = False
        self._is_lost = False

    # -- what the channel tells --------------------------------------------------------------

    def connection_made(self, chan: asyncssh.SSHClientChannel[bytes]) -> None:
        """The channel is there."""
        self._channel = chan

    def data_received(self, data: bytes, datatype: asyncssh.DataType) -> None:
        """The command has written something."""
        is_error = datatype == asyncssh.EXTENDED_DATA_STDERR
        self._pieces.append(("stderr" if is_error else "stdout", data))
        self._held_bytes += len(data)
        if (
            self._held_bytes > HELD_BYTES_MAX
            and self._pausing is None
            and self._channel is not None
        ):
            # Not at once: the channel may be handing over what it held, and when that is broken off
            # it opens its window again for what it still holds (asyncssh 2.24).
            self._pausing = asyncio.get_running_loop().call_soon(self._channel.pause_reading)
        self._news.set()

    def eof_received(self) -> bool:
        """Nobody will write any more; how it ended may still come."""
        self._is_output_over = True
        self._news.set()
        return True

    def exit_status_received(self, status: int) -> None:
        """It has ended by itself."""
        self._end = CommandEnd(exit_code=status)
        self._news.set()

    def exit_signal_received(
        self,
        signal: str,
        core_dumped: bool,  # noqa: ARG002, FBT001 - called by asyncssh
        msg: str,  # noqa: ARG002 - as above
        lang: str,  # noqa: ARG002 - as above
    ) -> None:
        """A signal has ended it."""
        self._end = CommandEnd(signal=f"SIG{signal}")
        self._news.set()

    def pause_writing(self) -> None:
        """The command does not take its input as fast as it comes."""
        self._can_write.clear()

    def resume_writing(self) -> None:
        """It takes it again."""
        self._can_write.set()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - called by asyncssh
        """The channel is closed, or the connection is gone."""
        self._is_lost = True
        self._can_write.set()
        self._news.set()

    # -- for the reader ----------------------------------------------------------------------

    async def read(self) -> tuple[StreamName, bytes] | None:
        """See `Execution.read`."""
        while not self._pieces:
            if self._is_lost or (self._is_output_over and self._end is not None):
                return None
            self._news.clear()
            try:
                async with asyncio.timeout(None if self._end is None else LINGER_S):
                    await self._news.wait()
            except TimeoutError:
                return None
        piece = self._pieces.popleft()
        self._held_bytes -= len(piece[1])
        if self._pausing is not None and self._held_bytes <= HELD_BYTES_MAX // 2:
            self._pausing.cancel()
            self._pausing = None
            if self._channel is not None:
                self._channel.resume_reading()
        return piece

    async def write(self, data: bytes) -> None:
        """See `Execution.write`."""
        await self._can_write.wait()
        self._try(lambda channel: channel.write(data))

    async def write_eof(self) -> None:
        """See `Execution.write_eof`."""
        self._try(lambda channel: channel.write_eof())

    def _try(self, work: Any) -> None:  # noqa: ANN401 - a call of the channel
        """Do something with the channel. A command that has closed its input wants no more."""
        if self._channel is None or self._is_lost or self._channel.is_closing():
            return
        try:
            work(self._channel)
        except (OSError, asyncssh.Error):
            return

    async def wait(self) -> CommandEnd:
        """See `Execution.wait`."""
        while self._end is None:
            if self._is_lost:
                raise OutcomeUnknown("the connection was lost before the command's end")
            self._news.clear()
            await self._news.wait()
        return self._end
