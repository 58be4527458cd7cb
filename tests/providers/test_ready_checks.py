"""Ready checks on real containers and real hosts: no lease before the machine itself says yes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from hostler.base.errors import HostlerError
from hostler.client import SyncClient
from hostler.wire.http import NodeView
from tests.cli.conftest import ServerProcess, environment, start_server
from tests.eventually import eventually
from tests.machines import IMAGE, ContainerEngine
from tests.providers.ssh_lab import Hosts

pytestmark = [pytest.mark.slow, pytest.mark.e2e]

CONFIGURATION = """\
fleet:
  id: ready-checks
  timing: {{heartbeat: 200ms, suspect_after: 2s, fence_after: 20s, lost_after: 40s}}
server: {{port: 0, data: data}}
pools:
  docker:
    warm: 1
    boot_failures_max: 1
    ready:
      command: [sh, -c, {script}, {gate}]
      interval: 200ms
      successes: 2
      deadline: {deadline}
    tiers:
      - name: containers
        kind: elastic
        provider: docker
        node_count_max: 1
        offers: [{{name: small, shape: {{capacity: 1, memory: 64MiB}}}}]
        options:
          image: {image}
          socket: {socket}
          pull: never
          network: none
          mounts: ["{folder}:/gate:ro"]
          ulimits: {{nofile: {{soft: 1024, hard: 4096}}, nproc: {{soft: 1024, hard: 1024}}}}
  ssh:
    warm: 1
    boot_failures_max: 1
    ready: {{command: [sh, -c, {script}, {folder}/open], interval: 200ms, deadline: {deadline}}}
    tiers:
      - name: hosts
        kind: elastic
        provider: ssh
        node_count_max: 1
        offers: [{{name: host, shape: {{capacity: 1}}}}]
        options: {options}
"""

SCRIPT = "'echo DB_PASSWORD=hunter2; test -e $0 || { echo the gate is shut >&2; exit 4; }'"


@pytest.fixture(params=["5m", "11s"])
def world(
    request: pytest.FixtureRequest, engine: ContainerEngine, hosts: Hosts, tmp_path: Path
) -> Iterator[tuple[ServerProcess, Path]]:
    """A server whose machines wait for a gate; the parameter is until when they may."""
    folder = tmp_path / "gate"
    folder.mkdir(mode=0o755)
    host = hosts.hosts[0]
    options = {
        "hosts": [{"host": "127.0.0.1", "port": host.port, "host_key": host.host_key}],
        "key": str(hosts.key),
    }
    configuration = CONFIGURATION.format(
        image=IMAGE,
        socket=engine.socket,
        options=json.dumps(options),
        folder=folder,
        script=SCRIPT,
        gate="/gate/open",
        deadline=request.param,
    )
    server = start_server(tmp_path, configuration)
    yield server, folder
    server.end()
    engine.remove_all()
    hosts.clean()


def of_pool(client: SyncClient, pool: str) -> NodeView | None:
    """Return the first node of a pool, whatever became of it."""
    return next((node for node in client.nodes(pool=pool, include_retired=True)), None)


def describe(server: ServerProcess, node_id: str) -> str:
    argv = [sys.executable, "-P", "-m", "hostler", "describe", "node", node_id]
    done = subprocess.run(
        [*argv, "--server", server.url], env=environment(), capture_output=True, check=True
    )
    return done.stdout.decode()


@pytest.mark.parametrize("pool", ["docker", "ssh"])
@pytest.mark.parametrize("world", ["5m"], indirect=True)
def test_no_lease_gets_a_machine_before_it_has_passed(
    world: tuple[ServerProcess, Path], pool: str
) -> None:
    server, folder = world
    with SyncClient(server.url) as client:

        def tried() -> NodeView | None:
            node = of_pool(client, pool)
            is_tried = node is not None and node.readiness is not None
            return node if is_tried and node.readiness.try_count > 1 else None  # type: ignore[union-attr]  # asked above

        node = eventually(tried, what="two tries of the ready check", within_s=60)
        assert node is not None
        assert node.phase == "starting"
        told = describe(server, node.node_id)
        assert "exit code 4" in told
        assert "the gate is shut" in told
        assert "hunter2" not in told
        with pytest.raises(HostlerError), client.lease(pool, timeout_ms=0):
            pass
        (folder / "open").touch()
        with client.lease(pool, timeout_ms=60_000) as lease:
            assert lease.node_id == node.node_id


@pytest.mark.parametrize("pool", ["docker", "ssh"])
@pytest.mark.parametrize("world", ["11s"], indirect=True)
def test_one_that_never_passes_is_ended_and_its_evidence_kept(
    world: tuple[ServerProcess, Path], pool: str
) -> None:
    server, _ = world
    with SyncClient(server.url) as client:

        def retired() -> NodeView | None:
            node = of_pool(client, pool)
            return node if node is not None and node.phase == "retired" else None

        node = eventually(retired, what="the failed boot", within_s=60)
        assert node is not None
        assert node.launch_failure is not None
        assert node.launch_failure.code == "never_ready"
        told = describe(server, node.node_id)
        assert "never_ready" in told
        assert "the gate is shut" in told
        assert "hunter2" not in told
