"""Three nodes as network namespaces, each on a cable of its own that can be pulled.

The server listens on a bridge, with a certificate and tokens as on any network; an agent in each
namespace dials it. Killing a node ends every process in its namespace at once, as a power cut does;
cutting it takes its cable down, so that nothing arrives and nobody is told.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final

import pytest

from hostler.client import Client
from hostler.wire.documents import read_bundles
from hostler.wire.http import CreateTokenRequest, NodeView
from tests.eventually import eventually, eventually_async
from tests.machines import free_port, need

STAND_IN: Final = Path(__file__).parent / "stand_in.py"
COUNT: Final = 3

CONFIGURATION: Final = """
fleet:
  id: {name}
  timing:
    heartbeat: 250ms
    suspect_after: 1500ms
    fence_after: 5s
    lost_after: 9s
    lost_nodes_max: 1000
  recovery: {{restarts_max: 1000, spacing: 100ms, exclusion: 1s}}
server: {{bind: "{address}", port: {port}, data: data, tls: {{cert: cert.pem, key: key.pem}}}}
pools:
  main:
    tiers:
      - {{name: own, kind: fixed}}
"""

JOB: Final = """
  - name: {name}
    band: {band}
    requires: {{capacity: 1}}
    {more}
    run:
      argv: ["{python}", -I, -S, -E, "{stand_in}", "{records}", "${{HOSTLER_REPLICA}}"]
      readiness: {{exec: {{argv: [test, -e, ready], interval: 100ms}}}}
      ready_within: 30s
      stop: {{signal: SIGTERM, grace: 1s}}
      disconnect: {disconnect}
"""


class Island:
    """One node: a namespace, a cable, and an agent's folder."""

    def __init__(self, fleet: Islands, number: int) -> None:
        self.name = f"{fleet.name}n{number}"
        self.cable = f"{fleet.name}c{number}"
        self.address = fleet.address_of(number + 10)
        self._fleet = fleet
        self.agent: subprocess.Popen[bytes] | None = None

    def dig(self) -> None:
        """Make the namespace and plug it in."""
        ip("netns", "add", self.name)
        ip("link", "add", self.cable, "type", "veth", "peer", "name", "eth0", "netns", self.name)
        ip("link", "set", self.cable, "master", self._fleet.bridge, "up")
        ip("-n", self.name, "addr", "add", f"{self.address}/24", "dev", "eth0")
        for link in ("lo", "eth0"):
            ip("-n", self.name, "link", "set", link, "up")

    def fill(self) -> None:
        """Remove the namespace with everything in it."""
        self.kill()
        with suppress(subprocess.CalledProcessError):
            ip("netns", "del", self.name)

    def settle(self) -> None:
        """Start the agent."""
        fleet = self._fleet
        argv = [
            *("nsenter", f"--net=/run/netns/{self.name}", sys.executable, "-P", "-m", "hostler"),
            *("agent", "--server", fleet.url, "--ca-file", str(fleet.root / "cert.pem")),
            *("--join-token-file", str(fleet.root / "join.token"), "--name", self.name),
            *("--data", str(fleet.root / self.name), "--capacity", "12"),
        ]
        self.agent = fleet.spawn(self.name, argv)

    def cut(self) -> None:
        """Pull the cable: nothing goes through any more, and no end hears of it."""
        ip("link", "set", self.cable, "down")

    def mend(self) -> None:
        """Plug the cable in again."""
        ip("link", "set", self.cable, "up")

    def pids(self) -> list[int]:
        """Return every process in the namespace."""
        return [int(pid) for pid in ip("netns", "pids", self.name).split()]

    def kill(self) -> int:
        """Kill -9 everything at once, again until nothing is left; return how many it was first."""
        count = 0

        def is_dead() -> bool:
            nonlocal count
            pids = self.pids() if Path("/run/netns", self.name).exists() else []
            count = count or len(pids)
            for pid in pids:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            return not pids

        eventually(is_dead, what=f"{self.name} is dead")
        if self.agent is not None:
            self.agent.wait()
        return count


class Islands:
    """The server, its islands, and what their work writes down."""

    def __init__(self) -> None:
        self.root = Path(tempfile.mkdtemp(prefix="hostler-islands-"))
        self.records = self.root / "records"
        self.records.mkdir()
        token = secrets.token_hex(3)
        self.name = f"h{token}"
        self.bridge = f"{self.name}b"
        # Of a network for tests of devices (RFC 2544), which nobody routes.
        self._net = f"198.18.{int(token[:2], 16)}"
        self.port = free_port()
        self.islands = [Island(self, number) for number in range(COUNT)]
        self.server: subprocess.Popen[bytes] | None = None
        self._client: Client | None = None

    def address_of(self, number: int) -> str:
        return f"{self._net}.{number}"

    @property
    def url(self) -> str:
        return f"https://{self.address_of(1)}:{self.port}"

    @property
    def client(self) -> Client:
        assert self._client is not None
        return self._client

    def spawn(self, name: str, argv: list[str]) -> subprocess.Popen[bytes]:
        kept = {key: value for key, value in os.environ.items() if not key.startswith("HOSTLER_")}
        with (self.root / f"{name}.log").open("ab") as log:
            return subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**kept, "HOSTLER_ISLANDS": str(self.root)},
                cwd=self.root,
                start_new_session=True,
            )

    async def begin(self) -> None:
        """Dig everything, and wait until all islands are nodes."""
        address = self.address_of(1)
        ip("link", "add", self.bridge, "type", "bridge")
        ip("addr", "add", f"{address}/24", "dev", self.bridge)
        ip("link", "set", self.bridge, "up")
        for island in self.islands:
            island.dig()
        _certify(self.root, address)
        text = CONFIGURATION.format(name=self.name, address=address, port=self.port)
        (self.root / "hostler.yaml").write_text(text)
        self.start_server()
        token = eventually(self._admin_token, what="the server has written the admin's token")
        self._client = Client(self.url, token=token, tls_ca=self.root / "cert.pem", retry_ms=30_000)
        asked = CreateTokenRequest(name="islands", role="agent", pool="main", tier="own")
        created = await self._client.create_token(asked)
        (self.root / "join.token").write_text(created.secret)
        for island in self.islands:
            island.settle()
        await self.until_nodes_are("live")

    def start_server(self) -> None:
        argv = [sys.executable, "-P", "-m", "hostler", "server", "-c"]
        self.server = self.spawn("server", [*argv, str(self.root / "hostler.yaml")])

    def _admin_token(self) -> str | None:
        with suppress(FileNotFoundError):
            return (self.root / "data" / "admin.token").read_text().strip() or None
        return None

    async def until_nodes_are(self, health: str) -> None:
        async def are_so() -> bool:
            nodes = await self.client.nodes()
            return len(nodes) == COUNT and all(
                node.phase == "ready" and node.health == health for node in nodes
            )

        await eventually_async(are_so, what=f"{COUNT} nodes are {health}")

    async def node(self, island: Island) -> NodeView:
        """Return the newest node of an island."""
        nodes = [node for node in await self.client.nodes() if node.hostname == island.name]
        return max(nodes, key=lambda node: node.node_id)

    async def submit(
        self, bundle: str, *, replicas: int = 1, fields: str = "", **jobs: str
    ) -> None:
        """Submit a bundle: by job, its band, or `keep` for one that goes on when it is cut off."""
        made = [
            JOB.format(
                name=name,
                band="silver" if band == "keep" else band,
                disconnect="keep" if band == "keep" else "stop",
                more="overlap: forbidden",
                python=sys.executable,
                stand_in=STAND_IN,
                records=self.records,
            )
            for name, band in jobs.items()
        ]
        text = f"bundle: {bundle}\npool: main\nreplicas: {replicas}\n{fields}\njobs:{''.join(made)}"
        await self.client.submit_bundle(read_bundles(text)[0].require())

    async def until_all_ready(self) -> dict[str, str]:
        """Wait until every replica is ready; return the node of each."""

        async def are_ready() -> dict[str, str] | None:
            replicas = await self.client.replicas()
            found = {each.replica_id: each.node_id for each in replicas if each.node_id}
            is_all = all(each.allocation_phase == "ready" for each in replicas)
            return found if is_all and len(found) == len(replicas) else None

        return await eventually_async(are_ready, within_s=60, what="every replica is ready") or {}

    def is_work(self, pid: int) -> bool:
        """Say whether a process is a copy of the work that runs."""
        with suppress(OSError):
            is_dead = b") Z " in Path(f"/proc/{pid}/stat").read_bytes()
            return (
                not is_dead and str(STAND_IN).encode() in Path(f"/proc/{pid}/cmdline").read_bytes()
            )
        return False

    async def end(self, *, is_kept: bool) -> None:
        """Kill and remove everything; the folder stays if somebody is to look at it."""
        if self._client is not None:
            await self._client.close()
        for island in self.islands:
            island.fill()
        if self.server is not None:
            self.server.kill()
            self.server.wait()
        with suppress(subprocess.CalledProcessError):
            ip("link", "del", self.bridge)
        if not is_kept:
            shutil.rmtree(self.root, ignore_errors=True)


@asynccontextmanager
async def islands() -> AsyncIterator[Islands]:
    """Give a fleet of islands; skip the test where namespaces cannot be made."""
    need("ip")
    need("openssl")
    if not _may_dig():
        pytest.skip("network namespaces need root (CAP_SYS_ADMIN and CAP_NET_ADMIN)")
    fleet = Islands()
    try:
        await fleet.begin()
        yield fleet
    except BaseException:
        await fleet.end(is_kept=True)
        raise
    await fleet.end(is_kept=False)


def _may_dig() -> bool:
    name = f"h{secrets.token_hex(3)}t"
    try:
        ip("netns", "add", name)
        ip("link", "add", f"{name}c", "type", "veth", "peer", "name", "eth0", "netns", name)
    except subprocess.CalledProcessError:
        return False
    finally:
        with suppress(subprocess.CalledProcessError):
            ip("netns", "del", name)
    return True


def ip(*argv: str) -> str:
    """Configure the network."""
    done = subprocess.run([need("ip"), *argv], check=True, capture_output=True, text=True)
    return done.stdout


def _certify(folder: Path, address: str) -> None:
    argv = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
    argv += ["-nodes", "-days", "2", "-subj", "/CN=islands"]
    argv += ["-addext", f"subjectAltName=IP:{address}"]
    argv += ["-keyout", str(folder / "key.pem"), "-out", str(folder / "cert.pem")]
    subprocess.run(argv, check=True, capture_output=True)
