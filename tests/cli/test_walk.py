"""The walk of the README, with real processes: at its end nothing is left running."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import psutil
import pytest

from tests.cli.conftest import environment
from tests.eventually import eventually

T = TypeVar("T")

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

MARK = "WALK_FOLDER"
WITHIN_S = 90.0
"""A busy machine of two cores starts ten Pythons in this walk."""

OWN_BOX = ("--pool", "studio", "--tier", "own", "--capacity", "10")

CHANNEL = """\
bundle: channel
pool: studio
replicas: 2
jobs:
  - name: encoder
    band: gold
    requires: {capacity: 4}
    run:
      argv: [sh, -c, 'echo on air as $HOSTLER_ROLE; touch on-air; while :; do sleep 0.2; done']
      readiness: {exec: {argv: [test, -e, on-air], interval: 100ms}}
      stop: {grace: 1s}
"""


class Walk:
    """A folder, and the processes that were started for it: all carry its name somewhere."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.url = ""
        self._started: dict[str, subprocess.Popen[bytes]] = {}

    @property
    def environment(self) -> dict[str, str]:
        path = f"{Path(sys.executable).parent}:/usr/bin:/bin"
        state = {"XDG_STATE_HOME": str(self.folder), "XDG_CONFIG_HOME": str(self.folder)}
        found = {**environment(), **state, "PATH": path, MARK: str(self.folder)}
        return {**found, "HOSTLER_SERVER": self.url} if self.url else found

    def process(self, name: str) -> subprocess.Popen[bytes]:
        """Return what was started under a name."""
        return self._started[name]

    def start(self, name: str, *argv: str) -> subprocess.Popen[bytes]:
        """Start one of ours, as in a terminal of its own."""
        with (self.folder / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", "hostler", *argv],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=self.environment,
                cwd=self.folder,
                start_new_session=True,
            )
        self._started[name] = process
        return process

    def log(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text()

    def start_server(self, *options: str) -> None:
        """Start the server, for the first time or again on the same port and data."""
        config = Path("examples/hostler.yaml").absolute()
        port = self.url.rpartition(":")[2] or "0"
        process = self.start(
            *("server", "server", "-c", str(config), "--port", port, "--log-format", "text"),
            *("--data", str(self.folder / "data"), *options),
        )

        def listens() -> str:
            assert process.poll() is None, self.log("server")
            found = re.search(r"listens on (\S+)", self.log("server"))
            return found[1] if found else ""

        self.url = self.eventually(listens, "the server listens")

    def interrupt(self, name: str, number: signal.Signals = signal.SIGINT) -> int:
        """Press Ctrl-C in the terminal of one of ours; return its exit code."""
        process = self._started.pop(name)
        process.send_signal(number)
        return process.wait(timeout=WITHIN_S)

    def kill(self, name: str) -> None:
        process = self._started.pop(name)
        process.kill()
        process.wait()

    def run(self, *argv: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-P", "-m", "hostler", *argv],
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            text=True,
            timeout=WITHIN_S,
            check=False,
            env=self.environment,
            cwd=self.folder,
        )

    def said(self, *argv: str) -> str:
        ended = self.run(*argv)
        assert ended.returncode == 0, (argv, ended)
        return ended.stdout

    def eventually(self, probe: Callable[[], T], what: str) -> T:
        return eventually(probe, within_s=WITHIN_S, what=what)

    def left(self) -> list[str]:
        """Return every live process that belongs to us: agents, supervisors and jobs as well."""
        return [
            f"{process.pid} {' '.join(process.cmdline())}"
            for process in psutil.process_iter()
            if _carries(process, str(self.folder))
        ]

    def clean_up(self) -> None:
        for started in self._started.values():
            started.kill()
            started.wait()
        for process in psutil.process_iter():
            if _carries(process, str(self.folder)):
                process.kill()


def _carries(process: psutil.Process, folder: str) -> bool:
    try:
        is_dead = process.status() == psutil.STATUS_ZOMBIE
        told = (*process.environ().values(), *process.cmdline())
        return not is_dead and any(folder in text for text in told)
    except psutil.Error:
        return False


@pytest.fixture
def walk(tmp_path: Path) -> Iterator[Walk]:
    walk = Walk(tmp_path)
    yield walk
    walk.clean_up()


def nodes_ready(walk: Walk, count: int) -> Callable[[], bool]:
    def probe() -> bool:
        lines = walk.said("get", "nodes").splitlines()[1:]
        return len(lines) == count and all(" ready " in line for line in lines)

    return probe


def test_the_walk_of_the_readme_leaves_nothing_running(walk: Walk) -> None:
    walk.start_server()
    # The spare first: once own nodes idle about, one of them would be it.
    walk.eventually(nodes_ready(walk, 3), "two warm runners and a spare")
    for number in (1, 2):
        walk.start(f"agent{number}", "agent", *OWN_BOX)
    walk.eventually(nodes_ready(walk, 5), "two warm runners, two own nodes, a spare")

    (walk.folder / "channel.yaml").write_text(CHANNEL)
    planned = walk.said("plan", "-f", "channel.yaml")
    assert planned.count("(studio/own)") == 2
    applied = walk.run("apply", "-f", "channel.yaml", "--wait", "--timeout", "60s")
    assert (applied.returncode, applied.stdout) == (0, "bundle/channel created\n"), applied.stderr
    assert "all ready after" in applied.stderr
    replicas = walk.said("get", "replicas").splitlines()
    assert [line.split()[3] for line in replicas[1:]] == ["ready", "ready"]
    assert len({line.split()[4] for line in replicas[1:]}) == 2
    assert "It runs on n-" in walk.said("explain", "channel/encoder/0")
    assert walk.said("logs", "channel/encoder/1") == "on air as backup\n"

    ran = walk.run("run", "-p", "runners", "--", "sh", "-c", "cat; echo no >&2; exit 7", stdin="in")
    assert (ran.returncode, ran.stdout, ran.stderr) == (7, "in", "no\n")
    assert walk.run("run", "-p", "runners", "--", "sh", "-c", "kill -9 $$").returncode == 137
    assert walk.run("run", "-p", "runners", "--", "no-such").returncode == 127
    lease = walk.said("lease", "acquire", "-p", "runners", "-o", "name").strip()
    held = lease.removeprefix("lease/")
    assert walk.run("run", "--lease", held, "--", "true").returncode == 0
    assert "healthy" in walk.said("lease", "release", lease)
    assert " poison " not in walk.said("lease", "list", "--all")

    assert walk.interrupt("agent1") == 0
    assert walk.interrupt("server") == 0
    assert "on this host" in walk.log("server")
    assert walk.interrupt("agent2") == 0
    assert walk.left() == []


def test_signals_reach_what_runs(walk: Walk) -> None:
    walk.start_server()
    walk.eventually(nodes_ready(walk, 3), "two warm runners and a spare")
    trap = "trap 'echo stopped; exit 9' INT; echo up; while :; do sleep 0.1; done"
    walk.start("run", "run", "-p", "runners", "--", "sh", "-c", trap)
    walk.eventually(lambda: "up" in walk.log("run"), "the command runs")
    assert walk.interrupt("run") == 9
    assert walk.log("run") == "up\nstopped\n"

    walk.start("hold", "lease", "hold", "-p", "runners")
    walk.eventually(lambda: "held on" in walk.log("hold"), "the lease is held")
    assert walk.interrupt("hold") == 0
    assert "released (healthy)" in walk.log("hold")

    walk.start("watch", "get", "nodes", "-w")
    walk.eventually(lambda: "NODE" in walk.log("watch"), "the watch shows what is")
    assert walk.interrupt("watch") == 130
    assert "Traceback" not in walk.log("watch")
    assert walk.interrupt("server") == 0
    assert walk.left() == []


def test_a_server_that_is_killed_or_upgraded_leaves_work_alone(walk: Walk) -> None:
    walk.start_server()
    walk.eventually(nodes_ready(walk, 3), "two warm runners and a spare")
    before = walk.said("get", "nodes", "-o", "name")
    walk.kill("server")
    walk.start_server()
    walk.eventually(nodes_ready(walk, 3), "the same three, after kill -9")
    assert walk.said("get", "nodes", "-o", "name") == before
    assert walk.interrupt("server", signal.SIGTERM) == 0
    assert len(walk.left()) >= 3

    walk.start_server("--keep-machines")
    walk.eventually(nodes_ready(walk, 3), "the same three, after SIGTERM")
    assert walk.said("get", "nodes", "-o", "name") == before
    assert walk.interrupt("server") == 0
    assert "3 machines on this host went on running" in walk.log("server")
    assert len(walk.left()) >= 3

    walk.start_server()
    assert walk.interrupt("server") == 0
    assert walk.left() == []
