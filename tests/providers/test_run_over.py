"""`hostler run` on machines without an agent behaves as ssh does: real containers, real sshd.

A server in a process of its own has a pool of containers and a pool of hosts; each test says which.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import ServerProcess, environment, start_server
from tests.eventually import eventually
from tests.machines import IMAGE, ContainerEngine
from tests.providers.ssh_lab import Hosts, marked

pytestmark = [pytest.mark.slow, pytest.mark.e2e]

BIG_BYTES = 100 * 2**20

GROWTH_BYTES_MAX = 40 * 2**20
"""Far below what is carried, and above what a run leaves in caches."""

CONFIGURATION = """\
fleet:
  id: run-over
  timing: {{heartbeat: 200ms, suspect_after: 2s, fence_after: 20s, lost_after: 40s}}
server: {{port: 0, data: data}}
pools:
  docker:
    warm: 1
    tiers:
      - name: containers
        kind: elastic
        provider: docker
        node_count_max: 2
        offers: [{{name: small, shape: {{capacity: 1, memory: 64MiB}}}}]
        options:
          image: {image}
          socket: {socket}
          pull: never
          network: none
          ulimits: {{nofile: {{soft: 1024, hard: 4096}}, nproc: {{soft: 1024, hard: 1024}}}}
  ssh:
    warm: 1
    tiers:
      - name: hosts
        kind: elastic
        provider: ssh
        node_count_max: 2
        offers: [{{name: host, shape: {{capacity: 1}}}}]
        options: {options}
"""


@pytest.fixture(scope="module")
def server(
    engine: ContainerEngine, hosts: Hosts, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ServerProcess]:
    options = {
        "hosts": [
            {"host": "127.0.0.1", "port": host.port, "host_key": host.host_key}
            for host in hosts.hosts[:2]
        ],
        "key": str(hosts.key),
    }
    configuration = CONFIGURATION.format(
        image=IMAGE, socket=engine.socket, options=json.dumps(options)
    )
    server = start_server(tmp_path_factory.mktemp("server"), configuration)
    yield server
    server.end()
    engine.remove_all()
    hosts.clean()


@pytest.fixture(params=["docker", "ssh"])
def pool(request: pytest.FixtureRequest) -> str:
    return str(request.param)


class Run:
    """A `hostler run` in a process of its own."""

    def __init__(self, server: ServerProcess, pool: str, *argv: str, stdin: bool = False) -> None:
        self.process = subprocess.Popen(
            [
                *(sys.executable, "-P", "-m", "hostler", "run", "--server", server.url),
                *("--pool", pool, "--stdin" if stdin else "--no-stdin", "--", *argv),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(),
        )

    def end(self, stdin: bytes = b"") -> tuple[int, bytes, bytes]:
        out, err = self.process.communicate(stdin, timeout=120)
        return self.process.returncode, out, _without_notes(err)

    def line(self) -> bytes:
        """Read a line of its output."""
        assert self.process.stdout is not None
        return self.process.stdout.readline()


def _without_notes(err: bytes) -> bytes:
    """What the command wrote: `hostler run` says which lease waits and why."""
    return re.sub(rb"(?m)^l-\d+ waits in line.*\n", b"", err)


def run(server: ServerProcess, pool: str, *argv: str) -> tuple[int, bytes, bytes]:
    return Run(server, pool, *argv).end()


def test_output_comes_in_its_order_and_by_its_stream(server: ServerProcess, pool: str) -> None:
    script = "for i in $(seq 1 2000); do echo out $i; echo err $i >&2; done"
    code, out, err = run(server, pool, "sh", "-c", script)
    assert code == 0
    assert out.decode().splitlines() == [f"out {i}" for i in range(1, 2_001)]
    assert err.decode().splitlines() == [f"err {i}" for i in range(1, 2_001)]


@pytest.mark.parametrize(
    ("script", "code"), [("exit 3", 3), ("kill -KILL $$", 137), ("kill -TERM $$", 143)]
)
def test_the_exit_code_is_the_commands(
    server: ServerProcess, pool: str, script: str, code: int
) -> None:
    assert run(server, pool, "sh", "-c", script) == (code, b"", b"")


def test_a_program_that_is_not_there_is_127(server: ServerProcess, pool: str) -> None:
    code, out, err = run(server, pool, "no-such-program", "--help")
    assert (code, out) == (127, b"")
    assert b"no-such-program" in err


def test_input_goes_through_and_ends(server: ServerProcess, pool: str) -> None:
    data = os.urandom(3 * 2**20)
    assert Run(server, pool, "cat", stdin=True).end(data) == (0, data, b"")


def test_a_signal_reaches_the_command(server: ServerProcess, pool: str) -> None:
    script = "trap 'echo caught; exit 7' TERM; echo ready; while :; do sleep 0.1; done"
    running = Run(server, pool, "sh", "-c", script)
    assert running.line() == b"ready\n"
    running.process.send_signal(signal.SIGTERM)
    code, out, _ = running.end()  # shells also say that what they waited for was terminated
    assert (code, out) == (7, b"caught\n")


def test_100_mb_go_through_without_growth_of_memory(server: ServerProcess, pool: str) -> None:
    run(server, pool, "true")
    before = _peak_bytes(server)
    running = Run(server, pool, "head", "-c", str(BIG_BYTES), "/dev/zero")
    assert running.process.stdout is not None
    seen = 0
    while data := running.process.stdout.read(2**20):
        seen += len(data)
    client_peak = _status_bytes(running.process.pid)
    assert running.end()[0] == 0
    assert seen == BIG_BYTES
    assert _peak_bytes(server) - before < GROWTH_BYTES_MAX
    assert client_peak is None or client_peak < 200 * 2**20


def _peak_bytes(server: ServerProcess) -> int:
    found = _status_bytes(server.process.pid)
    assert found is not None
    return found


def _status_bytes(pid: int) -> int | None:
    try:
        told = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return None
    found = re.search(r"VmHWM:\s+(\d+) kB", told)
    return None if found is None else int(found[1]) * 1024


def test_a_client_that_is_killed_takes_its_command_along(
    server: ServerProcess, hosts: Hosts, engine: ContainerEngine, pool: str
) -> None:
    running = Run(server, pool, "sh", "-c", "echo ready; exec sleep 987654")
    assert running.line() == b"ready\n"
    assert _sleepers()
    running.process.kill()
    running.process.communicate()
    eventually(lambda: not _sleepers(), what="the command to be gone")


def _sleepers() -> list[str]:
    """The processes that sleep for as long as only a test of ours does, in containers too."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if b"987654" in (process / "cmdline").read_bytes().split(b"\0"):
                found.append(process.name)
        except OSError:
            continue
    return found


def test_a_connection_that_drops_is_told_and_the_host_is_clean_again(
    server: ServerProcess, hosts: Hosts
) -> None:
    running = Run(server, "ssh", "sh", "-c", "echo ready; exec sleep 987654")
    assert running.line() == b"ready\n"
    for host in hosts.hosts:
        host.cut_connections()
    code, _, err = running.end()
    assert code == 125
    assert b"lost" in err
    eventually(lambda: not _sleepers(), what="the command to be gone")
    assert run(server, "ssh", "echo", "again") == (0, b"again\n", b"")


def test_a_container_that_dies_is_told(server: ServerProcess, engine: ContainerEngine) -> None:
    running = Run(server, "docker", "sh", "-c", "hostname; exec sleep 987654")
    engine.podman("kill", "--signal=KILL", running.line().decode().strip())
    code, _, err = running.end()
    assert (code, b"container has ended" in err) == (125, True)
    assert run(server, "docker", "echo", "again") == (0, b"again\n", b"")


def test_nothing_of_a_lease_is_left_for_the_next(server: ServerProcess, hosts: Hosts) -> None:
    """X02, X05: a tenant leaves a file and a process behind."""
    code, _, _ = run(server, "ssh", "sh", "-c", "echo secret >note; sleep 987654 & exit 0")
    assert code == 0
    eventually(lambda: not _sleepers(), what="the process to be gone")
    _, out, _ = run(server, "ssh", "ls")
    assert b"note" not in out
    assert marked(str(hosts.hosts[0].home))  # the keeper is there: the host is still ours


def test_files_and_folders_are_copied_both_ways(
    server: ServerProcess, pool: str, tmp_path: Path
) -> None:
    tree = tmp_path / "tree"
    (tree / "sub").mkdir(parents=True)
    (tree / "sub" / "data").write_bytes(b"\x00\xff" * 500_000)
    (tree / "run").write_text("#!/bin/sh\ncat sub/data sub/data >both; echo no; exit 3\n")
    (tree / "run").chmod(0o755)
    done = subprocess.run(
        [
            *(sys.executable, "-P", "-m", "hostler", "run", "--server", server.url),
            *("--pool", pool, "--no-stdin", "--copy-in", f"{tree}:work", "--cwd", "work"),
            *("--copy-out", f"work/both:{tmp_path}/both", "--copy-out", f"work:{tmp_path}/back"),
            *("--", "./run"),
        ],
        capture_output=True,
        env=environment(),
        timeout=120,
        check=False,
    )
    # The command's own end counts, and what it made is fetched all the same.
    assert (done.returncode, done.stdout) == (3, b"no\n"), done.stderr
    assert (tmp_path / "both").read_bytes() == b"\x00\xff" * 1_000_000
    assert (tmp_path / "back" / "run").stat().st_mode & 0o777 == 0o755


def test_a_copy_that_cannot_be_is_told(server: ServerProcess, pool: str, tmp_path: Path) -> None:
    begun = [sys.executable, "-P", "-m", "hostler", "run", "--server", server.url, "--pool", pool]
    asked = [*begun, "--no-stdin", "--copy-out", f"nothing:{tmp_path}/x", "--", "true"]
    done = subprocess.run(asked, capture_output=True, env=environment(), timeout=120, check=False)
    assert (done.returncode, b"nothing" in done.stderr) == (125, True)
    asked = [*begun, "--copy-in", f"{tmp_path}/nothing", "--", "true"]
    done = subprocess.run(asked, capture_output=True, env=environment(), timeout=120, check=False)
    assert (done.returncode, b"there is no" in done.stderr) == (2, True)
