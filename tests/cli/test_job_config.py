"""A changed configuration, from `hostler apply` to the running job and back into `describe`."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.cli.test_walk import Walk
from tests.machines import free_port

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

FLEET = """\
fleet:
  id: configured
  recovery: {spacing: 100ms}
server: {port: PORT, data: data}
pools:
  main:
    tiers:
      - {name: own, kind: fixed}
"""

JOB = """
from hostler import workload

def take(config):
    print("works by", config.number, "with", len(config.values["key"]), "letters", flush=True)

workload.on_change(take, every_s=0.1)
workload.ready()
while not workload.stopping(within_s=1):
    pass
"""


def bundle(key: str) -> str:
    """Return a bundle whose only job works by a key that is nobody else's business."""
    job = {
        "name": "player",
        "run": {"argv": [sys.executable, "-c", JOB], "readiness": {"sd_notify": {}}},
        "config": {"values": {"key": key}},
    }
    return json.dumps({"bundle": "show", "pool": "main", "jobs": [job]})


@pytest.fixture
def walk(tmp_path: Path) -> Iterator[Walk]:
    walk = Walk(tmp_path)
    port = free_port()
    walk.url = f"http://127.0.0.1:{port}"
    (tmp_path / "hostler.yaml").write_text(FLEET.replace("PORT", str(port)))
    walk.start("server", "server", "-c", "hostler.yaml")
    walk.start("agent", "agent", "--pool", "main", "--tier", "own", "--data", "agent")
    yield walk
    walk.clean_up()


def apply(walk: Walk, key: str) -> str:
    (walk.folder / "show.json").write_text(bundle(key))
    return walk.said("apply", "-f", "show.json", "--wait", "--timeout", "60s")


def works_by(walk: Walk, told: str) -> bool:
    return told in walk.run("logs", "show/player/0").stdout


def test_a_change_reaches_the_running_job_survives_crashes_and_is_told_to_nobody_else(
    walk: Walk,
) -> None:
    walk.eventually(lambda: " ready " in walk.run("get", "nodes").stdout, "the agent is a node")
    apply(walk, "s3cret")
    walk.eventually(lambda: works_by(walk, "works by 1 with 6 letters"), "the first is read")
    (before,) = _allocations(walk)

    walk.kill("server")
    walk.start("server2", "server", "-c", "hostler.yaml")
    walk.eventually(lambda: walk.run("get", "nodes").returncode == 0, "the server is back")
    assert "changed" in apply(walk, "an0ther-s3cret")
    walk.eventually(lambda: works_by(walk, "works by 2 with 14 letters"), "the change is read")
    assert _allocations(walk) == [before]
    told = "2 wanted, 2 delivered, 2 applied"
    walk.eventually(lambda: told in walk.said("describe", "replica", "show/player/0"), told)
    described = walk.said("describe", "bundle", "show")
    assert "DELIVERED" in described

    _kill_job(walk)
    walk.eventually(lambda: _allocations(walk) not in ([], [before]), "the replica has a new place")
    walk.eventually(lambda: works_by(walk, "works by 2 with 14 letters"), "and works by the latest")

    everything = [walk.said("get", "bundles", "-o", "json"), described]
    everything += [file.read_text() for file in walk.folder.glob("*.log")]
    assert not any("s3cret" in text for text in everything)


def test_one_job_is_given_another_configuration_alone(walk: Walk) -> None:
    walk.eventually(lambda: " ready " in walk.run("get", "nodes").stdout, "the agent is a node")
    apply(walk, "s3cret")
    (before,) = _allocations(walk)
    (walk.folder / "config.yaml").write_text("values: {key: by-itself}\n")
    said = walk.said("config", "set", "show/player", "-f", "config.yaml", "--wait")
    assert "works by configuration 2 from now on" in said
    assert "every running copy has it" in said
    walk.eventually(lambda: works_by(walk, "works by 2 with 9 letters"), "the change is read")
    assert _allocations(walk) == [before]

    stale = walk.run("config", "set", "show/player", "--clear", "--if-generation", "1")
    assert stale.returncode == 4, stale.stderr
    assert "the bundle is at generation 2, not 1" in stale.stderr
    (walk.folder / "config.yaml").write_text("values: 7\nsignal: SIGKILL\n")
    bad = walk.run("config", "set", "show/player", "-f", "config.yaml")
    assert bad.returncode == 2
    assert "config.yaml:1" in bad.stderr
    assert "SIGHUP" in bad.stderr
    neither = walk.run("config", "set", "show/player")
    assert (neither.returncode, "--clear" in neither.stderr) == (2, True)

    agent = walk.process("agent")
    agent.send_signal(signal.SIGSTOP)
    try:
        argv = ("config", "set", "show/player", "-f", "config.yaml", "--wait", "--timeout", "1s")
        (walk.folder / "config.yaml").write_text("values: {key: late}\n")
        late = walk.run(*argv)
    finally:
        agent.send_signal(signal.SIGCONT)
    assert late.returncode == 1
    assert "not delivered within 1s; 1 to go, show/player/0 first" in late.stderr


def _allocations(walk: Walk) -> list[str]:
    found = json.loads(walk.said("get", "allocations", "-o", "json"))
    return [each["allocation_id"] for each in found["items"]]


def _kill_job(walk: Walk) -> None:
    for process in psutil.process_iter():
        try:
            if process.cmdline()[1:] == ["-c", JOB] and str(walk.folder) in process.cwd():
                process.kill()
        except (psutil.Error, IndexError):
            continue
