"""The demo's small world: one folder, one server, two boxes of our own, and everything they start.

Whatever belongs to the demo can be recognised by the folder's name in its environment, its command
line or its working directory; that is how the end counts what is left, without trusting anybody's
books.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from glob import glob
from pathlib import Path
from typing import BinaryIO, Final

import psutil

from hostler.cli.demo import wall
from hostler.cli.demo.cable import Cable
from hostler.cli.demo.failure import DemoFailed

AGENT_MODULE: Final = "hostler.agent"
"""As which the machines of the provider `local` run their agents."""
MACHINE_MARK: Final = "HOSTLER_MACHINE_ID"
"""By which that provider knows the processes of a machine."""

CONFIGURATION: Final = """\
fleet:
  id: {fleet_id}
  timing: {{heartbeat: {heartbeat}, suspect_after: 3s, fence_after: {fence}, lost_after: {lost}}}
server: {{bind: 127.0.0.1, port: {port}, data: data}}
pools:
  studio:
    spares: {{count: 1, band: gold}}
    tiers:
      - {{name: own, kind: fixed, provider: local}}
      - name: burst
        kind: elastic
        provider: local
        node_count_max: 5
        boot: 30s
        offers: [{{name: small, shape: {{capacity: 10, cores: "2", memory: 1GiB}}}}]
  kiosk:
    tiers:
      - {{name: own, kind: fixed, provider: local}}
  runners:
    warm: 2
    tiers:
      - name: local
        kind: elastic
        provider: local
        node_count_max: 3
        boot: 30s
        offers: [{{name: small, shape: {{capacity: 10, cores: "2", memory: 1GiB}}}}]
"""

STRICT: Final = {"heartbeat": "500ms", "fence": "4s", "lost": "9s"}
"""Limits for a network that is cut on purpose: nobody wants to watch a minute of silence."""
RELAXED: Final = {"heartbeat": "1s", "fence": "20s", "lost": "30s"}
"""Limits that leave a slow laptop the time to start a server, or everything, again."""

KIOSK: Final = "kiosk"
"""The pool of those who meet a box that refuses; its boxes are named after it."""
BOXES: Final = ("own-1", "own-2")
"""Our own, of the pool `studio`."""

KILL_ROUNDS_MAX: Final = 50


@dataclass
class DemoWorld:
    """Processes and files of one demo."""

    root: Path
    port: int
    server: subprocess.Popen[bytes] | None = None
    agents: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)
    cables: dict[str, Cable] = field(default_factory=dict)
    """Between boxes of our own and the server."""
    addresses: dict[str, str] = field(default_factory=dict)
    """What a box dials, where that is not the server itself."""
    killed_names: list[str] = field(default_factory=list)
    """Boxes whose agents were killed and are to be started again."""
    machine_agents: list[AgentProcess] = field(default_factory=list)
    """The same of the provider's machines."""
    started_again: list[subprocess.Popen[bytes]] = field(default_factory=list)
    """Those, once they are; they end with their machines."""
    killed_machines: set[str] = field(default_factory=set)
    """The provider keeps their folders for a while, for people to look at."""

    @classmethod
    def create(cls, *, is_strict: bool = False) -> DemoWorld:
        """Make the folder and choose a port that is free now.

        Args:
            is_strict: Begin with the limits under which a network is cut.
        """
        root = Path(tempfile.mkdtemp(prefix="hostler-demo-")).resolve()
        world = cls(root=root, port=_free_port())
        world.write_configuration(STRICT if is_strict else RELAXED)
        return world

    def write_configuration(self, limits: Mapping[str, str]) -> None:
        """Write the file that the server reads."""
        text = CONFIGURATION.format(fleet_id=self.fleet_id, port=self.port, **limits)
        (self.root / "hostler.yaml").write_text(text)

    def relax_limits(self) -> None:
        """Write limits that a restart on a slow machine keeps; a reload has them taken in."""
        self.write_configuration(RELAXED)

    @property
    def fleet_id(self) -> str:
        """The folder's name, which may end with what a fleet's id may not end with."""
        return self.root.name.lower().replace("_", "0")

    @property
    def url(self) -> str:
        """Where the server answers."""
        return f"http://127.0.0.1:{self.port}"

    def start_server(self) -> None:
        """Start the server on the demo's file, for the first time or again."""
        self.server = self._spawn("server", "server", "-c", str(self.root / "hostler.yaml"))

    async def plug_in(self, name: str) -> None:
        """Give a box a cable that can be pulled."""
        cable = self.cables[name] = Cable(self.port)
        self.addresses[name] = await cable.plug_in()

    async def dial_without_cables(self) -> None:
        """Let the boxes dial the server itself, since the cables end with us."""
        for name in [*self.cables]:
            await self.cables.pop(name).unplug()
            del self.addresses[name]
            agent = self.agents[name]
            if agent.poll() is None:
                agent.terminate()  # its work goes on
                await asyncio.to_thread(agent.wait)
                self.start_agent(name)

    def start_agent(self, name: str, pool: str = "studio") -> None:
        """Start the agent of one own box, for the first time or again."""
        address = self.addresses.get(name, self.url)
        self.agents[name] = self._spawn(
            name,
            *("agent", "--server", address, "--data", str(self.root / name), "--name", name),
            *("--pool", pool, "--tier", "own", "--capacity", "10"),
            *("--notice-file", str(self.root / f"{name}.notice")),
        )

    def write_notice(self, name: str, text: str) -> None:
        """Let a box's agent find a notice of its provider."""
        whole = self.root / f"{name}.notice.new"
        whole.write_text(text)
        whole.replace(self.root / f"{name}.notice")

    def set_clock(self, name: str, ahead_ms: int) -> None:
        """Let the wall clock of the server or of an agent jump."""
        (self.root / f"{name}.wall").write_text(str(ahead_ms))

    def break_disk(self, name: str) -> None:
        """Let a box take on nothing any more: where its work would go there is no folder."""
        folder = self.root / name / "allocations"
        folder.rmdir()
        folder.write_text("")

    def mend_disk(self, name: str) -> None:
        """Undo `break_disk`."""
        folder = self.root / name / "allocations"
        folder.unlink()
        folder.mkdir()

    def _spawn(self, name: str, *argv: str) -> subprocess.Popen[bytes]:
        # Jobs find `hostler-encoder` where this interpreter lives, whatever the caller's PATH.
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
        environment = {
            key: value for key, value in os.environ.items() if not key.startswith("HOSTLER_")
        }
        with (self.root / f"{name}.log").open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-P", "-m", wall.__name__, *argv],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={
                    **environment,
                    "PATH": path,
                    "HOSTLER_DEMO": str(self.root),
                    wall.VARIABLE: str(self.root / f"{name}.wall"),
                },
                cwd=self.root,
                start_new_session=True,
            )

    def check_running(self) -> None:
        """Fail at once, with its last words, when the server has ended by itself."""
        if self.server is not None and self.server.poll() is not None:
            raise DemoFailed(f"the server ended by itself: {self.last_words('server')}")

    def last_words(self, name: str) -> str:
        """Return the end of a process's log."""
        text = (self.root / f"{name}.log").read_text(errors="replace").strip()
        return text[-600:] or "it said nothing"

    def kill_server(self) -> None:
        """Kill -9, as the kernel's out-of-memory killer or a pulled plug would."""
        if self.server is not None:
            self.server.kill()
            self.server.wait()

    def kill_all_but_work(self) -> int:
        """Kill -9 the server and every agent, and nothing else. Return how many that was."""
        found = [p for p in _processes(str(self.root)) if _is_agent(p)]
        self.killed_names = [name for name, agent in self.agents.items() if agent.poll() is None]
        ours = {self.agents[name].pid for name in self.killed_names}
        self.machine_agents = [AgentProcess.of(p) for p in found if p.pid not in ours]
        self.kill_server()
        for process in found:
            _signal(process, signal.SIGKILL)
        psutil.wait_procs(found, timeout=5)
        for agent in self.agents.values():
            agent.poll()
        return len(found) + 1

    def start_all_again(self) -> None:
        """Start the server and every agent that `kill_all_but_work` has killed.

        The machines of the provider `local` have nobody who starts their agents after a crash, as
        a unit of systemd would; here we do.
        """
        self.start_server()
        for name in self.killed_names:
            self.start_agent(name, pool=KIOSK if name.startswith(KIOSK) else "studio")
        with (self.root / "machines.log").open("ab") as log:
            for one in self.machine_agents:
                self.started_again.append(one.start(log))

    def kill_box(self, name: str) -> int:
        """Kill -9 everything of one own box: agent, supervisors, encoders. Return how many."""
        return self._kill(str(self.root / name))

    def kill_machine(self, machine_id: str) -> int:
        """Kill -9 everything of one machine of the provider `local`. Return how many."""
        self.killed_machines.add(machine_id)
        return self._kill(machine_id)

    def _kill(self, mark: str) -> int:
        killed: set[int] = set()
        for _ in range(KILL_ROUNDS_MAX):
            found = _processes(mark, besides=self._own_pids())
            if not found:
                break
            for process in found:
                killed.add(process.pid)
                _signal(process, signal.SIGKILL)
            psutil.wait_procs(found, timeout=0.2)
        for agent in self.agents.values():
            agent.poll()
        return len(killed)

    def _own_pids(self) -> frozenset[int]:
        server = self.server.pid if self.server is not None else 0
        return frozenset({os.getpid(), server})

    def encoders(self) -> dict[int, float]:
        """Return the running encoders: start time by process id."""
        return {
            process.pid: process.create_time()
            for process in _processes(str(self.root))
            if "ffmpeg" in _name(process)
        }

    def count_encoders_of(self, name: str) -> int:
        """Count the encoders that run on one own box."""
        found = _processes(str(self.root / name))
        return sum("ffmpeg" in _name(process) for process in found)

    def processes_left(self) -> list[str]:
        """Return a line for each process of the demo that still runs."""
        return [f"{process.pid} {_name(process)}" for process in _processes(str(self.root))]

    def machines_left(self) -> list[str]:
        """Return the machines of the provider `local` that have a folder; not those we killed."""
        found = glob("**/machines/*/", root_dir=self.root, recursive=True)
        return sorted({Path(path).name for path in found} - self.killed_machines)

    def interrupt(self, process: subprocess.Popen[bytes] | None, seconds: float) -> bool:
        """Send Ctrl-C to one of ours and wait; say whether it ended in time with exit code 0."""
        if process is None:
            return True
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
        try:
            return process.wait(timeout=seconds) == 0
        except subprocess.TimeoutExpired:
            return False

    def pids(self) -> list[int]:
        """Return the processes that a person ends: the server, then the agents that run."""
        ours = [self.server, *self.agents.values()]
        return [process.pid for process in ours if process is not None and process.poll() is None]

    def clean_up(self, *, is_kept: bool = False) -> None:
        """Kill whatever is left, and remove the folder unless it is to be looked at."""
        self.kill_server()
        self._kill(str(self.root))
        for agent in [*self.agents.values(), *self.started_again]:
            agent.wait()
        if not is_kept:
            shutil.rmtree(self.root, ignore_errors=True)


@dataclass(frozen=True)
class AgentProcess:
    """How an agent of a machine was started."""

    name: str
    argv: list[str]
    environment: dict[str, str]
    folder: str

    @classmethod
    def of(cls, process: psutil.Process) -> AgentProcess:
        """Read it from a process."""
        environment = process.environ()
        name = environment.get(MACHINE_MARK, str(process.pid))
        return cls(name, process.cmdline(), environment, process.cwd())

    def start(self, log: BinaryIO) -> subprocess.Popen[bytes]:
        """Start it again, just so."""
        return subprocess.Popen(
            self.argv,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=self.environment,
            cwd=self.folder,
            start_new_session=True,
        )


def _is_agent(process: psutil.Process) -> bool:
    """Say whether a process is an agent: not the server, no supervisor and no work."""
    try:
        argv = process.cmdline()
    except psutil.Error:
        return False
    return AGENT_MODULE in argv or (wall.__name__ in argv and "agent" in argv)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _processes(mark: str, besides: frozenset[int] = frozenset()) -> list[psutil.Process]:
    """Return live processes that carry the mark, zombies left out."""
    own = besides | {os.getpid()}
    return [p for p in psutil.process_iter() if p.pid not in own and _carries(p, mark)]


def _carries(process: psutil.Process, mark: str) -> bool:
    try:
        if process.status() == psutil.STATUS_ZOMBIE:
            return False
        return any(mark in text for text in (*process.environ().values(), *process.cmdline()))
    except psutil.Error:
        return False  # it has just ended, or is not ours to look at


def _name(process: psutil.Process) -> str:
    try:
        return Path((process.cmdline() or ["?"])[0]).name
    except psutil.Error:
        return "?"


def _signal(process: psutil.Process, number: int) -> None:
    try:
        process.send_signal(number)
    except psutil.NoSuchProcess:
        return
