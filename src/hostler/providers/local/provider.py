"""The provider `local`: a machine is an agent on this host, with a folder and a session of its own.

A launch makes a folder (its name follows from the token, its appearance is atomic, its label is in
it from the first moment) and then starts the agent. A machine exists while any process carries its
mark, and for a short while before the first one does.

A fixed tier may name this provider too. It launches nothing there, and tells of a box whose agent
was started by hand on this host whether anything of it still runs: when nothing does, its work need
not wait for the end of its silence.
"""

from __future__ import annotations

import asyncio
import errno
import fcntl
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec

from hostler.agent.box import is_box, is_on_this_host
from hostler.base.ids import MachineId, NodeId
from hostler.model.pool import Offer
from hostler.ports.provider import (
    CapacityUnavailable,
    CredentialsRejected,
    LaunchRequest,
    Machine,
    OutcomeUnknown,
    ProviderContext,
    ProviderKind,
    QuotaExceeded,
    RequestInvalid,
)
from hostler.providers.local.agent_options import agent_options
from hostler.providers.local.offers import host_offers
from hostler.providers.local.processes import (
    await_mark,
    pids_by_machine,
    pids_of,
    reap,
    send_signal,
    spawn,
)
from hostler.providers.local.tags import MACHINE_MARK, Home, homes, machine_id_of, make_home

BIRTH_MS_MAX: Final = 10_000
"""How long a folder without a process may be a machine about to start. Starting one takes tens of
milliseconds; a server that died in between comes back within seconds or not at all."""

KEEP_DEAD_MS: Final = 3_600_000
"""How long the folder of a machine that died by itself is kept for people to look at."""

AGENT_STOP_MS: Final = 500
"""How long an agent may take to say good-bye. Its work was stopped or moved before."""

KILL_MS_MAX: Final = 5_000
"""How long one call goes on killing. Only a process stuck in the kernel is left then, and the next
call goes on."""

POLL_MS: Final = 20


class LocalOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A tier's `options` for this provider."""

    machines_max: int | None = None
    """Machines on this host at once, over all tiers with this option; left out: no limit."""


AgentArgv = Callable[[str], list[str]]
"""Makes the command line of an agent from the path of its options."""


def hostler_agent(options_path: str) -> list[str]:
    """Start our own agent, with the interpreter that runs us, from whatever folder (`-P`)."""
    return [sys.executable, "-P", "-m", "hostler.agent", options_path]


class LocalProvider:
    """Machines on this host, of one fleet and one data folder."""

    def __init__(self, context: ProviderContext, agent_argv: AgentArgv = hostler_agent) -> None:
        self._fleet_id = context.fleet_id
        self._clock = context.clock
        self._folder = context.folder.absolute()
        self._machines = self._folder / "machines"
        self._agent_argv = agent_argv
        self._children: set[int] = set()

    # -- the port ----------------------------------------------------------------------------

    async def launch(self, request: LaunchRequest) -> Machine:
        """Make the machine's folder and start its agent; see `Provider.launch`."""
        if request.fleet_id != self._fleet_id or not isinstance(request.options, LocalOptions):
            raise RequestInvalid("the request is not for this provider", token=request.token)
        return await asyncio.to_thread(self._launch, request, request.options)

    async def get(self, machine_id: MachineId) -> Machine | None:
        """Return the machine while it has a process or is about to; see `Provider.get`."""
        return await asyncio.to_thread(self._get, machine_id)

    async def list_owned(self) -> AsyncIterator[Machine]:
        """Yield our machines; see `Provider.list_owned`."""
        for machine in await asyncio.to_thread(self._list):
            yield machine

    async def stop(self, machine_id: MachineId) -> None:
        """Ask the agent to end, kill everything, remove the folder; see `Provider.stop`."""
        home = self._home(machine_id)
        label = await asyncio.to_thread(home.label)
        if label is None or label.fleet_id != self._fleet_id:
            return
        await asyncio.to_thread(home.mark_ending)
        agent_pid = home.agent_pid()
        if agent_pid is not None:
            send_signal(machine_id, [agent_pid], signal.SIGTERM)
            await self._until_ended(machine_id, [agent_pid], AGENT_STOP_MS)
        if await self._kill_all(machine_id):
            await asyncio.to_thread(self._remove, home)

    async def boot_log(self, machine_id: MachineId, bytes_max: int) -> str:
        """Return what its agent has written; see `TellsBootLog`."""
        home = self._home(machine_id)
        label = await asyncio.to_thread(home.label)
        if label is None or label.fleet_id != self._fleet_id:
            return ""
        return await asyncio.to_thread(_end_of, home.log_path, bytes_max)

    async def offers(self) -> Sequence[Offer]:
        """Return what this host has."""
        return host_offers()

    async def close(self) -> None:
        """Take note of agents that have ended; the others go on without us."""
        self._reap()

    # -- birth -------------------------------------------------------------------------------

    def _launch(self, request: LaunchRequest, options: LocalOptions) -> Machine:
        machine_id = machine_id_of(self._machines, self._fleet_id, request.token)
        try:
            with self._locked():
                home = self._home(machine_id)
                label = home.label()
                if label is None:
                    self._check_quota(options)
                    label = self._label(machine_id, request)
                    make_home(self._machines, label, agent_options(request, label, home.data_path))
                if home.agent_pid() is None and not pids_of(machine_id):
                    self._start(home, machine_id)
                return label
        except PermissionError as error:
            raise CredentialsRejected("this user may not", path=error.filename) from error
        except FileNotFoundError as error:
            raise RequestInvalid("the agent is not there", path=error.filename) from error
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EAGAIN, errno.ENOMEM):
                raise
            raise CapacityUnavailable(
                "this host has no room for another machine", scope="host", why=error.strerror
            ) from error

    def _check_quota(self, options: LocalOptions) -> None:
        if options.machines_max is not None and len(self._list()) >= options.machines_max:
            raise QuotaExceeded(
                "there are as many local machines as the tier's options allow",
                scope="host",
                machines_max=options.machines_max,
            )

    def _label(self, machine_id: MachineId, request: LaunchRequest) -> Machine:
        now_ms = self._clock.now_ms()
        return Machine(
            machine_id=machine_id,
            fleet_id=self._fleet_id,
            node_id=request.node_id,
            epoch=request.epoch,
            token=request.token,
            pool=request.pool,
            tier=request.tier,
            created_at_ms=now_ms,
            expires_at_ms=now_ms + request.silence_ms_max,
            hostname=socket.gethostname(),
        )

    def _start(self, home: Home, machine_id: MachineId) -> None:
        # What the server is told about itself is not for its machines.
        environment = {
            name: value for name, value in os.environ.items() if not name.startswith("HOSTLER_")
        }
        try:
            argv = self._agent_argv(str(home.options_path))
            pid = spawn(argv, {**environment, MACHINE_MARK: machine_id}, home.log_path)
        except OSError:
            home.remove()  # surely nothing runs: let there be no machine either
            raise
        self._children.add(pid)
        await_mark(pid, machine_id)
        home.mark_started(pid)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Let one birth or removal happen at a time, also if another server were still about."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = os.open(self._folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield
        finally:
            os.close(lock)

    # -- life --------------------------------------------------------------------------------

    def _home(self, machine_id: str) -> Home:
        # A machine id is one name: whatever it says, it leads out of our folder by no means.
        return Home(self._machines / machine_id.replace("/", "_"))

    def _get(self, machine_id: MachineId) -> Machine | None:
        self._reap()
        if is_box(machine_id):
            return self._get_box(machine_id)
        home = self._home(machine_id)
        label = home.label()
        if label is None or label.fleet_id != self._fleet_id:
            return None
        return label if pids_of(machine_id) or self._is_being_born(home, label) else None

    def _get_box(self, machine_id: MachineId) -> Machine | None:
        """Return a box whose agent somebody started here by hand, while anything of it runs."""
        if not is_on_this_host(machine_id):
            raise OutcomeUnknown("the box is on another host", machine_id=machine_id)
        if not pids_of(machine_id):
            return None
        return Machine(
            machine_id=machine_id,
            fleet_id=self._fleet_id,
            node_id=NodeId(""),
            epoch=0,
            token="",
            created_at_ms=0,
            expires_at_ms=0,
            hostname=socket.gethostname(),
        )

    def _is_being_born(self, home: Home, label: Machine) -> bool:
        age_ms = self._clock.now_ms() - label.created_at_ms
        return home.agent_pid() is None and age_ms < BIRTH_MS_MAX

    def _list(self) -> list[Machine]:
        self._reap()
        ours = [
            (home, label)
            for home in homes(self._machines)
            if (label := home.label()) is not None and label.fleet_id == self._fleet_id
        ]
        pids = pids_by_machine([label.machine_id for _, label in ours])
        found: list[Machine] = []
        for home, label in ours:
            if label.machine_id in pids or self._is_being_born(home, label):
                found.append(label)
            elif home.is_ending or self._clock.now_ms() - label.created_at_ms > KEEP_DEAD_MS:
                home.remove()
        return found

    # -- death -------------------------------------------------------------------------------

    async def _kill_all(self, machine_id: MachineId) -> bool:
        """Kill until nothing is left; say whether nothing is."""
        for _ in range(KILL_MS_MAX // POLL_MS):
            pids = await asyncio.to_thread(pids_of, machine_id)
            if not pids:
                return True
            send_signal(machine_id, pids, signal.SIGKILL)
            self._reap()
            await asyncio.sleep(POLL_MS / 1_000)
        return False

    async def _until_ended(self, machine_id: MachineId, pids: Sequence[int], ms_max: int) -> None:
        for _ in range(ms_max // POLL_MS):
            self._reap()
            if not set(pids) & set(await asyncio.to_thread(pids_of, machine_id)):
                return
            await asyncio.sleep(POLL_MS / 1_000)

    def _remove(self, home: Home) -> None:
        with self._locked():
            if not pids_of(home.path.name):
                home.remove()

    def _reap(self) -> None:
        """Let children that have ended go, so that they do not stay as zombies."""
        self._children -= {pid for pid in list(self._children) if reap(pid)}


def _end_of(path: Path, bytes_max: int) -> str:
    """Read the end of a file; one that is not there is empty."""
    try:
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - bytes_max))
            return file.read(bytes_max).decode(errors="replace")
    except FileNotFoundError:
        return ""


PROVIDER: Final = ProviderKind(
    name="local", api_version=1, options_type=LocalOptions, open=LocalProvider
)
"""What the entry point leads to."""
