"""The world of a chaos run: the demo's, with quicker timing and work that keeps records."""

from __future__ import annotations

import asyncio
import random
import signal
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from hostler.cli.demo.world import DemoWorld
from hostler.wire.documents import BundleDocument, read_bundles
from tests.eventually import pause

STAND_IN = Path(__file__).parent / "stand_in.py"
OWN = ("own-1", "own-2")
AGENT_PROGRAM = "hostler.agent"
SUPERVISOR_PROGRAM = "supervisor.pyc"

DEMO_TIMING = "{heartbeat: 1s, suspect_after: 3s, fence_after: 20s, lost_after: 30s}"
"""What the demo's configuration comes to with its `RELAXED` limits."""
TIMING = """
    heartbeat: 500ms
    suspect_after: 2s
    fence_after: 5s
    lost_after: 10s
    lost_nodes_max: 1000
    list_every: 3s
    orphan_grace: 5s
  recovery: {restarts_max: 1000, spacing: 200ms, exclusion: 1s}"""

BUNDLE = """
bundle: live-channel
pool: studio
replicas: 2
jobs:
  - name: encoder
    band: gold
    requires: {capacity: 4}
    run:
      argv: ["PYTHON", -I, -S, -E, "STAND_IN", "RECORDS", "${HOSTLER_REPLICA}"]
      readiness: {exec: {argv: [test, -e, ready], interval: 200ms}}
      ready_within: 20s
      stop: {signal: SIGTERM, grace: 1s}
"""


@dataclass
class Kill:
    """One thing that was done to the world, for the account of a run."""

    at_s: float
    what: str


@dataclass
class ChaosWorld:
    """Processes, files and everything that was done to them."""

    demo: DemoWorld
    rng: random.Random
    pause_s_max: float = 1.0
    """Longest time that a killed server or agent stays away."""
    stall_s_max: float = 0.0
    """Longest time that a process is made to stand still."""
    kills: list[Kill] = field(default_factory=list)
    restarts: set[asyncio.Task[None]] = field(default_factory=set)
    began_s: float = field(default_factory=time.monotonic)

    @classmethod
    def create(cls, seed: int) -> ChaosWorld:
        """Make the folder, with a configuration whose silence is short."""
        demo = DemoWorld.create()
        world = cls(demo=demo, rng=random.Random(seed))
        configuration = (demo.root / "hostler.yaml").read_text()
        if DEMO_TIMING not in configuration:
            raise AssertionError("the demo's configuration has changed: adapt DEMO_TIMING")
        configuration = configuration.replace(DEMO_TIMING, TIMING).replace(
            "    warm: 2", "    warm: 2\n    lease: 6s"
        )
        (demo.root / "hostler.yaml").write_text(configuration)
        world.records.mkdir()
        return world

    @property
    def records(self) -> Path:
        """Where work writes down that it lives."""
        return self.demo.root / "records"

    def bundle(self) -> BundleDocument:
        """Return what is to be kept alive."""
        text = BUNDLE.replace("PYTHON", sys.executable)
        text = text.replace("STAND_IN", str(STAND_IN)).replace("RECORDS", str(self.records))
        return read_bundles(text, "chaos")[0].require()

    def command(self, node_id: str, seconds: float) -> list[str]:
        """Return what a lessee runs: nobody else may run it on this node meanwhile."""
        argv = [sys.executable, "-I", "-S", "-E", str(STAND_IN), str(self.records)]
        return [*argv, f"lease/{node_id}", str(seconds)]

    # -- who is there ----------------------------------------------------------------------------

    def processes(self) -> Iterator[psutil.Process]:
        """Yield live processes of this world, ourselves left out."""
        mark = str(self.demo.root)
        for process in psutil.process_iter():
            if process.pid != psutil.Process().pid and mark in self.told_by(process):
                yield process

    @staticmethod
    def told_by(process: psutil.Process) -> str:
        """Return everything by which a process can be recognised, empty when it has ended."""
        try:
            if process.status() == psutil.STATUS_ZOMBIE:
                return ""
            marks = (f"{name}={value}" for name, value in process.environ().items())
            return "\n".join((*process.cmdline(), *marks, process.cwd()))
        except psutil.Error:
            return ""

    def victims(self, part: str) -> list[psutil.Process]:
        """Return processes whose program is the part: an agent, a supervisor or a stand-in."""
        found = []
        for process in self.processes():
            try:
                if any(part in word for word in process.cmdline()):
                    found.append(process)
            except psutil.Error:
                continue
        return sorted(found, key=lambda process: process.pid)

    def machine_ids(self) -> list[str]:
        """Return the machines of the provider `local` that have a folder."""
        return self.demo.machines_left()

    # -- what is done to them --------------------------------------------------------------------

    def strike(self, what: str) -> None:
        """Kill -9 one thing of a kind and, if it is one that a person starts, start it again.

        Holds the event loop meanwhile, so that nothing is started again in the midst of it.
        """
        strikes: dict[str, Callable[[], str]] = {
            "server": self._kill_server,
            "own agent": lambda: self._kill_agent(self.rng.choice(OWN)),
            "machine's agent": lambda: self._kill_one(AGENT_PROGRAM),
            "supervisor": lambda: self._kill_one(SUPERVISOR_PROGRAM),
            "work": lambda: self._kill_one(STAND_IN.name),
            "box": lambda: self._kill_box(self.rng.choice(OWN)),
            "machine": self._kill_machine,
            "everything": self._kill_everything,
            "all but work": self._kill_all_but_work,
            "stall server": self._stall_server,
            "stall agent": self._stall_agent,
        }
        victim = strikes[what]()
        self.kills.append(Kill(time.monotonic() - self.began_s, f"{what} {victim}".strip()))

    def _kill_one(self, program: str) -> str:
        candidates = self.victims(program)
        if not candidates:
            return "none"
        process = self.rng.choice(candidates)
        _send(process, signal.SIGKILL)
        return str(process.pid)

    def _kill_machine(self) -> str:
        machine_id = self.rng.choice(self.machine_ids() or ["none"])
        self.demo.kill_machine(machine_id)
        return machine_id

    def _kill_everything(self) -> str:
        self._kill_server()
        for machine_id in self.machine_ids():
            self.demo.kill_machine(machine_id)
        return " ".join(self._kill_box(name) for name in OWN)

    def _kill_all_but_work(self) -> str:
        self._kill_server()
        for name in OWN:
            self._kill_agent(name)
        victims = self.victims(AGENT_PROGRAM) + self.victims(SUPERVISOR_PROGRAM)
        for process in victims:
            _send(process, signal.SIGKILL)
        return f"{len(victims)}"

    def _kill_server(self) -> str:
        if self.demo.server is not None and self.demo.server.poll() is None:
            self.demo.kill_server()
            self._later(self.demo.start_server)
        return ""

    def _kill_agent(self, name: str) -> str:
        agent = self.demo.agents[name]
        if agent.poll() is None:
            agent.kill()
            agent.wait()
            self._later(lambda: self.demo.start_agent(name))
        return name

    def _kill_box(self, name: str) -> str:
        was_running = self.demo.agents[name].poll() is None
        self.demo.kill_box(name)
        if was_running:
            self._later(lambda: self.demo.start_agent(name))
        return name

    def _stall_server(self) -> str:
        if self.demo.server is None or self.demo.server.poll() is not None:
            return "none"
        return self._stall(psutil.Process(self.demo.server.pid))

    def _stall_agent(self) -> str:
        own = [agent.pid for agent in self.demo.agents.values() if agent.poll() is None]
        agents = [*map(psutil.Process, own), *self.victims(AGENT_PROGRAM)]
        return self._stall(self.rng.choice(agents)) if agents else "none"

    def _stall(self, process: psutil.Process) -> str:
        """Let a process stand still for a while, as a machine does that swaps or is migrated."""
        stall_s = self.rng.uniform(0, self.stall_s_max)
        _send(process, signal.SIGSTOP)
        self._restart_after(stall_s, lambda: _send(process, signal.SIGCONT))
        return f"{process.pid} for {stall_s:.1f} s"

    def _later(self, start: Callable[[], None]) -> None:
        self._restart_after(self.rng.uniform(0, self.pause_s_max), start)

    def _restart_after(self, pause_s: float, start: Callable[[], None]) -> None:
        task = asyncio.create_task(_after(pause_s, start))
        self.restarts.add(task)
        task.add_done_callback(self.restarts.discard)

    async def all_restarted(self) -> None:
        """Wait until everything that a person starts runs again."""
        await asyncio.gather(*self.restarts)


async def _after(pause_s: float, start: Callable[[], None]) -> None:
    await pause(pause_s)
    start()


def _send(process: psutil.Process, number: signal.Signals) -> None:
    try:
        process.send_signal(number)
    except psutil.NoSuchProcess:
        return
