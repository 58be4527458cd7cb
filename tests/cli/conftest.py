"""What the tests of the command line share: running a command, and a server to run it against."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from hostler.cli.app import app
from tests.eventually import eventually

CONFIGURATION = """\
fleet:
  id: golden
server: {port: 0, data: data}
pools:
  studio:
    tiers: [{name: own, kind: fixed}]
  runners:
    lease: 2m
    tiers: [{name: own, kind: fixed}]
"""

AGES = re.compile(r"\b\d+(ms|s|m|h|d)( ago)?\b")


@dataclass(frozen=True)
class Ended:
    """How a command ended, and what it wrote."""

    code: int
    out: str
    err: str

    @property
    def ageless(self) -> str:
        """Standard output with every age and duration as AGE."""
        return AGES.sub("AGE", self.out)


class Cli:
    """Runs commands in this process, as fast as functions."""

    def __init__(self, capture: pytest.CaptureFixture[str]) -> None:
        self._capture = capture

    def __call__(self, *argv: str) -> Ended:
        self._capture.readouterr()
        code = 0
        try:
            app(list(argv), prog_name="hostler")
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1
        out, err = self._capture.readouterr()
        return Ended(code, out, err)


@pytest.fixture
def cli(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Cli:
    """Run commands with nothing of the developer's own environment."""
    for name in list(os.environ):
        if name.startswith("HOSTLER_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("NO_COLOR", "1")
    return Cli(capfd)


@dataclass
class ServerProcess:
    """A real `hostler server`."""

    folder: Path
    process: subprocess.Popen[bytes]
    url: str = ""
    log: Path = field(default_factory=Path)

    def end(self, number: signal.Signals = signal.SIGINT) -> int:
        """Send it a signal and return what it exits with."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        return self.process.wait(timeout=30)


def environment() -> dict[str, str]:
    """The environment without anything of Hostler's, for processes of ours."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("HOSTLER_")}
    return {**kept, "NO_COLOR": "1"}


def start_server(folder: Path, configuration: str, *options: str) -> ServerProcess:
    """Start a server and wait until it listens."""
    (folder / "hostler.yaml").write_text(configuration)
    log = folder / "server.log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            [
                *(sys.executable, "-P", "-m", "hostler", "server"),
                *("-c", str(folder / "hostler.yaml"), "--log-format", "text", *options),
            ],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            env=environment(),
            start_new_session=True,
        )
    server = ServerProcess(folder, process, log=log)

    def listens() -> str:
        assert process.poll() is None, log.read_text()
        found = re.search(r"listens on (\S+)", log.read_text())
        return found[1] if found else ""

    server.url = eventually(listens, what="the server listens")
    return server


@pytest.fixture(scope="session")
def shared_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """One server in memory for all tests that do not disturb each other."""
    server = start_server(tmp_path_factory.mktemp("server"), CONFIGURATION, "--ephemeral")
    yield server
    assert server.end() == 0, server.log.read_text()


@pytest.fixture
def server(
    shared_server: ServerProcess, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> ServerProcess:
    """The shared server, which commands then find by themselves."""
    monkeypatch.setenv("HOSTLER_SERVER", shared_server.url)
    return shared_server
