"""Real containers under a server that is killed again and again: each run has one node, nothing is
left over, and the books say what the containers say.

The kills come at instants that follow from a seed; what they hit depends on the machine, as always
with real processes, so what is asserted holds whatever they hit.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import pytest

from hostler.base.encoding import decode
from hostler.base.errors import HostlerError
from hostler.client import Client
from hostler.model import Node
from hostler.store.open import open_store
from hostler.wire.http import AcquireRequest, NodeView
from tests.cli.conftest import environment
from tests.eventually import eventually_async, pause
from tests.machines import IMAGE, ContainerEngine, free_port

pytestmark = [pytest.mark.slow, pytest.mark.e2e]

SEED = 4
RUN_COUNT = 20
WARM_COUNT = 5
KILL_COUNT = 10
PAUSE_S_MAX = 1.2
BOOKS_MS = 1_000
"""How far the books may be from a container's own times, each."""

CONFIGURATION = """\
fleet:
  id: ten-kills-{port}
  timing: {{heartbeat: 300ms, suspect_after: 5s, fence_after: 20s, lost_after: 40s, list_every: 2s}}
server: {{port: {port}, data: data}}
pools:
  runners:
    warm: {warm}
    idle: 1s
    uses_max: 3
    lease: 5m
    tiers:
      - name: containers
        kind: elastic
        provider: docker
        node_count_max: 7
        offers: [{{name: small, price_per_hour: "3.60", shape: {{capacity: 1, memory: 64MiB}}}}]
        options:
          image: {image}
          socket: {socket}
          pull: never
          network: none
          ulimits: {{nofile: {{soft: 1024, hard: 4096}}, nproc: {{soft: 1024, hard: 1024}}}}
"""

SCRIPT = """
mine=$(basename "$PWD")
for other in ../*; do [ "$(basename "$other")" = "$mine" ] || exit 9; done
sleep 0.3
hostname
"""
"""Fails when the folder of another tenant is beside its own: he has not been cleared away."""


@dataclass
class World:
    """A server that is killed and comes back, and what its lessees saw."""

    folder: Path
    engine: ContainerEngine
    port: int = field(default_factory=free_port)
    rng: random.Random = field(default_factory=lambda: random.Random(SEED))
    server: subprocess.Popen[bytes] | None = None
    hosts_by_run: dict[int, set[str]] = field(default_factory=dict)
    """Names of the containers that a run's command ran in."""
    leases: dict[int, str] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def configure(self, warm: int) -> None:
        text = CONFIGURATION.format(
            port=self.port, warm=warm, image=IMAGE, socket=self.engine.socket
        )
        (self.folder / "hostler.yaml").write_text(text)

    def start(self) -> None:
        argv = [sys.executable, "-P", "-m", "hostler", "server", "-c", "hostler.yaml"]
        with (self.folder / "server.log").open("ab") as log:
            self.server = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environment(),
                cwd=self.folder,
                start_new_session=True,
            )

    def kill(self) -> None:
        if self.server is not None:
            self.server.kill()
            self.server.wait()

    async def kill_again_and_again(self) -> None:
        for _ in range(KILL_COUNT):
            await pause(self.rng.uniform(0.05, PAUSE_S_MAX))
            self.kill()
            self.start()

    def containers(self) -> dict[str, str]:
        """Return every container that exists: its short id by its name."""
        rows = json.loads(self.engine.podman("ps", "--all", "--format=json"))
        return {row["Names"][0]: row["Id"][:12] for row in rows}

    def lives_ms(self) -> dict[str, tuple[int, int]]:
        """Return from when to when each container ran, by the engine's own account."""
        # The engine's journal is one for all that run on this machine.
        told = self.engine.podman(
            *("events", "--stream=false", "--since=2h", "--format=json"),
            f"--filter=label=hostler.fleet=ten-kills-{self.port}",
        )
        began: dict[str, int] = {}
        ended: dict[str, int] = {}
        for line in told.splitlines():
            event = json.loads(line)
            if event.get("Type") == "container":
                at_ms = _at_ms(event)
                if event["Status"] == "start":
                    began[event["Name"]] = at_ms
                elif event["Status"] == "died":
                    ended[event["Name"]] = at_ms
        assert began.keys() == ended.keys()
        return {name: (began[name], ended[name]) for name in began}

    async def books_ms(self) -> dict[str, tuple[int, int]]:
        """Return from when to when each machine was metered, by the records of the dead server."""
        store = await open_store(f"sqlite:///{self.folder}/data/hostler.db")
        try:
            bodies = (await store.load()).records[Node.KIND].values()
        finally:
            await store.close()
        nodes = [decode(body, Node) for body in bodies]
        return {
            str(node.machine_id): (node.metered_from_ms or 0, node.metered_until_ms or 0)
            for node in nodes
        }


def _at_ms(event: dict[str, str]) -> int:
    if "timeNano" in event:
        return int(event["timeNano"]) // 1_000_000
    # Older engines write nanoseconds, which no parser of ours reads.
    whole, fraction, zone = re.split(r"\.(\d{1,6})\d*", event["Time"], maxsplit=1)
    return round(datetime.fromisoformat(f"{whole}.{fraction:0<6}{zone}").timestamp() * 1_000)


@pytest.fixture
def world(engine: ContainerEngine, tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path, engine)
    world.configure(WARM_COUNT)
    world.start()
    yield world
    world.kill()
    engine.remove_all()


async def test_ten_kills_double_nothing_forget_nothing_and_the_books_are_right(
    world: World,
) -> None:
    async with Client(world.url, retry_ms=60_000) as client:
        await _until_warm(client)
        runs = [asyncio.create_task(_run(world, client, number)) for number in range(RUN_COUNT)]
        await world.kill_again_and_again()
        await asyncio.wait_for(asyncio.gather(*runs), 120)
        assert sorted(world.hosts_by_run) == list(range(RUN_COUNT))
        assert {len(found) for found in world.hosts_by_run.values()} == {1}
        await _each_lease_was_granted_once(world, client)
        nodes = await _until_warm(client)
        assert set(world.containers()) == {str(node.machine_id) for node in nodes}

        world.configure(0)
        await client.reload_config()
        await _until_empty(world, client)
        (total,) = await client.spend(by="offer")
    world.kill()
    books, lives = await world.books_ms(), world.lives_ms()
    assert len(lives) >= WARM_COUNT
    assert books.keys() == lives.keys()
    assert total.node_ms == sum(until - since for since, until in books.values())
    for name, (since, until) in lives.items():
        booked_since, booked_until = books[name]
        assert abs(booked_since - since) <= BOOKS_MS, name
        assert abs(booked_until - until) <= BOOKS_MS, name


async def _run(world: World, client: Client, number: int) -> None:
    """Take a lease, run a command over it until one run goes through, and give it back."""
    asked = AcquireRequest(pool="runners", key=f"run-{number}", timeout_ms=180_000)
    lease = await client.acquire(asked)
    world.leases[number] = lease.lease_id
    while True:
        try:
            result = await lease.run(["sh", "-c", SCRIPT])
        except HostlerError:
            await pause(0.1)  # the server that carried it is gone; the lease is not
            continue
        assert result.status == 0, f"{lease.lease_id} ended with {result.status}"
        world.hosts_by_run.setdefault(number, set()).add(result.stdout.decode().strip())
        break
    await lease.release()


async def _each_lease_was_granted_once(world: World, client: Client) -> None:
    """No lease was granted twice, and no node while another lease held it."""
    holder: dict[str, str] = {}
    granted: list[str] = []
    kinds = ["lease_granted", "lease_settled"]
    async for event in client.events(after_seq=0, kinds=kinds, follow=False):
        node_id, lease_id = event.about["node"], event.about["lease"]
        if event.kind == "lease_granted":
            assert node_id not in holder, f"{node_id} is held by {holder[node_id]}"
            holder[node_id] = lease_id
            granted.append(lease_id)
        else:
            assert holder.pop(node_id) == lease_id
    assert sorted(granted) == sorted(world.leases.values())


async def _until_warm(client: Client) -> list[NodeView]:
    async def are_warm() -> list[NodeView]:
        try:
            nodes = [node for node in await client.nodes() if node.phase != "retired"]
        except HostlerError:
            return []
        is_so = len(nodes) == WARM_COUNT and all(
            node.phase == "ready" and node.lease_count == 0 for node in nodes
        )
        return nodes if is_so else []

    return await eventually_async(are_warm, within_s=90, what=f"{WARM_COUNT} warm nodes")


async def _until_empty(world: World, client: Client) -> None:
    async def is_empty() -> bool:
        nodes = [node for node in await client.nodes() if node.phase != "retired"]
        return not nodes and not await asyncio.to_thread(world.containers)

    await eventually_async(is_empty, within_s=60, what="no container is left")
