"""The process runtime: starts supervisors, finds those of earlier lives, and watches them all.

A supervisor is recognised by the lock on its folder, which tells its pid, and held by a pidfd that
is checked against the lock after it was opened: no reuse of pids can mislead us. That it ended is
seen on the pidfd, that its state changed by a datagram; as a datagram can be lost, states are also
read again every few seconds.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import shutil
import signal
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec
import structlog

from hostler.agent.core.inputs import (
    AllocationKey,
    ConfigWritten,
    FoundAllocation,
    Input,
    ProcessSeen,
    ProcessView,
    RoleWritten,
    SupervisorFailed,
    SupervisorLost,
    SupervisorStarted,
)
from hostler.agent.folder import DataFolder, write_whole
from hostler.agent.runtime import configs, environment, reloads, supervised
from hostler.agent.runtime.environment import NodeIdentity
from hostler.agent.strays import ROUND_S, ROUNDS_MAX, kill_marked
from hostler.agent.tasks import Tasks
from hostler.base.errors import Rejected
from hostler.wire.agent import StartAllocation
from hostler.wire.work import Config

LOG: Final = structlog.get_logger("hostler.agent.process")

LOADER: Final = {name: value for name, value in os.environ.items() if name == "LD_LIBRARY_PATH"}
"""Without it a Python that was installed in an unusual place would not start."""

_FAULTS_OF_JOBS: Final = (errno.E2BIG, errno.ENAMETOOLONG)
"""What the system says when a launch itself is too large; all else is about this machine."""

REREAD_S: Final = 5.0
"""How late a lost datagram may make us; ends are never late, they are seen on the pidfd."""


class _Held:
    """An allocation that is watched."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.pidfd = -1
        self.seen: ProcessView | None = None
        self.teller: asyncio.Task[None] | None = None


class ProcessRuntime:
    """All supervised allocations of one agent."""

    def __init__(
        self,
        data: DataFolder,
        node: NodeIdentity,
        post: Callable[[Input], None],
        tasks: Tasks,
    ) -> None:
        self._data = data
        self._node = node
        self._post = post
        self._held_by_key: dict[AllocationKey, _Held] = {}
        self._key_by_name: dict[str, AllocationKey] = {}
        self._tasks = tasks
        self._reread: asyncio.TimerHandle | None = None
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._program = Path()

    def open(self) -> None:
        """Begin to listen; to be called before `find`."""
        self._program = supervised.compiled_supervisor(self._data.path)
        (self._data.path / "agent.sock").unlink(missing_ok=True)
        # Bound through /proc, because the path of a socket may have 107 bytes only.
        folder = os.open(self._data.path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            self._socket.bind(f"/proc/self/fd/{folder}/agent.sock")
        finally:
            os.close(folder)
        self._socket.setblocking(False)
        loop = asyncio.get_running_loop()
        loop.add_reader(self._socket.fileno(), self._told)
        self._reread = loop.call_later(REREAD_S, self._read_all)

    def close(self) -> None:
        """Stop watching; what runs goes on."""
        loop = asyncio.get_running_loop()
        loop.remove_reader(self._socket.fileno())
        self._socket.close()
        if self._reread is not None:
            self._reread.cancel()
        for held in self._held_by_key.values():
            self._release(held)

    async def find(self) -> list[FoundAllocation]:
        """Take over what earlier lives left, and kill what has lost its supervisor."""
        found = []
        for folder in sorted(self._data.allocations.iterdir()):
            try:
                body = (folder / "start.json").read_bytes()
                start = msgspec.json.decode(body, type=StartAllocation)
            except (OSError, msgspec.MsgspecError):
                # The start was never durable, so nothing was started and nobody was told.
                await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
                continue
            key = AllocationKey(start.allocation_id, start.epoch)
            held = self._hold(key)
            is_supervised = self._attach(key, held)
            held.seen = supervised.read_state(folder)
            if not is_supervised and (held.seen is None or held.seen.end is None):
                await self._kill_strays(folder)
            found.append(
                FoundAllocation(
                    start=start,
                    process=held.seen,
                    is_supervised=is_supervised,
                    was_ready=(folder / "ready").exists(),
                    config_written=configs.number_of(folder),
                )
            )
            # It may have been told to stop while nobody was there to poke it.
            self._poke(held)
            self._tell(held)
        return found

    def folder(self, key: AllocationKey) -> Path:
        """Name the allocation's folder."""
        return self._data.allocation(key)

    def environment(self, key: AllocationKey) -> dict[str, str]:
        """Give the environment that the allocation's job has, for checks that run beside it."""
        folder = self.folder(key)
        body = (folder / "start.json").read_bytes()
        start = msgspec.json.decode(body, type=StartAllocation)
        return self._environment(start, folder)

    def start(self, key: AllocationKey, start: StartAllocation) -> None:
        """Write the start down and start a supervisor for it."""
        held = self._hold(key)
        pid = None
        try:
            self._prepare(held.folder, start)
            pid = self._spawn(held.folder)
            self._watch(key, held, pid)
        except (OSError, Rejected) as error:
            if pid is not None:
                # What cannot be watched must not run.
                os.kill(pid, signal.SIGKILL)
            LOG.warning("start failed", allocation=key.allocation_id, error=str(error))
            _unmake_start(held.folder)
            is_refusal = isinstance(error, OSError) and error.errno not in _FAULTS_OF_JOBS
            self._post(SupervisorFailed(key=key, message=str(error), is_refusal=is_refusal))
            return
        self._post(SupervisorStarted(key=key))

    def stop(self, key: AllocationKey, stop_signal: str, grace_ms: int) -> None:
        """Have the supervisor stop its job."""
        held = self._hold(key)
        try:
            supervised.write_command(held.folder, stop_signal, grace_ms)
        except OSError as error:
            # A full disk: the core will lose its patience and kill the supervisor.
            LOG.warning("stop not written", allocation=key.allocation_id, error=str(error))
        self._poke(held)

    def configure(self, key: AllocationKey, config: Config) -> None:
        """Put a new configuration into the folder, and have the job told as it wishes."""
        held = self._hold(key)
        try:
            configs.write(held.folder, config)
            if config.signal is not None:
                reloads.note(held.folder, config.signal)
        except OSError as error:
            LOG.warning("config not written", allocation=key.allocation_id, error=str(error))
            problem = error.strerror or str(error)
            self._post(ConfigWritten(key=key, number=config.number, problem=problem))
            return
        self._tell(held)
        self._post(ConfigWritten(key=key, number=config.number))

    def assign_role(self, key: AllocationKey, role: str, term: int) -> None:
        """Let the job read another role in its file."""
        problem = None
        try:
            write_whole(self.folder(key) / environment.ROLE_FILE, f"{role}\n".encode())
        except OSError as error:
            LOG.warning("role not written", allocation=key.allocation_id, error=str(error))
            problem = error.strerror or str(error)
        self._post(RoleWritten(key=key, term=term, problem=problem))

    def _tell(self, held: _Held) -> None:
        """Begin to tell a job of its new configuration, unless that is under way."""
        if held.teller is None or held.teller.done():
            held.teller = self._tasks.start(reloads.tell(held.folder))

    def kill_supervisor(self, key: AllocationKey) -> None:
        """Kill a supervisor that does not do its work, and whatever it held."""
        held = self._hold(key)
        if held.pidfd >= 0:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(held.pidfd, signal.SIGKILL)
        else:
            self._tasks.start(self._lose(key, held))

    def remember_ready(self, key: AllocationKey) -> None:
        """Leave a note for our next life."""
        try:
            (self.folder(key) / "ready").touch()
        except OSError as error:
            LOG.warning("readiness not noted", allocation=key.allocation_id, error=str(error))

    def remove(self, key: AllocationKey) -> None:
        """Remove what an ended allocation left."""
        held = self._held_by_key.pop(key, None)
        folder = self.folder(key)
        self._key_by_name.pop(folder.name, None)
        if held is not None:
            self._release(held)
        self._tasks.start(asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True))

    def _environment(self, start: StartAllocation, folder: Path) -> dict[str, str]:
        return environment.of_allocation(start, folder, self._node, notice=self._data.notice)

    def _prepare(self, folder: Path, start: StartAllocation) -> None:
        env = self._environment(start, folder)
        argv = [environment.substitute(each, env) for each in start.launch.argv]
        cwd = environment.work_folder(folder)
        for each in (cwd, folder / "tmp"):
            each.mkdir(mode=0o750, parents=True, exist_ok=True)
        if start.config is not None:
            configs.write(folder, start.config)
        role = start.launch.identity.role
        write_whole(folder / environment.ROLE_FILE, f"{role}\n".encode())
        write_whole(folder / "start.json", msgspec.json.encode(start), mode=0o600)
        authority = self._data.authority
        supervised.write_launch(
            folder, start.launch, argv=argv, env=env, cwd=cwd, authority=authority
        )

    def _spawn(self, folder: Path) -> int:
        argv = [sys.executable, "-I", "-S", "-E", str(self._program), str(folder)]
        null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        errors = os.open(folder / "supervisor.err", flags, 0o640)
        try:
            return os.posix_spawn(
                sys.executable,
                argv,
                self._node.variables() | LOADER,
                file_actions=[
                    (os.POSIX_SPAWN_DUP2, null, 0),
                    (os.POSIX_SPAWN_DUP2, null, 1),
                    (os.POSIX_SPAWN_DUP2, errors, 2),
                ],
                setsid=True,
            )
        finally:
            os.close(null)
            os.close(errors)

    def _hold(self, key: AllocationKey) -> _Held:
        folder = self.folder(key)
        self._key_by_name[folder.name] = key
        return self._held_by_key.setdefault(key, _Held(folder))

    def _attach(self, key: AllocationKey, held: _Held) -> bool:
        """Watch the living supervisor of the folder, if there is one."""
        pid = supervised.holder_pid(held.folder)
        if pid is None:
            return False
        try:
            self._watch(key, held, pid)
        except ProcessLookupError:
            return False
        if supervised.holder_pid(held.folder) != pid:
            self._release(held)
            return False
        return True

    def _watch(self, key: AllocationKey, held: _Held, pid: int) -> None:
        self._release(held)
        held.pidfd = os.pidfd_open(pid)
        asyncio.get_running_loop().add_reader(held.pidfd, self._supervisor_ended, key, held, pid)

    def _release(self, held: _Held) -> None:
        if held.pidfd >= 0:
            asyncio.get_running_loop().remove_reader(held.pidfd)
            os.close(held.pidfd)
            held.pidfd = -1

    def _poke(self, held: _Held) -> None:
        # If it is gone, its end is on the way to us.
        if held.pidfd >= 0:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(held.pidfd, signal.SIGURG)

    def _told(self) -> None:
        """Somebody says that a state has changed."""
        while True:
            try:
                name = self._socket.recv(4_096).decode(errors="replace")
            except BlockingIOError:
                return
            key = self._key_by_name.get(name)
            if key is not None:
                self._read(key, self._held_by_key[key])

    def _read_all(self) -> None:
        for key, held in self._held_by_key.items():
            if held.seen is None or held.seen.end is None:
                self._read(key, held)
        loop = asyncio.get_running_loop()
        self._reread = loop.call_later(REREAD_S, self._read_all)

    def _read(self, key: AllocationKey, held: _Held) -> None:
        try:
            view = supervised.read_state(held.folder)
        except OSError as error:
            # A disk that fails. What cannot be read now is with the next look at all.
            LOG.warning("state not read", allocation=key.allocation_id, error=str(error))
            return
        if view is not None and view != held.seen:
            held.seen = view
            self._post(ProcessSeen(key=key, process=view))

    def _supervisor_ended(self, key: AllocationKey, held: _Held, pid: int) -> None:
        self._release(held)
        # One that an earlier life started is not our child; somebody else collects it.
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, os.WNOHANG)
        self._read(key, held)
        if held.seen is not None and held.seen.end is not None:
            return
        # Ours may have found another one at work, started just before an earlier life ended.
        if not self._attach(key, held):
            self._tasks.start(self._lose(key, held))

    async def _lose(self, key: AllocationKey, held: _Held) -> None:
        """Kill what is left of a job whose supervisor is gone, and say so."""
        await self._kill_strays(held.folder)
        LOG.warning("supervisor lost", allocation=key.allocation_id, epoch=key.epoch)
        if supervised.read_state(held.folder) is None:
            _unmake_start(held.folder)
        self._post(SupervisorLost(key=key))

    async def _kill_strays(self, folder: Path) -> None:
        mark = f"{environment.ALLOCATION_MARK}={environment.work_folder(folder)}\0"
        for _ in range(ROUNDS_MAX):
            if not await asyncio.to_thread(kill_marked, mark):
                return
            await asyncio.sleep(ROUND_S)


def _unmake_start(folder: Path) -> None:
    """Let the next life find no start here: this one reports it as ended, and it may run elsewhere.

    A supervisor writes its own end down; here none ever told anything.
    """
    with contextlib.suppress(OSError):
        (folder / "start.json").unlink()
