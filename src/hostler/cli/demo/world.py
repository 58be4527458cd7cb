"""The demo's small world: one folder, one server, two boxes of our own, and everything they start.

Whatever belongs to the demo can be recognised by the folder's name in its environment, its command
line or its working directory; that is how the end counts what is left, without trusting anybody's
books.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from glob import glob
from pathlib import Path
from typing import Final

import psutil

from hostler.cli.demo.failure import DemoFailed

CONFIGURATION: Final = """\
fleet:
  id: {fleet_id}
  timing: {{heartbeat: 1s, suspect_after: 3s, fence_after: 20s, lost_after: 30s}}
server: {{bind: 127.0.0.1, port: {port}, data: data}}
pools:
  studio:
    spares: {{count: 1, band: gold}}
    tiers:
      - {{name: own, kind: fixed, provider: local}}
      - name: burst
        kind: elastic
        provider: local
        node_count_max: 3
        boot: 30s
        offers: [{{name: small, shape: {{capacity: 10, cores: "2", memory: 1GiB}}}}]
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

KILL_ROUNDS_MAX: Final = 50


@dataclass
class DemoWorld:
    """Processes and files of one demo."""

    root: Path
    port: int
    server: subprocess.Popen[bytes] | None = None
    agents: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @classmethod
    def create(cls) -> DemoWorld:
        """Make the folder and choose a port that is free now."""
        root = Path(tempfile.mkdtemp(prefix="hostler-demo-")).resolve()
        world = cls(root=root, port=_free_port())
        text = CONFIGURATION.format(fleet_id=world.fleet_id, port=world.port)
        (root / "hostler.yaml").write_text(text)
        return world

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

    def start_agent(self, name: str) -> None:
        """Start the agent of one own box."""
        self.agents[name] = self._spawn(
            name,
            *("agent", "--server", self.url, "--data", str(self.root / name), "--name", name),
            *("--pool", "studio", "--tier", "own", "--capacity", "10"),
        )

    def _spawn(self, name: str, *argv: str) -> subprocess.Popen[bytes]:
        # Jobs find `hostler-encoder` where this interpreter lives, whatever the caller's PATH.
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
        environment = {
            key: value for key, value in os.environ.items() if not key.startswith("HOSTLER_")
        }
        with (self.root / f"{name}.log").open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-P", "-m", "hostler", *argv],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**environment, "PATH": path, "HOSTLER_DEMO": str(self.root)},
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

    def kill_box(self, name: str) -> int:
        """Kill -9 everything of one own box: agent, supervisors, encoders. Return how many."""
        return self._kill(str(self.root / name))

    def kill_machine(self, machine_id: str) -> int:
        """Kill -9 everything of one machine of the provider `local`. Return how many."""
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

    def processes_left(self) -> list[str]:
        """Return a line for each process of the demo that still runs."""
        return [f"{process.pid} {_name(process)}" for process in _processes(str(self.root))]

    def machines_left(self) -> list[str]:
        """Return the machines of the provider `local` that still have a folder."""
        return sorted(
            Path(path).name for path in glob("**/machines/*/", root_dir=self.root, recursive=True)
        )

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
        for agent in self.agents.values():
            agent.wait()
        if not is_kept:
            shutil.rmtree(self.root, ignore_errors=True)


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
