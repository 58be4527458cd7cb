"""A held lease: heartbeats in the background, commands over it, and one settlement at the end."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, Self

import msgspec

from hostler.base.errors import Failed, Rejected
from hostler.client import calls
from hostler.client.call import segment
from hostler.client.copying import COPY_BYTES_MAX, copy_in, copy_out
from hostler.client.errors import ClientError, Unreachable
from hostler.client.transport import TRY_AGAIN, Frames, FramesEnded, Pauses, Transport
from hostler.wire.http import (
    LeaseView,
    RunExit,
    RunFromServer,
    RunInput,
    RunOutput,
    RunSignal,
    RunStart,
)

Output = Callable[[str, bytes], Awaitable[None] | None]
"""Takes `stdout` or `stderr`, and what was written there. A coroutine is awaited before more is
taken, so that a slow reader slows the command and not our heartbeats."""

CAPTURED_BYTES_MAX: Final = 16 * 2**20
"""Output kept of one command whose output nobody takes; what follows is dropped."""

BEATS_PER_LEASE: Final = 3
"""Heartbeats within one lease time: two may be lost."""

INPUT_CHUNK_BYTES: Final = 32 * 1024

_FROM_SERVER: Final[msgspec.json.Decoder[RunFromServer]] = msgspec.json.Decoder(RunFromServer)


class LeaseRefused(Rejected):
    """The lease was never granted; `code` is the reason."""


class LeaseLost(Failed):
    """The lease is no longer held: expired, revoked, or its node is lost."""


class RunFailed(Failed):
    """A command could not be run to its end for a reason that is not the command's."""


class RunResult(msgspec.Struct, frozen=True, kw_only=True):
    """How a command ended, and its output where no callback took it."""

    exit_code: int | None
    signal: str | None
    """Of the signal that ended it, such as `SIGKILL`."""
    stdout: bytes = b""
    stderr: bytes = b""

    @property
    def status(self) -> int:
        """What a shell would say: the exit code, or 128 and more for a signal."""
        if self.exit_code is not None:
            return self.exit_code
        return 128 + SIGNAL_NUMBERS.get(self.signal or "", 0)


SIGNAL_NUMBERS: Final = {
    "SIGHUP": 1,
    "SIGINT": 2,
    "SIGQUIT": 3,
    "SIGILL": 4,
    "SIGABRT": 6,
    "SIGFPE": 8,
    "SIGKILL": 9,
    "SIGSEGV": 11,
    "SIGPIPE": 13,
    "SIGALRM": 14,
    "SIGTERM": 15,
}
"""On Linux, where the nodes are (signal(7)); the client may be elsewhere."""


class HeldLease:
    """A slot on a node, ours until `release`.

    Attributes:
        view: The lease as the server last told it.
    """

    def __init__(self, transport: Transport, view: LeaseView) -> None:
        self.view = view
        self._transport = transport
        self._lost: LeaseLost | None = None
        self._poison_detail: str | None = None
        self._beating = asyncio.create_task(self._beat())

    @property
    def lease_id(self) -> str:
        """The lease's id."""
        return self.view.lease_id

    @property
    def node_id(self) -> str:
        """The node that is held."""
        return self.view.node_id or ""

    def poison(self, detail: str) -> None:
        """Have the lease settled as poison: nobody may hold this node again."""
        self._poison_detail = detail

    async def heartbeat(self) -> None:
        """Renew the lease now; the background does it by itself.

        Raises:
            LeaseLost: It is no longer held.
        """
        try:
            call = calls.heartbeat_lease(self.lease_id, self.view.epoch)
            self.view = await self._transport.send(call)
        except ClientError as error:
            if error.status in (404, 409, 410, 422):
                self._lost = LeaseLost(error.code, error.message, lease_id=self.lease_id)
                raise self._lost from error
            raise

    @property
    def retiring_at_ms(self) -> int | None:
        """When it ends because its node is to go, as far as the last heartbeat told."""
        return self.view.retiring_at_ms

    async def extend(self, by_ms: int) -> None:
        """Stay longer on a node that is to go, up to `view.retiring_at_ms_max`.

        Raises:
            ClientError: Not so long, or its node is not to go.
        """
        call = calls.extend_lease(self.lease_id, self.view.epoch, by_ms)
        self.view = await self._transport.send(call)

    async def release(self) -> LeaseView:
        """Settle the lease; healthy unless it was poisoned. May be repeated."""
        self._beating.cancel()
        await asyncio.gather(self._beating, return_exceptions=True)
        call = calls.release_lease(
            self.lease_id,
            epoch=self.view.epoch,
            is_healthy=self._poison_detail is None,
            detail=self._poison_detail or "",
        )
        self.view = await self._transport.send(call)
        return self.view

    async def run(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        stdin: bytes | None = None,
        on_output: Output | None = None,
    ) -> RunResult:
        """Run a command on the node and return how it ended. Cancelling kills it.

        Raises:
            LeaseLost: The lease ended before the command did.
            RunFailed: The node did not run it (then the lease is poisoned), or the connection
                broke and nobody knows how it went.
        """
        if self._lost is not None:
            raise self._lost
        async with self.start(argv, env=env, cwd=cwd, has_stdin=stdin is not None) as command:
            if stdin is not None:
                await command.write(stdin, eof=True)
            return await command.wait(on_output)

    def start(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        has_stdin: bool = False,
    ) -> RunningCommand:
        """Prepare a command whose input, signals and output the caller handles; enter it to run.

        Raises:
            Rejected: There is nothing to run, or an argument holds a NUL.
        """
        if not argv or any("\0" in text for text in argv):
            raise Rejected("argv_invalid", "a command is a list of arguments, none with a NUL")
        first = RunStart(argv=list(argv), env=dict(env or {}), cwd=cwd, has_stdin=has_stdin)
        return RunningCommand(self, self._transport, first)

    async def copy_in(
        self, source: str | os.PathLike[str], target: str, *, bytes_max: int = COPY_BYTES_MAX
    ) -> None:
        """Copy a file or a folder to the node.

        Args:
            source: Of ours; links in it are copied as links.
            target: What it is called there, in the lease's folder unless it is absolute; one that
                ends with a slash is a folder to put it into. What is there is written over.
            bytes_max: Copy no more.

        Raises:
            Rejected: The source is not there or too large.
            CopyFailed: The node did not take it.
            LeaseLost: The lease ended before the copy did.
            RunFailed: As `run`.
        """
        await copy_in(self, Path(source), target, bytes_max=bytes_max)

    async def copy_out(
        self, source: str, target: str | os.PathLike[str], *, bytes_max: int = COPY_BYTES_MAX
    ) -> None:
        """Copy a file or a folder from the node. What the node sends is not trusted.

        Args:
            source: There, in the lease's folder unless it is absolute.
            target: What it is called here; a folder that is there gets what is in the source's.
            bytes_max: Copy no more.

        Raises:
            Rejected: The source has no name.
            CopyFailed: The node did not give it; it may not be there.
            ArchiveRefused: What it gave is too large, leads out, or does not fit what is here.
            LeaseLost: The lease ended before the copy did.
            RunFailed: As `run`.
        """
        await copy_out(self, source, Path(target), bytes_max=bytes_max)

    def broken(self, why: str, *, is_node_failure: bool = False) -> Failed:
        """Say that a command was not run to its end.

        A failure of the node makes it unfit for others (spec/leasing L-370). A broken connection
        does not: the node ends the command and cleans up after it.
        """
        if self._lost is not None:
            return self._lost
        if is_node_failure:
            self.poison(f"a command could not be run: {why}")
        code = "run_failed" if is_node_failure else "run_broken"
        return RunFailed(code, why, effect="unknown", lease_id=self.lease_id)

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(self.view.lease_ms / BEATS_PER_LEASE / 1000)
            try:
                await self.heartbeat()
            except Unreachable:
                continue  # the server may come back before the lease ends; it decides
            except ClientError as error:
                if error.status not in TRY_AGAIN:
                    return
            except LeaseLost:
                return


class RunningCommand:
    """One command on a leased node."""

    def __init__(self, lease: HeldLease, transport: Transport, first: RunStart) -> None:
        self._lease = lease
        self._transport = transport
        self._first = first
        self._frames: Frames | None = None

    async def __aenter__(self) -> Self:
        # Nothing has begun before the first frame, so until then it may be tried again.
        pauses = Pauses(self._transport.retry_ms)
        while True:
            try:
                self._frames = await self._connect()
                break
            except (ClientError, Unreachable) as error:
                is_final = isinstance(error, ClientError) and error.status not in TRY_AGAIN
                if is_final or not await pauses.pause():
                    raise
        await self._send(self._first)
        return self

    async def _connect(self) -> Frames:
        lease = self._lease
        path = f"/v1/leases/{segment(lease.lease_id)}/exec"
        return await self._transport.connect(path, {"epoch": str(lease.view.epoch)})

    async def __aexit__(self, *_: object) -> None:
        if self._frames is not None:
            await self._frames.close()

    async def write(self, data: bytes, *, eof: bool = False) -> None:
        """Hand bytes to standard input."""
        for start in range(0, len(data), INPUT_CHUNK_BYTES):
            await self._send(RunInput(data=data[start : start + INPUT_CHUNK_BYTES]))
        if eof:
            await self._send(RunInput(eof=True))

    async def signal(self, name: str) -> None:
        """Send a signal, such as `SIGINT`, to the command's process group."""
        await self._send(RunSignal(signal=name))

    async def wait(self, on_output: Output | None = None) -> RunResult:
        """Take the output until the command ends; without a callback it is in the result.

        Raises:
            LeaseLost: The lease ended before the command did.
            RunFailed: As `HeldLease.run`.
        """
        captured = {"stdout": bytearray(), "stderr": bytearray()}
        while True:
            match await self._next():
                case RunOutput(stream=stream, data=data):
                    if on_output is not None:
                        taken = on_output(stream, data)
                        if taken is not None:
                            await taken
                    else:
                        room = CAPTURED_BYTES_MAX - len(captured[stream])
                        captured[stream] += data[:room]
                case RunExit(error=str(why), is_lease_over=True):
                    raise LeaseLost("lease_ended", why, lease_id=self._lease.lease_id)
                case RunExit(error=str(why), is_node_failure=is_node_failure):
                    raise self._lease.broken(why, is_node_failure=is_node_failure)
                case RunExit(exit_code=exit_code, signal=name):
                    return RunResult(
                        exit_code=exit_code,
                        signal=name,
                        stdout=bytes(captured["stdout"]),
                        stderr=bytes(captured["stderr"]),
                    )

    async def _next(self) -> RunFromServer:
        try:
            return _FROM_SERVER.decode(await self._open().receive())
        except FramesEnded as error:
            raise self._lease.broken(str(error) or "the connection broke") from error

    async def _send(self, frame: RunStart | RunInput | RunSignal) -> None:
        await self._open().send(msgspec.json.encode(frame).decode())

    def _open(self) -> Frames:
        if self._frames is None:
            raise Rejected("command_not_started", "enter the command before using it")
        return self._frames
