"""Leased commands of one deputy, run by its node's provider. As `hostler.agent.exec`, elsewhere."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from pathlib import Path

from hostler.agent.core.inputs import ExecFinished, Input, LeaseCleared, LeaseKey
from hostler.agent.credit import CreditGate
from hostler.agent.runtime import environment
from hostler.agent.runtime.environment import NodeIdentity
from hostler.agent.tail import Tail
from hostler.agent.tasks import Tasks
from hostler.api import limits
from hostler.base.errors import HostlerError, Rejected
from hostler.base.ids import MachineId
from hostler.ports.commands import CommandProvider, Execution, MachineCommand
from hostler.ports.provider import ProviderFailed
from hostler.wire.agent import AgentMessage, ExecInput, ExecOutput, ExecStart, StreamCredit
from hostler.wire.stream import ReceiveWindow

NOT_FOUND_STATUS = 127
"""What shells exit with when there is nothing to run (POSIX.1-2024 2.8.2)."""


class _Running:
    """One command."""

    def __init__(self, start: ExecStart, tail: Tail | None) -> None:
        self.start = start
        self.tail = tail
        self.gate = CreditGate()
        self.input: asyncio.Queue[ExecInput] = asyncio.Queue()
        self.execution: Execution | None = None
        self.task: asyncio.Task[None] | None = None
        self.signals: list[str] = []
        """Asked for before it was there."""


class RemoteCommands:
    """All leased commands in one machine."""

    def __init__(
        self,
        provider: CommandProvider,
        machine_id: MachineId,
        node: NodeIdentity,
        *,
        post: Callable[[Input], None],
        send: Callable[[AgentMessage], None],
        tasks: Tasks,
        on_trouble: Callable[[], None],
    ) -> None:
        self._on_trouble = on_trouble
        self._provider = provider
        self._machine_id = machine_id
        self._node = node
        self._post = post
        self._send = send
        self._tasks = tasks
        self._running: dict[str, _Running] = {}
        self.leases_folder = ""
        """Where leases have their folders in the machine; said by a probe before the first."""

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

    def credit(self, request_id: str, bytes_count: int) -> None:
        """Give its output room."""
        running = self._running.get(request_id)
        if running is not None:
            running.gate.credited(bytes_count)

    def signal(self, request_id: str, name: str) -> None:
        """Signal its process group."""
        running = self._running.get(request_id)
        if running is None:
            return
        if running.execution is None:
            running.signals.append(name)
        else:
            self._tasks.start(_signal(running.execution, name))

    def kill(self, request_id: str) -> None:
        """Kill it; nobody waits for its output."""
        running = self._running.get(request_id)
        if running is not None:
            running.gate.abandon()
            self.signal(request_id, "SIGKILL")

    def clear(self, key: LeaseKey) -> None:
        """Kill whatever runs under the lease, and remove its folder."""
        self._tasks.start(self._clear(key))

    def _folder(self, key: LeaseKey) -> str:
        return f"{self.leases_folder}/{key.lease_id}-{key.epoch}"

    async def _run(self, running: _Running) -> None:
        start = running.start
        finished = ExecFinished(request_id=start.request_id, error="the command was given up")
        try:
            finished = await self._carry(running)
        except Rejected as error:
            line = f"hostler: {error}\n"
            finished = ExecFinished(
                request_id=start.request_id, exit_code=NOT_FOUND_STATUS, tail=line
            )
            if running.tail is None:
                data = line.encode()
                self._send(ExecOutput(request_id=start.request_id, stream="stderr", data=data))
        except (ProviderFailed, TimeoutError) as error:
            self._on_trouble()
            told = str(error) or "the provider did not answer in time"
            finished = ExecFinished(request_id=start.request_id, error=told)
        finally:
            self._running.pop(start.request_id, None)
            self._post(finished)

    async def _carry(self, running: _Running) -> ExecFinished:
        """Run a command and pass on what it writes, as fast as it is read at the far end."""
        start = running.start
        command = self._command(start)
        async with asyncio.timeout(limits.MACHINE_CALL_MS_MAX / 1_000):
            execution = await self._provider.exec(self._machine_id, command)
        running.execution = execution
        for name in running.signals:
            self._tasks.start(_signal(execution, name))
        feeding = self._tasks.start(self._feed(running, execution))
        try:
            while (found := await execution.read()) is not None:
                stream, data = found
                if running.tail is not None:
                    running.tail.add(data)
                    continue
                while data:
                    room_bytes = await running.gate.reserve()
                    part, data = data[:room_bytes], data[room_bytes:]
                    running.gate.credited(room_bytes - len(part))
                    if running.gate.is_abandoned:
                        break
                    self._send(ExecOutput(request_id=start.request_id, stream=stream, data=part))
            end = await execution.wait()
        finally:
            feeding.cancel()
            await asyncio.gather(feeding, return_exceptions=True)
            await execution.close()
        return ExecFinished(
            request_id=start.request_id,
            exit_code=end.exit_code,
            signal=end.signal,
            tail="" if running.tail is None else running.tail.text(),
        )

    def _command(self, start: ExecStart) -> MachineCommand:
        """Put together what is to run.

        Raises:
            Rejected: It names a variable that does not exist.
        """
        folder = self._folder(LeaseKey(start.lease_id, start.lease_epoch))
        env = environment.of_lease(start, Path(folder), self._node)
        own = {name: text for name, text in env.items() if name not in ("PATH", "HOME", "TMPDIR")}
        if "PATH" in start.env:
            own["PATH"] = env["PATH"]
        return MachineCommand(
            command_id=start.request_id,
            folder=folder,
            argv=[environment.substitute(each, env) for each in start.argv],
            env=own,
            cwd=start.cwd,
            has_stdin=start.has_stdin,
        )

    async def _feed(self, running: _Running, execution: Execution) -> None:
        """Write what arrives to the command, and hand back room for more."""
        window = ReceiveWindow()
        request_id = running.start.request_id
        # When the way to the command is lost, whoever reads its output says so.
        with contextlib.suppress(ProviderFailed):
            while True:
                given = await running.input.get()
                if given.data:
                    await execution.write(given.data)
                if given.eof:
                    await execution.write_eof()
                credit_bytes = window.taken(len(given.data))
                if credit_bytes:
                    self._send(StreamCredit(request_id=request_id, bytes_count=credit_bytes))

    async def _clear(self, key: LeaseKey) -> None:
        """Clear a lease away. While that fails its slot is not free: the core waits for the word.

        The provider is asked again and again; a machine that stays out of reach is silent, and
        the node is given up for that.
        """
        await self._kill_all(key)
        pause_ms = limits.MACHINE_RETRY_MS_MIN
        while True:
            try:
                async with asyncio.timeout(limits.MACHINE_CALL_MS_MAX / 1_000):
                    await self._provider.clear(self._machine_id, self._folder(key))
                break
            except (HostlerError, TimeoutError):
                self._on_trouble()
                await asyncio.sleep(pause_ms / 1_000)
                pause_ms = min(pause_ms * 2, limits.MACHINE_RETRY_MS_MAX)
        self._post(LeaseCleared(key=key))

    async def _kill_all(self, key: LeaseKey) -> None:
        """Kill the commands of a lease, those too that have only begun to start.

        Such a one does not carry the lease's mark yet, so the provider would not find it.
        """
        tasks = []
        for running in list(self._running.values()):
            if LeaseKey(running.start.lease_id, running.start.lease_epoch) == key:
                self.kill(running.start.request_id)
                if running.task is not None:
                    tasks.append(running.task)
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=limits.MACHINE_CALL_MS_MAX / 1_000)
            for task in late:
                task.cancel()


async def _signal(execution: Execution, name: str) -> None:
    """Send a signal. One that does not arrive is like one to a process that has just ended."""
    with contextlib.suppress(ProviderFailed, TimeoutError):
        async with asyncio.timeout(limits.MACHINE_CALL_MS_MAX / 1_000):
            await execution.signal(name)
