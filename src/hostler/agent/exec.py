"""Runs leased commands: each in its own process group, its data streamed with back-pressure.

A command ends when its main process does: its group is killed, and what it wrote is passed on. What
left the group lives on under the lease, so that one command may start what the next one uses (it
had better write elsewhere: nobody reads the command's streams then); with the lease it is found by
its environment and killed. The agent's warden (`hostler.agent.strays`)
does the same if the agent dies.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import shutil
import signal
from collections.abc import Callable
from typing import Final, Literal

from hostler.agent.core.inputs import ExecFinished, Input, LeaseCleared, LeaseKey
from hostler.agent.credit import CreditGate
from hostler.agent.folder import DataFolder
from hostler.agent.runtime import environment
from hostler.agent.runtime.environment import LEASE_MARK, NodeIdentity
from hostler.agent.runtime.supervised import signal_name
from hostler.agent.strays import ROUND_S, ROUNDS_MAX, kill_marked
from hostler.agent.tail import Tail
from hostler.agent.tasks import Tasks
from hostler.base.errors import Rejected
from hostler.wire.agent import (
    STREAM_CHUNK_BYTES_MAX,
    AgentMessage,
    ExecInput,
    ExecOutput,
    ExecStart,
    StreamCredit,
)
from hostler.wire.stream import ReceiveWindow

DRAIN_S: Final = 0.5
"""How long output may stay open without a byte after the command has ended: somebody who left the
group holds it."""

NOT_FOUND_STATUS: Final = 127
NOT_RUNNABLE_STATUS: Final = 126
"""What shells exit with (POSIX.1-2024 2.8.2); the node is as good as before."""


class _Streams(asyncio.subprocess.SubprocessStreamProtocol):
    """A command's streams, and its end.

    The process that asyncio makes out of them waits in Python before 3.13 until nobody holds the
    output open, which somebody who left the group may do for ever (cpython issue 119710).
    """

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        super().__init__(limit=STREAM_CHUNK_BYTES_MAX, loop=loop)
        self.exited = asyncio.Event()

    def process_exited(self) -> None:
        super().process_exited()
        self.exited.set()


class _Process:
    """A started command."""

    def __init__(self, transport: asyncio.SubprocessTransport, streams: _Streams) -> None:
        self._transport = transport
        self._streams = streams
        self.pid = transport.get_pid()
        self.stdin = streams.stdin
        self.stdout = streams.stdout
        self.stderr = streams.stderr

    @property
    def returncode(self) -> int | None:
        """How it ended: the exit code, or minus the signal; `None` while it runs."""
        return self._transport.get_returncode()

    async def wait(self) -> int:
        """Return how it ended, once it has, whoever holds its output."""
        await self._streams.exited.wait()
        return self.returncode or 0

    def close(self) -> None:
        """Let its pipes go."""
        self._transport.close()


class _Running:
    """One command."""

    def __init__(self, start: ExecStart, tail: Tail | None) -> None:
        self.start = start
        self.tail = tail
        self.gate = CreditGate()
        self.input: asyncio.Queue[ExecInput] = asyncio.Queue()
        self.process: _Process | None = None
        self.task: asyncio.Task[None] | None = None
        self.written_bytes = 0

    def signal(self, number: int) -> None:
        """Signal the command's process group, if it is still there."""
        if self.process is not None and self.process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, number)


class ExecRunner:
    """All leased commands of one agent."""

    def __init__(
        self,
        data: DataFolder,
        node: NodeIdentity,
        post: Callable[[Input], None],
        send: Callable[[AgentMessage], None],
        tasks: Tasks,
    ) -> None:
        self._data = data
        self._node = node
        self._post = post
        self._send = send
        self._running: dict[str, _Running] = {}
        self._tasks = tasks

    def start(self, start: ExecStart, *, tail_bytes: int | None = None) -> None:
        """Start a command, of whose output only the end is told if so much of it is wanted."""
        tail = None if tail_bytes is None else Tail(tail_bytes)
        running = self._running[start.request_id] = _Running(start, tail)
        running.task = self._tasks.start(self._run(running))

    def write(self, data: ExecInput) -> None:
        """Pass bytes to its standard input."""
        running = self._running.get(data.request_id)
        if running is not None:
            running.input.put_nowait(data)

    def credit(self, request_id: str, bytes_count: int) -> bool:
        """Give its output room; say whether the command is ours."""
        running = self._running.get(request_id)
        if running is not None:
            running.gate.credited(bytes_count)
        return running is not None

    def signal(self, request_id: str, name: str) -> None:
        """Signal its process group."""
        running = self._running.get(request_id)
        if running is not None:
            running.signal(signal.Signals[name].value)

    def kill(self, request_id: str) -> None:
        """Kill it; nobody waits for its output."""
        running = self._running.get(request_id)
        if running is not None:
            running.gate.abandon()
            running.signal(signal.SIGKILL)

    def clear(self, key: LeaseKey) -> None:
        """Kill whatever runs under the lease, and remove its folder."""
        self._tasks.start(self._clear(key))

    async def close(self) -> None:
        """Kill all commands."""
        running = list(self._running.values())
        for each in running:
            self.kill(each.start.request_id)
        tasks = [each.task for each in running if each.task is not None]
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _run(self, running: _Running) -> None:
        start = running.start
        try:
            process = running.process = await self._spawn(start)
        except (OSError, Rejected) as error:
            del self._running[start.request_id]
            self._post(self._not_started(running, error))
            return
        if running.gate.is_abandoned:
            # It was killed before it was there.
            running.signal(signal.SIGKILL)
        loop = asyncio.get_running_loop()
        feeding = loop.create_task(self._feed(running, process))
        pumps = [
            loop.create_task(self._pump(running, "stdout", process.stdout)),
            loop.create_task(self._pump(running, "stderr", process.stderr)),
        ]
        try:
            code = await process.wait()
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await _drained(running, pumps)
        finally:
            for task in (feeding, *pumps):
                task.cancel()
            await asyncio.gather(feeding, *pumps, return_exceptions=True)
            process.close()
        del self._running[start.request_id]
        self._post(
            ExecFinished(
                request_id=start.request_id,
                exit_code=code if code >= 0 else None,
                signal=signal_name(-code) if code < 0 else None,
                tail="" if running.tail is None else running.tail.text(),
            )
        )

    def _not_started(self, running: _Running, error: OSError | Rejected) -> ExecFinished:
        """Tell the user's mistakes as a shell does; anything else is the node's failure."""
        start = running.start
        match error:
            case Rejected() | FileNotFoundError():
                status = NOT_FOUND_STATUS
            case PermissionError() | NotADirectoryError() | OSError(errno=errno.ENOEXEC):
                status = NOT_RUNNABLE_STATUS
            case _:
                return ExecFinished(request_id=start.request_id, error=str(error))
        told = error.message if isinstance(error, Rejected) else error.strerror or str(error)
        line = f"hostler: {start.argv[0]}: {told.lower()}\n"
        if running.tail is not None:
            return ExecFinished(request_id=start.request_id, exit_code=status, tail=line)
        self._send(ExecOutput(request_id=start.request_id, stream="stderr", data=line.encode()))
        return ExecFinished(request_id=start.request_id, exit_code=status)

    async def _spawn(self, start: ExecStart) -> _Process:
        folder = self._data.lease(LeaseKey(start.lease_id, start.lease_epoch))
        (folder / "tmp").mkdir(mode=0o750, parents=True, exist_ok=True)
        env = environment.of_lease(start, folder, self._node)
        argv = [environment.substitute(each, env) for each in start.argv]
        program = shutil.which(argv[0], path=env["PATH"]) if "/" not in argv[0] else argv[0]
        if program is None:
            raise Rejected("program_not_found", "there is no such program", program=argv[0])
        pipe = asyncio.subprocess.PIPE
        loop = asyncio.get_running_loop()
        transport, streams = await loop.subprocess_exec(
            _Streams,
            *argv,
            executable=program,
            stdin=pipe if start.has_stdin else asyncio.subprocess.DEVNULL,
            stdout=pipe,
            stderr=pipe,
            env=env,
            cwd=folder / (start.cwd or ""),
            start_new_session=True,
        )
        return _Process(transport, streams)

    async def _feed(self, running: _Running, process: _Process) -> None:
        """Write what arrives to the command, and hand back room for more."""
        window = ReceiveWindow()
        request_id = running.start.request_id
        while True:
            given = await running.input.get()
            # A command that has closed its input does not want the rest.
            with contextlib.suppress(ConnectionError):
                if process.stdin is not None and given.data:
                    process.stdin.write(given.data)
                    await process.stdin.drain()
                if process.stdin is not None and given.eof:
                    process.stdin.close()
            credit_bytes = window.taken(len(given.data))
            if credit_bytes:
                self._send(StreamCredit(request_id=request_id, bytes_count=credit_bytes))

    async def _pump(
        self,
        running: _Running,
        stream: Literal["stdout", "stderr"],
        source: asyncio.StreamReader | None,
    ) -> None:
        """Pass on what the command writes, as fast as it is read at the far end."""
        while source is not None and running.tail is not None:
            data = await source.read(STREAM_CHUNK_BYTES_MAX)
            if not data:
                return
            running.written_bytes += len(data)
            running.tail.add(data)
        while source is not None:
            reserved_bytes = await running.gate.reserve()
            data = await source.read(reserved_bytes)
            running.gate.credited(reserved_bytes - len(data))
            if not data:
                return
            running.written_bytes += len(data)
            if running.gate.is_abandoned:
                continue
            self._send(ExecOutput(request_id=running.start.request_id, stream=stream, data=data))

    async def _clear(self, key: LeaseKey) -> None:
        folder = self._data.lease(key)
        tasks = []
        for running in list(self._running.values()):
            if LeaseKey(running.start.lease_id, running.start.lease_epoch) == key:
                self.kill(running.start.request_id)
                if running.task is not None:
                    tasks.append(running.task)
        await asyncio.gather(*tasks, return_exceptions=True)
        for _ in range(ROUNDS_MAX):
            if not await asyncio.to_thread(kill_marked, f"{LEASE_MARK}={folder}\0"):
                break
            await asyncio.sleep(ROUND_S)
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
        self._post(LeaseCleared(key=key))


async def _drained(running: _Running, pumps: list[asyncio.Task[None]]) -> None:
    """Wait until all output was passed on, but not for somebody who merely holds it open."""
    while True:
        before_bytes = running.written_bytes
        _, pending = await asyncio.wait(pumps, timeout=DRAIN_S)
        if not pending:
            return
        if running.gate.has_room and running.written_bytes == before_bytes:
            return
